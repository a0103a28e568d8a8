/*
 * samples.h: numbers of any stored type as doubles.
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_CODECS_SAMPLES_H
#define KILN_COMPUTE_CODECS_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Reads `count` elements that lie `stride` bytes apart, at any alignment, into `out`. */
typedef void samples_reader(const uint8_t *in, size_t stride, size_t count, double *out);

/** The reader of a type: kind 'b', 'i', 'u' or 'f' of `item` bytes; `swapped`: not in host byte
    order. NULL if there is no such type. */
samples_reader *samples_reader_find(char kind, uint32_t item, bool swapped);

#endif
