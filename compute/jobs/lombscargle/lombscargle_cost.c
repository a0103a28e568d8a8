/*
 * lombscargle_cost.c: what a periodogram costs in steps: by direct sums, by the NUFFT, or by
 * whichever of the two the device takes. (A backend chooses by constants of its own; here both are
 * learned from what was measured.)
 *
 * Threads: reentrant.
 */
#include "compute/jobs/lombscargle/lombscargle.h"
#include "compute/jobs/result.h"

#include <math.h>

#define TILE         512.0 /* frequencies that direct sums compute at least */
#define OVERSAMPLING 2.0   /* of the NUFFT's grid */
#define SPAN_USUAL   0.2   /* df times the baseline, where the times are not at hand */

enum { DIRECT_FP64, DIRECT_FP32, NUFFT };

const struct work_variant lombscargle_variants[] = {
    /* job; pair and term, frequency of a curve, curve, sample, encoded byte */
    [DIRECT_FP64] = {"direct-fp64", {1e-4, 3e-10, 2e-8, 1e-5, 5e-8, 3e-9}},
    [DIRECT_FP32] = {"direct-fp32", {1e-4, 2e-10, 1.5e-8, 1e-5, 4e-8, 3e-9}},
    /* job; cell of a transform and doubling, the others the same */
    [NUFFT] = {"nufft", {1e-4, 2e-9, 8e-9, 1e-5, 4e-8, 3e-9}},
    {NULL},
};

/* Of the first curve, taken as sorted: nearly always true, and good enough. */
static double baseline_of(const struct lombscargle_params *params, const struct input *input,
                          const uint8_t *data) {
    const double *t = data != NULL ? lombscargle_array(input, data, &params->t) : NULL;
    uint64_t curves = params->t.rows > 0 ? params->t.rows : 1;
    uint64_t first = params->t.count / curves;
    double span = t != NULL && first > 1 ? fabs(t[first - 1] - t[0]) : 0;
    return span > 0 ? span : SPAN_USUAL / fabs(params->df);
}

static double encode_steps(const struct lombscargle_params *params, enum format format, double nf,
                           double curves) {
    if (format == FORMAT_JSON && params->fields == FIELDS_PEAKS) {
        return 0;
    }
    if (format == FORMAT_PNG) {
        return nf + result_steps(format, params->compression,
                                 (double)params->plot_width * (double)params->plot_height, 3);
    }
    return result_steps(format, params->compression, nf * (curves + 1), 8);
}

void lombscargle_estimate(const void *raw, const struct input *input, const uint8_t *data,
                          enum format format, bool closely, struct work *work) {
    const struct lombscargle_params *params = raw;
    double rows = params->y.rows > 0 ? (double)params->y.rows : 1;
    double again =
        params->false_alarm == ALARM_BOOTSTRAP ? 1 + (double)params->bootstrap_samples : 1;
    double nf = params->frequency.count ? (double)params->frequency.count : (double)params->nf;
    double terms = (double)params->nterms, curves = rows * again;
    double samples = (double)params->y.count * again;
    double encoded = encode_steps(params, format, nf, rows);
    (void)closely;
    const struct work_way direct = {
        .variant = params->precision == PRECISION_FP32 ? DIRECT_FP32 : DIRECT_FP64,
        .steps = {samples * terms * ceil(nf / TILE) * TILE, curves * nf * terms * terms, curves,
                  samples, encoded}};
    *work = (struct work){.ways = 1, .way[0] = direct};
    if (params->method == LOMBSCARGLE_METHOD_DIRECT || params->frequency.count > 0) {
        return;
    }
    double coarse = fmin(fabs(params->df) * baseline_of(params, input, data), 16) * nf * terms;
    double cells = OVERSAMPLING * coarse + 128;
    const struct work_way nufft = {.variant = NUFFT,
                                   .steps = {curves * terms * cells * log2(cells),
                                             curves * nf * terms * terms, curves, samples * terms,
                                             encoded}};
    if (params->method == LOMBSCARGLE_METHOD_NUFFT) {
        work->way[0] = nufft;
    } else {
        work->way[work->ways++] = nufft;
    }
}
