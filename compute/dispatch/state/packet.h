/*
 * packet.h: jobs that go to a worker's slot together, as commands.
 *
 * Threads: under the queue's lock.
 */
#ifndef KILN_COMPUTE_DISPATCH_STATE_PACKET_H
#define KILN_COMPUTE_DISPATCH_STATE_PACKET_H

#include "compute/dispatch/state/supervisor.h"

/** Sends `count` (1 … GROUP_MAX) alike jobs, which have their result blocks, to a worker that has
    room and so many free places. KILN_BUSY: the socket has no room; KILN_NO_DEVICE: the worker is
    gone (and marked so). */
enum kiln_status packet_send(struct supervisor *supervisor, struct job *const *jobs, int count);

#endif
