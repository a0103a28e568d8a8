/*
 * cost_model.c: rows of a few numbers, each fitted by a small non-negative least squares.
 *
 * A row predicts μ = e^level Σ shape_i table_i x_i for x = (1, steps…). The level follows the times
 * quickly, the shape slowly: when a device gets slower as a whole, all that is known of the shape
 * stays good. With t = s / μ, the measured over the predicted, and z_i the share of term i in μ
 * over shape_i, a row keeps the sums of z zᵀ and z t and finds the shape that minimises Σ (t -
 * shape·z)² + PRIOR Σ (shape_i - 1)²      with shape_i ≥ 0. The second sum decides about sorts of
 * steps that these jobs had none or little of. Coordinate descent from the last solution: the
 * matrix is 6 × 6.
 *
 * t is taken as at most a factor of e^TRIM, or e^(TRIM spread), from 1. The spread is what seven of
 * ten |log t| stay below, so that rare stalls do not move it, whatever they last; when all times
 * change it opens within some jobs.
 *
 * Threads: the caller's lock.
 */
#include "compute/schedule/cost_model.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TERMS        (1 + WORK_STEPS)
#define HALF_LIFE    32.0
#define PRIOR        0.3 /* weight of what was believed, in jobs of one term alone */
#define SWEEPS       6
#define TRIM         1.5
#define SPREAD_NEW   1.0 /* of a row that has learned nothing */
#define SPREAD_LEAST 0.1
#define SPREAD_MOST  10.0
#define SPREAD_RATE  0.2 /* by which it grows for a job beyond it, at least */
#define SPREAD_PART  0.3 /* of the jobs that are to be beyond it */
#define LEVEL_RATE   20.0
#define DEVICE_RATE  32.0
#define HIGH         1.8  /* spreads above the estimate that nine in ten stay below */
#define LEAST        1e-7 /* seconds: no job takes less */
#define MOST         1e9

struct row {
    double seconds[TERMS]; /* e^level shape table */
    double shape[TERMS], level;
    double spread;
    uint64_t count;
    double gram[TERMS][TERMS], moment[TERMS];
};

struct cost_model {
    const struct work_variant *const *variants;
    int kinds, devices;
    double *levels;    /* of devices: mean of log(measured / table) */
    uint64_t *learned; /* jobs of each */
    struct row *rows;
};

static struct row *row_of(const struct cost_model *model, int kind, int variant, int device) {
    assert(kind >= 0 && kind < model->kinds && device >= 0 && device < model->devices);
    assert(variant >= 0 && variant < WORK_VARIANTS);
    return &model->rows[(device * model->kinds + kind) * WORK_VARIANTS + variant];
}

static const double *table_of(const struct cost_model *model, int kind, int variant) {
    return model->variants[kind][variant].seconds;
}

static double terms_sum(const double *seconds, const struct work_way *way) {
    double sum = seconds[0];
    for (int i = 0; i < WORK_STEPS; i++) {
        sum += seconds[1 + i] * way->steps[i];
    }
    return fmin(fmax(sum, LEAST), MOST);
}

struct cost_model *cost_model_create(const struct work_variant *const *variants, int kinds,
                                     int devices) {
    assert(kinds > 0 && devices > 0);
    struct cost_model *model = calloc(1, sizeof *model);
    size_t rows = (size_t)kinds * (size_t)devices * WORK_VARIANTS;
    if (model == NULL) {
        return NULL;
    }
    *model = (struct cost_model){
        .variants = variants,
        .kinds = kinds,
        .devices = devices,
        .levels = calloc((size_t)devices, sizeof *model->levels),
        .learned = calloc((size_t)devices, sizeof *model->learned),
        .rows = calloc(rows, sizeof *model->rows),
    };
    if (model->levels == NULL || model->learned == NULL || model->rows == NULL) {
        cost_model_destroy(model);
        return NULL;
    }
    return model;
}

void cost_model_destroy(struct cost_model *model) {
    if (model == NULL) {
        return;
    }
    free(model->levels);
    free(model->learned);
    free(model->rows);
    free(model);
}

static double way_seconds(const struct cost_model *model, int kind, int device,
                          const struct work_way *way) {
    const struct row *row = row_of(model, kind, way->variant, device);
    if (row->count > 0) {
        return terms_sum(row->seconds, way);
    }
    double table = terms_sum(table_of(model, kind, way->variant), way);
    return table * exp(model->levels[device]);
}

struct cost cost_estimate(const struct cost_model *model, int kind, int device,
                          const struct work *work) {
    struct cost cost = {.seconds = INFINITY};
    for (int i = 0; i < work->ways; i++) {
        double seconds = way_seconds(model, kind, device, &work->way[i]);
        if (seconds < cost.seconds) {
            cost.seconds = seconds;
            cost.way = i;
        }
    }
    const struct row *row = row_of(model, kind, work->way[cost.way].variant, device);
    double spread = row->count > 0 ? row->spread : SPREAD_NEW;
    cost.high = cost.seconds * exp(HIGH * spread);
    return cost;
}

