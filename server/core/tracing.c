/*
 * tracing.c: from request headers to names and back (tracing.h).
 */
#include "server/core/tracing.h"

#include "server/http/request.h"

#include <string.h>

void tracing_begin(struct tracing *tracing) {
    trace_begin(&tracing->trace);
    tracing->flags = TRACE_RANDOM;
}

/* A list without the trace that it belongs to means nothing. */
static void parent_take(struct tracing *tracing, const struct traceparent *parent, bool state) {
    memcpy(tracing->trace.id, parent->id, sizeof parent->id);
    memcpy(tracing->parent, parent->parent, sizeof parent->parent);
    tracing->flags = parent->flags;
    tracing->named = true;
    tracing->state = state;
}

void tracing_read(struct http_request *request) {
    struct tracing *tracing = &request->tracing;
    const struct sent *id = &request->framing.request_id;
    const struct sent *trace = &request->framing.traceparent;
    struct traceparent parent;
    if (trace->count == 1 && traceparent_read(trace->text, trace->size, &parent)) {
        parent_take(tracing, &parent, request->framing.tracestate.count > 0);
    }
    if (id->count == 1 && request_id_valid(id->text, id->size)) {
        memcpy(tracing->id, id->text, id->size);
        tracing->id[id->size] = '\0';
        tracing->named = true;
    }
}

bool tracing_state(const struct http_request *request, char text[TRACESTATE_MAX + 1]) {
    char joined[TRACESTATE_MAX + 2]; /* one more, to see what is too long */
    if (!request->tracing.state ||
        !request_header_join(request, "tracestate", joined, sizeof joined)) {
        return false;
    }
    size_t size = strlen(joined);
    if (!tracestate_valid(joined, size)) {
        return false;
    }
    memcpy(text, joined, size + 1);
    return true;
}

void tracing_id_print(const struct tracing *tracing, char text[REQUEST_ID_MAX + 1]) {
    if (tracing->id[0] != '\0') {
        memcpy(text, tracing->id, sizeof tracing->id);
    } else {
        trace_span_print(&tracing->trace, text);
    }
}

void tracing_headers(const struct tracing *tracing, struct MHD_Response *response) {
    char id[REQUEST_ID_MAX + 1], parent[TRACEPARENT_TEXT];
    tracing_id_print(tracing, id);
    traceparent_print(&tracing->trace, tracing->flags, parent);
    MHD_add_response_header(response, "X-Request-Id", id);
    MHD_add_response_header(response, "traceresponse", parent);
}
