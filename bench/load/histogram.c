/*
 * histogram.c: log-linear cells in the manner of HdrHistogram.
 */
#include "bench/load/histogram.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define LINEAR 256 /* values with a cell of their own */
#define HALF   128 /* cells of an octave */
#define LIMIT  (UINT64_C(1) << 44)

static size_t cell_of(uint64_t value) {
    if (value < LINEAR) {
        return value;
    }
    unsigned octave = 63u - (unsigned)__builtin_clzll(value);
    return LINEAR + (size_t)(octave - 8) * HALF + (size_t)((value >> (octave - 7)) - HALF);
}

/* The middle of a cell. */
static uint64_t cell_value(size_t cell) {
    if (cell < LINEAR) {
        return cell;
    }
    unsigned octave = 8 + (unsigned)((cell - LINEAR) / HALF);
    uint64_t low = (HALF + (cell - LINEAR) % HALF) << (octave - 7);
    return low + (UINT64_C(1) << (octave - 8));
}

void histogram_reset(struct load_histogram *histogram) {
    memset(histogram, 0, sizeof *histogram);
}

void histogram_add(struct load_histogram *histogram, uint64_t value) {
    value = value < LIMIT ? value : LIMIT - 1;
    if (histogram->count == 0 || value < histogram->least) {
        histogram->least = value;
    }
    if (value > histogram->most) {
        histogram->most = value;
    }
    histogram->count++;
    histogram->sum += value;
    histogram->cells[cell_of(value)]++;
}

void histogram_merge(struct load_histogram *into, const struct load_histogram *from) {
    if (from->count == 0) {
        return;
    }
    if (into->count == 0 || from->least < into->least) {
        into->least = from->least;
    }
    if (from->most > into->most) {
        into->most = from->most;
    }
    into->count += from->count;
    into->sum += from->sum;
    for (size_t i = 0; i < HISTOGRAM_CELLS; i++) {
        into->cells[i] += from->cells[i];
    }
}

uint64_t histogram_percentile(const struct load_histogram *histogram, double percent) {
    uint64_t seen = 0, rank;
    if (histogram->count == 0) {
        return 0;
    }
    rank = (uint64_t)ceil(percent / 100 * (double)histogram->count - 1e-9);
    rank = rank < 1 ? 1 : rank;
    if (rank >= histogram->count) {
        return histogram->most;
    }
    for (size_t i = 0; i < HISTOGRAM_CELLS; i++) {
        seen += histogram->cells[i];
        if (seen >= rank) {
            uint64_t value = cell_value(i);
            value = value < histogram->least ? histogram->least : value;
            return value > histogram->most ? histogram->most : value;
        }
    }
    return histogram->most;
}

double histogram_mean(const struct load_histogram *histogram) {
    return histogram->count > 0 ? (double)histogram->sum / (double)histogram->count : 0;
}