static void row_settle(struct row *row, const double *table) {
    for (int i = 0; i < TERMS; i++) {
        row->seconds[i] = exp(row->level) * row->shape[i] * table[i];
    }
}

static void row_start(struct row *row, double level, const double *table) {
    *row = (struct row){.level = level, .spread = SPREAD_NEW};
    for (int i = 0; i < TERMS; i++) {
        row->shape[i] = 1;
    }
    row_settle(row, table);
}

static void shape_solve(struct row *row) {
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        for (int i = 0; i < TERMS; i++) {
            double rest = row->moment[i] + PRIOR;
            for (int j = 0; j < TERMS; j++) {
                rest -= j != i ? row->gram[i][j] * row->shape[j] : 0;
            }
            row->shape[i] = fmax(rest / (row->gram[i][i] + PRIOR), 0);
        }
    }
}

/* The row's sums with one more job, that took `t` times what the level and the shape say. */
static void shape_add(struct row *row, const struct work_way *way, const double *table, double t) {
    const double keep = exp2(-1 / HALF_LIFE);
    double z[TERMS] = {table[0]}, sum = 0;
    for (int i = 0; i < TERMS; i++) {
        z[i] = i > 0 ? table[i] * way->steps[i - 1] : table[0];
        sum += z[i] * row->shape[i];
    }
    sum = fmax(sum, LEAST * exp(-row->level));
    for (int i = 0; i < TERMS; i++) {
        z[i] /= sum;
    }
    for (int i = 0; i < TERMS; i++) {
        for (int j = 0; j < TERMS; j++) {
            row->gram[i][j] = row->gram[i][j] * keep + z[i] * z[j];
        }
        row->moment[i] = row->moment[i] * keep + z[i] * t;
    }
}

/* A mean that forgets: of all at first, then of about `rate`. */
static void mean_add(double *mean, uint64_t count, double rate, double value) {
    *mean += (value - *mean) / fmin((double)count, rate);
}

static double trim(double error, double spread) {
    double most = TRIM * fmax(spread, 1);
    return fmin(fmax(error, -most), most);
}

static void spread_add(struct row *row, double error) {
    double rate = fmax(SPREAD_RATE, 2 / (double)row->count);
    row->spread *= exp(rate * ((error > row->spread) - SPREAD_PART));
    row->spread = fmin(fmax(row->spread, SPREAD_LEAST), SPREAD_MOST);
}

void cost_learn(struct cost_model *model, int kind, int device, const struct work_way *way,
                double seconds) {
    struct row *row = row_of(model, kind, way->variant, device);
    const double *table = table_of(model, kind, way->variant);
    if (!(seconds > 0) || seconds > MOST) {
        return;
    }
    double ratio = log(seconds / terms_sum(table, way));
    mean_add(&model->levels[device], ++model->learned[device], DEVICE_RATE, ratio);
    if (row->count == 0) {
        row_start(row, ratio, table);
    }
    double error = log(seconds / terms_sum(row->seconds, way)), cut = trim(error, row->spread);
    row->count++;
    /* to where the mean of t is 1; from far away in bounded steps */
    double step = fabs(cut) < 1 ? exp(cut) - 1 : cut;
    row->level += step / fmin((double)row->count, LEVEL_RATE);
    row_settle(row, table);
    double rest = log(seconds / terms_sum(row->seconds, way));
    shape_add(row, way, table, exp(trim(rest, row->spread)));
    shape_solve(row);
    row_settle(row, table);
    spread_add(row, fabs(error));
}

bool cost_row_read(const struct cost_model *model, int kind, int variant, int device,
                   struct cost_row *out) {
    const struct row *row = row_of(model, kind, variant, device);
    memcpy(out->seconds, row->seconds, sizeof out->seconds);
    out->spread = row->spread;
    out->count = row->count;
    return row->count > 0;
}

bool cost_row_write(struct cost_model *model, int kind, int variant, int device,
                    const struct cost_row *in) {
    struct row *row = row_of(model, kind, variant, device);
    const double *table = table_of(model, kind, variant);
    double level = 0;
    int terms = 0;
    for (int i = 0; i < TERMS; i++) {
        if (!(in->seconds[i] >= 0) || in->seconds[i] > MOST) {
            return false;
        }
        level += in->seconds[i] > 0 ? log(in->seconds[i] / table[i]) : 0;
        terms += in->seconds[i] > 0;
    }
    if (in->count == 0 || !(in->spread >= 0) || in->spread > SPREAD_MOST || terms == 0) {
        return false;
    }
    row_start(row, 0, table);
    memcpy(row->seconds, in->seconds, sizeof row->seconds);
    row->spread = in->spread;
    row->count = in->count;
    row->level = level / terms;
    double weight = fmin((double)in->count, HALF_LIFE) / TERMS;
    for (int i = 0; i < TERMS; i++) { /* as if some jobs of each term alone had been measured */
        double shape = in->seconds[i] / (table[i] * exp(row->level));
        row->shape[i] = shape;
        row->gram[i][i] = shape > 0 ? weight / (shape * shape) : weight;
        row->moment[i] = shape > 0 ? weight / shape : 0;
    }
    return true;
}
