/*
 * lib_decode.h: pixels and numbers of answers. What cannot be decoded fails the running test.
 *
 * Threads: reentrant.
 */
#ifndef KILN_TESTS_API_LIB_DECODE_H
#define KILN_TESTS_API_LIB_DECODE_H

#include "tests/api/lib_daemon.h"

/** Pixels of a PNG: 8 or 16 bit (host order), channels as stored, palettes as RGB. Caller frees. */
uint8_t *png_pixels(const struct answer *answer, unsigned *width, unsigned *height,
                    unsigned *channels, unsigned *depth);
/** Data of an NPY answer; fails unless dtype ("<f4") and shape text ("(3, 4)") are these. */
const void *npy_data(const struct answer *answer, const char *dtype, const char *shape);

#endif
