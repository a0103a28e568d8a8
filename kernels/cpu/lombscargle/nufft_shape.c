/*
 * nufft_shape.c: coarse frequencies, bands and filters.
 *
 * Places of frequencies among coarse ones are found in long double: they may be 10^8 steps away
 * from the grid's beginning, and count to 10^-12 of one.
 */
#include "kernels/cpu/lombscargle/nufft_shape.h"

#include <math.h>

#define UP_MAX    64
#define DOWN_MAX  16
#define PLACE_MAX 1e9L /* coarse frequencies of a band, roughly */
#define BYTES_MAX ((long double)(1 << 30))

double nufft_shift(const double *t, size_t n, double *half) {
    double low = t[0], high = t[0];
    for (size_t i = 1; i < n; i++) {
        low = t[i] < low ? t[i] : low;
        high = t[i] > high ? t[i] : high;
    }
    /* The shorter the half, the fewer coarse frequencies. The difference is exact for numbers
       within a factor of two of each other; for others it is within the rounding of the span. */
    double middle = low + 0.5 * (high - low);
    double shift = fabs(middle) > 0x1p-6 * (high - low) ? middle : 0;
    *half = fmax(fabs(low - shift), fabs(high - shift));
    return shift;
}

static double half_find(const struct lombscargle_args *args, const struct lombscargle_curve *curves,
                        size_t series) {
    double half = 0, mine;
    for (size_t i = 0; i < series; i++) {
        if (i > 0 && curves[i].t == curves[i - 1].t && curves[i].n == curves[i - 1].n) {
            continue;
        }
        nufft_shift(args->t + curves[i].t, (size_t)curves[i].n, &mine);
        half = fmax(half, mine);
    }
    return half;
}

/* The widest distance that the window bridges, in steps of the grid: whole steps where possible,
   then few different blocks of filters. */
static bool distance_choose(struct nufft_shape *shape) {
    double steps = 1 / (2 * shape->half * shape->df * WINDOW_OVERSAMPLING);
    if (!(steps * DOWN_MAX >= 1)) {
        return false;
    }
    shape->up = steps < 1 ? 1 : steps < UP_MAX ? (int)steps : UP_MAX;
    shape->up -= shape->up > 8 ? shape->up % 8 : 0;
    shape->down = steps < 1 ? (int)ceil(1 / steps) : 1;
    shape->blocks = shape->up;
    for (int part = NUFFT_BLOCK; part > 1 && shape->blocks % 2 == 0; part /= 2) {
        shape->blocks /= 2;
    }
    return true;
}

static long double distance(const struct nufft_shape *shape) {
    return (long double)shape->df * shape->up / shape->down;
}

/* Frequency k of harmonic h among the coarse ones from `anchor` f0 on. */
static long double place(const struct nufft_shape *shape, int anchor, int h, int64_t k) {
    return (h - anchor) * (long double)shape->f0 / distance(shape) +
           (long double)k * h * shape->down / shape->up;
}

static int64_t tap_first(long double place) {
    return (int64_t)ceill(place - WINDOW_WIDTH / 2);
}

static long double band_length(const struct nufft_shape *shape, int anchor, int last) {
    return place(shape, anchor, last, shape->frequencies) + 3 * WINDOW_WIDTH;
}

/* Fills in what the transform of harmonics anchor … last needs; false where it is too long. */
static bool band_make(const struct nufft_shape *shape, struct nufft_run_of_harmonics *run) {
    struct nufft_band *band = &run->band;
    if (!(band_length(shape, run->anchor, run->last) < PLACE_MAX)) {
        return false;
    }
    const int64_t least = -WINDOW_WIDTH / 2;
    int64_t end = 0;
    for (int h = run->anchor; h <= run->last; h++) {
        int64_t mine = tap_first(place(shape, run->anchor, h, shape->frequencies - NUFFT_BLOCK)) -
                       least + shape->taps[h - 1];
        end = mine > end ? mine : end;
    }
    band->count = (size_t)end;
    size_t room = (size_t)ceil(WINDOW_OVERSAMPLING * (double)band->count);
    band->length = nufft_length(room > band->count + 32 ? room : band->count + 32);
    long double step = distance(shape), scale = step * (long double)band->length;
    long double centre = run->anchor * (long double)shape->f0 +
                         step * (long double)(least + (int64_t)(band->count / 2));
    band->centre = (double)centre;
    band->centre_low = (double)(centre - (long double)band->centre);
    band->scale = (double)scale;
    band->scale_low = (double)(scale - (long double)band->scale);
    size_t reach = (size_t)(shape->half * band->scale) + WINDOW_WIDTH / 2 + 3;
    size_t middle = band->length / 2;
    band->first = reach < middle ? middle - reach : 0;
    band->last = reach < middle ? middle + reach : band->length - 1;
    return true;
}

