/*
 * lombscargle_peaks.c: the strongest local maxima.
 *
 * A peak is a point, or a run of equal points, above its neighbours; the ends of the grid and of
 * gaps (NaN) count where they are above their one neighbour. A heap keeps the strongest by rank,
 * each is then refined by the parabola through it and its two neighbours. Peaks that are equal but
 * for rounding come by rising frequency: of aliases the one with the longest period is the first. A
 * few more than wanted are kept, so that such a group is whole.
 *
 * Threads: a worker's slot thread.
 */
#include "compute/jobs/lombscargle/lombscargle.h"
#include "compute/jobs/result.h"
#include "kernels/lombscargle_rank.h"

#include <math.h>
#include <stdlib.h>

#define PEAKS_SPARE 6 /* kept beyond those wanted: what a tie may bring forward */

static int by_frequency(const void *left, const void *right, void *context) {
    const double *frequency = context;
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    if (frequency[a] != frequency[b]) {
        return frequency[a] < frequency[b] ? -1 : 1;
    }
    return a < b ? -1 : a > b;
}

static bool is_ascending(const double *values, uint64_t count) {
    for (uint64_t i = 1; i < count; i++) {
        if (values[i] < values[i - 1]) {
            return false;
        }
    }
    return true;
}

static enum kiln_status view_order(struct task *task, struct periodogram *p) {
    p->ascending_x = p->frequency;
    p->ascending_power = p->power;
    if (p->frequency == NULL || is_ascending(p->frequency, p->nf)) {
        return KILN_OK;
    }
    uint64_t *order = result_scratch(task, p->nf, sizeof *order);
    double *x = result_scratch(task, p->nf, sizeof *x);
    double *power = result_scratch(task, p->nf, sizeof *power);
    if (order == NULL || x == NULL || power == NULL) {
        return result_no_memory(task);
    }
    for (uint64_t i = 0; i < p->nf; i++) {
        order[i] = i;
    }
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

/* Of peaks of equal rank the one at the lower frequency is the stronger. */
static bool weaker(const struct periodogram *p, const struct peak *a, const struct peak *b) {
    int fp32 = p->params->precision == PRECISION_FP32;
    int64_t first = lombscargle_rank(a->power, fp32), second = lombscargle_rank(b->power, fp32);
    return first < second || (first == second && a->index > b->index);
}

static int by_power(const void *left, const void *right) {
    const struct peak *a = left, *b = right;
    if (a->power != b->power) {
        return a->power < b->power ? 1 : -1;
    }
    return (a->frequency > b->frequency) - (a->frequency < b->frequency);
}

static int by_place(const void *left, const void *right) {
    const struct peak *a = left, *b = right;
    return (a->frequency > b->frequency) - (a->frequency < b->frequency);
}

/* Refined peaks in their order, as many as are wanted: by falling power, those within rounding of
   the strongest of their group by rising frequency. */
static void peaks_sort(struct periodogram *p) {
    double tie = LOMBSCARGLE_TIE(p->params->precision == PRECISION_FP32);
    uint64_t wanted = lombscargle_peaks_wanted(p->params);
    qsort(p->peaks, p->peak_count, sizeof *p->peaks, by_power);
    for (uint64_t i = 0, end; i < p->peak_count; i = end) {
        double least = p->peaks[i].power - fabs(p->peaks[i].power) * tie;
        for (end = i + 1; end < p->peak_count && p->peaks[end].power >= least;) {
            end++;
        }
        qsort(p->peaks + i, end - i, sizeof *p->peaks, by_place);
    }
    p->peak_count = p->peak_count < wanted ? p->peak_count : wanted;
}

/* The weakest is on top. */
static void heap_sink(const struct periodogram *p, struct peak *heap, uint64_t count) {
    for (uint64_t at = 0, child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && weaker(p, &heap[child + 1], &heap[child])) {
            child++;
        }
        if (!weaker(p, &heap[child], &heap[at])) {
            return;
        }
        struct peak swap = heap[at];
        heap[at] = heap[child];
        heap[child] = swap;
    }
}

static void heap_rise(const struct periodogram *p, struct peak *heap, uint64_t at) {
    while (at > 0 && weaker(p, &heap[at], &heap[(at - 1) / 2])) {
        struct peak swap = heap[at];
        heap[at] = heap[(at - 1) / 2];
        heap[(at - 1) / 2] = swap;
        at = (at - 1) / 2;
    }
}

