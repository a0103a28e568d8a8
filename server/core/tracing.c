/*
 * tracing.c: from the values of headers to names and back (tracing.h).
 */
#include "server/core/tracing.h"

#include <string.h>

void tracing_begin(struct tracing *tracing) {
    trace_begin(&tracing->trace);
    tracing->flags = TRACE_RANDOM;
}

void tracing_parent_read(struct tracing *tracing, const char *value, size_t size, bool state) {
    struct traceparent parent;
    if (traceparent_read(value, size, &parent)) {
        memcpy(tracing->trace.id, parent.id, sizeof parent.id);
        memcpy(tracing->parent, parent.parent, sizeof parent.parent);
        tracing->flags = parent.flags;
        tracing->named = true;
        tracing->state = state; /* a list without the trace that it belongs to means nothing */
    }
}

void tracing_id_read(struct tracing *tracing, const char *value, size_t size) {
    if (request_id_valid(value, size)) {
        memcpy(tracing->id, value, size);
        tracing->id[size] = '\0';
        tracing->named = true;
    }
}

void tracing_id_print(const struct tracing *tracing, char text[REQUEST_ID_MAX + 1]) {
    if (tracing->id[0] != '\0') {
        memcpy(text, tracing->id, sizeof tracing->id);
    } else {
        trace_span_print(&tracing->trace, text);
    }
}
