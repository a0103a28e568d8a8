/*
 * dispatcher.h: the dispatcher as an executor, and its life in this daemon.
 *
 * Whoever uses it, as an executor or by its own calls, does so between dispatcher_enter and
 * dispatcher_leave: so closing can wait until nobody is inside, and can be sure that nobody enters
 * afterwards.
 *
 * Threads: any; all but the gate is constant.
 */
#ifndef KILN_SERVER_JOBS_DISPATCHER_H
#define KILN_SERVER_JOBS_DISPATCHER_H

#include "server/jobs/executor.h"
#include "server/jobs/gate.h"

struct ledger;

struct dispatcher {
    struct executor executor;
    struct dispatch *dispatch;
    char kinds[64];                  /* kinds of device that may run jobs: "cuda" or "cpu,cuda" */
    char variants[512];              /* "cpu avx2,cuda NVIDIA H200": where bytes may differ */
    bool spins;                      /* one of them answers so fast that loops look for it */
    struct gate gate;                /* before the dispatch */
    _Atomic(struct ledger *) ledger; /* wants processes of the store; NULL: there is none */
};

/** Probes the devices and starts their workers. Errors as dispatch_create. */
enum kiln_status dispatcher_create(const struct dispatch_options *options,
                                   struct dispatcher **dispatcher);
/** Waits until nobody is inside, then ends the dispatch, which completes every job left. NULL is
    allowed. */
void dispatcher_close(struct dispatcher *dispatcher);
/** Closes, and frees. Nobody may enter any more. NULL is allowed. */
void dispatcher_destroy(struct dispatcher *dispatcher);

/** The dispatch, or NULL once closed. Every call that yields one is paired with a leave. */
struct dispatch *dispatcher_enter(struct dispatcher *dispatcher);
void dispatcher_leave(struct dispatcher *dispatcher);

/** dispatch_turn and dispatch_timeout, for the event loop that drives it; false, and negative, once
    closed. */
bool dispatcher_turn(void *dispatcher);
int dispatcher_timeout(void *dispatcher);

#endif
