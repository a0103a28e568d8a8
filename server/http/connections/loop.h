/*
 * loop.h: an event loop: a thread that runs one daemon of the HTTP library, and the dispatcher
 * beside it.
 *
 * Where one thread reads requests, sends commands to workers, takes their answers and sends them
 * on, a call crosses from the front to a worker and back and changes threads no more than that. A
 * thread that sleeps has to be woken, which costs more than all the front does for a small job; so
 * with a GPU and cores to spare a loop goes on looking for a moment after something has happened.
 *
 * Threads: created, quiesced and destroyed by the main thread.
 */
#ifndef KILN_SERVER_HTTP_CONNECTIONS_LOOP_H
#define KILN_SERVER_HTTP_CONNECTIONS_LOOP_H

#include "server/core/service.h"

#include <microhttpd.h>

struct loop;

/** Starts the thread. The loop owns `daemon` (external epoll, with suspending) from here on, on
    failure too. `drives`: it turns the service's dispatcher; one loop does. NULL on failure. */
struct loop *loop_create(struct service *service, struct MHD_Daemon *daemon, bool drives);
/** The loop whose thread this is; NULL on other threads. */
struct loop *loop_current(void);
/** Has the loop look at its connections again, after one was resumed. Any thread. */
void loop_poke(struct loop *loop);
/** Whether the loop has made a whole turn, with the HTTP library and the dispatcher, since this was
    asked last; asks for the next one. One thread. */
bool loop_turns(struct loop *loop);
/** Has the daemon take no more connections, soon. */
void loop_quiesce(struct loop *loop);
/** Joins the thread and stops the daemon. No request may be suspended. NULL is allowed. */
void loop_destroy(struct loop *loop);

#endif
