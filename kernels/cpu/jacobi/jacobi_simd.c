/*
 * jacobi_simd.c: sweeps of `jacobi` for one instruction set and element type (jacobi_simd.h).
 *
 * A pair of sweeps goes along the rows of a group column by column with all that the next column
 * needs in registers: of every row the vectors to the left and in the middle, of both sweeps. So an
 * element of X is loaded and stored once for two sweeps, but for two rows at a group's border, and
 * the processor's adders and multipliers are kept busier than its loads and stores.
 *
 * The second sweep is one column behind the first. At the row's left end it needs the first sweep's
 * last column, shifted by a lane, which is therefore computed twice; at the right end the first
 * column, which is kept.
 */
#include "kernels/cpu/jacobi/jacobi_simd.h"
#include "kernels/cpu/device/simd.h"

#include <float.h>

/* As many as the registers hold. */
#if defined(SIMD_ISA_avx512)
#define ROWS 4
#else
#define ROWS 2
#endif
#define INLINE            static inline __attribute__((always_inline))
#define EACH(k, from, to) _Pragma("GCC unroll 8") for (int k = (from); k < (to); k++)

/* The order of roundings is fixed by kernels/jacobi.h. A quarter is exact, so that rounding the
   difference and the quarter of it are one rounding, except near the ends of the range. */
INLINE vec update(vec up, vec down, vec left, vec right, vec b, bool fused) {
    vec sum = (up + down) + (left + right);
    if (fused)
        return v_fma(sum, v_set((real)0.25), b);
    return (sum - b) * (real)0.25;
}

INLINE vec keep(vec x, const real *bits) {
    return (vec)((lanes)x & (lanes)v_load(bits));
}

struct jacobi_rows {
    real *x, *carry0, *carry1;
    const real *b;
    const real *mask[ROWS + 1]; /* of rows row … row + ROWS */
    size_t stride;
};

/* What the columns hand on; row k of `first` is row k + 1 of the group's X, of `second` row k - 1
   of the first sweep's. */
struct flow {
    vec left[ROWS], middle[ROWS];
};

INLINE const real *x_at(const struct jacobi_rows *rows, int k, size_t j) {
    return rows->x + (size_t)k * rows->stride + j * LANES;
}

INLINE vec b_at(const struct jacobi_rows *rows, int k, size_t j) {
    return v_load(rows->b + (size_t)k * rows->stride + j * LANES);
}

/* The first sweep of column j; `right` is column j + 1. */
INLINE void first_sweep(const struct jacobi_rows *rows, struct flow *flow, const vec *right,
                        size_t j, vec *y, bool masked, bool fused) {
    EACH(k, 0, ROWS) {
        vec up = k > 0 ? flow->middle[k > 0 ? k - 1 : 0] : v_load(x_at(rows, 0, j));
        vec down =
            k < ROWS - 1 ? flow->middle[k < ROWS - 1 ? k + 1 : k] : v_load(x_at(rows, ROWS + 1, j));
        y[k] = update(up, down, flow->left[k], right[k], b_at(rows, k + 1, j), fused);
        if (masked)
            y[k] = keep(y[k], rows->mask[k + 1] + j * LANES);
    }
    EACH(k, 0, ROWS) {
        flow->left[k] = flow->middle[k];
        flow->middle[k] = right[k];
    }
}

/* The second sweep of column j; `right` is column j + 1, `last` the first sweep's last row. */
INLINE void second_sweep(const struct jacobi_rows *rows, struct flow *flow, const vec *right,
                         vec last, size_t j, bool masked, bool fused) {
    EACH(k, 0, ROWS) {
        vec up = k > 0 ? flow->middle[k > 0 ? k - 1 : 0] : v_load(rows->carry0 + j * LANES);
        vec down = k < ROWS - 1 ? flow->middle[k < ROWS - 1 ? k + 1 : k] : last;
        vec z = update(up, down, flow->left[k], right[k], b_at(rows, k, j), fused);
        if (masked)
            z = keep(z, rows->mask[k] + j * LANES);
        v_store(rows->x + (size_t)k * rows->stride + j * LANES, z);
    }
    v_store(rows->carry0 + j * LANES, flow->middle[ROWS - 1]);
    v_store(rows->carry1 + j * LANES, last);
    EACH(k, 0, ROWS) {
        flow->left[k] = flow->middle[k];
        flow->middle[k] = right[k];
    }
}

/* Column j of the first sweep and j - 1 of the second. */
INLINE void column(const struct jacobi_rows *rows, struct flow *first, struct flow *second,
                   vec *last, const vec *right, size_t j, bool masked, bool fused) {
    vec y[ROWS], next[ROWS];
    first_sweep(rows, first, right, j, y, masked, fused);
    next[0] = v_load(rows->carry1 + j * LANES);
    EACH(k, 1, ROWS) next[k] = y[k - 1];
    second_sweep(rows, second, next, *last, j - 1, masked, fused);
    *last = y[ROWS - 1];
}

INLINE void load_right(const struct jacobi_rows *rows, vec *right, size_t j) {
    EACH(k, 0, ROWS) right[k] = v_load(x_at(rows, k + 1, j + 1));
}

