/*
 * packet.h: jobs that go to a worker's slot together, as commands, from their choice to the socket.
 *
 * A packet is made under the queue's lock and sent after it is released, by the thread that held
 * it: waking a slot takes longer than all else that is done under the lock. Its jobs have their
 * places from the moment it is made. Packets are of a fixed number and used again before
 * another one is touched.
 *
 * Threads: packets_put and packets_take under the queue's lock; packet_send without it.
 */
#ifndef KILN_COMPUTE_DISPATCH_STATE_PACKET_H
#define KILN_COMPUTE_DISPATCH_STATE_PACKET_H

#include "compute/dispatch/state/supervisor.h"
#include "compute/worker/command.h"

/** Where a packet goes. */
struct packet_target {
    struct supervisor *supervisor;
    uint32_t process; /* the supervisor's then: a later one is not meant */
    int socket, slot;
};

struct packet {
    struct packet *next;
    struct packet_target target;
    size_t count;
    struct command commands[GROUP_MAX];
};

struct packets {
    struct packet *all;            /* in one piece */
    int used;                      /* how many of them were ever needed */
    struct packet *spare;          /* stack */
    struct packet *first, **last;  /* made and not taken yet */
    _Atomic(struct packet *) sent; /* stack of those that can become spare */
};

/** KILN_NO_MEMORY. */
enum kiln_status packets_init(struct packets *packets);
void packets_finish(struct packets *packets);
/** Puts `count` (1 … GROUP_MAX) alike jobs, which have their result blocks, into places of a worker
    that has room and so many free ones, and makes their packet. KILN_BUSY: too many are on their
    way already. */
enum kiln_status packets_put(struct packets *packets, struct supervisor *supervisor,
                             struct job *const *jobs, int count);
/** All that were made since the last call, in that order; the caller's, to be sent. */
struct packet *packets_take(struct packets *packets);
/** Sends one, which is the caller's no more. 0, or the errno of the socket. */
int packet_send(struct packets *packets, struct packet *packet);

#endif
