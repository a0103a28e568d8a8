/*
 * service.h: what all requests of one daemon share.
 *
 * Whoever needs one of the parts includes its header; here they are pointers only, so that every
 * room may know the service.
 *
 * Threads: any; all but the atomic members are constant once serving. Ownership: whoever starts the
 * daemon (serve.c) makes the parts and ends them.
 */
#ifndef KILN_SERVER_CORE_SERVICE_H
#define KILN_SERVER_CORE_SERVICE_H

#include "compute/core/arena.h"
#include "compute/jobs/job.h"
#include "server/core/options.h"

#include <stdatomic.h>
#include <stdbool.h>

#ifndef KILN_VERSION
#define KILN_VERSION "0.1.0"
#endif

struct access;
struct connection_limit;
struct connections;
struct cors;
struct dispatcher;
struct jobs;
struct ledger;

struct service {
    const struct options *options;
    struct limits limits;
    struct arena *arena;
    struct dispatcher *dispatcher;             /* the devices and their queue */
    struct jobs *jobs;                         /* jobs that are read, looked up, run */
    struct ledger *ledger;                     /* jobs that outlive their connection */
    struct connections *connections;           /* the open connections */
    struct connection_limit *connection_limit; /* connections by address */
    struct access *access;                     /* the keys; NULL: everybody may do everything */
    struct cors *cors;                         /* NULL: no page of another origin may read */
    uint64_t started_ns;                       /* clock_ns at start */
    _Atomic bool draining;                     /* SIGTERM has come */
    _Atomic bool crippled;   /* no worker can be started any more: ends with a failure */
    _Atomic uint64_t active; /* requests between their first line and their last byte */
};

/** Zeroes `service`, takes over the limits and makes the arena. */
enum kiln_status service_init(struct service *service, const struct options *options);
/** Gives back what init made. */
void service_finish(struct service *service);

#endif
