/*
 * strangers.h: how often an address may send keys that nobody knows.
 *
 * Each address has a bucket of tokens, one of which every unknown key takes; an empty one says that
 * the next answer is "too often". Keys that are known never come here, whatever others behind the
 * same proxy send. A table of fixed size in which an address has a few places: where all are
 * taken, the one whose bucket is fullest, so has been quiet longest, gives way.
 *
 * Threads: any. Times are clock_ns().
 */
#ifndef KILN_SERVER_STRANGERS_H
#define KILN_SERVER_STRANGERS_H

#include "server/addresses.h"

struct strangers;

/** `a_minute` unknown keys, and that many at once at most; 0 for no limit. NULL if memory ran out.
 */
struct strangers *strangers_create(uint64_t a_minute);
/** NULL is allowed. */
void strangers_destroy(struct strangers *strangers);
/** Counts one unknown key; false, with the seconds until the next would be let pass, if there were
    too many. */
bool strangers_pass(struct strangers *strangers, struct address address, uint64_t now_ns,
                    uint64_t *wait_s);

#endif
