/*
 * client.h: the front's side of the store: commands go out, call-backs bring the answers.
 *
 * Commands are bounded in number; none waits for another's answer. When the process of the store
 * dies, what is in flight stays so: whoever starts a new one gives its socket to
 * store_client_connect, and the commands are sent again, which is harmless, because every change
 * can be made twice. A command that has lost SENDS_MAX processes is answered with KILN_STORE; so
 * are all by store_client_fail. Until there is a new process nothing more is taken.
 *
 * Threads: submit from any; connect, serve, fail and destroy on the event loop's, where the
 * call-backs happen. A call-back may submit. Ownership: bytes of the arena that a command names
 * stay the caller's and have to stay as they are until its call-back; everything else is copied.
 */
#ifndef KILN_COMPUTE_STORE_CLIENT_H
#define KILN_COMPUTE_STORE_CLIENT_H

#include "compute/store/command.h"

#define STORE_SENDS_MAX 2

struct store_client;

struct store_call {
    /** The answer is valid during the call; a descriptor in it is the receiver's to close. */
    void (*done)(void *context, struct store_answer *answer);
    void *context;
};

/** `in_flight`: commands without an answer, at most. */
enum kiln_status store_client_create(const struct store_arena *arena, size_t in_flight,
                                     struct store_client **client);
/** Answers what is in flight with KILN_STORE. NULL is allowed. */
void store_client_destroy(struct store_client *client);

/** A process has been started; takes the socket over. */
void store_client_connect(struct store_client *client, int socket);
/** Gives up on what is in flight. */
void store_client_fail(struct store_client *client);

/** The socket to be polled, for these events; -1: there is no process, one is to be started. */
int store_client_fd(struct store_client *client, short *events);
/** Sends and receives what there is without waiting, calls back. */
void store_client_serve(struct store_client *client);
/** The process has its store open; `stats` are those of then. */
bool store_client_ready(struct store_client *client, struct store_stats *stats);
size_t store_client_in_flight(struct store_client *client);

/** KILN_OK: `call.done` will be called, once. BUSY: too many in flight; STORE: no process; INVALID:
    does not fit into a packet, or names bytes outside of the arena. The ticket is given here. */
enum kiln_status store_client_submit(struct store_client *client,
                                     const struct store_command *command, struct store_call call);

#endif