INLINE struct jacobi_rows rows_of(const struct jacobi_group *group) {
    struct jacobi_rows rows = {.x = group->x, .b = group->b, .stride = group->stride};
    rows.carry0 = group->carry;
    rows.carry1 = rows.carry0 + group->vectors * LANES;
    EACH(k, 0, ROWS + 1) {
        bool inside = group->row + k >= 0 && group->row + k < group->height;
        rows.mask[k] = (const real *)group->mask + (inside ? 0 : group->vectors * LANES);
    }
    return rows;
}

/* What lies to the left of column 0 in both sweeps, and what to the right of the last column in the
   first. */
INLINE void begin(const struct jacobi_rows *rows, struct flow *first, struct flow *second,
                  vec *wrap, size_t count, bool fused) {
    const vec zero = v_set(0);
    const size_t end = count - 1;
    EACH(k, 0, ROWS) {
        first->middle[k] = v_load(x_at(rows, k + 1, 0));
        first->left[k] = v_left(zero, v_load(x_at(rows, k + 1, end)));
        wrap[k] = v_right(first->middle[k], zero);
    }
    second->left[0] = v_left(zero, v_load(rows->carry1 + end * LANES));
    EACH(k, 1, ROWS) {
        vec left = count > 1 ? v_load(x_at(rows, k, end - 1)) : first->left[k - 1];
        vec y = update(v_load(x_at(rows, k - 1, end)), v_load(x_at(rows, k + 1, end)), left,
                       wrap[k - 1], b_at(rows, k, end), fused);
        second->left[k] = v_left(zero, keep(y, rows->mask[k] + end * LANES));
    }
}

INLINE void pair_run(const struct jacobi_group *group, bool fused) {
    const struct jacobi_rows rows = rows_of(group);
    const vec zero = v_set(0);
    const size_t count = group->vectors;
    struct flow first, second;
    vec wrap[ROWS], wrap_second[ROWS], next[ROWS], y[ROWS];
    begin(&rows, &first, &second, wrap, count, fused);

    EACH(k, 0, ROWS) next[k] = count > 1 ? v_load(x_at(&rows, k + 1, 1)) : wrap[k];
    first_sweep(&rows, &first, next, 0, y, true, fused);
    second.middle[0] = v_load(rows.carry1);
    EACH(k, 1, ROWS) second.middle[k] = y[k - 1];
    EACH(k, 0, ROWS) wrap_second[k] = v_right(second.middle[k], zero);
    vec last = y[ROWS - 1];

    bool inside = group->row >= 0 && group->row + ROWS < group->height;
    size_t whole = inside ? group->whole : 0, end = count - 1;
    size_t j = 1, plain = whole < end ? whole : end;
    for (; j < plain; j++) {
        vec right[ROWS];
        load_right(&rows, right, j);
        column(&rows, &first, &second, &last, right, j, false, fused);
    }
    for (; j < end; j++) {
        vec right[ROWS];
        load_right(&rows, right, j);
        column(&rows, &first, &second, &last, right, j, true, fused);
    }
    if (count > 1)
        column(&rows, &first, &second, &last, wrap, end, true, fused);
    second_sweep(&rows, &second, wrap_second, last, end, true, fused);
}

static void pair_plain(const struct jacobi_group *group) {
    pair_run(group, false);
}

INLINE void sweep_run(const struct jacobi_sweep *sweep, bool fused) {
    const vec zero = v_set(0);
    const real *inside = sweep->mask;
    size_t count = sweep->vectors;
    for (size_t r = 0; r < sweep->rows; r++) {
        const real *x = (const real *)sweep->from + r * sweep->stride;
        const real *b = (const real *)sweep->b + r * sweep->stride;
        real *to = (real *)sweep->to + r * sweep->stride;
        vec left = v_left(zero, v_load(x + (count - 1) * LANES)), middle = v_load(x);
        vec wrap = v_right(middle, zero);
        for (size_t i = 0; i < count * LANES; i += LANES) {
            vec right = i + LANES < count * LANES ? v_load(x + i + LANES) : wrap;
            vec z = update(v_load(x + i - sweep->stride), v_load(x + i + sweep->stride), left,
                           right, v_load(b + i), fused);
            v_store(to + i, keep(z, inside + i));
            left = middle;
            middle = right;
        }
    }
}

static void sweep_plain(const struct jacobi_sweep *sweep) {
    sweep_run(sweep, false);
}

#ifdef SIMD_FUSED
static void pair_fused(const struct jacobi_group *group) {
    pair_run(group, true);
}
static void sweep_fused(const struct jacobi_sweep *sweep) {
    sweep_run(sweep, true);
}
#define CAN_FUSE true
#else
#define pair_fused  pair_plain
#define sweep_fused sweep_plain
#define CAN_FUSE    false
#endif

