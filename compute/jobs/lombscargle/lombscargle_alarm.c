/*
 * lombscargle_alarm.c: how likely noise alone would show such a peak.
 *
 * Baluev 2008 (MNRAS 385, 1279), table 1 and eq. 5 and 6, for a model of three parameters against
 * a constant, in the arrangement of astropy's _statistics.py so that values can be compared.
 * Davies' bound (eq. 5) exceeds 1 for weak peaks, where it says nothing: it is 1 there, which
 * astropy leaves to its caller. Every method's answer is a probability: a model that fits whatever
 * there is (as many parameters as samples) has 1, a perfect fit that could have failed has 0. Runs
 * on a worker's slot thread.
 */
#include "compute/jobs/lombscargle/lombscargle.h"

#include <math.h>

#define NULL_PARAMETERS  1.0 /* d_H */
#define MODEL_PARAMETERS 3.0 /* d_K */

static double log_gamma(double x) {
    int sign; /* lgamma itself writes a global */
    return lgamma_r(x, &sign);
}

static double gamma_factor(double n) {
    return sqrt(2 / n) * exp(log_gamma(n / 2) - log_gamma((n - 1) / 2));
}

/* Probability that noise exceeds z at one frequency. */
static double single(int normalization, double z, double n) {
    double nk = n - MODEL_PARAMETERS;
    switch (normalization) {
    case LOMBSCARGLE_STANDARD:
        return pow(1 - z, 0.5 * nk);
    case LOMBSCARGLE_MODEL:
        return pow(1 + z, -0.5 * nk);
    case LOMBSCARGLE_LOG:
        return exp(-0.5 * nk * z);
    default:
        return exp(-z);
    }
}

/* The same for several terms: what the model explains of noise has a beta distribution, or for psd
   a gamma distribution, with half the number of fitted functions, which is whole, for its first
   parameter; so both are sums. */
static double single_many(const struct lombscargle_params *params, double z, double n) {
    int terms = (int)params->nterms;
    double standard = params->normalization == LOMBSCARGLE_MODEL ? z / (1 + z)
                      : params->normalization == LOMBSCARGLE_LOG ? -expm1(-z)
                                                                 : z;
    double rest = 0.5 * (n - 2 * terms - 1), term = 1, sum = 1;
    if (params->normalization == LOMBSCARGLE_PSD) {
        for (int k = 1; k < terms; k++) {
            sum += term *= z / k;
        }
        return exp(-z) > 0 ? exp(-z) * sum : 0;
    }
    if (!(rest > 0)) {
        return 1;
    }
    for (int k = 1; k < terms; k++) {
        sum += term *= (rest + k - 1) / k * standard;
    }
    return pow(1 - standard, rest) * sum;
}

/* Expected number of upcrossings of z up to the highest frequency; `w` is that frequency in
   effective baselines. */
static double crossings(int normalization, double z, double n, double w) {
    double nh = n - NULL_PARAMETERS, nk = n - MODEL_PARAMETERS;
    switch (normalization) {
    case LOMBSCARGLE_STANDARD:
        return gamma_factor(nh) * w * pow(1 - z, 0.5 * (nk - 1)) * sqrt(0.5 * nh * z);
    case LOMBSCARGLE_MODEL:
        return gamma_factor(nk) * w * pow(1 + z, -0.5 * nk) * sqrt(0.5 * nk * z);
    case LOMBSCARGLE_LOG:
        /* exp(-z/2 (nk - 1/2)) sqrt(nk sinh(z/2)), without its overflow */
        return gamma_factor(nk) * w * exp(-0.5 * z * (nk - 1)) * sqrt(-0.5 * nk * expm1(-z));
    default:
        return w * exp(-z) * sqrt(z);
    }
}

static double highest_frequency(const struct periodogram *p) {
    uint64_t last = p->nf - 1;
    return p->ascending_x != NULL ? p->ascending_x[last] : lombscargle_frequency(p, last);
}

/* Share of the resampled curves whose highest power is this or more. */
static double bootstrapped(const struct periodogram *p, double power) {
    uint64_t low = 0, high = p->maxima_count;
    if (!high) {
        return NAN;
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (p->maxima[middle] < power) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return (double)(p->maxima_count - low) / (double)p->maxima_count;
}

double lombscargle_alarm(const struct periodogram *p, double power) {
    const struct lombscargle_params *params = p->params;
    double n = (double)p->n, highest = highest_frequency(p);
    if (params->false_alarm == ALARM_NONE || isnan(power)) {
        return NAN;
    }
    if (params->false_alarm == ALARM_BOOTSTRAP) {
        return bootstrapped(p, power);
    }
    double z = fmax(power, 0); /* rounding may leave it below */
    if (params->normalization == LOMBSCARGLE_STANDARD) {
        z = fmin(z, 1);
    }
    double alone =
        params->nterms > 1 ? single_many(params, z, n) : single(params->normalization, z, n);
    if (!(alone < 1)) {
        return 1;
    }
    if (isinf(z)) {
        return 0;
    }
    if (params->false_alarm == ALARM_NAIVE) {
        return fmin(-expm1(highest * p->baseline * log1p(-alone)), 1);
    }
    double w = highest * sqrt(4 * 3.14159265358979323846 * p->spread);
    double tau = crossings(params->normalization, z, n, w);
    if (params->false_alarm == ALARM_DAVIES) {
        return fmin(alone + tau, 1);
    }
    return fmin(-expm1(-tau) + alone * exp(-tau), 1);
}
