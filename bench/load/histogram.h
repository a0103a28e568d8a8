/*
 * histogram.h: latencies in nanoseconds, counted in cells that grow with the value.
 *
 * Values below 256 have a cell each; above, every octave is cut into 128 cells, so that the middle
 * of a cell is within 0.4 % of each of its values. Largest value 2^44 ns (4.9 hours), larger ones
 * count there. Fixed size (39 KiB), no allocation; histograms of several threads are merged.
 *
 * Threads: one owner at a time.
 */
#ifndef KILN_BENCH_LOAD_HISTOGRAM_H
#define KILN_BENCH_LOAD_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_CELLS (256 + (44 - 8) * 128)

struct load_histogram {
    uint64_t count, sum;
    uint64_t least, most; /* exact; 0 while empty */
    uint64_t cells[HISTOGRAM_CELLS];
};

void histogram_reset(struct load_histogram *histogram);
void histogram_add(struct load_histogram *histogram, uint64_t value);
void histogram_merge(struct load_histogram *into, const struct load_histogram *from);

/** The smallest value that at least `percent` of all values do not exceed (nearest rank), within
    0.4 %; never outside what was added. 0 while empty. */
uint64_t histogram_percentile(const struct load_histogram *histogram, double percent);
double histogram_mean(const struct load_histogram *histogram);

#endif
