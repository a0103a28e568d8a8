/*
 * lombscargle_rows.c: the light curves of a request: one, several at shared times, or several each
 * with its own.
 *
 * Runs in the front, to complain, and again on a worker's slot thread.
 */
#include "compute/jobs/lombscargle/lombscargle.h"

#include <inttypes.h>
#include <math.h>

static bool refuse(struct complaints *complaints, const char *field, const char *reason) {
    if (complaints != NULL) {
        complaints_add(complaints, field, "%s", reason);
    }
    return false;
}

/* Lengths of an array's rows, behind its numbers; they must be whole and add up to the count. */
static const double *lengths_of(const double *values, const struct array_ref *array) {
    const double *lengths = values + array->count;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < array->rows; i++) {
        if (!(lengths[i] >= 0 && lengths[i] <= (double)(array->count - sum)) ||
            lengths[i] != floor(lengths[i])) {
            return NULL;
        }
        sum += (uint64_t)lengths[i];
    }
    return sum == array->count ? lengths : NULL;
}

/* Whether every row of `array` is as long as the curve that it belongs to. */
static bool lengths_agree(const char *field, const double *lengths,
                          const struct lombscargle_rows *rows, struct complaints *complaints) {
    for (uint64_t i = 0; i < rows->count; i++) {
        uint64_t n = lombscargle_row_samples(rows, i);
        if (lengths[i] == (double)n) {
            continue;
        }
        if (complaints != NULL) {
            complaints_add(complaints, field,
                           "has %.17g values in series %" PRIu64 ", but %s has %" PRIu64,
                           lengths[i], i, field[0] == 'y' ? "t" : "y", n);
        }
        return false;
    }
    return true;
}

static bool rows_check(const struct lombscargle_rows *rows, struct complaints *complaints) {
    if (rows->count > LOMBSCARGLE_SERIES_MAX) {
        return refuse(complaints, "y", "holds more than 100000 series");
    }
    for (uint64_t i = 0; i < rows->count; i++) {
        uint64_t n = lombscargle_row_samples(rows, i);
        if (n >= LOMBSCARGLE_SAMPLES_MIN) {
            continue;
        }
        if (complaints != NULL) {
            complaints_add(complaints, "y",
                           "needs at least %d samples, has %" PRIu64 " in series %" PRIu64,
                           LOMBSCARGLE_SAMPLES_MIN, n, i);
        }
        return false;
    }
    return true;
}

/* The uncertainties of several curves: like y, or one array for all where times are shared. */
static bool errors_find(const struct lombscargle_params *params, struct lombscargle_rows *rows,
                        struct complaints *complaints) {
    const struct array_ref *dy = &params->dy;
    if (!dy->count) {
        return true;
    }
    if (rows->dy == NULL) {
        return refuse(complaints, "dy", "does not lie in the request");
    }
    rows->shared_dy = dy->rows == 0;
    if (dy->rows == 0 && (!rows->shared_t || dy->count != params->t.count)) {
        return refuse(complaints, "dy", "must have an array for each series, as y has");
    }
    if (dy->rows > 0 && dy->rows != rows->count) {
        return refuse(complaints, "dy", "must have as many series as y");
    }
    const double *lengths = dy->rows > 0 ? lengths_of(rows->dy, dy) : NULL;
    if (dy->rows > 0 && lengths == NULL) {
        return refuse(complaints, "dy", "does not lie in the request");
    }
    return dy->rows == 0 || lengths_agree("dy", lengths, rows, complaints);
}

static bool batch_find(const struct lombscargle_params *params, struct lombscargle_rows *rows,
                       struct complaints *complaints) {
    const struct array_ref *t = &params->t, *y = &params->y;
    if (y->rows == 0) {
        return refuse(complaints, "y", "must be an array of arrays, as the other arrays are");
    }
    rows->batch = true;
    rows->count = y->rows;
    rows->total = y->count;
    rows->shared_t = t->rows == 0;
    if (t->rows > 0 && t->rows != y->rows) {
        return refuse(complaints, "t", "must be one array, or as many as y has");
    }
    const double *lengths = lengths_of(rows->y, y);
    const double *own = t->rows > 0 ? lengths_of(rows->t, t) : NULL;
    if (lengths == NULL || (t->rows > 0 && own == NULL)) {
        return refuse(complaints, "y", "does not lie in the request");
    }
    rows->lengths = own;
    rows->samples = t->count;
    return lengths_agree("y", lengths, rows, complaints) && rows_check(rows, complaints) &&
           errors_find(params, rows, complaints);
}

bool lombscargle_rows_find(const struct lombscargle_params *params, const struct input *input,
                           const uint8_t *data, struct lombscargle_rows *rows,
                           struct complaints *complaints) {
    *rows = (struct lombscargle_rows){
        .t = lombscargle_array(input, data, &params->t),
        .y = lombscargle_array(input, data, &params->y),
        .dy = lombscargle_array(input, data, &params->dy),
        .count = 1,
        .samples = params->t.count,
        .total = params->t.count,
    };
    if (rows->t == NULL || rows->y == NULL) {
        return refuse(complaints, rows->t != NULL ? "y" : "t", "has no values");
    }
    if (params->t.rows > 0 || params->y.rows > 0 || params->dy.rows > 0) {
        return batch_find(params, rows, complaints);
    }
    return params->y.count == rows->samples && rows->samples >= LOMBSCARGLE_SAMPLES_MIN &&
           (!params->dy.count || (rows->dy != NULL && params->dy.count == rows->samples));
}

uint64_t lombscargle_row_samples(const struct lombscargle_rows *rows, uint64_t i) {
    return rows->lengths != NULL ? (uint64_t)rows->lengths[i] : rows->samples;
}

struct lombscargle_row lombscargle_row_at(const struct lombscargle_rows *rows, uint64_t i,
                                          uint64_t at) {
    return (struct lombscargle_row){
        .t = rows->t + (rows->shared_t ? 0 : at),
        .y = rows->y + at,
        .dy = rows->dy != NULL ? rows->dy + (rows->shared_dy ? 0 : at) : NULL,
        .n = lombscargle_row_samples(rows, i),
    };
}
