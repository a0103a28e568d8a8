/*
 * lombscargle_simd.c: the sums of `lombscargle` for one instruction set and element type.
 *
 * Cosines and sines come from the phase in turns, reduced in double with the product's rounding
 * error kept, and two short polynomials; those of a product's matrices in double, by rotation from
 * few. Products and sums are in `real`; each block's sums are added up in double.
 */
#include "kernels/cpu/lombscargle/lombscargle_simd.h"
#include "kernels/cpu/device/simd.h"
#include "kernels/cpu/lombscargle/lombscargle_phase.h"

/* Turns cosines and sines on by the steps'. */
static inline void sincos_step(double *restrict c, double *restrict s, double step_c,
                               double step_s) {
    double turned = fused(*c, step_c, -(*s * step_s));
    *s = fused(*s, step_c, *c * step_s);
    *c = turned;
}

static void weigh(const double *w, const double *y, double level, double scale, size_t n, void *to,
                  void *to_y) {
    real *weights = to, *values = to_y;
    for (size_t i = 0; i < n; i++) {
        double weight = scale * w[i];
        weights[i] = (real)weight;
        values[i] = (real)(weight * (y[i] - level));
    }
}

#define BLOCK LOMBSCARGLE_BLOCK
#define PANEL (2 * LANES)                          /* columns of the innermost product */
#define LINES (LANES * sizeof(real) == 64 ? 8 : 4) /* its lines */
#define SEEDS 8 /* offsets evaluated, the others are turned on from them */

/* Where column `column` of sample j lies: panels of PANEL columns, the samples of a panel in order.
 */
static inline size_t place(size_t column, size_t j) {
    return (column / PANEL * BLOCK + j) * PANEL + column % PANEL;
}

/* The phase steps of a product at one harmonic, each as a sum of two doubles. */
struct steps {
    double row, row_low, seeds, seeds_low; /* from row to row, and from seed to seed */
    double offset[SEEDS], offset_low[SEEDS];
};

static inline void scale_exactly(double factor, double x, double x_low, double *high, double *low) {
    *high = factor * x;
    *low = product_error(factor, x, *high) + factor * x_low;
}

static struct steps steps_make(const struct lombscargle_rows *rows, int harmonic) {
    struct steps steps;
    double h = harmonic;
    scale_exactly(h * LOMBSCARGLE_ROW, rows->df, 0, &steps.row, &steps.row_low);
    scale_exactly(h * SEEDS, rows->df, 0, &steps.seeds, &steps.seeds_low);
    for (int m = 0; m < SEEDS; m++) {
        scale_exactly(h * (m + 0.5), rows->df, 0, &steps.offset[m], &steps.offset_low[m]);
    }
    return steps;
}

/* Columns: cosines and sines of the offsets' phases. */
static void right_fill(const double *restrict t, size_t n, const struct steps *steps,
                       real *restrict right) {
    double step_c[BLOCK], step_s[BLOCK];
    sincos_fill(t, n, steps->seeds, steps->seeds_low, step_c, step_s);
    for (size_t j = 0; j < n; j++) {
        double c[SEEDS], s[SEEDS];
        for (size_t m = 0; m < SEEDS; m++) {
            uint64_t quarter;
            double x = phase_reduce(steps->offset[m], steps->offset_low[m], t[j], &quarter);
            sincos_poly(x, &s[m], &c[m]);
            sincos_turn(quarter, &s[m], &c[m]);
        }
        for (size_t group = 0; group < LOMBSCARGLE_OFFSETS; group += SEEDS) {
            for (size_t m = 0; m < SEEDS; m++) {
                right[place(group + m, j)] = (real)c[m];
                right[place(LOMBSCARGLE_OFFSETS + group + m, j)] = (real)s[m];
            }
            for (size_t m = 0; m < SEEDS; m++) {
                sincos_step(&c[m], &s[m], step_c[j], step_s[j]);
            }
        }
    }
}

/* Cosines and sines of row i's centre. */
static void centre_fill(const double *t, size_t n, const struct lombscargle_rows *rows, int i,
                        int harmonic, double *c, double *s) {
    double k = rows->k + (double)i * LOMBSCARGLE_ROW, f, low;
    double product = k * rows->df, sum = rows->f0 + product, back = sum - rows->f0;
    double error = (rows->f0 - (sum - back)) + (product - back);
    error += product_error(k, rows->df, product);
    scale_exactly(harmonic, sum, error, &f, &low);
    sincos_fill(t, n, f, low, c, s);
}

