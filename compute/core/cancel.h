/*
 * cancel.h: cancellation points in long work on untrusted bytes.
 *
 * Parsers are called with nothing but bytes, from the front, from workers and from tests. Where one
 * has a long way to go it calls cancel_point now and then; who runs it on a thread that must not
 * be held up has put a `cancel` there that is asked every CANCEL_STRIDE bytes. As with pthread's
 * cancellation points the request is the thread's, not an argument of every reader; here nothing is
 * torn off, the parser returns a status.
 *
 * Threads: each has its own. Ownership: the caller's, between cancel_begin and cancel_end.
 */
#ifndef KILN_COMPUTE_CORE_CANCEL_H
#define KILN_COMPUTE_CORE_CANCEL_H

#include "compute/core/status.h"

#include <stdbool.h>
#include <stddef.h>

#define CANCEL_STRIDE ((size_t)64 << 10)

struct cancel {
    /** KILN_OK to go on; anything else ends the work with this status. Not asked again then. */
    enum kiln_status (*ask)(void *context);
    void *context;
    enum kiln_status status; /* what it said last */
    size_t left;             /* bytes until it is asked again */
};

/** From now on this thread's points ask; the first one asks at once. */
void cancel_begin(struct cancel *cancel, enum kiln_status (*ask)(void *context), void *context);
/** No more points; returns what ended the work, or KILN_OK. */
enum kiln_status cancel_end(void);

/** True if the work is to end. `bytes` have been worked off since the last call; a reader that
    stops here returns KILN_CANCELLED, and whoever began knows why. */
bool cancel_point(size_t bytes);

#endif
