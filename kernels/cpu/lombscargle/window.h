/*
 * window.h: the window that non-uniform transforms spread with and interpolate with.
 *
 * Kaiser-Bessel, I0(β sqrt(1 - x²)) / I0(β) for |x| ≤ 1, WINDOW_WIDTH cells wide. β is that for
 * which samples of a band that fills 1/WINDOW_OVERSAMPLING of the cells' rate come back with the
 * least error, 1e-12 at the band's edge. Polynomials stand for the window and for the inverse of
 * its transform.
 *
 * Threads: any; constant once made.
 */
#ifndef KILN_KERNELS_CPU_LOMBSCARGLE_WINDOW_H
#define KILN_KERNELS_CPU_LOMBSCARGLE_WINDOW_H

#define WINDOW_WIDTH        16
#define WINDOW_OVERSAMPLING 1.6
#define WINDOW_DEGREE       13 /* of each cell's polynomial */
#define WINDOW_TERMS        20 /* coefficients of the inverse's polynomial */

struct window {
    /* The window at WINDOW_WIDTH neighbouring cells, the first of which lies s after its left end,
       0 ≤ s ≤ 1: cell i is a polynomial in 2s - 1; coefficients of rising power. */
    _Alignas(64) double cell[WINDOW_DEGREE + 1][WINDOW_WIDTH];
    /* 1 / Σ window(n) exp(2πi x n), |x| ≤ 1 / (2 WINDOW_OVERSAMPLING): a polynomial in
       2 (2 WINDOW_OVERSAMPLING x)² - 1. */
    double inverse[WINDOW_TERMS];
};

/** The one window, made by the first call. */
const struct window *window_get(void);
/** The window at its WINDOW_WIDTH cells. */
void window_cells(const struct window *window, double s, double *values);

#endif