/* Lines: weighted cosines and sines of the centres' phases. */
static void left_fill(const struct lombscargle_samples *samples, size_t first, size_t n,
                      const struct steps *steps, const struct lombscargle_rows *rows, int harmonic,
                      bool values, real *restrict left) {
    double c[BLOCK], s[BLOCK], step_c[BLOCK], step_s[BLOCK];
    const double *t = samples->t + first;
    const real *restrict w = (const real *)samples->w + first;
    const real *restrict wy = (const real *)samples->wy + first;
    real *restrict again = left + 2 * (size_t)rows->rows * BLOCK;
    sincos_fill(t, n, steps->row, steps->row_low, step_c, step_s);
    for (int i = 0; i < rows->rows; i++, left += 2 * BLOCK, again += 2 * BLOCK) {
        if (i % LOMBSCARGLE_RENEW == 0) {
            centre_fill(t, n, rows, i, harmonic, c, s);
        }
        for (size_t j = 0; j < n; j++) {
            left[j] = w[j] * (real)c[j];
            left[BLOCK + j] = w[j] * (real)s[j];
        }
        for (size_t j = 0; values && j < n; j++) {
            again[j] = wy[j] * (real)c[j];
            again[BLOCK + j] = wy[j] * (real)s[j];
        }
        for (size_t j = 0; j < n; j++) {
            sincos_step(&c[j], &s[j], step_c[j], step_s[j]);
        }
    }
}

static inline void products_add(double *to, vec sum) {
    for (int i = 0; i < LANES; i++) {
        to[i] += (double)sum[i];
    }
}

/* LINES lines with one panel of columns. */
static inline void panel_multiply(const real *left, const real *right, size_t n, double *to) {
    vec sum[LINES][2];
    for (size_t r = 0; r < LINES; r++) {
        sum[r][0] = sum[r][1] = v_set(0);
    }
    for (size_t j = 0; j < n; j++) {
        vec low = v_load(right + j * PANEL), high = v_load(right + j * PANEL + LANES);
#pragma GCC unroll 8
        for (size_t r = 0; r < LINES; r++) {
            vec a = v_set(left[r * BLOCK + j]);
            sum[r][0] = v_fma(a, low, sum[r][0]);
            sum[r][1] = v_fma(a, high, sum[r][1]);
        }
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < LINES; r++) {
        products_add(to + r * LOMBSCARGLE_ROW, sum[r][0]);
        products_add(to + r * LOMBSCARGLE_ROW + LANES, sum[r][1]);
    }
}

static void block_add(const struct lombscargle_samples *samples, size_t first, size_t n,
                      const struct lombscargle_rows *rows, int harmonic, bool values,
                      const struct lombscargle_work *work) {
    struct steps steps = steps_make(rows, harmonic);
    size_t lines = (values ? 4 : 2) * (size_t)rows->rows;
    real *left = work->left, *right = work->right;
    right_fill(samples->t + first, n, &steps, right);
    left_fill(samples, first, n, &steps, rows, harmonic, values, left);
    for (size_t column = 0; column < LOMBSCARGLE_ROW; column += PANEL) {
        for (size_t line = 0; line < lines; line += LINES) {
            panel_multiply(left + line * BLOCK, right + column * BLOCK, n,
                           work->products + line * LOMBSCARGLE_ROW + column);
        }
    }
}

/* Sums over LOMBSCARGLE_GRAIN partial ones, so that they are vectors. */
static inline double weighted(const real *restrict w, const double *restrict x, size_t n) {
    double sum[LOMBSCARGLE_GRAIN] = {0}, all = 0;
    for (size_t j = 0; j < n; j += LOMBSCARGLE_GRAIN) {
        for (size_t i = 0; i < LOMBSCARGLE_GRAIN; i++) {
            sum[i] = fused((double)w[j + i], x[j + i], sum[i]);
        }
    }
    for (size_t i = 0; i < LOMBSCARGLE_GRAIN; i++) {
        all += sum[i];
    }
    return all;
}

static void pair_add(const struct lombscargle_samples *samples, size_t first, size_t n, double f,
                     double f_low, int terms, double *sums) {
    double step_c[BLOCK], step_s[BLOCK], c[BLOCK], s[BLOCK];
    const real *w = (const real *)samples->w + first, *wy = (const real *)samples->wy + first;
    double *weights = sums + 2 * terms;
    sincos_fill(samples->t + first, n, f, f_low, step_c, step_s);
    memcpy(c, step_c, sizeof c);
    memcpy(s, step_s, sizeof s);
    for (int h = 0; h < 2 * terms; h++) {
        weights[2 * h] += weighted(w, c, n);
        weights[2 * h + 1] += weighted(w, s, n);
        if (h < terms) {
            sums[2 * h] += weighted(wy, c, n);
            sums[2 * h + 1] += weighted(wy, s, n);
        }
        for (size_t j = 0; j < n; j++) {
            sincos_step(&c[j], &s[j], step_c[j], step_s[j]);
        }
    }
}

const struct lombscargle_simd SIMD_NAME(lombscargle) = {
    .element = sizeof(real),
    .weigh = weigh,
    .block = block_add,
    .pair = pair_add,
};
