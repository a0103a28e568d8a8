/*
 * trace.h: names of one request in the logs of all who had to do with it: W3C Trace Context
 * (traceparent, tracestate; levels 1 and 2) and X-Request-Id.
 *
 * The readers are pure: what they do not take is as if it had not been sent. A request whose
 * traceparent was taken goes on in that trace under a span of its own; any other begins a trace.
 *
 * Threads: any. Nothing here allocates; numbers come from a generator of each thread's own, seeded
 * once by the kernel. They are unique, not secret.
 */
#ifndef KILN_COMPUTE_CORE_TRACE_H
#define KILN_COMPUTE_CORE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRACE_ID_SIZE     16
#define TRACE_SPAN_SIZE   8
#define TRACE_ID_TEXT     33 /* hexadecimal digits and NUL */
#define TRACE_SPAN_TEXT   17
#define TRACEPARENT_TEXT  56
#define TRACESTATE_MAX    512 /* bytes that are kept; a longer list is not */
#define TRACESTATE_ROWS   32
#define REQUEST_ID_MAX    128
#define TRACE_SAMPLED     0x01
#define TRACE_RANDOM      0x02 /* the trace's last seven bytes are random */
#define TRACE_FLAGS_KNOWN (TRACE_SAMPLED | TRACE_RANDOM)

/** What goes with a request and its job. All zero: none. */
struct trace {
    uint8_t id[TRACE_ID_SIZE];     /* shared by all who serve one request of the outside */
    uint8_t span[TRACE_SPAN_SIZE]; /* this daemon's part */
};

/** What a caller has sent. */
struct traceparent {
    uint8_t id[TRACE_ID_SIZE];
    uint8_t parent[TRACE_SPAN_SIZE];
    uint8_t flags; /* of TRACE_FLAGS_KNOWN */
};

/** Reads the value of a traceparent header (blanks around it are allowed). False, and nothing
    written, for anything malformed. */
bool traceparent_read(const char *text, size_t size, struct traceparent *parent);
/** Prints "00-<trace>-<span>-<flags>", as traceparent and traceresponse have it. */
void traceparent_print(const struct trace *trace, uint8_t flags, char text[TRACEPARENT_TEXT]);
/** Whether a tracestate (all its headers joined by commas) is a list of at most TRACESTATE_ROWS
    well-formed members and TRACESTATE_MAX bytes. */
bool tracestate_valid(const char *text, size_t size);
/** Whether a client's id can be taken over: 1 to REQUEST_ID_MAX letters, digits and -._~+/=:@ */
bool request_id_valid(const char *text, size_t size);

/** Begins a trace: random id and span. */
void trace_begin(struct trace *trace);
/** Another span of the same trace. */
void trace_span(struct trace *trace);
bool trace_empty(const struct trace *trace);
void trace_id_print(const struct trace *trace, char text[TRACE_ID_TEXT]);
void trace_span_print(const struct trace *trace, char text[TRACE_SPAN_TEXT]);

#endif
