/*
 * lombscargle_cost.c: what direct sums and the NUFFT take, to choose between them.
 *
 * Nanoseconds of one thread, from measurements on a Zen 4 core at 2.6 GHz with AVX-512. Only
 * the ratio of the two methods counts, and it hardly depends on the machine: both run at its rate
 * of multiply-adds.
 */
#include "kernels/cpu/lombscargle/lombscargle_nufft.h"

#include <math.h>

#define PAIR_FP64   0.28 /* direct: sample, frequency and term */
#define PAIR_FP32   0.17
#define PAIR_SINGLE 3.2  /* the same where frequencies are too few for a tile */
#define TILE_ROWS   512  /* direct: frequencies that are computed together at least */
#define BIN         20.0 /* direct: a frequency, from its sums to its power */
#define BIN_TERMS   50   /* the same of several terms, for each squared */
#define SAMPLE      40.0 /* NUFFT: a sample in a band */
#define CELL        0.35 /* NUFFT: a cell of a band's grid, for each doubling of its length */
#define TAP         0.05 /* NUFFT: a frequency's real tap */
#define POWER       1.5  /* NUFFT: a frequency, from its sums to its power */
#define POWER_TERMS 4    /* the same of several terms, for each squared */
#define FILTER      120  /* NUFFT: a lane of a filter, in preparation */
#define CURVE       9e3  /* NUFFT: all the rest of a curve */
#define GRID_MIN    128

static double direct_cost(const struct lombscargle_args *args, double samples, double series) {
    double terms = args->nterms > 1 ? args->nterms : 1, nf = (double)args->nf;
    double bins = series * nf * (terms > 1 ? BIN_TERMS * terms * terms : BIN);
    if (args->nf < GRID_MIN) {
        return samples * nf * terms * PAIR_SINGLE + bins;
    }
    double pairs = samples * ceil(nf / TILE_ROWS) * TILE_ROWS * terms;
    return pairs * (args->fp32 ? PAIR_FP32 : PAIR_FP64) + bins;
}

static double nufft_cost(double samples, double series, const struct nufft_shape *shape) {
    double nf = (double)shape->frequencies, taps = 0, cells = 0, lanes = 0;
    double power = shape->terms > 1 ? POWER_TERMS * shape->terms * shape->terms : POWER;
    for (int h = 1; h <= 2 * shape->terms; h++) {
        taps += shape->taps[h - 1] * (h <= shape->terms ? 4 : 2);
        lanes += (double)(shape->blocks * NUFFT_BLOCK);
    }
    for (int i = 0; i < shape->bands; i++) {
        double length = (double)shape->band[i].band.length;
        cells += length * log2(length);
    }
    return samples * shape->bands * SAMPLE +
           series * (cells * CELL + nf * (taps * TAP + power) + CURVE) + lanes * FILTER;
}

bool nufft_faster(const struct lombscargle_args *args, const struct lombscargle_curve *curves,
                  size_t series, const struct nufft_shape *shape) {
    double samples = 0;
    for (size_t i = 0; i < series; i++) {
        samples += (double)curves[i].n;
    }
    return nufft_cost(samples, (double)series, shape) < direct_cost(args, samples, (double)series);
}
