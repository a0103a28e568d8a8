/*
 * spectral_simd.c: batches of lines through the sine transform, and the modes' factors.
 *
 * A batch is turned so that its lines lie side by side (struct dst_element); columns lie so
 * already. Lines past the array's end are zero.
 */
#include "kernels/cpu/spectral/spectral_simd.h"

#include "kernels/cpu/spectral/dst_simd.h"

#define UNDERFLOW_LOG -745.0 /* exp of less is 0 in double */

static double *line(struct dst_element *element, size_t index) {
    return (double *)element + index;
}

static void row_load(const struct spectral_args *args, size_t row, struct dst_element *data,
                     size_t index) {
    size_t width = (size_t)args->width;
    const double *f64 = (const double *)args->b + row * width;
    const float *f32 = (const float *)args->b + row * width;
    if (args->fp64) {
        for (size_t i = 0; i < width; i++) {
            *line(&data[i], index) = f64[i];
        }
    } else {
        for (size_t i = 0; i < width; i++) {
            *line(&data[i], index) = f32[i];
        }
    }
}

static void row_store(const struct spectral_args *args, size_t row, struct dst_element *data,
                      size_t index) {
    size_t width = (size_t)args->width;
    double *f64 = (double *)args->x + row * width;
    float *f32 = (float *)args->x + row * width;
    if (args->fp64) {
        for (size_t i = 0; i < width; i++) {
            f64[i] = *line(&data[i], index);
        }
    } else {
        for (size_t i = 0; i < width; i++) {
            f32[i] = (float)*line(&data[i], index);
        }
    }
}

static void field_copy(const struct spectral_job *job, size_t row, struct dst_element *data,
                       size_t index, bool back) {
    size_t width = (size_t)job->args->width;
    double *field = job->field + row * width;
    if (back) {
        for (size_t i = 0; i < width; i++) {
            *line(&data[i], index) = field[i];
        }
    } else {
        for (size_t i = 0; i < width; i++) {
            field[i] = *line(&data[i], index);
        }
    }
}

static void line_clear(struct dst_element *data, size_t length, size_t index) {
    for (size_t i = 0; i < length; i++) {
        *line(&data[i], index) = 0;
    }
}

static void rows(const struct spectral_job *job, size_t batch, bool back, void *work) {
    const struct spectral_args *args = job->args;
    size_t width = (size_t)args->width, total = (size_t)args->planes * (size_t)args->height;
    struct dst_element *data = work;
    for (size_t i = 0; i < DST_ROWS; i++) {
        size_t row = batch * DST_ROWS + i;
        if (row >= total) {
            line_clear(data, width, i);
        } else if (back) {
            field_copy(job, row, data, i, true);
        } else {
            row_load(args, row, data, i);
        }
    }
    dst_run(job->across, data, data + width);
    for (size_t i = 0; i < DST_ROWS && batch * DST_ROWS + i < total; i++) {
        if (back) {
            row_store(args, batch * DST_ROWS + i, data, i);
        } else {
            field_copy(job, batch * DST_ROWS + i, data, i, false);
        }
    }
}

/* L^n of a mode, from q = 1 - L and its complement 2 - q = 1 + L, each accurate by itself. */
static double power(double q, double complement, int64_t n) {
    /* Where L is almost 0 both may be rounded to more than 1. */
    double exponent = (double)n * log1p(-fmin(fmin(q, complement), 1));
    if (exponent < UNDERFLOW_LOG) {
        return 0;
    }
    return q > 1 && n % 2 ? -exp(exponent) : exp(exponent);
}

/* What the mode of B is multiplied by. Most modes have died out long before the last sweep: they
   need no logarithm. */
static double factor(const struct spectral_args *args, double q, double complement) {
    int64_t n = args->iterations;
    if (n == 0) {
        return args->start_zero ? 0 : 1;
    }
    if (n == SPECTRAL_INFINITE || (double)n * fmin(q, complement) > -UNDERFLOW_LOG) {
        return -0.25 / q;
    }
    double left = power(q, complement, n);
    double gone = q < 1 ? -expm1((double)n * log1p(-q)) : 1 - left;
    return -0.25 * gone / q + (args->start_zero ? 0 : left);
}

static void modes_multiply(const struct spectral_job *job, size_t column, size_t count,
                           struct dst_element *data) {
    size_t width = (size_t)job->args->width, height = (size_t)job->args->height;
    const double *across = dst_waves(job->across), *down = dst_waves(job->down);
    double scale = 4 / ((double)(width + 1) * (double)(height + 1));
    for (size_t k = 0; k < height; k++) {
        double *modes = line(&data[k], 0);
        for (size_t i = 0; i < count; i++) {
            size_t l = column + i;
            double q = down[k] + across[l];
            double complement = down[height - 1 - k] + across[width - 1 - l];
            modes[i] *= scale * factor(job->args, q, complement);
        }
        /* Lanes without a column have got rounding errors of those that they ride with. */
        for (size_t i = count; i < DST_ROWS; i++) {
            modes[i] = 0;
        }
    }
}

static void columns(const struct spectral_job *job, size_t plane, size_t batch, void *work) {
    size_t width = (size_t)job->args->width, height = (size_t)job->args->height;
    size_t column = batch * DST_ROWS;
    size_t count = width - column < DST_ROWS ? width - column : DST_ROWS;
    double *field = job->field + plane * height * width + column;
    struct dst_element *data = work;
    for (size_t k = 0; k < height; k++) {
        memset(&data[k], 0, sizeof data[k]);
        memcpy(&data[k], field + k * width, count * sizeof *field);
    }
    dst_run(job->down, data, data + height);
    modes_multiply(job, column, count, data);
    dst_run(job->down, data, data + height);
    for (size_t k = 0; k < height; k++) {
        memcpy(field + k * width, &data[k], count * sizeof *field);
    }
}

static size_t plan_work(const struct dst *plan) {
    return dst_length(plan) * sizeof(struct dst_element) + dst_work(plan);
}

static void *plan_create(size_t length) {
    return dst_create(length);
}

static void plan_destroy(void *plan) {
    dst_destroy(plan);
}

const struct spectral_simd SIMD_NAME(spectral) = {
    .lines = DST_ROWS,
    .plans = {plan_create, plan_destroy},
    .plan_work = plan_work,
    .rows = rows,
    .columns = columns,
};
