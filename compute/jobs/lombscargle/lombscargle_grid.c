/*
 * lombscargle_grid.c: which frequencies a request means.
 *
 * A list, a grid of its own, or a range sampled as astropy's autofrequency does (same operations
 * in the same order, so that grids are equal to the last bit). The answer replaces what was asked.
 * Runs in the front.
 */
#include "compute/jobs/lombscargle/lombscargle.h"

#include <inttypes.h>
#include <math.h>

/* Beyond so many cycles within the baseline a double's phase is noise. */
#define CYCLES_MAX 0x1p51

static void size_check(const char *field, double count, const struct limits *limits,
                       struct complaints *complaints) {
    if (count > (double)limits->max_frequencies)
        complaints_add(complaints, field,
                       "asks for %.15g frequencies; this daemon allows %" PRIu64
                       " (--max-frequencies)",
                       count, limits->max_frequencies);
}

static void phase_check(const char *field, double highest, const struct lombscargle_times *times,
                        struct complaints *complaints) {
    if (!(highest * (times->n ? times->baseline : 0) <= CYCLES_MAX))
        complaints_add(complaints, field,
                       "goes up to %g: more cycles within the baseline than double precision "
                       "can tell apart",
                       highest);
}

static void list_check(struct lombscargle_params *params, const struct lombscargle_times *times,
                       const double *list, const struct limits *limits,
                       struct complaints *complaints) {
    uint64_t count = params->frequency.count;
    double highest = 0;
    size_check("frequency", (double)count, limits, complaints);
    if (!list || count > limits->max_frequencies)
        return;
    for (uint64_t i = 0; i < count; i++) {
        if (!isfinite(list[i]) || list[i] < 0) {
            complaints_add(complaints, "frequency",
                           "must be finite and at least 0: value %" PRIu64 " is %g", i, list[i]);
            return;
        }
        highest = fmax(highest, list[i]);
    }
    phase_check("frequency", highest, times, complaints);
}

static void own_grid_check(const struct lombscargle_params *params,
                           const struct lombscargle_times *times, const struct limits *limits,
                           struct complaints *complaints) {
    if (isnan(params->f0))
        complaints_add(complaints, "f0", "is missing: a grid needs f0, df and nf");
    if (isnan(params->df))
        complaints_add(complaints, "df", "is missing: a grid needs f0, df and nf");
    if (params->nf == FIELD_ABSENT)
        complaints_add(complaints, "nf", "is missing: a grid needs f0, df and nf");
    if (isnan(params->f0) || isnan(params->df) || params->nf == FIELD_ABSENT)
        return;
    size_check("nf", (double)params->nf, limits, complaints);
    phase_check("nf", params->f0 + (double)(params->nf - 1) * params->df, times, complaints);
}

/* As astropy: LombScargle.autofrequency. */
static void automatic_grid(struct lombscargle_params *params, const struct lombscargle_times *times,
                           const struct limits *limits, struct complaints *complaints) {
    double df = 1.0 / times->baseline / params->samples_per_peak;
    double low = params->minimum_frequency, high = params->maximum_frequency;
    bool low_given = !isnan(low), high_given = !isnan(high);
    if (!low_given)
        low = 0.5 * df;
    if (!high_given)
        high = params->nyquist_factor * (0.5 * (double)times->n / times->baseline);
    const char *field = high_given || !low_given ? "maximum_frequency" : "minimum_frequency";
    if (!isfinite(df) || !(df > 0) || !isfinite(high)) {
        complaints_add(complaints, "t", "spans %g, too little or too much for an automatic grid",
                       times->baseline);
        return;
    }
    if (!(high > low)) {
        complaints_add(complaints, field,
                       "leaves no frequencies: the range is from %g to %g cycles per unit of time",
                       low, high);
        return;
    }
    double count = 1 + rint((high - low) / df); /* half to even, like numpy.round */
    const char *cause = high_given ? "maximum_frequency" : "samples_per_peak";
    size_check(cause, count, limits, complaints);
    phase_check(cause, high, times, complaints);
    if (count <= (double)limits->max_frequencies) {
        params->f0 = low;
        params->df = df;
        params->nf = (int64_t)count;
    }
}

/* Names one field of a way that contradicts another. */
static void contradiction(const char *const *names, const bool *given, const char *reason,
                          struct complaints *complaints) {
    for (int i = 0; names[i]; i++)
        if (given[i])
            complaints_add(complaints, names[i], "%s", reason);
}

static bool contradictory(const struct lombscargle_params *params, bool list, bool grid,
                          struct complaints *complaints) {
    static const char *const names[] = {"minimum_frequency",
                                        "maximum_frequency",
                                        "samples_per_peak",
                                        "nyquist_factor",
                                        "f0",
                                        "df",
                                        "nf",
                                        NULL};
    double density = params->samples_per_peak, factor = params->nyquist_factor;
    bool fixed = list || grid;
    const bool given[] = {
        fixed && !isnan(params->minimum_frequency),
        fixed && !isnan(params->maximum_frequency),
        fixed && !isnan(density) && density != LOMBSCARGLE_DENSITY,
        fixed && !isnan(factor) && factor != LOMBSCARGLE_DENSITY,
        list && !isnan(params->f0),
        list && !isnan(params->df),
        list && params->nf != FIELD_ABSENT,
    };
    size_t before = complaints->count;
    contradiction(names, given,
                  list ? "cannot be combined with frequency: give a list, or f0, df and nf, or a "
                         "range"
                       : "cannot be combined with f0, df and nf: give a grid or a range",
                  complaints);
    return complaints->count > before;
}

void lombscargle_grid_resolve(struct lombscargle_params *params,
                              const struct lombscargle_times *times, const double *list,
                              const struct limits *limits, struct complaints *complaints) {
    bool listed = params->frequency.count > 0;
    bool grid = !isnan(params->f0) || !isnan(params->df) || params->nf != FIELD_ABSENT;
    size_t before = complaints->count;
    if (complaints_about(complaints, "minimum_frequency", "maximum_frequency", "samples_per_peak",
                         "nyquist_factor", "f0", "df", "nf", "frequency", NULL)) {
        /* which grid is meant is not known */
        if (params->nf != FIELD_ABSENT)
            size_check("nf", (double)params->nf, limits, complaints);
        return;
    }
    if (contradictory(params, listed, grid, complaints))
        return;
    if (listed)
        list_check(params, times, list, limits, complaints);
    else if (grid)
        own_grid_check(params, times, limits, complaints);
    else if (times->n)
        automatic_grid(params, times, limits, complaints);
    if (complaints->count > before)
        return;
    params->minimum_frequency = params->maximum_frequency = NAN;
    params->samples_per_peak = params->nyquist_factor = NAN;
}
