/*
 * chirp.h: how a sine transform runs as a chirp convolution (Bluestein 1970), host and device.
 *
 * Two real lines of n elements, folded, are the real and imaginary parts of one complex line y_1 …
 * y_n whose transform of length N = n + 1 is wanted at k = 1 … n. Since jk = (j² + k² - (k-j)²) / 2
 * that is a convolution with the chirp exp(iπl²/N), and a cyclic one of length M = 2K with K ≥ n
 * holds it. Half of its input is zero, so its first pass is trivial and splits it into two
 * convolutions of length K, the even and the odd frequencies, one after the other in one place; the
 * sum of both is the result. K is a product of 16 and further radices, one pass each.
 *
 * Threads: any.
 */
#ifndef KILN_KERNELS_CUDA_SPECTRAL_CHIRP_H
#define KILN_KERNELS_CUDA_SPECTRAL_CHIRP_H

#include <stdbool.h>
#include <stdint.h>

#define CHIRP_STAGES  6
#define CHIRP_FIRST   16                        /* radix of the first pass */
#define CHIRP_SHARED  14336                     /* bytes of shared memory a warp */
#define CHIRP_WARPS   16                        /* most warps of a block */
#define CHIRP_LEAD(K) (7 * ((K) / CHIRP_FIRST)) /* complex numbers of chirp_table.lead */

struct chirp_plan {
    int32_t size;   /* K; 0: the length has no plan */
    int32_t stages; /* ≥ 2 */
    int32_t radix[CHIRP_STAGES];
    int32_t warps; /* of a block whose shared memory holds K elements */
};

/** Complex numbers in device memory, made once for a length. The elements b + mS, S = K / 16, of a
    line are those of one butterfly of the first pass: their chirps come from the first, the ratio
    of the second to it, and the constant ratio of ratios. */
struct chirp_table {
    struct chirp_plan plan;
    double *twiddle;  /* exp(-2πi j/K), j < K/2 */
    double *lead;     /* [even, odd in, odd out][chirp, ratio][S], exp(iπ(b+1)/N)[S] */
    double *filter;   /* [even, odd][last radix][K / last radix]: transformed chirp / M */
    double growth[2]; /* exp(-2πi S²/N), the ratio of ratios */
    double move[2];   /* exp(iπS/N) */
};

#ifdef __cplusplus
extern "C" {
#endif
/** The plan for lines of `length` elements; false where no block holds them. */
bool chirp_plan_make(struct chirp_plan *plan, int64_t length);
/** Sets plan and constants of a table; its memory is not touched. */
bool chirp_table_init(struct chirp_table *table, int64_t length);
#ifdef __cplusplus
}
#endif

#endif
