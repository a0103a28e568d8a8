/*
 * lombscargle_basis.h: the power of one frequency where the normal equations of cosines and sines
 * are near to singular, for every backend.
 *
 * The functions that are fitted, with the constant, are the trigonometric polynomials of degree H,
 * 2H + 1 of them. Where phases f t crowd at few places of the turn (below 1/T, and around the
 * frequencies at which regular samples repeat themselves) cosines and sines of these phases are
 * nearly dependent, the space that they span is not: it has a basis of Newton's kind,
 *
 *   Π sin(π f (t - t_i)), i < k,   for even k;   the same times cos(π f (t - t_k))   for odd k,
 *
 * with nodes t_i from among the samples. Each node is the sample at which the next product times
 * the root of the weight is largest (complete pivoting, as Demmel 1999, SIAM J. Matrix Anal. Appl.
 * 21, 562, for Vandermonde matrices; Leja's order of points). The basis, 1 at its own node and 0 at
 * those before, is well conditioned for any times whatever (10 or so), as long as the differences
 * of phases are right in all digits: they are reduced from a product in twice double precision.
 *
 * Phases within LOMBSCARGLE_SAME |f| T, the rounding of the times (T: between the first and the
 * last), are one. What is undefined follows from the number m of phases, over samples of weight
 * above 0: m functions of m ≤ 2H + 1 phases are independent, with the constant among them. So with
 * a floating mean p is NaN for m = 1, and 1 where every sample has a phase of its own and m ≤ 2H +
 * 1. Without one the polynomials are those whose mean over the turn is 0, a subspace of one
 * dimension less: `basis_means` has the means of the basis functions, in twice double precision,
 * and what lies along them does not count. For m ≤ 2H there may be polynomials that vanish at all
 * phases; where one of these has a mean, any values can be fitted.
 *
 * A backend finds nodes and sums over samples (basis_row, column by column); the rest is here. C11
 * and device code.
 */
#ifndef KILN_KERNELS_LOMBSCARGLE_BASIS_H
#define KILN_KERNELS_LOMBSCARGLE_BASIS_H

#include "kernels/lombscargle_power.h"

#define LOMBSCARGLE_BASIS_MAX (2 * LOMBSCARGLE_TERMS_MAX + 1)
/** Rows of the normal equations: the functions', the values', the means'. */
#define LOMBSCARGLE_NORMAL_ROWS(functions) ((functions) + 2)
#define LOMBSCARGLE_NORMAL(functions)                                                              \
    (LOMBSCARGLE_NORMAL_ROWS(functions) * (LOMBSCARGLE_NORMAL_ROWS(functions) + 1) / 2)
#define LOMBSCARGLE_SAME 0x1p-48

struct lombscargle_basis {
    double f, f_low;                    /* frequency */
    double same;                        /* turns by which phases differ at most that are one */
    int32_t size;                       /* functions with the constant: 2 nterms + 1 */
    int32_t nodes;                      /* found so far */
    int64_t samples;                    /* of weight above 0 */
    double t[LOMBSCARGLE_BASIS_MAX];    /* of the nodes */
    double gain[LOMBSCARGLE_BASIS_MAX]; /* makes the product 1 at its node, after the one before */
};

/** A number as the sum of two doubles. */
struct lombscargle_pair {
    double high, low;
};

LOMBSCARGLE_INLINE struct lombscargle_pair pair_of(double high, double low) {
    struct lombscargle_pair pair = {high, low};
    return pair;
}

LOMBSCARGLE_INLINE struct lombscargle_pair pair_sum(double a, double b) {
    double sum = a + b, back = sum - a;
    return pair_of(sum, (a - (sum - back)) + (b - back));
}

LOMBSCARGLE_INLINE struct lombscargle_pair pair_add(struct lombscargle_pair a,
                                                    struct lombscargle_pair b) {
    struct lombscargle_pair sum = pair_sum(a.high, b.high), low = pair_sum(a.low, b.low);
    struct lombscargle_pair some = pair_sum(sum.high, sum.low + low.high);
    return pair_sum(some.high, some.low + low.low);
}

LOMBSCARGLE_INLINE struct lombscargle_pair pair_multiply(struct lombscargle_pair a,
                                                         struct lombscargle_pair b) {
    double product = a.high * b.high;
    double low = fma(a.high, b.high, -product) + (a.high * b.low + a.low * b.high);
    return pair_sum(product, low);
}

