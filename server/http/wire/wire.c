/*
 * wire.c: the states of a connection's bytes.
 */
#include "server/http/wire/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a refused request, as much as the log and the answer's names need. */
#define TARGET_KEPT 512
#define NAME_KEPT   128

void wire_init(struct wire *wire, uint64_t body_max) {
    memset(wire, 0, offsetof(struct wire, line));
    wire->line_size = 0;
    wire->body_max = body_max;
}

void wire_finish(struct wire *wire) {
    free(wire->stash);
    free(wire->spill);
    wire->stash = wire->spill = NULL;
}

/* ---- towards the library ---- */

static void spill_add(struct wire *wire, const char *bytes, size_t size) {
    char *spill = realloc(wire->spill, wire->spill_size + size);
    if (spill == NULL) { /* the request ends half-way, and with it the connection's use */
        wire->state = WIRE_OVER;
        wire->lost = true;
        return;
    }
    memcpy(spill + wire->spill_size, bytes, size);
    wire->spill = spill;
    wire->spill_size += size;
}

static void sink_put(struct wire *wire, struct sink *sink, const char *bytes, size_t size) {
    size_t room = wire->spill == NULL ? sink->capacity - sink->used : 0;
    size_t now = size < room ? size : room;
    if (wire->lost) {
        return;
    }
    if (now > 0) {
        memcpy(sink->bytes + sink->used, bytes, now);
        sink->used += now;
    }
    if (now < size) {
        spill_add(wire, bytes + now, size - now);
    }
}

void wire_drain(struct wire *wire, struct sink *sink) {
    size_t waits = wire->spill_size - wire->spill_at;
    size_t room = sink->capacity - sink->used;
    size_t now = waits < room ? waits : room;
    if (wire->spill == NULL) {
        return;
    }
    memcpy(sink->bytes + sink->used, wire->spill + wire->spill_at, now);
    sink->used += now;
    wire->spill_at += now;
    if (wire->spill_at == wire->spill_size) {
        free(wire->spill);
        wire->spill = NULL;
        wire->spill_at = wire->spill_size = 0;
    }
}

/* ---- refusing ---- */

static void span_put(struct wire *wire, struct sink *sink, const char *name, struct span value) {
    char line[NAME_KEPT + 32];
    if (value.text != NULL && value.size <= NAME_KEPT) {
        int size = snprintf(line, sizeof line, "%s: %.*s\r\n", name, (int)value.size, value.text);
        sink_put(wire, sink, line, (size_t)size);
    }
}

/* In place of a head that is not taken; `head` is what could be read of it. The target cannot be
   mistaken for a client's own: it begins with what none can have. */
static void head_refuse(struct wire *wire, struct sink *sink, const struct head *head) {
    char line[TARGET_KEPT + 64];
    struct span method = {"GET", 3}, target = {"", 0};
    if (head != NULL && head->method.size > 0 && head->method.size <= 16) {
        method = head->method;
    }
    if (head != NULL && head->target.size > 0) {
        target = head->target;
        const char *query = memchr(target.text, '?', target.size);
        const char *fragment = memchr(target.text, HEAD_QUERY, target.size);
        target.size = query != NULL ? (size_t)(query - target.text) : target.size;
        target.size = fragment != NULL && fragment < target.text + target.size
                          ? (size_t)(fragment - target.text)
                          : target.size;
        target.size = target.size < TARGET_KEPT ? target.size : TARGET_KEPT;
    }
    int size = snprintf(line, sizeof line, "%.*s %c%.*s HTTP/1.1\r\nHost: localhost\r\n",
                        (int)method.size, method.text, HEAD_QUERY, (int)target.size, target.text);
    wire->passed++;
    wire->refused = wire->passed;
    sink_put(wire, sink, line, (size_t)size);
    if (head != NULL) {
        span_put(wire, sink, "X-Request-Id", head->request_id);
        span_put(wire, sink, "traceparent", head->traceparent);
    }
    sink_put(wire, sink, "\r\n", 2);
    wire->state = WIRE_OVER;
}

/* Ends a body in chunks. */
static void body_refuse(struct wire *wire, struct sink *sink, enum kiln_status status,
                        const char *why) {
    wire->rejection = (struct rejection){status, why};
    wire->refused = wire->passed;
    sink_put(wire, sink, "0\r\n\r\n", 5);
    wire->state = WIRE_OVER;
}

