/*
 * serve.h: the role of the front, from start to drained end.
 *
 * Threads: the main thread.
 */
#ifndef KILN_SERVER_SERVE_H
#define KILN_SERVER_SERVE_H

#include "server/core/options.h"

/** Serves until SIGTERM or SIGINT and returns the exit code. A second signal ends at once. */
int serve_run(const struct options *options);

#endif
