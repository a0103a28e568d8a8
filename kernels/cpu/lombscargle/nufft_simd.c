/*
 * nufft_simd.c: spreading, the transform in two steps, and its filters, for one instruction set.
 *
 * The long transform is a matrix of short ones that run from the caches, one in each lane. Twiddle
 * factors are products of two from short tables. Between the steps blocks of lanes × lanes are
 * turned, so that both steps load and store whole vectors.
 */
#include "kernels/cpu/lombscargle/nufft_simd.h"
#include "kernels/cpu/device/simd.h"
#include "kernels/cpu/lombscargle/lombscargle_phase.h"
#include "kernels/cpu/spectral/fft_simd.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#define INLINE static inline __attribute__((always_inline))

struct nufft_plan {
    struct fft *down, *across;
    size_t rows, columns; /* of the grid as a matrix */
    size_t fine;          /* rows whose twiddles have a table of their own */
    /* Of each batch of columns: factors of the row's number within `fine`, and of its multiples. */
    struct fft_element *fines, *coarses;
};

static void plan_destroy(void *made) {
    struct nufft_plan *plan = made;
    if (plan == NULL) {
        return;
    }
    fft_destroy(plan->down);
    fft_destroy(plan->across);
    free(plan->fines);
    free(plan->coarses);
    free(plan);
}

/* Factors exp(-2πi row column / length), row = 0, step, 2 step, …, for all batches of columns. */
static void twiddles_fill(const struct nufft_plan *plan, size_t step, size_t count,
                          struct fft_element *to) {
    const size_t length = plan->rows * plan->columns;
    for (size_t column = 0; column < plan->columns; column += LANES) {
        for (size_t i = 0; i < count; i++, to++) {
            for (size_t lane_ = 0; lane_ < LANES; lane_++) {
                uint64_t turn = (uint64_t)(i * step) * (column + lane_) % length;
                double angle = 2 * M_PI * ((double)turn / (double)length);
                to->re[lane_] = cos(angle);
                to->im[lane_] = -sin(angle);
            }
        }
    }
}

/* Rows are a power of two near the square root, at least 8; both sides are multiples of 8. */
static void *plan_create(size_t length) {
    struct nufft_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) {
        return NULL;
    }
    plan->rows = 8;
    while (4 * plan->rows * plan->rows <= length && length / plan->rows % 16 == 0) {
        plan->rows *= 2;
    }
    plan->columns = length / plan->rows;
    plan->fine = 4;
    while (plan->fine * plan->fine < plan->rows) {
        plan->fine *= 2;
    }
    size_t coarse = plan->rows / plan->fine, element = sizeof(struct fft_element);
    plan->down = fft_create(plan->rows);
    plan->across = fft_create(plan->columns);
    plan->fines = aligned_alloc(64, plan->columns / LANES * plan->fine * element);
    plan->coarses = aligned_alloc(64, plan->columns / LANES * coarse * element);
    if (plan->down == NULL || plan->across == NULL || plan->fines == NULL ||
        plan->coarses == NULL) {
        plan_destroy(plan);
        return NULL;
    }
    twiddles_fill(plan, 1, plan->fine, plan->fines);
    twiddles_fill(plan, plan->fine, coarse, plan->coarses);
    return plan;
}

static size_t plan_work(const struct nufft_plan *plan) {
    size_t down = plan->rows + fft_work(plan->down), across = fft_work(plan->across);
    return (down > across ? down : across) * sizeof(struct fft_element);
}

static size_t plan_down(const struct nufft_plan *plan) {
    return plan->rows;
}

static size_t plan_across(const struct nufft_plan *plan) {
    return plan->columns;
}

#define CHUNK 64 /* samples whose phases are made together */