static void peak_offer(struct periodogram *p, uint64_t most, struct peak peak) {
    if (p->peak_count < most) {
        p->peaks[p->peak_count] = peak;
        heap_rise(p, p->peaks, p->peak_count++);
    } else if (weaker(p, &p->peaks[0], &peak)) {
        p->peaks[0] = peak;
        heap_sink(p, p->peaks, most);
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
        if (isnan(power[i])) {
            continue;
        }
        while (end < p->nf && power[end] == power[i]) {
            end++;
        }
        if (is_above(power, p->nf, i, i - 1) && is_above(power, p->nf, i, end)) {
            peak_offer(p, most, (struct peak){.power = power[i], .index = i + (end - 1 - i) / 2});
        }
    }
}

static double ascending_x(const struct periodogram *p, uint64_t i) {
    return p->ascending_x != NULL ? p->ascending_x[i] : lombscargle_frequency(p, i);
}

/* Moves a peak to the vertex of the parabola through three points of any spacing: its own and those
   `before` and `after` it, of which the powers are given. */
static void peak_refine(const struct periodogram *p, struct peak *peak, double before_power,
                        double after_power) {
    uint64_t i = peak->index;
    peak->frequency = ascending_x(p, i);
    peak->index = p->order != NULL ? p->order[i] : i;
    if (i == 0 || i + 1 >= p->nf) {
        return;
    }
    double before = peak->frequency - ascending_x(p, i - 1);
    double after = ascending_x(p, i + 1) - peak->frequency;
    double rise = (peak->power - before_power) / before, fall = (after_power - peak->power) / after;
    double bend = (fall - rise) / (before + after);
    double slope = (rise * after + fall * before) / (before + after);
    double shift = -slope / (2 * bend);
    if (!isfinite(shift) || !(bend < 0) || shift < -before || shift > after) {
        return;
    }
    peak->frequency += shift;
    peak->power += slope * shift / 2;
    if (p->params->normalization == LOMBSCARGLE_STANDARD) {
        peak->power = fmin(peak->power, 1);
    }
}

bool lombscargle_peaks_only(const struct lombscargle_params *params) {
    return params->fields == FIELDS_PEAKS && !params->frequency.count &&
           lombscargle_peaks_wanted(params) <= LOMBSCARGLE_KERNEL_PEAKS_MAX;
}

uint64_t lombscargle_peaks_sought(const struct lombscargle_params *params) {
    uint64_t sought = lombscargle_peaks_wanted(params) + PEAKS_SPARE;
    return sought < LOMBSCARGLE_KERNEL_PEAKS_MAX ? sought : LOMBSCARGLE_KERNEL_PEAKS_MAX;
}

uint64_t lombscargle_peaks_wanted(const struct lombscargle_params *params) {
    return params->peaks > 0 ? (uint64_t)params->peaks : 1;
}

enum kiln_status lombscargle_peaks_find(struct task *task, struct periodogram *p) {
    uint64_t most = lombscargle_peaks_wanted(p->params) + PEAKS_SPARE;
    enum kiln_status status = view_order(task, p);
    if (status != KILN_OK) {
        return status;
    }
    p->peaks = result_scratch(task, most, sizeof *p->peaks);
    if (p->peaks == NULL) {
        return result_no_memory(task);
    }
    peaks_scan(p, most);
    for (uint64_t k = 0; k < p->peak_count; k++) {
        uint64_t i = p->peaks[k].index;
        double before = i > 0 ? p->ascending_power[i - 1] : NAN;
        peak_refine(p, &p->peaks[k], before, i + 1 < p->nf ? p->ascending_power[i + 1] : NAN);
    }
    peaks_sort(p);
    return KILN_OK;
}

enum kiln_status lombscargle_peaks_take(struct task *task, struct periodogram *p,
                                        const struct lombscargle_peak *found, uint64_t count) {
    p->peaks = result_scratch(task, count, sizeof *p->peaks);
    if (p->peaks == NULL) {
        return result_no_memory(task);
    }
    for (; p->peak_count < count && found[p->peak_count].index >= 0; p->peak_count++) {
        const struct lombscargle_peak *from = &found[p->peak_count];
        struct peak *peak = &p->peaks[p->peak_count];
        *peak = (struct peak){.power = from->power, .index = (uint64_t)from->index};
        peak_refine(p, peak, from->before, from->after);
    }
    peaks_sort(p);
    return KILN_OK;
}