/* ---- heads ---- */

static bool stash_add(struct wire *wire, const char *bytes, size_t size) {
    char *stash = size > 0 ? realloc(wire->stash, wire->stash_size + size) : wire->stash;
    if (size > 0 && stash == NULL) {
        wire->rejection = (struct rejection){KILN_NO_MEMORY, "There is no room for this head now."};
        return false;
    }
    if (size > 0) {
        memcpy(stash + wire->stash_size, bytes, size);
    }
    wire->stash = stash;
    wire->stash_size += size;
    return true;
}

static void stash_free(struct wire *wire) {
    free(wire->stash);
    wire->stash = NULL;
    wire->stash_size = 0;
}

static void head_pass(struct wire *wire, char *bytes, size_t size, struct sink *sink) {
    struct head head;
    if (!head_read(bytes, size, &head)) {
        wire->rejection = head.rejection;
        head_refuse(wire, sink, &head);
        return;
    }
    wire->passed++;
    wire->body = wire->extra = 0;
    wire->left = head.chunked ? 0 : head.length;
    wire->digits = 0;
    wire->state = head.chunked ? WIRE_SIZE : head.length > 0 ? WIRE_LENGTH : WIRE_HEAD;
    sink_put(wire, sink, bytes, head.size);
}

/* Returns how many bytes were taken. */
static size_t head_feed(struct wire *wire, const char *bytes, size_t size, struct sink *sink) {
    char whole[HEAD_SIZE_MAX];
    size_t used, skipped;
    enum head_found found = head_scan(&wire->scan, bytes, size, &used, &skipped, &wire->rejection);
    if (found == HEAD_WRONG) {
        head_refuse(wire, sink, NULL);
        return size;
    }
    size_t piece = used - skipped;
    if (found == HEAD_WHOLE && wire->stash == NULL) {
        memcpy(whole, bytes + skipped, piece);
        head_pass(wire, whole, piece, sink);
        return used;
    }
    if (!stash_add(wire, bytes + skipped, piece)) {
        head_refuse(wire, sink, NULL);
    } else if (found == HEAD_WHOLE) {
        head_pass(wire, wire->stash, wire->stash_size, sink);
        stash_free(wire);
    }
    return used;
}

/* ---- chunks ---- */

static int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool plain(char c) {
    return ((unsigned char)c >= 0x20 && c != 0x7f) || c == '\t';
}

static size_t token_size(const char *text, size_t size) {
    size_t length = 0;
    while (length < size && head_token(text + length, 1)) {
        length++;
    }
    return length;
}

static size_t blanks_size(const char *text, size_t size) {
    size_t length = 0;
    while (length < size && (text[length] == ' ' || text[length] == '\t')) {
        length++;
    }
    return length;
}

/* Length of a text in quotes, 0 if it does not end. */
static size_t quoted_size(const char *text, size_t size) {
    for (size_t i = 1; i < size; i++) {
        if (text[i] == '"') {
            return i + 1;
        }
        i += text[i] == '\\';
    }
    return 0;
}

/* *( BWS ";" BWS name [ BWS "=" BWS ( token / quoted ) ] ), RFC 9112 section 7.1.1; the first ";"
   follows the size at once. */
static bool extensions_valid(const char *text, size_t size) {
    size_t at = 0;
    while (at < size) {
        if (text[at++] != ';') {
            return false;
        }
        at += blanks_size(text + at, size - at);
        size_t name = token_size(text + at, size - at);
        at += name;
        size_t blanks = blanks_size(text + at, size - at);
        if (name == 0) {
            return false;
        }
        if (at + blanks < size && text[at + blanks] == '=') {
            at += blanks + 1;
            at += blanks_size(text + at, size - at);
            bool quoted = at < size && text[at] == '"';
            size_t value =
                quoted ? quoted_size(text + at, size - at) : token_size(text + at, size - at);
            if (value == 0) {
                return false;
            }
            at += value;
            blanks = blanks_size(text + at, size - at);
        }
        if (blanks > 0 && at + blanks == size) {
            return false;
        }
        at += blanks;
    }
    return true;
}