/* 1 over the window's transform, `x` cycles a cell. */
static inline double inverse_at(const struct window *window, double x) {
    double q = 2 * WINDOW_OVERSAMPLING * x, v = 2 * q * q - 1, sum = 0;
    for (int k = WINDOW_TERMS - 1; k >= 0; k--) {
        sum = fused(sum, v, window->inverse[k]);
    }
    return sum;
}

/* Places and values of up to CHUNK samples, each loop one of vectors. */
struct chunk {
    double re[CHUNK], im[CHUNK], side[CHUNK];
    int64_t cell[CHUNK];
};

static void chunk_fill(const struct window *window, const struct nufft_band *band,
                       const struct nufft_points *points, size_t first, size_t count, int values,
                       struct chunk *chunk) {
    const double *restrict t = points->t + first;
    const double *restrict weights = (values ? points->wy : points->w) + first;
    const double middle = (double)(band->length / 2);
    double cosine[CHUNK], sine[CHUNK];
    sincos_fill(t, count, band->centre, band->centre_low, cosine, sine);
    for (size_t i = 0; i < count; i++) {
        double weight = weights[i] * inverse_at(window, t[i] * points->rate);
        chunk->re[i] = weight * cosine[i];
        chunk->im[i] = -weight * sine[i];
    }
    for (size_t i = 0; i < count; i++) {
        double place = t[i] * band->scale;
        double low = product_error(t[i], band->scale, place) + t[i] * band->scale_low;
        double nearest = (place + ROUNDER) - ROUNDER;
        double part = (place - nearest) + low; /* -½ to ½ and a little */
        double up = part > 0 ? 1 : 0;          /* the first cell is ceil(place - 8) */
        chunk->cell[i] = (int64_t)(nearest + up + middle) - WINDOW_WIDTH / 2;
        chunk->side[i] = 2 * (up - part) - 1;
    }
}

