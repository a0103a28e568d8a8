/*
 * spelling.h: how far a name is from the one that was probably meant.
 *
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_CORE_SPELLING_H
#define KILN_COMPUTE_CORE_SPELLING_H

#define SPELLING_MAX 63 /* bytes of the longest name that is compared */

/** Looks for the name most like `name`; call it for each candidate in turn. `best` starts NULL and
    is replaced by `candidate` where that is nearer than what stood there and near enough to be
    worth suggesting. */
void spelling_consider(const char *name, const char *candidate, const char **best);

#endif
