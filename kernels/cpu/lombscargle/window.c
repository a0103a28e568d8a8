/*
 * window.c: polynomials by interpolation at Chebyshev's points, in long double.
 */
#include "kernels/cpu/lombscargle/window.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#define PI     3.141592653589793238462643383279502884L
#define POINTS 24 /* of interpolation at most */

static long double beta(void) {
    const long double ratio = WINDOW_WIDTH / (long double)WINDOW_OVERSAMPLING;
    const long double room = (long double)WINDOW_OVERSAMPLING - 0.5L;
    return PI * sqrtl(ratio * ratio * room * room - 0.8L);
}

/* I0: all terms are above 0. */
static long double bessel(long double x) {
    long double term = 1, sum = 1;
    for (int k = 1; term > sum * 1e-21L; k++) {
        term *= x * x / (4.0L * (long double)k * (long double)k);
        sum += term;
    }
    return sum;
}

static long double window_at(int cell, long double v) {
    long double x = ((long double)cell + 0.5L * (v + 1)) / (0.5L * WINDOW_WIDTH) - 1;
    return bessel(beta() * sqrtl(fmaxl(0, 1 - x * x))) / bessel(beta());
}

static long double inverse_at(int cell, long double v) {
    (void)cell;
    const long double edge = 0.5L / (long double)WINDOW_OVERSAMPLING;
    long double x = PI * WINDOW_WIDTH * edge * sqrtl(fmaxl(0, 0.5L * (v + 1)));
    long double root = sqrtl(beta() * beta() - x * x);
    return bessel(beta()) * root / (WINDOW_WIDTH * sinhl(root));
}

/* Coefficients in powers of v, |v| ≤ 1, of the polynomial through `count` points of `function`. */
static void fit(long double (*function)(int, long double), int cell, int count,
                long double *powers) {
    long double values[POINTS], before[POINTS] = {1}, now[POINTS] = {0, 1}, next[POINTS] = {0};
    for (int i = 0; i < count; i++) {
        values[i] = function(cell, cosl(PI * ((long double)i + 0.5L) / (long double)count));
    }
    for (int k = 0; k < count; k++) {
        powers[k] = 0;
    }
    for (int k = 0; k < count; k++) {
        long double share = 0;
        for (int i = 0; i < count; i++) {
            share += values[i] *
                     cosl(PI * (long double)k * ((long double)i + 0.5L) / (long double)count);
        }
        share *= (k == 0 ? 1.0L : 2.0L) / (long double)count;
        for (int j = 0; j <= k; j++) {
            powers[j] += share * before[j];
        }
        /* Chebyshev's polynomials: the one after `now` is 2 v now - before. */
        for (int j = 0; j < count; j++) {
            next[j] = (j > 0 ? 2 * now[j - 1] : 0) - before[j];
        }
        memcpy(before, now, sizeof before);
        memcpy(now, next, sizeof now);
    }
}

static struct window shared;

static void window_make(void) {
    struct window *window = &shared;
    long double powers[POINTS];
    for (int i = 0; i < WINDOW_WIDTH; i++) {
        fit(window_at, i, WINDOW_DEGREE + 1, powers);
        for (int k = 0; k <= WINDOW_DEGREE; k++) {
            window->cell[k][i] = (double)powers[k];
        }
    }
    fit(inverse_at, 0, WINDOW_TERMS, powers);
    for (int k = 0; k < WINDOW_TERMS; k++) {
        window->inverse[k] = (double)powers[k];
    }
}

const struct window *window_get(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, window_make);
    return &shared;
}

void window_cells(const struct window *window, double s, double *values) {
    double v = 2 * s - 1;
    for (int i = 0; i < WINDOW_WIDTH; i++) {
        values[i] = window->cell[WINDOW_DEGREE][i];
        for (int k = WINDOW_DEGREE - 1; k >= 0; k--) {
            values[i] = values[i] * v + window->cell[k][i];
        }
    }
}