LOMBSCARGLE_INLINE struct lombscargle_pair pair_divide(struct lombscargle_pair a, double by) {
    double first = a.high / by;
    double second = (fma(-first, by, a.high) + a.low) / by;
    return pair_sum(first, second);
}

/** f (t - node) less the whole number next to it, in turns; `odd`: 1 where that is odd, else 0. */
LOMBSCARGLE_INLINE struct lombscargle_pair basis_turns(double f, double f_low, double t,
                                                       double node, double *odd) {
    double from = t - node, back = from - t;
    double from_low = (t - (from - back)) - (node + back);
    double product = f * from, whole = rint(product);
    double rest = fma(f, from, -product) + (f * from_low + f_low * from);
    *odd = fabs(whole - 2.0 * rint(0.5 * whole));
    return pair_sum(product - whole, rest);
}

/** The sign that a whole number of turns gives functions of half the phase. */
LOMBSCARGLE_INLINE double basis_sign(double odd) {
    return 1.0 - 2.0 * odd;
}

/** Begins with the frequency's two parts and the time between the first and the last sample. */
LOMBSCARGLE_INLINE void basis_begin(struct lombscargle_basis *basis, int32_t nterms, double f,
                                    double f_low, double span) {
    basis->f = f;
    basis->f_low = f_low;
    basis->same = LOMBSCARGLE_SAME * fabs(f) * span;
    basis->size = 2 * nterms + 1;
    basis->nodes = 0;
}

/** The sample at `t`, where the product of the nodes before is `product`, becomes a node. */
LOMBSCARGLE_INLINE void basis_node(struct lombscargle_basis *basis, double t, double product) {
    basis->t[basis->nodes] = t;
    basis->gain[basis->nodes] = 1.0 / product;
    basis->nodes++;
}

/** Place of the normal equations' number in row i, column j ≤ i. */
LOMBSCARGLE_INLINE int basis_cell(int i, int j) {
    return i * (i + 1) / 2 + j;
}

/* sin πx and cos πx, |x| ≤ 1, by Taylor's series. */
LOMBSCARGLE_INLINE void pair_sincos(struct lombscargle_pair x, struct lombscargle_pair *sine,
                                    struct lombscargle_pair *cosine) {
    const struct lombscargle_pair pi = pair_of(3.141592653589793116, 1.2246467991473531772e-16);
    struct lombscargle_pair angle = pair_multiply(x, pi), term = pair_of(1.0, 0.0);
    struct lombscargle_pair sum[2];
    sum[0] = term;
    sum[1] = pair_of(0.0, 0.0);
    for (int i = 1; i < 48; i++) {
        term = pair_divide(pair_multiply(term, angle), (double)i);
        sum[i & 1] = pair_add(sum[i & 1], i & 2 ? pair_of(-term.high, -term.low) : term);
    }
    *cosine = sum[0];
    *sine = sum[1];
}

/* Sine and cosine of half the nodes' phases, from the first one's on. Means over the turn are those
   over 2 nterms + 1 places, exactly, those of the products' squares too. */
struct basis_circle {
    struct lombscargle_pair sine[LOMBSCARGLE_BASIS_MAX], cosine[LOMBSCARGLE_BASIS_MAX];
};

LOMBSCARGLE_INLINE void basis_circle_make(const struct lombscargle_basis *basis,
                                          struct basis_circle *circle) {
    for (int i = 0; i < basis->nodes; i++) {
        double odd;
        struct lombscargle_pair turns =
            basis_turns(basis->f, basis->f_low, basis->t[i], basis->t[0], &odd);
        pair_sincos(turns, &circle->sine[i], &circle->cosine[i]);
        double sign = basis_sign(odd);
        circle->sine[i] = pair_of(sign * circle->sine[i].high, sign * circle->sine[i].low);
        circle->cosine[i] = pair_of(sign * circle->cosine[i].high, sign * circle->cosine[i].low);
    }
}

/* sin π(x - x_i), or its cosine, from the sines and cosines of both. */
LOMBSCARGLE_INLINE struct lombscargle_pair basis_sine(const struct basis_circle *circle, int i,
                                                      struct lombscargle_pair sine,
                                                      struct lombscargle_pair cosine) {
    struct lombscargle_pair other = pair_multiply(cosine, circle->sine[i]);
    return pair_add(pair_multiply(sine, circle->cosine[i]), pair_of(-other.high, -other.low));
}

LOMBSCARGLE_INLINE struct lombscargle_pair basis_cosine(const struct basis_circle *circle, int i,
                                                        struct lombscargle_pair sine,
                                                        struct lombscargle_pair cosine) {
    return pair_add(pair_multiply(cosine, circle->cosine[i]), pair_multiply(sine, circle->sine[i]));
}

