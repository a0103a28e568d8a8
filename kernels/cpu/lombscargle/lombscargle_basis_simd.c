/*
 * lombscargle_basis_simd.c: functions of kernels/lombscargle_basis.h at a block of samples, and
 * their products, for one instruction set.
 */
#include "kernels/cpu/lombscargle/lombscargle_basis_simd.h"
#include "kernels/cpu/lombscargle/lombscargle_phase.h"

/* Sine and cosine of π f (t - node); the sine is 0 where both phases are one. */
static void factors_fill(const struct lombscargle_basis *basis, double node,
                         const double *restrict t, size_t n, double *restrict sine,
                         double *restrict cosine) {
    const double f = basis->f, f_low = basis->f_low, same = basis->same;
    for (size_t j = 0; j < n; j++) {
        double odd, s, c, turns = basis_turns(f, f_low, t[j], node, &odd).high;
        double shifted = turns * 2 + ROUNDER;
        sincos_poly(turns * 0.5 - (shifted - ROUNDER) * 0.25, &s, &c);
        sincos_turn(bits_of(shifted), &s, &c);
        sine[j] = fabs(turns) <= same ? 0 : basis_sign(odd) * s;
        cosine[j] = basis_sign(odd) * c;
    }
}

/* Goes on from node k's product to the next one's. */
static void product_step(const struct lombscargle_basis *basis, int k, const double *restrict sine,
                         size_t n, double *restrict product) {
    const double gain = k + 1 < basis->nodes ? basis->gain[k + 1] : 1;
    for (size_t j = 0; j < n; j++) {
        product[j] *= sine[j] * gain;
    }
}

static void products(const struct lombscargle_basis *basis, const double *t, size_t n,
                     struct basis_block *block) {
    double sine[BASIS_BLOCK], cosine[BASIS_BLOCK];
    for (size_t j = 0; j < BASIS_BLOCK; j++) {
        block->product[j] = j < n;
    }
    for (int k = 0; k < basis->nodes; k++) {
        factors_fill(basis, basis->t[k], t, n, sine, cosine);
        product_step(basis, k, sine, n, block->product);
    }
}

static double dot(const double *restrict a, const double *restrict b) {
    double sum[8] = {0}, all = 0;
    for (size_t j = 0; j < BASIS_BLOCK; j += 8) {
        for (size_t i = 0; i < 8; i++) {
            sum[i] = fused(a[j + i], b[j + i], sum[i]);
        }
    }
    for (size_t i = 0; i < 8; i++) {
        all += sum[i];
    }
    return all;
}

static void normal_add(const struct lombscargle_basis *basis, const double *t, const double *w,
                       const double *y, double level, size_t n, struct basis_block *block,
                       double *normal) {
    double sine[BASIS_BLOCK], cosine[BASIS_BLOCK], root[BASIS_BLOCK] = {0};
    const int m = basis->nodes;
    memset(block->rows[m], 0, sizeof block->rows[m]);
    for (size_t j = 0; j < n; j++) {
        root[j] = sqrt(w[j]);
        block->rows[m][j] = root[j] * (y[j] - level);
    }
    for (size_t j = 0; j < BASIS_BLOCK; j++) {
        block->product[j] = 1;
        sine[j] = cosine[j] = 0;
    }
    for (int k = 0; k < m; k++) {
        factors_fill(basis, basis->t[k], t, n, sine, cosine);
        for (size_t j = 0; j < BASIS_BLOCK; j++) {
            block->rows[k][j] =
                root[j] * (k % 2 ? block->product[j] * cosine[j] : block->product[j]);
        }
        product_step(basis, k, sine, n, block->product);
    }
    for (int i = 0; i <= m; i++) {
        for (int j = 0; j <= i && j < m; j++) {
            normal[basis_cell(i, j)] += dot(block->rows[i], block->rows[j]);
        }
    }
}

const struct basis_simd SIMD_NAME(basis) = {.products = products, .normal = normal_add};