static double change(const void *a, const void *b, size_t n) {
    const real *x = a, *y = b;
    double most = 0;
    int odd = 0; /* a difference that is not a number */
    for (size_t i = 0; i < n; i++) {
        double d = fabs((double)x[i] - (double)y[i]);
        most = d > most ? d : most;
        odd |= d != d;
    }
    return odd ? (double)INFINITY : most;
}

static struct jacobi_bounds bounds(const void *data, size_t n) {
    const real *x = data;
    const vec zero = v_set(0), none = v_set((real)INFINITY);
    vec most = zero, least = none, odd = zero;
    struct jacobi_bounds all = {0, (double)INFINITY};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        vec v = v_load(x + i), size = v_select(m_over(zero, v), -v, v);
        most = v_select(m_over(size, most), size, most);
        size = v_select(m_equal(size, zero), none, size);
        least = v_select(m_over(least, size), size, least);
        odd += v - v; /* stays no number once it is */
    }
    bool finite = true;
    for (int k = 0; k < LANES; k++) {
        finite &= odd[k] == 0;
        all.most = fmax(all.most, (double)most[k]);
        all.least = fmin(all.least, (double)least[k]);
    }
    for (; i < n; i++) {
        double size = fabs((double)x[i]);
        finite &= size <= (double)DBL_MAX;
        all.most = fmax(all.most, size);
        all.least = size > 0 ? fmin(all.least, size) : all.least;
    }
    return finite ? all : (struct jacobi_bounds){(double)INFINITY, 0};
}

#if LANES == 2
#define ZIP_LOW  0, 2
#define ZIP_HIGH 1, 3
#elif LANES == 4
#define ZIP_LOW  0, 4, 1, 5
#define ZIP_HIGH 2, 6, 3, 7
#elif LANES == 8
#define ZIP_LOW  0, 8, 1, 9, 2, 10, 3, 11
#define ZIP_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define ZIP_LOW  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define ZIP_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#endif

/* Exchanges rows and columns of LANES vectors: log2 LANES perfect shuffles. */
INLINE void turn(vec *v) {
    _Pragma("GCC unroll 4") for (int step = 1; step < LANES; step *= 2) {
        vec to[LANES];
        _Pragma("GCC unroll 8") for (int k = 0; k < LANES / 2; k++) {
            to[2 * k] = __builtin_shuffle(v[k], v[k + LANES / 2], (lanes){ZIP_LOW});
            to[2 * k + 1] = __builtin_shuffle(v[k], v[k + LANES / 2], (lanes){ZIP_HIGH});
        }
        _Pragma("GCC unroll 16") for (int k = 0; k < LANES; k++) v[k] = to[k];
    }
}

/* Vectors of a row whose elements are inside the width in every lane, in whole squares. */
static size_t squares(size_t width, size_t vectors) {
    size_t before = (LANES - 1) * vectors;
    size_t whole = width > before ? width - before : 0;
    return whole / LANES * LANES;
}

static void lift(void *to, const void *from, size_t width, size_t vectors, bool scaled) {
    real *x = to;
    const real *packed = from;
    const real factor = scaled ? (real)-0.25 : (real)1;
    size_t whole = squares(width, vectors);
    for (size_t j = 0; j < whole; j += LANES) {
        vec v[LANES];
        _Pragma("GCC unroll 16") for (size_t k = 0; k < LANES; k++) v[k] =
            v_load(packed + k * vectors + j) * factor;
        turn(v);
        _Pragma("GCC unroll 16") for (size_t k = 0; k < LANES; k++)
            v_store(x + (j + k) * LANES, v[k]);
    }
    for (size_t j = whole; j < vectors; j++) {
        for (size_t k = 0, at = j; k < LANES; k++, at += vectors)
            x[j * LANES + k] = at < width ? packed[at] * factor : 0;
    }
}

static void lower(void *to, const void *from, size_t width, size_t vectors) {
    real *packed = to;
    const real *x = from;
    size_t whole = squares(width, vectors);
    for (size_t j = 0; j < whole; j += LANES) {
        vec v[LANES];
        _Pragma("GCC unroll 16") for (size_t k = 0; k < LANES; k++) v[k] =
            v_load(x + (j + k) * LANES);
        turn(v);
        _Pragma("GCC unroll 16") for (size_t k = 0; k < LANES; k++)
            v_store(packed + k * vectors + j, v[k]);
    }
    for (size_t j = whole; j < vectors; j++) {
        for (size_t k = 0, at = j; k < LANES && at < width; k++, at += vectors)
            packed[at] = x[j * LANES + k];
    }
}

const struct jacobi_simd SIMD_NAME(jacobi) = {
    .lanes = LANES,
    .rows = ROWS,
    .can_fuse = CAN_FUSE,
    .tiny = sizeof(real) == 8 ? 0x1p-900 : 0x1p-100,
    .largest = sizeof(real) == 8 ? DBL_MAX / 64 : (double)FLT_MAX / 64,
    .growth = sizeof(real) == 8 ? 0x1p-50 : 0x1p-21,
    .pair = {pair_plain, pair_fused},
    .sweep = {sweep_plain, sweep_fused},
    .change = change,
    .bounds = bounds,
    .lift = lift,
    .lower = lower,
};
