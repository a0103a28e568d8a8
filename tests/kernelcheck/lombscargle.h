/*
 * lombscargle.h: what the files that check the kernel `lombscargle` share.
 */
#ifndef KILN_TESTS_KERNELCHECK_LOMBSCARGLE_H
#define KILN_TESTS_KERNELCHECK_LOMBSCARGLE_H

#include "kernels/lombscargle.h"
#include "tests/kernelcheck/check.h"

#define TWO_PI 6.283185307179586476925286766559L

struct curve {
    int n;
    double *t, *y, *w;
};

struct bin {
    double p;         /* standard power; NaN where it is undefined */
    double condition; /* least share that a function keeps beside those before it, squared */
};

/** Samples into arrays of n: times over ±span, weights that include zeros, weighted mean taken off
    if `centre`. */
void curve_fill(struct check *check, const struct curve *curve, double span, bool centre);
/** The same in memory of the case. */
struct curve curve_random(struct check *check, int n, double span, bool centre);
/** y_mean and yy of a curve. */
void curve_measure(const struct curve *curve, int fit_mean, double *y_mean, double *yy);

/** Power at f0 + k df by least squares, any number of terms, right to 1e-10 at any condition above
    1e-24 (lombscargle_exact.c). n up to 4096. */
struct bin curve_power(const struct curve *curve, int fit_mean, int terms, double yy, double f0,
                       double k, double df);
/** Standard power from a power in the normalization asked for. */
double power_standard(int normalization, double psd_factor, double power);
/** Whether a power in the normalization asked for is standard power p within `error`; NaN is right
    for NaN alone. */
bool power_right(int normalization, double psd_factor, double power, double p, double error);

/* Several curves, several terms, peaks (lombscargle_batch.c). */
void lombscargle_batch_run(struct check *check);
void lombscargle_batch_bench(struct check *check);
/* Bins near to singular (lombscargle_weak.c). */
void lombscargle_weak_run(struct check *check);
void lombscargle_weak_bench(struct check *check);
/* Method NUFFT (lombscargle_nufft.c). */
void lombscargle_nufft_run(struct check *check);
void lombscargle_nufft_bench(struct check *check);

#endif
