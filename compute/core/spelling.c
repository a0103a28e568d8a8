/*
 * spelling.c: edit distance for "did you mean".
 *
 * Threads: reentrant.
 */
#include "compute/core/spelling.h"

#include <stddef.h>
#include <string.h>

/* Levenshtein distance with swaps of neighbours (optimal string alignment); both names at most
   SPELLING_MAX bytes. */
static unsigned distance(const char *a, const char *b) {
    unsigned rows[3][SPELLING_MAX + 1];
    size_t length = strlen(b), i = 0;
    for (unsigned j = 0; j <= length; j++) {
        rows[0][j] = j;
    }
    for (; a[i]; i++) {
        const unsigned *previous = rows[i % 3], *before = rows[(i + 2) % 3];
        unsigned *row = rows[(i + 1) % 3];
        row[0] = (unsigned)i + 1;
        for (size_t j = 0; j < length; j++) {
            unsigned best = previous[j] + (a[i] != b[j]);
            best = previous[j + 1] + 1 < best ? previous[j + 1] + 1 : best;
            best = row[j] + 1 < best ? row[j] + 1 : best;
            if (i && j && a[i] == b[j - 1] && a[i - 1] == b[j] && before[j - 1] + 1 < best) {
                best = before[j - 1] + 1;
            }
            row[j + 1] = best;
        }
    }
    return rows[i % 3][length];
}

void spelling_consider(const char *name, const char *candidate, const char **best) {
    size_t length = strnlen(name, SPELLING_MAX + 1), other = strlen(candidate);
    size_t limit = length < 4 ? 1 : length < 8 ? 2 : 3;
    /* as many letters more or less are as many mistakes: most candidates end here */
    if (length > SPELLING_MAX || other > SPELLING_MAX || length > other + limit ||
        other > length + limit) {
        return;
    }
    unsigned found = distance(name, candidate);
    if (found <= limit && (*best == NULL || found < distance(name, *best))) {
        *best = candidate;
    }
}
