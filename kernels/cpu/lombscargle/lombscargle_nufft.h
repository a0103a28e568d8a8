/*
 * lombscargle_nufft.h: periodograms by non-uniform transforms, for grids.
 *
 * Threads: as lombscargle_job.h.
 */
#ifndef KILN_KERNELS_CPU_LOMBSCARGLE_LOMBSCARGLE_NUFFT_H
#define KILN_KERNELS_CPU_LOMBSCARGLE_LOMBSCARGLE_NUFFT_H

#include "kernels/cpu/lombscargle/lombscargle_job.h"
#include "kernels/cpu/lombscargle/nufft_shape.h"

struct nufft;

/** Plans, filters and room for the job's curves, from the stream's scratch; sets the job's tiles.
    What it took is given back by nufft_finish, which takes NULL. */
enum kiln_status nufft_begin(struct lombscargle_job *job, const struct nufft_shape *shape,
                             size_t series, struct nufft **nufft);
void nufft_finish(struct nufft *nufft);
/** Power of the job's group of curves. */
void nufft_run(struct nufft *nufft);

/** True where the NUFFT of `shape` is expected to be faster than direct sums. */
bool nufft_faster(const struct lombscargle_args *args, const struct lombscargle_curve *curves,
                  size_t series, const struct nufft_shape *shape);

#endif
