/*
 * npy.h: the NumPy array format (NEP 1), versions 1.0 to 3.0.
 *
 * Threads: reentrant. Ownership: views point into the caller's bytes.
 */
#ifndef KILN_COMPUTE_CODECS_NPY_H
#define KILN_COMPUTE_CODECS_NPY_H

#include "compute/core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NPY_DIMENSIONS_MAX 4
#define NPY_HEADER_MAX     65536 /* a longer header is refused */

struct npy {
    char kind;     /* 'b' bool, 'i', 'u', 'f' */
    uint32_t item; /* bytes an element: 1, 2, 4, 8 */
    bool swapped;  /* byte order differs from the host's */
    bool fortran;  /* column-major */
    uint32_t dimensions;
    uint64_t shape[NPY_DIMENSIONS_MAX]; /* each ≥ 0; product × item checked against the size */
    uint64_t count;                     /* product */
    size_t data;                        /* offset of the first element */
};

/** Parses and checks the header against `size` bytes in all (`size` may be only the head of the
   file when `whole` is false). Object, structured, complex and unknown types are KILN_MALFORMED. */
enum kiln_status npy_parse(const void *bytes, size_t size, bool whole, struct npy *npy, char *why,
                           size_t why_size);

/** Element `index` in C order of the logical array, as double. */
double npy_element(const struct npy *npy, const void *bytes, uint64_t index);

/** Writes a version 1.0 header ("<f4", "<f8", "<i4", "|u1"), padded with spaces so that the data
    starts at a multiple of 64; returns its size (at most NPY_WRITE_MAX), 0 if it does not fit. */
#define NPY_WRITE_MAX 256
size_t npy_write_header(void *out, size_t capacity, const char *dtype, const uint64_t *shape,
                        uint32_t dimensions);

#endif
