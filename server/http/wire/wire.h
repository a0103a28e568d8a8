/*
 * wire.h: what a connection receives, checked byte by byte before the HTTP library sees it.
 *
 * The library understands requests loosely, differently from version to version, and answers what
 * it refuses in ways that kiln would not (two heads, HTML, no answer). So it sees only what was
 * read here, strictly, and written anew:
 *
 *   head               as head.h says, when it has come whole
 *   Content-Length     the body, untouched
 *   chunked            chunks of our own: extensions and trailers are checked and left out
 *
 * What is refused ends there. In place of a head comes a small request that names the reason to
 * nobody but the daemon; a body in chunks is ended early. Either way the library makes its calls,
 * the answer is the daemon's own problem document, and nothing that follows is read.
 *
 * A request is known by its number on the connection, from 1. A request that the library shows and
 * that was not let through (`wire_passed`) came past this: nothing of it may be trusted.
 *
 * Threads: one owner. Memory: up to HEAD_SIZE_MAX of a head that is not complete, and what the
 * library had no room for (one reading at most).
 */
#ifndef KILN_SERVER_HTTP_WIRE_WIRE_H
#define KILN_SERVER_HTTP_WIRE_WIRE_H

#include "server/http/wire/head.h"

#define WIRE_READ_MAX 32768 /* bytes that are read at a time */
#define WIRE_LINE_MAX 256   /* bytes of one chunk's extensions */
#define WIRE_EXTRA_MAX                                                                             \
    16384 /* bytes of a body's extensions and trailers, above those of its data */

enum wire_state {
    WIRE_HEAD,
    WIRE_LENGTH,    /* a body of known length */
    WIRE_SIZE,      /* a chunk's size */
    WIRE_EXTENSION, /* what follows it */
    WIRE_SIZE_LF,   /* the line feed behind it */
    WIRE_DATA,      /* a chunk's bytes */
    WIRE_DATA_CR,   /* what ends them */
    WIRE_DATA_LF,
    WIRE_TRAILER, /* a trailer's first byte, or the end */
    WIRE_NAME,    /* its name */
    WIRE_VALUE,
    WIRE_TRAILER_LF, /* the line feed behind it */
    WIRE_END_LF,     /* the last line feed of the body */
    WIRE_OVER        /* refused: nothing more is read */
};

struct wire {
    enum wire_state state;
    uint64_t left;     /* bytes of the body or the chunk that are to come */
    uint64_t body_max; /* bytes that a body in chunks may have */
    uint64_t body, extra;
    bool lost; /* memory ran out: nothing that was written may be used */
    unsigned digits;
    struct head_scan scan;
    char *stash; /* of a head that is not complete */
    size_t stash_size;
    char *spill; /* written, and not yet given to the library */
    size_t spill_at, spill_size;
    uint64_t passed;  /* requests that were let through, the one that stands for a rejection too */
    uint64_t refused; /* number of the request that was refused; 0 for none */
    struct rejection rejection;
    char line[WIRE_LINE_MAX];
    size_t line_size;
};

/** Where converted bytes go. What does not fit waits in the wire. */
struct sink {
    char *bytes;
    size_t capacity, used;
};

void wire_init(struct wire *wire, uint64_t body_max);
void wire_finish(struct wire *wire);
/** Gives what waits. */
void wire_drain(struct wire *wire, struct sink *sink);
/** Takes bytes as they came. */
void wire_feed(struct wire *wire, const char *bytes, size_t size, struct sink *sink);

/** Reads at most `size` bytes as recv does: their number, 0 at the end, negative for an error or if
    there is nothing now. */
typedef long wire_source(void *context, void *bytes, size_t size);

/** Reads from `source` until there is something for the library, `out` is full, or there is nothing
    more. Returns the number of bytes, or what the source returned last (0, or an error) if there
    are none. `*nothing`: bytes came or were refused, but there is nothing for the library.
    `whole`: a reading that is shorter than asked for tells that there is nothing more now. */
long wire_receive(struct wire *wire, wire_source *source, void *context, bool whole, char *out,
                  size_t capacity, bool *nothing);

/** True if the library may show this request; `rejection` receives why it is refused, KILN_OK if it
    is not. */
bool wire_passed(const struct wire *wire, uint64_t number, struct rejection *rejection);

#endif
