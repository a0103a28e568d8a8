/*
 * healthcheck.h: asks a running daemon whether it is ready, for containers without curl.
 *
 * Threads: the main thread.
 */
#ifndef KILN_SERVER_HEALTHCHECK_H
#define KILN_SERVER_HEALTHCHECK_H

#include "server/core/options.h"

/** GET /readyz at --listen (or at the port in --port-file where that is 0), five seconds at most.
    Prints the answer's body on standard error and returns 1 unless it is 200. */
int healthcheck_run(const struct options *options);

#endif
