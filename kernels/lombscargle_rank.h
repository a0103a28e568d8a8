/*
 * lombscargle_rank.h: the order of peaks.
 *
 * Evenly sampled light curves have aliases: peaks at several frequencies that are equal but for
 * rounding, which differs between backends and methods. So powers are compared by their rank, the
 * power rounded to 2^-30 of itself (2^-14 in single precision), and of equal ranks the lower
 * frequency comes first. Ranks, unlike comparisons with a tolerance, are a total order: a parallel
 * search finds the same peaks in whatever order it meets them. Ties that a rank's border parts are
 * left to the job, which sees all peaks of a list side by side.
 *
 * Threads: reentrant.
 */
#ifndef KILN_KERNELS_LOMBSCARGLE_RANK_H
#define KILN_KERNELS_LOMBSCARGLE_RANK_H

#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define LOMBSCARGLE_RANK static __device__ __forceinline__
#else
#define LOMBSCARGLE_RANK static inline
#endif

#define LOMBSCARGLE_TIE(fp32)                                                                      \
    ((fp32) ? 0x1p-14 : 0x1p-30) /* of a power: equal but for rounding                             \
                                  */

/** Rank of a power that is not NaN: of two powers the higher one's is not lower. */
LOMBSCARGLE_RANK int64_t lombscargle_rank(double power, int fp32) {
    const int dropped = fp32 ? 38 : 22; /* bits of 52 */
    double size = power < 0 ? -power : power + 0.0;
    int64_t bits;
    memcpy(&bits, &size, sizeof bits);
    bits = (bits + (INT64_C(1) << (dropped - 1))) >> dropped;
    return power < 0 ? -bits : bits;
}

#endif
