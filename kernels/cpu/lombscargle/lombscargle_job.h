/*
 * lombscargle_job.h: what the files of the CPU's `lombscargle` share.
 *
 * Threads: a job belongs to the thread that launched it; tiles and bins run on its pool.
 */
#ifndef KILN_KERNELS_CPU_LOMBSCARGLE_LOMBSCARGLE_JOB_H
#define KILN_KERNELS_CPU_LOMBSCARGLE_LOMBSCARGLE_JOB_H

#include "kernels/cpu/device/stream.h"
#include "kernels/cpu/lombscargle/lombscargle_simd.h"
#include "kernels/lombscargle_power.h"

/* One curve of a group. */
struct curve {
    const struct lombscargle_curve *from;
    struct lombscargle_samples samples;
    struct lombscargle_model model;
    double weight; /* of all weights as `samples` has them */
    double *power;
    struct lombscargle_peak *peaks;
};

/* What one thread writes to. */
struct space {
    struct lombscargle_work work;
    double *sums; /* [frequency][sum] of one tile */
};

struct lombscargle_job {
    struct stream *stream;
    const struct lombscargle_args *args;
    const struct lombscargle_simd *simd;
    struct space *spaces; /* one for each thread */
    struct curve *curves;
    size_t count;       /* curves of the group */
    int64_t tile;       /* frequencies */
    size_t tiles;       /* of each curve */
    atomic_size_t done; /* tiles, of `chunks` */
    size_t chunks;
    int terms;
    bool listed; /* sums of single frequencies instead of tiles of a grid */
};

/** A tile's frequencies, of a grid a multiple of LOMBSCARGLE_RENEW rows. */
#define LOMBSCARGLE_TILE_MAX ((int64_t)LOMBSCARGLE_ROWS * LOMBSCARGLE_ROW)

/** Power of `count` ≤ job->tile frequencies from `first`, the beginning of a tile, on, by direct
    sums; false if cancelled. */
bool lombscargle_tile(const struct lombscargle_job *job, const struct curve *curve, int64_t first,
                      int64_t count, const struct space *space);
/** Power of one frequency by direct sums; false if cancelled. */
bool lombscargle_bin(const struct lombscargle_job *job, const struct curve *curve, int64_t k);
/** Power of one frequency whose normal equations are near to singular; false if cancelled. */
bool lombscargle_weak_bin(const struct lombscargle_job *job, const struct curve *curve, int64_t k,
                          double f, double f_low);
/** Tells that one more tile is done. */
static inline void lombscargle_advance(struct lombscargle_job *job) {
    control_advance(job->stream->control, 1 + atomic_fetch_add(&job->done, 1), job->chunks);
}

#endif
