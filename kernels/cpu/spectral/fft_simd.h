/*
 * fft_simd.h: complex discrete Fourier transforms of any length, FFT_LANES at a time.
 *
 * Element i of a batch is FFT_LANES real parts followed by FFT_LANES imaginary parts, one lane for
 * each independent transform, so that every operation is one on whole vectors. The width is that of
 * the instruction set this is compiled for. Lengths whose factors
 * are 2, 3 and 5 run as Stockham passes (Stockham 1966); others as a chirp convolution of such a
 * length (Bluestein 1970). Forward sign: exp(-2πi jk/n). Nothing is scaled.
 *
 * Threads: a plan is constant after creation. Ownership: work memory is the caller's.
 */
#ifndef KILN_KERNELS_CPU_SPECTRAL_FFT_SIMD_H
#define KILN_KERNELS_CPU_SPECTRAL_FFT_SIMD_H

#include "kernels/cpu/device/simd.h"

#include <stddef.h>

#define FFT_LANES LANES

/* One copy for every instruction set. */
#define fft_create  SIMD_NAME(fft_create)
#define fft_destroy SIMD_NAME(fft_destroy)
#define fft_work    SIMD_NAME(fft_work)
#define fft_forward SIMD_NAME(fft_forward)

/** One element of FFT_LANES transforms. */
struct fft_element {
    vec re, im;
};

struct fft;

/** A plan for `length` ≥ 1, or NULL without memory. */
struct fft *fft_create(size_t length);
void fft_destroy(struct fft *fft);

/** Elements of work memory that fft_forward needs beside the data. */
size_t fft_work(const struct fft *fft);
/** Transforms `data` (length elements) in place. */
void fft_forward(const struct fft *fft, struct fft_element *data, struct fft_element *work);

#endif