/* Whether a polynomial that vanishes at all nodes, fewer than there are functions, has a mean: the
   product of all sines has an amplitude at a frequency that is left for its other factor. */
LOMBSCARGLE_INLINE int basis_free(const double *product, int places, int left, double same) {
    double all = 0.0, most = 0.0;
    for (int g = 0; g < places; g++) {
        all += product[g] * product[g];
    }
    for (int q = left; q >= 0; q -= 2) {
        double c = 0.0, s = 0.0;
        for (int g = 0; g < places; g++) {
            double angle = 3.141592653589793 * (double)(q * g % (2 * places)) / (double)places;
            c += product[g] * cos(angle);
            s += product[g] * sin(angle);
        }
        most = fmax(most, c * c + s * s);
    }
    double nothing = 0x1p-40 + 16.0 * same;
    return most > nothing * nothing * all * places;
}

/* The functions' means over the turn, of any common scale, into the last row of the equations;
   returns 0 where means are no bound. */
LOMBSCARGLE_INLINE int basis_means(const struct lombscargle_basis *basis, double *normal) {
    const int places = basis->size, m = basis->nodes;
    struct basis_circle circle;
    struct lombscargle_pair means[LOMBSCARGLE_BASIS_MAX];
    double products[LOMBSCARGLE_BASIS_MAX], most = 0.0;
    basis_circle_make(basis, &circle);
    for (int g = 0; g < places; g++) {
        struct lombscargle_pair sine, cosine, product = pair_of(1.0, 0.0);
        pair_sincos(pair_divide(pair_of((double)g, 0.0), (double)places), &sine, &cosine);
        products[g] = 1.0;
        for (int k = 0; k < m; k++) {
            product = pair_multiply(product, pair_of(basis->gain[k], 0.0));
            struct lombscargle_pair value = product;
            if (k & 1) {
                value = pair_multiply(value, basis_cosine(&circle, k, sine, cosine));
            }
            means[k] = g > 0 ? pair_add(means[k], value) : value;
            struct lombscargle_pair factor = basis_sine(&circle, k, sine, cosine);
            product = pair_multiply(product, factor);
            products[g] *= factor.high;
        }
    }
    if (m < basis->size && basis_free(products, places, basis->size - 1 - m, basis->same)) {
        return 0;
    }
    for (int k = 0; k < m; k++) {
        most = fmax(most, fabs(means[k].high));
    }
    for (int k = 0; k < m; k++) {
        normal[basis_cell(m + 1, k)] = means[k].high / most;
    }
    return 1;
}

/* Gaussian elimination of the functions, in their order, from the rows of values and means; the
   values' share that functions from `first` on explain. */
LOMBSCARGLE_INLINE double basis_explained(double *normal, int m, int first, int means) {
    double explained = 0.0, along = 0.0, length = 0.0;
    for (int k = 0; k < m; k++) {
        double pivot = normal[basis_cell(k, k)], value = normal[basis_cell(m, k)];
        if (!(pivot > 0.0)) {
            continue;
        }
        if (k >= first) {
            explained += value * value / pivot;
        }
        if (means) {
            double mean = normal[basis_cell(m + 1, k)];
            along += value * mean / pivot;
            length += mean * mean / pivot;
        }
        for (int i = k + 1; i < m + 1 + means; i++) {
            double factor = normal[basis_cell(i, k)] / pivot;
            for (int j = k + 1; j <= (i < m ? i : m - 1); j++) {
                normal[basis_cell(i, j)] -= factor * normal[basis_cell(j, k)];
            }
        }
    }
    return means ? explained - along * (along / length) : explained;
}

/** Standard power from the sums over samples: in `normal`, LOMBSCARGLE_NORMAL(basis->nodes)
    numbers, Σ w times functions i and j, and as row basis->nodes Σ w y times function j. */
LOMBSCARGLE_INLINE double basis_power(const struct lombscargle_model *model,
                                      const struct lombscargle_basis *basis, double *normal) {
    const int m = basis->nodes;
    if (m == 0 || (m == 1 && model->fit_mean) || !(model->yy > 0.0)) {
        return (double)NAN;
    }
    int means = model->fit_mean ? 0 : basis_means(basis, normal);
    if (m == basis->samples && !means) {
        return 1.0;
    }
    return basis_explained(normal, m, model->fit_mean ? 1 : 0, means) / model->yy;
}

#endif
