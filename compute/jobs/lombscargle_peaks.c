/*
 * lombscargle_peaks.c: the strongest local maxima.
 *
 * A peak is a point, or a run of equal points, above its neighbours; the ends of the grid and of
 * gaps (NaN) count where they are above their one neighbour. A heap keeps the strongest, each is
 * then refined by the parabola through it and its two neighbours.
 *
 * Threads: a worker's slot thread.
 */
#include "compute/jobs/lombscargle.h"
#include "compute/jobs/result.h"

#include <math.h>
#include <stdlib.h>

static int by_frequency(const void *left, const void *right, void *context) {
    const double *frequency = context;
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    if (frequency[a] != frequency[b])
        return frequency[a] < frequency[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

static bool is_ascending(const double *values, uint64_t count) {
    for (uint64_t i = 1; i < count; i++)
        if (values[i] < values[i - 1])
            return false;
    return true;
}

static enum kiln_status view_order(struct task *task, struct periodogram *p) {
    p->ascending_x = p->frequency;
    p->ascending_power = p->power;
    if (!p->frequency || is_ascending(p->frequency, p->nf))
        return KILN_OK;
    uint64_t *order = result_scratch(task, p->nf, sizeof *order);
    double *x = result_scratch(task, p->nf, sizeof *x);
    double *power = result_scratch(task, p->nf, sizeof *power);
    if (!order || !x || !power)
        return result_no_memory(task);
    for (uint64_t i = 0; i < p->nf; i++)
        order[i] = i;
    qsort_r(order, p->nf, sizeof *order, by_frequency, (void *)(uintptr_t)p->frequency);
    for (uint64_t i = 0; i < p->nf; i++) {
        x[i] = p->frequency[order[i]];
        power[i] = p->power[order[i]];
    }
    p->order = order;
    p->ascending_x = x;
    p->ascending_power = power;
    return KILN_OK;
}

/* Of two equal peaks the one at the lower frequency is the stronger. */
static bool weaker(const struct peak *a, const struct peak *b) {
    return a->power < b->power || (a->power == b->power && a->index > b->index);
}

static int by_strength(const void *left, const void *right) {
    return weaker(left, right) ? 1 : weaker(right, left) ? -1 : 0;
}

/* The weakest is on top. */
static void heap_sink(struct peak *heap, uint64_t count) {
    for (uint64_t at = 0, child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && weaker(&heap[child + 1], &heap[child]))
            child++;
        if (!weaker(&heap[child], &heap[at]))
            return;
        struct peak swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

static void heap_rise(struct peak *heap, uint64_t at) {
    while (at > 0 && weaker(&heap[at], &heap[(at - 1) / 2])) {
        struct peak swap = heap[at];
        heap[at] = heap[(at - 1) / 2];
        heap[(at - 1) / 2] = swap;
        at = (at - 1) / 2;
    }
}

static void peak_offer(struct periodogram *p, uint64_t most, struct peak peak) {
    if (p->peak_count < most) {
        p->peaks[p->peak_count] = peak;
        heap_rise(p->peaks, p->peak_count++);
    } else if (weaker(&p->peaks[0], &peak)) {
        p->peaks[0] = peak;
        heap_sink(p->peaks, most);
    }
}

/* Not NaN, and lower than the value beside it. */
static bool is_above(const double *power, uint64_t nf, uint64_t at, uint64_t neighbour) {
    return neighbour >= nf || isnan(power[neighbour]) || power[at] > power[neighbour];
}

static void peaks_scan(struct periodogram *p, uint64_t most) {
    const double *power = p->ascending_power;
    for (uint64_t i = 0, end; i < p->nf; i = end) {
        end = i + 1;
        if (isnan(power[i]))
            continue;
        while (end < p->nf && power[end] == power[i])
            end++;
        if (is_above(power, p->nf, i, i - 1) && is_above(power, p->nf, i, end))
            peak_offer(p, most, (struct peak){.power = power[i], .index = i + (end - 1 - i) / 2});
    }
}

static double ascending_x(const struct periodogram *p, uint64_t i) {
    return p->ascending_x ? p->ascending_x[i] : lombscargle_frequency(p, i);
}

/* Moves a peak to the vertex of the parabola through three points of any spacing: its own and those
   `before` and `after` it, of which the powers are given. */
static void peak_refine(const struct periodogram *p, struct peak *peak, double before_power,
                        double after_power) {
    uint64_t i = peak->index;
    peak->frequency = ascending_x(p, i);
    peak->index = p->order ? p->order[i] : i;
    if (i == 0 || i + 1 >= p->nf)
        return;
    double before = peak->frequency - ascending_x(p, i - 1);
    double after = ascending_x(p, i + 1) - peak->frequency;
    double rise = (peak->power - before_power) / before, fall = (after_power - peak->power) / after;
    double bend = (fall - rise) / (before + after);
    double slope = (rise * after + fall * before) / (before + after);
    double shift = -slope / (2 * bend);
    if (!isfinite(shift) || !(bend < 0) || shift < -before || shift > after)
        return;
    peak->frequency += shift;
    peak->power += slope * shift / 2;
    if (p->params->normalization == LOMBSCARGLE_STANDARD)
        peak->power = fmin(peak->power, 1);
}

bool lombscargle_peaks_only(const struct lombscargle_params *params) {
    return params->fields == FIELDS_PEAKS && !params->frequency.count &&
           lombscargle_peaks_wanted(params) <= LOMBSCARGLE_KERNEL_PEAKS_MAX;
}

uint64_t lombscargle_peaks_wanted(const struct lombscargle_params *params) {
    return params->peaks > 0 ? (uint64_t)params->peaks : 1;
}

enum kiln_status lombscargle_peaks_find(struct task *task, struct periodogram *p) {
    uint64_t most = lombscargle_peaks_wanted(p->params);
    enum kiln_status status = view_order(task, p);
    if (status != KILN_OK)
        return status;
    p->peaks = result_scratch(task, most, sizeof *p->peaks);
    if (!p->peaks)
        return result_no_memory(task);
    peaks_scan(p, most);
    for (uint64_t k = 0; k < p->peak_count; k++) {
        uint64_t i = p->peaks[k].index;
        double before = i > 0 ? p->ascending_power[i - 1] : NAN;
        peak_refine(p, &p->peaks[k], before, i + 1 < p->nf ? p->ascending_power[i + 1] : NAN);
    }
    qsort(p->peaks, p->peak_count, sizeof *p->peaks, by_strength);
    return KILN_OK;
}

enum kiln_status lombscargle_peaks_take(struct task *task, struct periodogram *p,
                                        const struct lombscargle_peak *found, uint64_t count) {
    p->peaks = result_scratch(task, count, sizeof *p->peaks);
    if (!p->peaks)
        return result_no_memory(task);
    for (; p->peak_count < count && found[p->peak_count].index >= 0; p->peak_count++) {
        const struct lombscargle_peak *from = &found[p->peak_count];
        struct peak *peak = &p->peaks[p->peak_count];
        *peak = (struct peak){.power = from->power, .index = (uint64_t)from->index};
        peak_refine(p, peak, from->before, from->after);
    }
    qsort(p->peaks, p->peak_count, sizeof *p->peaks, by_strength);
    return KILN_OK;
}
