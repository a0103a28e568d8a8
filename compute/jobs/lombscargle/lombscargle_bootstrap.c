/*
 * lombscargle_bootstrap.c: how high the noise of a light curve itself reaches.
 *
 * As astropy's: values and their errors are drawn anew, with replacement, for the same times, and
 * the highest power of each such curve is kept. Curves are made on the host and go to the device in
 * groups, which answers with one peak each. The draws depend on the seed, the number of the light
 * curve and that of the draw alone.
 *
 * Threads: a worker's slot thread.
 */
#include "compute/jobs/lombscargle/lombscargle.h"
#include "compute/jobs/result.h"

#include <math.h>
#include <stdlib.h>

#define GROUP_SAMPLES ((uint64_t)1 << 21)

/* Buffers of a group, host scratch. */
struct group {
    double *y, *w; /* w is the light curve's own where all weights are equal */
    struct lombscargle_curve *curves;
    struct lombscargle_peak *peaks;
    uint64_t room; /* curves */
    bool equal;
};

static uint64_t random_next(uint64_t *state) {
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* A state for each draw of each light curve. */
static uint64_t random_start(uint64_t seed, uint64_t curve, uint64_t draw) {
    uint64_t state = seed;
    state = random_next(&state) ^ curve;
    state = random_next(&state) ^ draw;
    return random_next(&state);
}

static uint64_t random_below(uint64_t *state, uint64_t n) {
    return (uint64_t)(((unsigned __int128)random_next(state) * n) >> 64);
}

static bool weights_equal(const struct periodogram *p) {
    for (uint64_t i = 1; i < p->n; i++) {
        if (p->w[i] != p->w[0]) {
            return false;
        }
    }
    return true;
}

/* Draws a curve; `w` stays as it is where weights are equal. Fills what the kernel is told of it.
 */
static void curve_draw(const struct periodogram *p, uint64_t state, bool equal, double *y,
                       double *w, struct lombscargle_curve *curve) {
    bool centered = p->params->fit_mean || p->params->center_data;
    double weight = 0, mean = 0, square = 0, rest = 0;
    for (uint64_t i = 0; i < p->n; i++) {
        uint64_t from = random_below(&state, p->n);
        y[i] = p->y[from];
        if (!equal) {
            w[i] = p->w[from];
        }
        weight += equal ? 0 : w[i];
    }
    for (uint64_t i = 0; i < p->n; i++) {
        if (!equal) {
            w[i] /= weight;
        }
        mean += w[i] * y[i];
    }
    for (uint64_t i = 0; i < p->n; i++) {
        y[i] -= centered ? mean : 0;
        rest += w[i] * y[i];
        square += w[i] * y[i] * y[i];
    }
    curve->n = (int64_t)p->n;
    curve->y_mean = rest;
    curve->yy = p->params->fit_mean ? square - rest * rest : square;
    curve->psd_factor = p->psd_factor / p->yy * curve->yy * (equal ? 1 : weight);
}

static enum kiln_status group_reserve(struct task *task, uint64_t longest, uint64_t draws,
                                      struct group *group) {
    uint64_t room = GROUP_SAMPLES / longest;
    group->room = room < 1 ? 1 : room < draws ? room : draws;
    group->y = result_scratch(task, group->room * longest, sizeof *group->y);
    group->w = result_scratch(task, group->room * longest, sizeof *group->w);
    group->curves = result_scratch(task, group->room, sizeof *group->curves);
    group->peaks = result_scratch(task, group->room, sizeof *group->peaks);
    bool room_found =
        group->y != NULL && group->w != NULL && group->curves != NULL && group->peaks != NULL;
    return room_found ? KILN_OK : result_no_memory(task);
}

/* Highest powers of `count` curves that the group holds. */
static enum kiln_status group_run(struct task *task, const struct group *group, uint64_t count,
                                  uint64_t n, const double *weights,
                                  const struct lombscargle_args *original) {
    const struct backend *backend = task->backend;
    struct stream *stream = task->stream;
    struct lombscargle_args args = *original;
    enum kiln_status status;
    args.n = (int64_t)(count * n);
    args.y = backend->upload(stream, group->y, count * n * sizeof *group->y);
    args.w = group->equal ? weights : backend->upload(stream, group->w, count * n * sizeof(double));
    args.series = (int64_t)count;
    args.curves = group->curves;
    args.device_curves = backend->upload(stream, group->curves, count * sizeof *group->curves);
    args.power = NULL;
    args.peak_count = 1;
    if (args.y == NULL || args.w == NULL || args.device_curves == NULL) {
        return KILN_NO_MEMORY;
    }
    args.peaks = backend->result(stream, group->peaks, count * sizeof *group->peaks);
    if (args.peaks == NULL) {
        return KILN_NO_MEMORY;
    }
    if ((status = backend->launch(stream, KERNEL_LOMBSCARGLE, &args)) != KILN_OK ||
        (status = backend->download(stream, group->peaks, args.peaks,
                                    count * sizeof *group->peaks)) != KILN_OK) {
        return status;
    }
    return backend->wait(stream); /* the buffers are used again */
}

static int ascending(const void *left, const void *right) {
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* All draws of one light curve. */
static enum kiln_status curve_bootstrap(struct task *task, struct group *group,
                                        struct periodogram *p, uint64_t index,
                                        const struct lombscargle_curve *place,
                                        const struct lombscargle_args *args) {
    const struct lombscargle_params *params = p->params;
    uint64_t draws = (uint64_t)params->bootstrap_samples, count;
    double *maxima = result_scratch(task, draws, sizeof *maxima);
    enum kiln_status status = maxima != NULL ? KILN_OK : result_no_memory(task);
    group->equal = weights_equal(p);
    for (uint64_t first = 0; status == KILN_OK && first < draws; first += count) {
        count = draws - first < group->room ? draws - first : group->room;
        for (uint64_t k = 0; k < count; k++) {
            uint64_t at = k * p->n;
            struct lombscargle_curve *curve = &group->curves[k];
            *curve = (struct lombscargle_curve){
                .t = place->t, .y = (int64_t)at, .w = group->equal ? place->w : (int64_t)at};
            curve_draw(p, random_start((uint64_t)params->seed, index, first + k), group->equal,
                       group->y + at, group->equal ? p->w : group->w + at, curve);
        }
        status = group_run(task, group, count, p->n, args->w, args);
        for (uint64_t k = 0; status == KILN_OK && k < count; k++) {
            maxima[first + k] = group->peaks[k].index >= 0 ? group->peaks[k].power : -INFINITY;
        }
    }
    if (status != KILN_OK) {
        return status;
    }
    qsort(maxima, draws, sizeof *maxima, ascending);
    p->maxima = maxima;
    p->maxima_count = draws;
    return KILN_OK;
}

enum kiln_status lombscargle_bootstrap(struct task *task, struct periodogram *periodograms,
                                       const struct lombscargle_curve *curves, uint64_t count,
                                       const struct lombscargle_args *args) {
    struct group group;
    uint64_t longest = 1;
    for (uint64_t i = 0; i < count; i++) {
        longest = periodograms[i].n > longest ? periodograms[i].n : longest;
    }
    /* One phase for all of it: it changes too often to be told apart. */
    enum kiln_status status = task->backend->phase(task->stream, PHASE_KERNEL);
    if (status == KILN_OK) {
        status =
            group_reserve(task, longest, (uint64_t)periodograms->params->bootstrap_samples, &group);
    }
    for (uint64_t i = 0; status == KILN_OK && i < count; i++) {
        if (periodograms[i].note == NULL) {
            status = curve_bootstrap(task, &group, &periodograms[i], i, &curves[i], args);
        }
    }
    return status;
}
