/*
 * fuzz_trace.c: a traceparent that is taken prints to one that is taken as the same; what is
 * refused leaves nothing behind. The same bytes are tried as a tracestate, of which each part
 * between commas is one too, and as a request's id.
 */
#include "tests/fuzz/expect.h"

#include "compute/core/trace.h"

static void parent_check(const char *text, size_t size) {
    struct traceparent parent, again;
    struct trace trace;
    char printed[TRACEPARENT_TEXT];
    memset(&parent, 0x5a, sizeof parent);
    memset(&again, 0x5a, sizeof again);
    if (!traceparent_read(text, size, &parent)) {
        EXPECT(memcmp(&parent, &again, sizeof parent) == 0);
        return;
    }
    EXPECT(size >= TRACEPARENT_TEXT - 1 && (parent.flags & ~TRACE_FLAGS_KNOWN) == 0);
    memcpy(trace.id, parent.id, sizeof trace.id);
    memcpy(trace.span, parent.parent, sizeof trace.span);
    EXPECT(!trace_empty(&trace));
    traceparent_print(&trace, parent.flags, printed);
    EXPECT(strlen(printed) == TRACEPARENT_TEXT - 1);
    EXPECT(traceparent_read(printed, strlen(printed), &again));
    EXPECT(memcmp(&parent, &again, sizeof parent) == 0);
}

static void state_check(const char *text, size_t size) {
    if (!tracestate_valid(text, size)) {
        return;
    }
    EXPECT(size > 0 && size <= TRACESTATE_MAX && memchr(text, '\0', size) == NULL);
    size_t members = 0;
    for (const char *at = text, *end = text + size; at < end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t length = comma != NULL ? (size_t)(comma - at) : (size_t)(end - at);
        bool some = memchr(at, '=', length) != NULL;
        EXPECT(tracestate_valid(at, length) == some);
        members += some;
        at += length + 1;
    }
    EXPECT(members > 0 && members <= TRACESTATE_ROWS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    parent_check(text, size);
    state_check(text, size);
    if (request_id_valid(text, size)) {
        EXPECT(size > 0 && size <= REQUEST_ID_MAX);
        for (size_t i = 0; i < size; i++) {
            EXPECT(data[i] > 0x20 && data[i] < 0x7f && data[i] != '"' && data[i] != '\\');
        }
    }
    return 0;
}
