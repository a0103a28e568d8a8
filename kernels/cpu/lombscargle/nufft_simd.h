/*
 * nufft_simd.h: what the inner file of the non-uniform transform of `lombscargle` offers.
 *
 * A band is a run of coarse frequencies centre + k D, -count/2 ≤ k < count - count/2, whose sums
 * over the samples come from one Fourier transform of `length` cells of time:
 *
 *   spread    samples, with their phase at the centre, into cells around the middle of the grid
 *   columns   transforms down the grid as a matrix of `down` rows and `across` columns, batch by
 *             batch of `lanes` columns, twiddled, into `middle`
 *   rows      transforms along `middle`, batch by batch of `lanes` of its rows, divided by the
 *             window's transform, into the band's sums
 *   combine   sums at all harmonics of a block of frequencies, by the window between coarse
 *             frequencies, and the power from them
 *
 * Sums are those with exp(-2πi f t). Threads: batches and blocks are independent of each other.
 */
#ifndef KILN_KERNELS_CPU_LOMBSCARGLE_NUFFT_SIMD_H
#define KILN_KERNELS_CPU_LOMBSCARGLE_NUFFT_SIMD_H

#include "kernels/cpu/device/isa.h"
#include "kernels/cpu/device/plans.h"
#include "kernels/cpu/lombscargle/window.h"
#include "kernels/lombscargle_power.h"

#include <stddef.h>
#include <stdint.h>

#define NUFFT_BLOCK  8 /* frequencies that share a filter */
#define NUFFT_BLOCKS 4 /* that are combined at a time */
#define NUFFT_PAD    8 /* numbers before and behind a band's sums that may be written */

struct nufft_plan;

/** Samples in the order of their places. */
struct nufft_points {
    const double *t, *w, *wy;
    double rate; /* D, coarse frequencies' distance */
};

struct nufft_band {
    double centre, centre_low; /* frequency */
    double scale, scale_low;   /* cells for a unit of time */
    size_t count, length;
    size_t first, last; /* cells that samples may reach */
};

/** Sums of a band: real and imaginary parts. */
struct nufft_sums {
    double *re, *im;
};

/** One harmonic of all frequencies: those of block b + blocks q are filtered from coarse sums
    base[b] + step q on; filter[b][tap][NUFFT_BLOCK]. */
struct nufft_harmonic {
    const double *filter;
    const int64_t *base;
    int64_t step;
    int taps;
    struct nufft_sums w, wy; /* wy: only of harmonics ≤ nterms */
};

/** Frequencies [first, first + count), first a multiple of NUFFT_BLOCK × blocks. */
struct nufft_tile {
    const struct nufft_harmonic *harmonics; /* 2 nterms */
    const struct lombscargle_model *model;
    int64_t first, count;
    int64_t blocks;
    double *power; /* of frequency `first` on */
    int64_t *weak; /* room for count: places of frequencies whose equations are nearly singular */
};

struct nufft_simd {
    size_t lanes;
    struct plan_maker plans; /* of struct nufft_plan, for lengths that nufft_length gave */
    /** Bytes of `middle`, and of work for columns and rows. */
    size_t (*plan_work)(const struct nufft_plan *plan);
    size_t (*plan_down)(const struct nufft_plan *plan);
    size_t (*plan_across)(const struct nufft_plan *plan);
    /** Adds points [first, last), weights or (values) weights times values, to the grid. */
    void (*spread)(const struct window *window, const struct nufft_band *band,
                   const struct nufft_points *points, size_t first, size_t last, int values,
                   struct nufft_sums grid);
    void (*columns)(const struct nufft_plan *plan, const struct nufft_band *band,
                    struct nufft_sums grid, size_t batch, void *middle, void *work);
    void (*rows)(const struct nufft_plan *plan, const struct window *window,
                 const struct nufft_band *band, size_t batch, void *middle, void *work,
                 struct nufft_sums sums);
    /** Returns how many are weak. */
    size_t (*combine)(const struct nufft_tile *tile);
};

/** The least length of at least `length` that plans are made for: a multiple of 64 with small
    factors. */
size_t nufft_length(size_t length);
/** The table of an instruction set (lombscargle_nufft.c). */
const struct nufft_simd *nufft_simd_of(enum isa isa);

#define X(isa) extern const struct nufft_simd nufft_##isa##_f64;
KILN_CPU_ISAS(X)
#undef X

#endif
