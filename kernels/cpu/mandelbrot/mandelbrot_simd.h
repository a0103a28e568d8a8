/*
 * mandelbrot_simd.h: what the inner file of `mandelbrot` offers.
 *
 * `work` computes samples that it claims from a counter shared by the threads of one launch, in
 * row-major order, MANDELBROT_CLAIM at a time, until none is left or the job is cancelled. Samples
 * that are claimed count as progress.
 */
#ifndef KILN_KERNELS_CPU_MANDELBROT_MANDELBROT_SIMD_H
#define KILN_KERNELS_CPU_MANDELBROT_MANDELBROT_SIMD_H

#include "kernels/control.h"
#include "kernels/cpu/device/isa.h"
#include "kernels/mandelbrot.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define MANDELBROT_CLAIM ((size_t)512)

struct mandelbrot_job {
    struct mandelbrot_args args; /* `count` and `smooth` of the picture */
    struct mandelbrot_view view; /* of it */
    size_t samples;              /* width × height */
    /* Steps between escape tests of long orbits; 1 where an orbit might come back from beyond the
       radius by rounding. */
    int stride;
    atomic_size_t claimed;
    struct control *control; /* or NULL */
};

struct mandelbrot_simd {
    void (*work)(struct mandelbrot_job *job);
};

#define X(isa) extern const struct mandelbrot_simd mandelbrot_##isa##_f32, mandelbrot_##isa##_f64;
KILN_CPU_ISAS(X)
#undef X

#endif
