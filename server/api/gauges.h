/*
 * gauges.h: the whole of /metrics: what is counted as it happens (metrics.h) and what is asked for
 * when somebody looks: queue, devices, memory, cache, connections.
 *
 * Names follow Prometheus: base units (seconds, bytes, joules …) at the end, `_total` on counters.
 *
 * Threads: the listener's.
 */
#ifndef KILN_SERVER_API_GAUGES_H
#define KILN_SERVER_API_GAUGES_H

#include "server/http/request/request.h"

void gauges_print(struct http_request *request, struct text *text);

#endif
