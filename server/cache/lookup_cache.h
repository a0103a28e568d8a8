/*
 * lookup_cache.h: what an event loop remembers of addresses it has read before.
 *
 * A GET's address and its Accept header decide which result it asks for. A small table per thread
 * goes from their hash to the result's digest and ETag, so that a request whose result is kept, or
 * whose client has it, is answered without reading fields, checking and planning again.
 *
 * Threads: each has its own table; rows are its own until it looks for another.
 */
#ifndef KILN_SERVER_CACHE_LOOKUP_CACHE_H
#define KILN_SERVER_CACHE_LOOKUP_CACHE_H

#include "server/cache/result.h"

struct lookup_row {
    struct digest request; /* empty: nothing is remembered here */
    struct digest result;
    enum format format;
    bool negotiated;
    char etag[RESULT_ETAG_MAX];
};

/** Once per process, before threads use it. */
bool lookup_cache_init(void);
/** The row that this request has, or would have, on this thread. NULL if memory ran out. */
struct lookup_row *lookup_cache_row(const struct digest *request);

#endif
