/*
 * tracing.h: the names of one request: what it brought, what its answer and the log say.
 *
 * Every answer that is made for one request carries X-Request-Id and traceresponse. An answer that
 * many connections share (a kept result, jobs.c) has neither, so a request that brought an id or a
 * trace gets one of its own: whoever wants to follow a request gives it a name. In the log each has
 * one. An id that was not sent is the span's.
 *
 * Threads: as the request.
 */
#ifndef KILN_SERVER_CORE_TRACING_H
#define KILN_SERVER_CORE_TRACING_H

#include "compute/core/trace.h"

#include <stdbool.h>
#include <stddef.h>

struct tracing {
    struct trace trace;
    uint8_t parent[TRACE_SPAN_SIZE]; /* the caller's span; all zero: this trace begins here */
    uint8_t flags;
    bool named; /* the request brought an id or a trace */
    bool state; /* and a tracestate */
    char id[REQUEST_ID_MAX + 1];
};

/** Names a request of which nothing is known yet. `tracing` is zeroed. */
void tracing_begin(struct tracing *tracing);
/** Takes over the value of a traceparent header; `state`: a tracestate came with it. Void ones are
    passed over. */
void tracing_parent_read(struct tracing *tracing, const char *value, size_t size, bool state);
/** Takes over the value of an X-Request-Id header. Void ones are passed over. */
void tracing_id_read(struct tracing *tracing, const char *value, size_t size);
/** Prints the request's id: the client's, or its span's. */
void tracing_id_print(const struct tracing *tracing, char text[REQUEST_ID_MAX + 1]);

#endif