/* Harmonics 1 to `last`, neighbours together as long as what lies between them costs less than a
   second beginning. */
static bool bands_make(struct nufft_shape *shape, bool values, int last) {
    for (int h = 1; h <= last;) {
        struct nufft_run_of_harmonics *run = &shape->band[shape->bands++];
        *run = (struct nufft_run_of_harmonics){.values = values, .anchor = h, .last = h};
        long double apart = band_length(shape, h, h);
        while (++h <= last) {
            apart += band_length(shape, h, h);
            if (!(band_length(shape, run->anchor, h) <= apart)) {
                break;
            }
            run->last = h;
        }
        if (!band_make(shape, run)) {
            return false;
        }
        for (int i = run->anchor; !values && i <= run->last; i++) {
            shape->anchor[i - 1] = run->anchor;
        }
    }
    return true;
}

static bool memory_add_up(struct nufft_shape *shape) {
    long double longest = 0, sums = 0;
    for (int i = 0; i < shape->bands; i++) {
        longest = fmaxl(longest, (long double)shape->band[i].band.length);
        sums += (long double)(shape->band[i].band.count + 2 * NUFFT_PAD);
    }
    long double bytes = 32 * longest + 16 * sums;
    if (!(bytes <= BYTES_MAX)) {
        return false;
    }
    shape->bytes = (size_t)bytes;
    return true;
}

bool nufft_shape_make(const struct lombscargle_args *args, const struct lombscargle_curve *curves,
                      size_t series, struct nufft_shape *shape) {
    *shape = (struct nufft_shape){
        .f0 = args->f0, .df = args->df, .terms = args->nterms > 0 ? args->nterms : 1};
    if (args->frequency != NULL || !(args->df > 0) || args->nf > (int64_t)1 << 40) {
        return false;
    }
    shape->half = half_find(args, curves, series);
    if (!(shape->half > 0) || !distance_choose(shape)) {
        return false;
    }
    int64_t grain = NUFFT_BLOCK * NUFFT_BLOCKS * shape->blocks;
    shape->frequencies = (args->nf + grain - 1) / grain * grain;
    for (int h = 1; h <= 2 * shape->terms; h++) {
        shape->taps[h - 1] =
            WINDOW_WIDTH + ((NUFFT_BLOCK - 1) * h * shape->down + shape->up - 1) / shape->up;
    }
    return bands_make(shape, true, shape->terms) && bands_make(shape, false, 2 * shape->terms) &&
           memory_add_up(shape);
}

void nufft_filters(const struct nufft_shape *shape, const struct window *window, int h,
                   double *filters, int64_t *bases) {
    const int taps = shape->taps[h - 1], anchor = shape->anchor[h - 1];
    for (int64_t block = 0; block < shape->blocks; block++) {
        int64_t base = tap_first(place(shape, anchor, h, block * NUFFT_BLOCK));
        bases[block] = base + WINDOW_WIDTH / 2;
        for (int i = 0; i < taps * NUFFT_BLOCK; i++) {
            filters[i] = 0;
        }
        for (int lane = 0; lane < NUFFT_BLOCK; lane++) {
            long double here = place(shape, anchor, h, block * NUFFT_BLOCK + lane);
            int64_t first = tap_first(here);
            double values[WINDOW_WIDTH];
            window_cells(window, (double)((long double)first - (here - WINDOW_WIDTH / 2)), values);
            for (int i = 0; i < WINDOW_WIDTH; i++) {
                filters[(first - base + i) * NUFFT_BLOCK + lane] = values[i];
            }
        }
        filters += taps * NUFFT_BLOCK;
    }
}

size_t nufft_length(size_t length) {
    static const size_t parts[] = {8, 9, 10, 12, 15};
    size_t unit = 16;
    while (unit * 16 < length) {
        unit *= 2;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (unit * parts[i] >= length && unit * parts[i] % 64 == 0) {
            return unit * parts[i];
        }
    }
    return unit * 16;
}