INLINE void point_add(const struct window *window, double side, double re, double im,
                      double *restrict to_re, double *restrict to_im) {
    enum { PARTS = WINDOW_WIDTH / LANES };
    const vec v = v_set(side), real_part = v_set(re), imaginary = v_set(im);
    vec cells[PARTS];
    for (int i = 0; i < PARTS; i++) {
        cells[i] = v_load(window->cell[WINDOW_DEGREE] + i * LANES);
    }
#pragma GCC unroll 16
    for (int k = WINDOW_DEGREE - 1; k >= 0; k--) {
#pragma GCC unroll 8
        for (int i = 0; i < PARTS; i++) {
            cells[i] = v_fma(cells[i], v, v_load(window->cell[k] + i * LANES));
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < PARTS; i++) {
        v_store(to_re + i * LANES, v_fma(cells[i], real_part, v_load(to_re + i * LANES)));
        v_store(to_im + i * LANES, v_fma(cells[i], imaginary, v_load(to_im + i * LANES)));
    }
}

static void spread(const struct window *window, const struct nufft_band *band,
                   const struct nufft_points *points, size_t first, size_t last, int values,
                   struct nufft_sums grid) {
    struct chunk chunk;
    for (size_t at = first; at < last; at += CHUNK) {
        size_t count = last - at < CHUNK ? last - at : CHUNK;
        chunk_fill(window, band, points, at, count, values, &chunk);
        for (size_t i = 0; i < count; i++) {
            point_add(window, chunk.side[i], chunk.re[i], chunk.im[i], grid.re + chunk.cell[i],
                      grid.im + chunk.cell[i]);
        }
    }
}

INLINE struct fft_element times(struct fft_element a, struct fft_element b) {
    return (struct fft_element){v_fma(a.re, b.re, -(a.im * b.im)), v_fma(a.re, b.im, a.im * b.re)};
}

#if LANES == 8
#define STAGES 3
static const lanes low_of[STAGES] = {
    {0, 8, 2, 10, 4, 12, 6, 14}, {0, 1, 8, 9, 4, 5, 12, 13}, {0, 1, 2, 3, 8, 9, 10, 11}};
static const lanes high_of[STAGES] = {
    {1, 9, 3, 11, 5, 13, 7, 15}, {2, 3, 10, 11, 6, 7, 14, 15}, {4, 5, 6, 7, 12, 13, 14, 15}};
#elif LANES == 4
#define STAGES 2
static const lanes low_of[STAGES] = {{0, 4, 2, 6}, {0, 1, 4, 5}};
static const lanes high_of[STAGES] = {{1, 5, 3, 7}, {2, 3, 6, 7}};
#else
#define STAGES 1
static const lanes low_of[STAGES] = {{0, 2}};
static const lanes high_of[STAGES] = {{1, 3}};
#endif

/* Lane j of vector i becomes lane i of vector j. */
INLINE void turn_square(vec *a) {
#pragma GCC unroll 3
    for (int stage = 0; stage < STAGES; stage++) {
#pragma GCC unroll 8
        for (int i = 0; i < LANES; i++) {
            if (i >> stage & 1) {
                continue;
            }
            vec first = a[i], second = a[i | 1 << stage];
            a[i] = __builtin_shuffle(first, second, low_of[stage]);
            a[i | 1 << stage] = __builtin_shuffle(first, second, high_of[stage]);
        }
    }
}

static void columns_load(const struct nufft_plan *plan, const struct nufft_band *band,
                         struct nufft_sums grid, size_t column, struct fft_element *data) {
    const size_t width = plan->columns;
    size_t first = band->first / width, last = band->last / width + 1;
    memset(data, 0, first * sizeof *data);
    for (size_t row = first; row < last; row++) {
        data[row].re = v_load(grid.re + row * width + column);
        data[row].im = v_load(grid.im + row * width + column);
    }
    memset(data + last, 0, (plan->rows - last) * sizeof *data);
}

static void columns(const struct nufft_plan *plan, const struct nufft_band *band,
                    struct nufft_sums grid, size_t batch, void *middle, void *work) {
    struct fft_element *data = work, *to = middle;
    const size_t column = batch * LANES, width = plan->columns;
    const struct fft_element *fines = plan->fines + batch * plan->fine;
    const struct fft_element *coarses = plan->coarses + batch * (plan->rows / plan->fine);
    columns_load(plan, band, grid, column, data);
    fft_forward(plan->down, data, data + plan->rows);
    for (size_t row = 0; row < plan->rows; row += LANES) {
        vec re[LANES], im[LANES];
#pragma GCC unroll 8
        for (size_t i = 0; i < LANES; i++) {
            size_t at = row + i;
            struct fft_element factor = times(fines[at % plan->fine], coarses[at / plan->fine]);
            struct fft_element value = times(data[at], factor);
            re[i] = value.re;
            im[i] = value.im;
        }
        turn_square(re);
        turn_square(im);
#pragma GCC unroll 8
        for (size_t i = 0; i < LANES; i++) {
            to[row / LANES * width + column + i] = (struct fft_element){re[i], im[i]};
        }
    }
}

/* The window's inverse at LANES neighbouring frequencies, with the sign that the grid's middle
   gives every second one; `place` is even. */
INLINE vec inverse_many(const struct window *window, double place, double rate) {
    vec x, sign;
    for (int i = 0; i < LANES; i++) {
        x[i] = i;
        sign[i] = i % 2 ? -1 : 1;
    }
    vec q = (x + place) * (2 * WINDOW_OVERSAMPLING * rate), v = 2 * (q * q) - 1;
    vec sum = v_set(window->inverse[WINDOW_TERMS - 1]);
    for (int k = WINDOW_TERMS - 2; k >= 0; k--) {
        sum = v_fma(sum, v, v_set(window->inverse[k]));
    }
    return sum * sign;
}

static void rows(const struct nufft_plan *plan, const struct window *window,
                 const struct nufft_band *band, size_t batch, void *middle, void *work,
                 struct nufft_sums sums) {
    struct fft_element *data = (struct fft_element *)middle + batch * plan->columns;
    const int64_t length = (int64_t)band->length, count = (int64_t)band->count;
    fft_forward(plan->across, data, work);
    for (size_t i = 0; i < plan->columns; i++) {
        int64_t k = (int64_t)(i * plan->rows + batch * LANES);
        k -= k < length / 2 ? 0 : length;
        int64_t at = k + count / 2;
        if (at <= -LANES || at >= count) {
            continue;
        }
        vec factor = inverse_many(window, (double)k, 1 / (double)length);
        v_store(sums.re + at, data[i].re * factor);
        v_store(sums.im + at, data[i].im * factor);
    }
}

#if LANES == 8
#define TOGETHER NUFFT_BLOCKS /* blocks in registers */
#else
#define TOGETHER 1
#endif
#define PARTS (NUFFT_BLOCK / LANES)
#define WIDTH (NUFFT_BLOCK * NUFFT_BLOCKS) /* frequencies that are combined at a time */

/* `count` arrays of coarse sums, filtered at TOGETHER blocks `step` apart. */
INLINE void filter(const double *restrict filters, int taps, const double *const *from, int count,
                   int64_t step, double (*to)[WIDTH]) {
    vec sum[4][TOGETHER][PARTS];
    for (int a = 0; a < count; a++) {
        for (int b = 0; b < TOGETHER; b++) {
            for (int p = 0; p < PARTS; p++) {
                sum[a][b][p] = v_set(0);
            }
        }
    }
    for (int tap = 0; tap < taps; tap++) {
#pragma GCC unroll 4
        for (int p = 0; p < PARTS; p++) {
            vec by = v_load(filters + tap * NUFFT_BLOCK + p * LANES);
#pragma GCC unroll 4
            for (int a = 0; a < count; a++) {
#pragma GCC unroll 4
                for (int b = 0; b < TOGETHER; b++) {
                    sum[a][b][p] = v_fma(v_set(from[a][tap + b * step]), by, sum[a][b][p]);
                }
            }
        }
    }
#pragma GCC unroll 4
    for (int a = 0; a < count; a++) {
        for (int b = 0; b < TOGETHER; b++) {
            for (int p = 0; p < PARTS; p++) {
                v_store(to[a] + b * NUFFT_BLOCK + p * LANES, sum[a][b][p]);
            }
        }
    }
}

static void filter_two(const struct nufft_harmonic *harmonic, const double *filters, int64_t at,
                       double (*w)[WIDTH]) {
    for (int b = 0; b < NUFFT_BLOCKS; b += TOGETHER, at += TOGETHER * harmonic->step) {
        const double *const from[] = {harmonic->w.re + at, harmonic->w.im + at};
        double(*to)[WIDTH] = (double(*)[WIDTH])(w[0] + b * NUFFT_BLOCK);
        filter(filters, harmonic->taps, from, 2, harmonic->step, to);
    }
}

static void filter_four(const struct nufft_harmonic *harmonic, const double *filters, int64_t at,
                        double (*wy)[WIDTH], double (*w)[WIDTH]) {
    for (int b = 0; b < NUFFT_BLOCKS; b += TOGETHER, at += TOGETHER * harmonic->step) {
        const double *const from[] = {harmonic->wy.re + at, harmonic->wy.im + at,
                                      harmonic->w.re + at, harmonic->w.im + at};
        double to[4][WIDTH];
        filter(filters, harmonic->taps, from, 4, harmonic->step, to);
        const size_t bytes = TOGETHER * NUFFT_BLOCK * sizeof(double);
        for (int a = 0; a < 2; a++) {
            memcpy(wy[a] + b * NUFFT_BLOCK, to[a], bytes);
            memcpy(w[a] + b * NUFFT_BLOCK, to[a + 2], bytes);
        }
    }
}

/* Below this share of what the functions could explain, errors of the sums show: such bins are for
   direct sums, and so are all of a curve whose bins are all weak. */
#define SINGULAR 0x1p-7

INLINE double singular(const struct lombscargle_model *model) {
    return model->weak < 1 ? SINGULAR : model->weak;
}

/* lombscargle_power_one for bins that are not near to singular; a bit for each that is. */
static uint32_t power_one(const struct lombscargle_model *model, double (*sums)[WIDTH], int at,
                          vec *power) {
    vec yc = v_load(sums[0] + at), ys = v_load(sums[1] + at);
    vec c = v_load(sums[2] + at), s = v_load(sums[3] + at), c2 = v_load(sums[4] + at);
    vec cc = 0.5 * (1 + c2), ss = 0.5 * (1 - c2), cs = 0.5 * v_load(sums[5] + at);
    if (model->fit_mean) {
        cc -= c * c;
        ss -= s * s;
        cs -= c * s;
    }
    vec d = cc * ss - cs * cs, all = cc + ss; /* what is nothing may come out below 0 */
    double least = singular(model);
    mask strong = m_and(m_over(d, least * all), m_over(all, v_set(least)));
    *power = (ss * yc * yc + cc * ys * ys - 2 * cs * yc * ys) / (model->yy * d);
    return ~m_bits(strong) & ((UINT32_C(1) << LANES) - 1);
}

/* Σ w cos hθ and Σ w sin hθ for any whole h, at one vector of frequencies. */
INLINE vec cosine_of(double (*w)[WIDTH], int at, int h) {
    h = h < 0 ? -h : h;
    return h == 0 ? v_set(1) : v_load(w[2 * (h - 1)] + at);
}

INLINE vec sine_of(double (*w)[WIDTH], int at, int h) {
    vec sine = h == 0 ? v_set(0) : v_load(w[2 * (h < 0 ? -h : h) - 1] + at);
    return h < 0 ? -sine : sine;
}

/* lombscargle_product of a vector of frequencies. */
INLINE vec product_of(double (*w)[WIDTH], int at, int i, int j) {
    int a = i / 2 + 1, b = j / 2 + 1;
    if (i % 2 == j % 2) {
        vec sum = cosine_of(w, at, a + b);
        return 0.5 * (cosine_of(w, at, a - b) + (i % 2 ? -sum : sum));
    }
    int sine = i % 2 ? a : b, cosine = i % 2 ? b : a;
    return 0.5 * (sine_of(w, at, sine + cosine) + sine_of(w, at, sine - cosine));
}

/* lombscargle_power_many for bins that are not near to singular, for which the order of pivots does
   not matter; a bit for each that is. */
static uint32_t power_many(const struct lombscargle_model *model, double (*sums)[WIDTH], int at,
                           vec *power) {
    enum { MOST = 2 * LOMBSCARGLE_TERMS_MAX };
    const int count = 2 * model->nterms;
    double(*w)[WIDTH] = sums + count;
    vec m[MOST * (MOST + 1) / 2], b[MOST], explained = v_set(0);
    uint32_t strong = (UINT32_C(1) << LANES) - 1;
    for (int i = 0; i < count; i++) {
        b[i] = v_load(sums[i] + at);
        for (int j = 0; j <= i; j++) {
            vec mean = v_load(w[i] + at) * v_load(w[j] + at);
            m[i * (i + 1) / 2 + j] = product_of(w, at, i, j) - (model->fit_mean ? mean : v_set(0));
        }
    }
    for (int k = 0; k < count; k++) {
        vec pivot = m[k * (k + 1) / 2 + k], inverse = 1 / pivot, share = b[k] * inverse;
        strong &= m_bits(m_over(pivot, v_set(singular(model))));
        explained = v_fma(b[k], share, explained);
        for (int i = k + 1; i < count; i++) {
            vec *row = m + i * (i + 1) / 2;
            vec factor = -row[k] * inverse;
            b[i] = v_fma(-row[k], share, b[i]);
            for (int j = k + 1; j <= i; j++) {
                row[j] = v_fma(factor, m[j * (j + 1) / 2 + k], row[j]);
            }
        }
    }
    *power = explained / model->yy;
    return ~strong & ((UINT32_C(1) << LANES) - 1);
}

/* Standard power as it is asked for. */
static void normalize(const struct lombscargle_model *model, double *power) {
    if (model->normalization == LOMBSCARGLE_LOG) {
        for (int i = 0; i < WIDTH; i++) {
            power[i] = lombscargle_normalized(model, power[i]);
        }
        return;
    }
    for (int i = 0; i < WIDTH; i++) {
        double p = power[i] < 0 ? 0 : power[i];
        p = p > 1 ? 1 : p;
        if (model->normalization == LOMBSCARGLE_MODEL) {
            p = p / (1 - p);
        }
        power[i] = model->normalization == LOMBSCARGLE_PSD ? p * model->psd_factor : p;
    }
}

/* Power of NUFFT_BLOCKS blocks from their sums; a bit for each frequency that is weak. */
static uint32_t power_make(const struct lombscargle_model *model, double (*sums)[WIDTH],
                           double *power) {
    uint32_t weak = 0;
    for (int i = 0; i < WIDTH; i += LANES) {
        vec p;
        weak |= (model->nterms > 1 ? power_many : power_one)(model, sums, i, &p) << i;
        v_store(power + i, p);
    }
    normalize(model, power);
    return weak;
}

static void sums_make(const struct nufft_tile *tile, int64_t block, int64_t turn,
                      double (*sums)[WIDTH]) {
    const int terms = tile->model->nterms;
    for (int h = 0; h < 2 * terms; h++) {
        const struct nufft_harmonic *harmonic = &tile->harmonics[h];
        const double *filters = harmonic->filter + block * harmonic->taps * NUFFT_BLOCK;
        int64_t at = harmonic->base[block] + turn * harmonic->step;
        if (h < terms) {
            filter_four(harmonic, filters, at, sums + 2 * h, sums + 2 * (terms + h));
        } else {
            filter_two(harmonic, filters, at, sums + 2 * (terms + h));
        }
    }
}

static size_t combine(const struct nufft_tile *tile) {
    _Alignas(64) double sums[LOMBSCARGLE_SUMS_MAX][WIDTH], power[WIDTH];
    const int64_t period = NUFFT_BLOCK * tile->blocks, first = tile->first / period;
    size_t found = 0;
    for (int64_t block = 0; block < tile->blocks; block++) {
        for (int64_t turn = 0;; turn += NUFFT_BLOCKS) {
            int64_t at = turn * period + block * NUFFT_BLOCK;
            if (at >= tile->count) {
                break;
            }
            sums_make(tile, block, first + turn, sums);
            uint32_t weak = power_make(tile->model, sums, power);
            for (int b = 0; b < NUFFT_BLOCKS && at < tile->count; b++, at += period) {
                int64_t left = tile->count - at, count = left < NUFFT_BLOCK ? left : NUFFT_BLOCK;
                memcpy(tile->power + at, power + b * NUFFT_BLOCK, (size_t)count * sizeof *power);
                for (uint32_t bits = weak >> b * NUFFT_BLOCK & 0xff & ((1u << count) - 1); bits;
                     bits &= bits - 1) {
                    tile->weak[found++] = at + __builtin_ctz(bits);
                }
            }
        }
    }
    return found;
}

const struct nufft_simd SIMD_NAME(nufft) = {
    .lanes = LANES,
    .plans = {plan_create, plan_destroy},
    .plan_work = plan_work,
    .plan_down = plan_down,
    .plan_across = plan_across,
    .spread = spread,
    .columns = columns,
    .rows = rows,
    .combine = combine,
};
