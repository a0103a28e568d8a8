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
    double p; /* standard power */
    double
        condition; /* of the normal equations: 1 where the functions are orthogonal, 0 singular */
};

/** Samples into arrays of n: times over ±span, weights that include zeros, weighted mean taken off
    if `centre`. */
void curve_fill(struct check *check, const struct curve *curve, double span, bool centre);
/** The same in memory of the case. */
struct curve curve_random(struct check *check, int n, double span, bool centre);
/** y_mean and yy of a curve. */
void curve_measure(const struct curve *curve, int fit_mean, double *y_mean, double *yy);

/** Power by least squares in long double, any number of terms. */
struct bin curve_power(const struct curve *curve, int fit_mean, int terms, double yy,
                       long double f);
/** A standard power in the normalization asked for, and how far it may be off when that is off by
    `error`. */
double power_normalize(int normalization, double psd_factor, double p);
double power_allowed(int normalization, double psd_factor, double p, double error);

/* Several curves, several terms, peaks (lombscargle_batch.c). */
void lombscargle_batch_run(struct check *check);
void lombscargle_batch_bench(struct check *check);
/* Method NUFFT (lombscargle_nufft.c). */
void lombscargle_nufft_run(struct check *check);
void lombscargle_nufft_bench(struct check *check);

#endif
