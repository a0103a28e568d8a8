/*
 * jacobi_simd.c: sweeps of `jacobi` for one instruction set and element type.
 *
 * The neighbours to the left and right are shifted together from the row's own vectors, since loads
 * that straddle cache lines would cost more than the sums.
 */
#include "kernels/cpu/jacobi_simd.h"
#include "kernels/cpu/simd.h"

/* The order of roundings is fixed by kernels/jacobi.h. */
static inline vec update(vec up, vec down, vec left, vec right, vec b) {
    return (((up + down) + (left + right)) - b) * (real)0.25;
}

struct row {
    real *to;
    const real *up, *middle, *down, *b;
};

/* Columns [first, last) of one row; `columns` is the width of the strip. Columns from `inside` on
   become zero. */
static inline void row_update(const struct row *row, size_t first, size_t last, size_t columns,
                              size_t inside) {
    const vec zero = v_set(0);
    vec left = first ? v_load(row->middle + first - LANES) : zero;
    vec here = v_load(row->middle + first);
    size_t i = first;
    size_t whole = last < columns ? last : columns - LANES;
    if (inside < last && inside - inside % LANES < whole)
        whole = inside - inside % LANES;
    for (; i < whole; i += LANES) {
        vec next = v_load(row->middle + i + LANES);
        v_store(row->to + i, update(v_load(row->up + i), v_load(row->down + i), v_left(left, here),
                                    v_right(here, next), v_load(row->b + i)));
        left = here;
        here = next;
    }
    for (; i < last; i += LANES) {
        vec next = i + LANES < columns ? v_load(row->middle + i + LANES) : zero;
        vec x = update(v_load(row->up + i), v_load(row->down + i), v_left(left, here),
                       v_right(here, next), v_load(row->b + i));
        size_t valid = inside > i ? inside - i : 0;
        if (valid < LANES)
            x = v_select(m_from_bits((UINT32_C(1) << valid) - 1), x, zero);
        v_store(row->to + i, x);
        left = here;
        here = next;
    }
}

static inline real *rows_at(const struct jacobi_rows *rows, ptrdiff_t row) {
    return (real *)rows->base + (row - rows->origin) * rows->stride;
}

/* Where level `level` of row `row` is. */
static inline real *level_at(const struct jacobi_pass *pass, int level, ptrdiff_t row) {
    if (row < pass->top || row >= pass->bottom)
        return (real *)(uintptr_t)pass->zero;
    if (level == 0)
        return rows_at(&pass->source, row);
    if (level == pass->levels)
        return rows_at(&pass->target, row);
    return (real *)pass->ring + ((size_t)(level - 1) * 3 + (size_t)(row % 3)) * pass->columns;
}

static void level_row(const struct jacobi_pass *pass, int level, ptrdiff_t row) {
    struct row one = {
        .to = level_at(pass, level, row),
        .up = level_at(pass, level - 1, row - 1),
        .middle = level_at(pass, level - 1, row),
        .down = level_at(pass, level - 1, row + 1),
        .b = rows_at(&pass->b, row),
    };
    if (level == pass->levels)
        row_update(&one, pass->keep, pass->keep_end, pass->columns, pass->inside);
    else
        row_update(&one, 0, pass->columns, pass->columns, pass->inside);
}

static void pass_run(const struct jacobi_pass *pass) {
    ptrdiff_t from[JACOBI_LEVELS + 1], to[JACOBI_LEVELS + 1];
    for (int level = 1; level <= pass->levels; level++) {
        ptrdiff_t more = pass->levels - level;
        from[level] = pass->first - more > pass->top ? pass->first - more : pass->top;
        to[level] = pass->last + more < pass->bottom ? pass->last + more : pass->bottom;
    }
    for (ptrdiff_t step = from[1]; step < pass->last + pass->levels - 1; step++) {
        for (int level = 1; level <= pass->levels; level++) {
            ptrdiff_t row = step - (level - 1);
            if (row >= from[level] && row < to[level])
                level_row(pass, level, row);
        }
    }
}

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

const struct jacobi_simd SIMD_NAME(jacobi) = {
    .vector = SIMD_BYTES,
    .pass = pass_run,
    .change = change,
};
