/*
 * metrics.h: counters and histograms, as Prometheus reads them.
 *
 * Threads: any; every cell is an atomic of its own.
 */
#ifndef KILN_SERVER_API_METRICS_H
#define KILN_SERVER_API_METRICS_H

#include "compute/core/text.h"
#include "compute/core/timing.h"
#include "server/http/request/router.h"

/** One finished request. `http` 0: the client went away before there was an answer. */
void metrics_request(const struct route *route, enum method method, int http, double seconds);
/** One finished job of kind number `type`. */
void metrics_job(int type, const struct timing *timing);
/** Prints requests and phases. */
void metrics_print(struct text *text);

#endif