static const char *size_byte(struct wire *wire, char c) {
    int value = hex_value(c);
    if (value >= 0 && wire->digits < 16) {
        wire->extra += wire->left == 0 && wire->digits > 0; /* needless zeros */
        wire->left = wire->left << 4 | (uint64_t)value;
        wire->digits++;
        return NULL;
    }
    if (value >= 0) {
        return "A chunk's size has more than 16 digits.";
    }
    if (wire->digits == 0 || (c != '\r' && c != ';')) {
        return "A chunk's size is not a plain hexadecimal number.";
    }
    wire->state = c == ';' ? WIRE_EXTENSION : WIRE_SIZE_LF;
    wire->line_size = 0;
    if (c == ';') {
        wire->line[wire->line_size++] = c;
    }
    return NULL;
}

static const char *extension_byte(struct wire *wire, char c) {
    if (c == '\r') {
        wire->state = WIRE_SIZE_LF;
        return extensions_valid(wire->line, wire->line_size)
                   ? NULL
                   : "A chunk's extension is not a name, or a name and a value.";
    }
    if (!plain(c)) {
        return "A chunk's extension has a control character, or ends without a carriage return.";
    }
    if (wire->line_size == sizeof wire->line) {
        return "A chunk's extensions have more than 256 bytes.";
    }
    wire->line[wire->line_size++] = c;
    wire->extra++;
    return NULL;
}

static const char *size_end_byte(struct wire *wire, char c) {
    wire->state = wire->left > 0 ? WIRE_DATA : WIRE_TRAILER;
    wire->digits = 0;
    return c == '\n' ? NULL : "A chunk's size does not end with carriage return and line feed.";
}

static const char *data_cr_byte(struct wire *wire, char c) {
    wire->state = WIRE_DATA_LF;
    return c == '\r' ? NULL : "A chunk does not end with carriage return and line feed.";
}

static const char *data_lf_byte(struct wire *wire, char c) {
    wire->state = WIRE_SIZE;
    return c == '\n' ? NULL : "A chunk does not end with carriage return and line feed.";
}

static const char *trailer_byte(struct wire *wire, char c) {
    wire->state = c == '\r' ? WIRE_END_LF : WIRE_NAME;
    wire->extra++;
    return c == '\r' || head_token(&c, 1) ? NULL
                                          : "A trailer is folded, or its name is not a word.";
}

static const char *name_byte(struct wire *wire, char c) {
    wire->state = c == ':' ? WIRE_VALUE : WIRE_NAME;
    wire->extra++;
    return c == ':' || head_token(&c, 1) ? NULL : "A trailer's name is not a word and a colon.";
}

static const char *value_byte(struct wire *wire, char c) {
    wire->state = c == '\r' ? WIRE_TRAILER_LF : WIRE_VALUE;
    wire->extra++;
    return c == '\r' || plain(c)
               ? NULL
               : "A trailer has a control character, or ends without a carriage return.";
}

static const char *trailer_lf_byte(struct wire *wire, char c) {
    wire->state = WIRE_TRAILER;
    return c == '\n' ? NULL : "A trailer does not end with carriage return and line feed.";
}

static const char *end_lf_byte(struct wire *wire, char c) {
    wire->state = WIRE_HEAD;
    return c == '\n' ? NULL : "The body does not end with carriage return and line feed.";
}

/* What takes one byte in each state; a sentence if it is wrong. */
static const char *(*const bytes_of[])(struct wire *wire, char c) = {
    [WIRE_SIZE] = size_byte,
    [WIRE_EXTENSION] = extension_byte,
    [WIRE_SIZE_LF] = size_end_byte,
    [WIRE_DATA_CR] = data_cr_byte,
    [WIRE_DATA_LF] = data_lf_byte,
    [WIRE_TRAILER] = trailer_byte,
    [WIRE_NAME] = name_byte,
    [WIRE_VALUE] = value_byte,
    [WIRE_TRAILER_LF] = trailer_lf_byte,
    [WIRE_END_LF] = end_lf_byte,
};

/* One byte of what stands around the data. */
static void chunk_byte(struct wire *wire, char c, struct sink *sink) {
    const char *why = bytes_of[wire->state](wire, c);
    if (why != NULL) {
        body_refuse(wire, sink, KILN_MALFORMED, why);
    } else if (wire->extra > WIRE_EXTRA_MAX + wire->body) {
        body_refuse(wire, sink, KILN_MALFORMED,
                    "Extensions and trailers of the chunks have more than 16 KiB.");
    } else if (wire->state == WIRE_DATA && wire->left > wire->body_max - wire->body) {
        body_refuse(wire, sink, KILN_TOO_LARGE, NULL);
    } else if (wire->state == WIRE_HEAD) {
        sink_put(wire, sink, "0\r\n\r\n", 5);
    }
}

