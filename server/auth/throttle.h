/*
 * throttle.h: how often an address may send keys that nobody knows.
 *
 * Each address has a bucket of tokens, one of which every unknown key takes; an empty one says that
 * the next answer is "too often". Keys that are known never come here, whatever others behind the
 * same proxy send. A table of fixed size in which an address has a few places: where all are
 * taken, the one whose bucket is fullest, so has been quiet longest, gives way.
 *
 * Threads: any. Times are clock_ns().
 */
#ifndef KILN_SERVER_AUTH_THROTTLE_H
#define KILN_SERVER_AUTH_THROTTLE_H

#include "server/core/address.h"

#include <stdbool.h>

struct auth_throttle;

/** `a_minute` unknown keys, and that many at once at most; 0 for no limit. NULL if memory ran out.
 */
struct auth_throttle *auth_throttle_create(uint64_t a_minute);
/** NULL is allowed. */
void auth_throttle_destroy(struct auth_throttle *strangers);
/** Counts one unknown key; false, with the seconds until the next would be let pass, if there were
    too many. */
bool auth_throttle_pass(struct auth_throttle *strangers, struct address address, uint64_t now_ns,
                        uint64_t *wait_s);

#endif
