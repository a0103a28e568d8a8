/*
 * service.h: what all requests of one daemon share.
 *
 * Handlers reach the dispatcher only between service_enter and service_leave, so that shutting
 * down can wait until nobody is inside, and can be sure that nobody enters afterwards.
 *
 * Threads: any; `options`, `limits`, `arena`, `kinds` and `variants` are constant once serving.
 */
#ifndef KILN_SERVER_CORE_SERVICE_H
#define KILN_SERVER_CORE_SERVICE_H

#include "compute/core/arena.h"
#include "compute/dispatch/dispatch.h"
#include "server/core/options.h"
#include "server/jobs/preparing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#ifndef KILN_VERSION
#define KILN_VERSION "0.1.0"
#endif

struct offload;
struct result_reuse;
struct connections;
struct access;
struct cors;
struct connection_limit;

struct service {
    const struct options *options;
    struct limits limits;
    struct arena *arena;
    struct result_reuse *reuse;      /* results that are kept or shared; NULL: none */
    struct offload *offload;         /* threads that read large bodies, copy large results */
    struct preparing preparing;      /* requests that the loader has */
    struct connections *connections; /* the connections */
    struct connection_limit *connection_limit; /* connections by address */
    struct access *access;                     /* the keys; NULL: everybody may do everything */
    struct cors *cors;                         /* NULL: no page of another origin may read */
    char kinds[64];            /* kinds of device that may run jobs: "cuda" or "cpu,cuda" */
    bool spins;                /* one of them answers so fast that loops look for it */
    char variants[512];        /* "cpu avx2,cuda NVIDIA H200": where bytes may differ */
    uint64_t started_ns;       /* clock_ns at start */
    _Atomic bool draining;     /* SIGTERM has come */
    _Atomic bool crippled;     /* no worker can be started any more: ends with a failure */
    _Atomic uint64_t active;   /* requests between their first line and their last byte */
    pthread_rwlock_t gate;     /* guards `dispatch` */
    struct dispatch *dispatch; /* NULL once closed */
};

/** Prepares `service` (arena, cache, limits, gate); the dispatcher is started by service_open. */
enum kiln_status service_init(struct service *service, const struct options *options);
/** Probes the devices, starts their workers. Errors as dispatch_create. */
enum kiln_status service_open(struct service *service);
/** The dispatcher, or NULL once closed. Every call that yields one is paired with a leave. */
struct dispatch *service_enter(struct service *service);
void service_leave(struct service *service);
/** Waits until nobody is inside, then destroys the dispatcher, which completes every job left. */
void service_close(struct service *service);
/** Gives back what init made. */
void service_finish(struct service *service);

#endif