/* A chunk of our own for the part of a chunk that is here. */
static size_t data_feed(struct wire *wire, const char *bytes, size_t size, struct sink *sink) {
    size_t now = size < wire->left ? size : (size_t)wire->left;
    char head[24];
    int head_size = snprintf(head, sizeof head, "%zx\r\n", now);
    sink_put(wire, sink, head, (size_t)head_size);
    sink_put(wire, sink, bytes, now);
    sink_put(wire, sink, "\r\n", 2);
    wire->left -= now;
    wire->body += now;
    if (wire->left == 0 && wire->state != WIRE_OVER) {
        wire->state = WIRE_DATA_CR;
    }
    return now;
}

static size_t length_feed(struct wire *wire, const char *bytes, size_t size, struct sink *sink) {
    size_t now = size < wire->left ? size : (size_t)wire->left;
    sink_put(wire, sink, bytes, now);
    wire->left -= now;
    if (wire->left == 0 && wire->state != WIRE_OVER) {
        wire->state = WIRE_HEAD;
    }
    return now;
}

void wire_feed(struct wire *wire, const char *bytes, size_t size, struct sink *sink) {
    for (size_t at = 0; at < size && wire->state != WIRE_OVER;) {
        if (wire->state == WIRE_HEAD) {
            at += head_feed(wire, bytes + at, size - at, sink);
        } else if (wire->state == WIRE_LENGTH) {
            at += length_feed(wire, bytes + at, size - at, sink);
        } else if (wire->state == WIRE_DATA) {
            at += data_feed(wire, bytes + at, size - at, sink);
        } else {
            chunk_byte(wire, bytes[at++], sink);
        }
    }
}

/* ---- reading ---- */

/* How much to read with `room` in the library's buffer: whatever is not a body of known length goes
   through a buffer of our own. */
static size_t length_asked(const struct wire *wire, size_t room) {
    bool known = wire->state == WIRE_LENGTH;
    uint64_t most = (known ? wire->left : 0) + WIRE_READ_MAX;
    return room < most ? room : (size_t)most;
}

/* Reads a body straight into the library's buffer; what follows it comes out of there again. */
static long length_receive(struct wire *wire, wire_source *source, void *context, size_t asked,
                           struct sink *sink) {
    char rest[WIRE_READ_MAX];
    char *place = sink->bytes + sink->used;
    long got = source(context, place, asked);
    if (got <= 0) {
        return got;
    }
    size_t body = (size_t)got < wire->left ? (size_t)got : (size_t)wire->left;
    size_t after = (size_t)got - body;
    memcpy(rest, place + body, after);
    sink->used += body;
    wire->left -= body;
    wire->state = wire->left == 0 ? WIRE_HEAD : WIRE_LENGTH;
    wire_feed(wire, rest, after, sink);
    return got;
}

long wire_receive(struct wire *wire, wire_source *source, void *context, bool whole, char *out,
                  size_t capacity, bool *nothing) {
    struct sink sink = {out, capacity, 0};
    char bytes[WIRE_READ_MAX];
    bool more = true;
    long got = 0;
    *nothing = false;
    wire_drain(wire, &sink);
    while (more && sink.used < capacity && wire->state != WIRE_OVER) {
        size_t asked = length_asked(wire, capacity - sink.used);
        if (wire->state == WIRE_LENGTH) {
            got = length_receive(wire, source, context, asked, &sink);
        } else {
            got = source(context, bytes, asked);
            if (got > 0) {
                wire_feed(wire, bytes, (size_t)got, &sink);
            }
        }
        more = got > 0 && (whole ? (size_t)got == asked : sink.used == 0);
    }
    if (sink.used > 0) {
        return (long)sink.used;
    }
    *nothing = got > 0 || wire->state == WIRE_OVER;
    return got;
}

bool wire_passed(const struct wire *wire, uint64_t number, struct rejection *rejection) {
    *rejection =
        number == wire->refused && number > 0 ? wire->rejection : (struct rejection){KILN_OK, NULL};
    return number <= wire->passed;
}
