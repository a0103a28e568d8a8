/*
 * lombscargle_plan.h: how a job of `lombscargle` is cut into launches.
 *
 * Curves go in groups, a group's frequencies in ranges whose sums fit into memory, the samples in
 * spans whose tables do. So memory is bounded, and long jobs are made of launches short enough to
 * be ended between them. What a launch needs is the same memory for all.
 *
 * Threads: the stream's. Ownership: a plan points to the job's arguments.
 */
#ifndef KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_PLAN_H
#define KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_PLAN_H

#include "kernels/cuda/lombscargle/lombscargle_grid.h"

#include <stdbool.h>
#include <stdint.h>

enum lombscargle_route { LOMBSCARGLE_GRID, LOMBSCARGLE_LIST, LOMBSCARGLE_TENSOR };

struct lombscargle_plan {
    const struct lombscargle_args *args;
    const struct lombscargle_curve *curves; /* host */
    uint64_t series;
    enum lombscargle_route method;
    uint64_t terms;
    uint64_t table; /* bytes of an entry's tables, 0: none */
    uint64_t pack;  /* samples an entry */
    uint64_t stage; /* entries */
    uint64_t multiprocessors;
    uint64_t resident; /* blocks of the sums' kernel that the device holds */
    bool poll;         /* so long that kernels look at the stop word */
};

/** Curves of one group and how its work is cut. */
struct lombscargle_group {
    uint64_t first, count;
    uint64_t longest;           /* samples */
    uint64_t element, elements; /* of t */
    uint64_t span;              /* samples at a time; less than `longest` only where count is 1 */
    uint64_t range;             /* frequencies at a time */
};

/** Bytes of memory that all launches use. */
struct lombscargle_needs {
    uint64_t power, tables, partial, found, weak;
};

/** The plan of `series` curves; `tensor`: the device's tensor cores are worth it. `resident` and
    `multiprocessors` are the caller's to fill. */
void lombscargle_plan_make(struct lombscargle_plan *plan, const struct lombscargle_args *args,
                           const struct lombscargle_curve *curves, uint64_t series, bool tensor);
/** Whether sums of slices are floats. */
bool lombscargle_single(const struct lombscargle_plan *plan);
/** Entries of the tables that cover so many elements of t from a multiple of `pack` on. */
uint64_t lombscargle_entries(const struct lombscargle_plan *plan, uint64_t elements);
/** The group that begins with curve `first`. */
struct lombscargle_group lombscargle_group_make(const struct lombscargle_plan *plan,
                                                uint64_t first);
/** Sets slices and the number of tiles of grid->count frequencies and samples from to, whose sums
    are to fit into `bytes` if one slice's do. */
void lombscargle_slices_set(const struct lombscargle_plan *plan,
                            const struct lombscargle_group *group, uint64_t bytes,
                            struct lombscargle_grid *grid);
/** Blocks of the sums' kernel for one curve and slice. */
uint64_t lombscargle_blocks(const struct lombscargle_plan *plan,
                            const struct lombscargle_grid *grid);
/** Raises `needs` to those of the group. */
void lombscargle_needs_raise(const struct lombscargle_plan *plan,
                             const struct lombscargle_group *group,
                             struct lombscargle_needs *needs);

#endif
