/*
 * loop.h: an event loop: a thread that runs one daemon of the HTTP library, and whatever else is to
 * be turned beside it: the dispatcher, on the first one.
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

#include <microhttpd.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct loop;

/** What a loop turns beside HTTP. */
struct loop_driven {
    int fd; /* readable when `turn` has something to take; the loop watches a duplicate */
    /** Takes what has happened, without waiting; false if there was nothing. */
    bool (*turn)(void *context);
    /** Milliseconds after which a turn is due anyway; negative: none will be any more. */
    int (*timeout)(void *context);
    void *context;
};

struct loop_options {
    struct MHD_Daemon *daemon;        /* external epoll, with suspending */
    const struct loop_driven *driven; /* copied; NULL: HTTP alone */
    bool spins;                       /* answers come so fast that looking for them pays */
    const _Atomic uint64_t *active;   /* requests in hand, of all loops */
};

/** Starts the thread. The loop owns the daemon from here on, on failure too. NULL on failure. */
struct loop *loop_create(const struct loop_options *options);
/** The loop whose thread this is; NULL on other threads. */
struct loop *loop_current(void);
/** Has the loop look at its connections again, after one was resumed. Any thread. */
void loop_poke(struct loop *loop);
/** Whether the loop has made a whole turn, with the HTTP library and what it drives, since this was
    asked last; asks for the next one. One thread. */
bool loop_turns(struct loop *loop);
/** Has the daemon take no more connections, soon. */
void loop_quiesce(struct loop *loop);
/** Joins the thread and stops the daemon. No request may be suspended. NULL is allowed. */
void loop_destroy(struct loop *loop);

#endif
