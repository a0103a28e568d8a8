/*
 * shortage.h: the log's word on an arena that is full, and who has it.
 *
 * Threads: any.
 */
#ifndef KILN_COMPUTE_CORE_SHORTAGE_H
#define KILN_COMPUTE_CORE_SHORTAGE_H

#include "compute/core/arena.h"

/** A block of `bytes` was refused to `holder` (NULL: the daemon itself). Warns, naming those that
    have most, at most once in SHORTAGE_PERIOD_S; the next line tells how many were left out. */
void shortage_log(struct arena *arena, const struct holder *holder, uint64_t bytes);

#define SHORTAGE_PERIOD_S 10

#endif
