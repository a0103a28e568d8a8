/*
 * input_arrays.h: arrays of numbers on their way into a job's input block.
 *
 * Arrays are appended one after the other to a block of the arena that grows as needed; their
 * offsets, not their addresses, are what a job keeps.
 *
 * Threads: one owner. Ownership: the block is the caller's to move away or give back.
 */
#ifndef KILN_COMPUTE_SUBMISSION_INPUT_ARRAYS_H
#define KILN_COMPUTE_SUBMISSION_INPUT_ARRAYS_H

#include "compute/codecs/csv.h"
#include "compute/core/arena.h"
#include "compute/jobs/job.h"

struct series {
    struct arena *arena;
    const struct holder *holder; /* whose share it is; NULL: the daemon's */
    struct block block;
    uint64_t used; /* bytes */
};

/** Appends room for `count` doubles, at `*place` until the next call. Errors as arena_take. */
enum kiln_status series_reserve(struct series *series, uint64_t count, struct array_ref *array,
                                double **place);

/** Appends "1, 2.5, -3e4"; with `gaps` an element may be missing ("", "nan", "null": NaN).
   KILN_MALFORMED with `why` for anything else, KILN_INVALID for more than `most` numbers, or as
   arena_take. */
enum kiln_status series_text(struct series *series, const char *text, uint64_t most, bool gaps,
                             struct array_ref *array, char *why, size_t why_size);

/** Appends the wanted columns of an opened table, each as its role's array; `missing` is filled.
    Errors as series_text. */
enum kiln_status series_csv(struct series *series, struct csv *csv, const struct column_map *map,
                            uint64_t most, struct array_ref arrays[COLUMN_ROLES],
                            struct csv_missing *missing, char *why, size_t why_size);

/** Appends the rows of an NPY array, or its columns where those are as many as the table has roles,
    each as its role's array; LAYOUT_BATCH: the first row as the first role's, the others together
    as the values', an array of arrays. Errors as series_text. */
enum kiln_status series_npy(struct series *series, const void *bytes, size_t size,
                            const struct table_shape *table, enum layout layout, uint64_t most,
                            struct array_ref arrays[COLUMN_ROLES], char *why, size_t why_size);

#endif
