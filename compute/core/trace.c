/*
 * trace.c: reading and making the names of requests (trace.h). Any thread.
 */
#include "compute/core/trace.h"

#include "compute/core/timing.h"

#include <string.h>
#include <sys/random.h>

#define PARENT_SIZE 55 /* version 00 has exactly this many bytes, later ones no fewer */

/* ---- hexadecimal digits, lower case only ---- */

static int digit_read(char digit) {
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                          : -1;
}

static bool bytes_read(const char *text, uint8_t *bytes, size_t count) {
    int wrong = 0;
    for (size_t i = 0; i < count; i++) {
        int high = digit_read(text[2 * i]), low = digit_read(text[2 * i + 1]);
        wrong |= high | low; /* negative once one is */
        bytes[i] = (uint8_t)((unsigned)high << 4 | ((unsigned)low & 15));
    }
    return wrong >= 0;
}

static void bytes_print(const uint8_t *bytes, size_t count, char *text) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < count; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
}

static bool all_zero(const uint8_t *bytes, size_t count) {
    uint8_t any = 0;
    for (size_t i = 0; i < count; i++) {
        any |= bytes[i];
    }
    return any == 0;
}

/* ---- traceparent ---- */

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* A version that is not known yet may say more, behind another dash; of its flags only the one that
   the first level has is known to mean the same. */
static bool version_read(const char *text, size_t size, uint8_t *flags) {
    uint8_t version;
    if (!bytes_read(text, &version, 1) || version == 0xff || !bytes_read(text + 53, flags, 1)) {
        return false;
    }
    *flags &= version == 0 ? TRACE_FLAGS_KNOWN : TRACE_SAMPLED;
    return size == PARENT_SIZE || (version > 0 && text[PARENT_SIZE] == '-');
}

bool traceparent_read(const char *text, size_t size, struct traceparent *out) {
    struct traceparent parent;
    while (size > 0 && is_blank(text[0])) {
        text++;
        size--;
    }
    while (size > 0 && is_blank(text[size - 1])) {
        size--;
    }
    if (size < PARENT_SIZE || text[2] != '-' || text[35] != '-' || text[52] != '-' ||
        !version_read(text, size, &parent.flags) ||
        !bytes_read(text + 3, parent.id, TRACE_ID_SIZE) ||
        !bytes_read(text + 36, parent.parent, TRACE_SPAN_SIZE) ||
        all_zero(parent.id, TRACE_ID_SIZE) || all_zero(parent.parent, TRACE_SPAN_SIZE)) {
        return false;
    }
    *out = parent;
    return true;
}

void traceparent_print(const struct trace *trace, uint8_t flags, char text[TRACEPARENT_TEXT]) {
    memcpy(text, "00-", 3);
    bytes_print(trace->id, TRACE_ID_SIZE, text + 3);
    text[35] = '-';
    bytes_print(trace->span, TRACE_SPAN_SIZE, text + 36);
    text[52] = '-';
    bytes_print(&flags, 1, text + 53);
    text[PARENT_SIZE] = '\0';
}

/* ---- tracestate ---- */

static bool key_valid(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!plain && (i == 0 || c == '\0' || strchr("_-*/@", c) == NULL)) {
            return false;
        }
    }
    return size > 0 && size <= 256;
}

static bool value_valid(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        if (text[i] < 0x20 || text[i] > 0x7e || text[i] == ',' || text[i] == '=') {
            return false;
        }
    }
    return size > 0 && size <= 256 && text[size - 1] != ' ';
}

bool tracestate_valid(const char *text, size_t size) {
    const char *at = text, *end = text + size;
    int rows = 0;
    if (size > TRACESTATE_MAX) {
        return false;
    }
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *next = comma != NULL ? comma : end, *last = next;
        while (at < last && is_blank(at[0])) {
            at++;
        }
        while (at < last && is_blank(last[-1])) {
            last--;
        }
        const char *equals = at < last ? memchr(at, '=', (size_t)(last - at)) : NULL;
        if (at < last && /* members may be empty */
            (equals == NULL || !key_valid(at, (size_t)(equals - at)) ||
             !value_valid(equals + 1, (size_t)(last - equals - 1)) || ++rows > TRACESTATE_ROWS)) {
            return false;
        }
        at = next + (next < end);
    }
    return rows > 0;
}

/* ---- X-Request-Id ---- */

bool request_id_valid(const char *text, size_t size) {
    static const char others[] = "-._~+/=:@";
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        bool plain = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        if (!plain && (c == '\0' || strchr(others, c) == NULL)) {
            return false;
        }
    }
    return size > 0 && size <= REQUEST_ID_MAX;
}

/* ---- numbers ---- */

/* xoshiro256**, one a thread: 2^256 - 1 numbers before it repeats. */
static _Thread_local uint64_t generator[4];

static void generator_seed(void) {
    if (getrandom(generator, sizeof generator, GRND_NONBLOCK) != (ssize_t)sizeof generator) {
        generator[0] = clock_ns();
        generator[1] = (uint64_t)(uintptr_t)generator;
    }
    generator[2] |= 1; /* anything but all zero */
}

static uint64_t rotated(uint64_t value, int bits) {
    return value << bits | value >> (64 - bits);
}

static uint64_t generator_next(void) {
    uint64_t *s = generator;
    uint64_t result = rotated(s[1] * 5, 7) * 9, shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotated(s[3], 45);
    return result;
}

void trace_span(struct trace *trace) {
    uint64_t number;
    if ((generator[0] | generator[1] | generator[2] | generator[3]) == 0) {
        generator_seed();
    }
    do {
        number = generator_next();
    } while (number == 0);
    memcpy(trace->span, &number, sizeof number);
}

void trace_begin(struct trace *trace) {
    trace_span(trace);
    uint64_t numbers[2] = {generator_next(), generator_next() | 1};
    memcpy(trace->id, numbers, sizeof numbers);
}

bool trace_empty(const struct trace *trace) {
    return all_zero(trace->id, TRACE_ID_SIZE);
}

void trace_id_print(const struct trace *trace, char text[TRACE_ID_TEXT]) {
    bytes_print(trace->id, TRACE_ID_SIZE, text);
    text[TRACE_ID_TEXT - 1] = '\0';
}

void trace_span_print(const struct trace *trace, char text[TRACE_SPAN_TEXT]) {
    bytes_print(trace->span, TRACE_SPAN_SIZE, text);
    text[TRACE_SPAN_TEXT - 1] = '\0';
}
