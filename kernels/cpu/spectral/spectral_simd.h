/*
 * spectral_simd.h: what the inner file of `spectral` offers.
 *
 * A plan holds what a transform of one length needs. `rows` and `columns` handle one batch of
 * `lines` lines (fewer at the array's end) in work memory of their thread.
 */
#ifndef KILN_KERNELS_CPU_SPECTRAL_SPECTRAL_SIMD_H
#define KILN_KERNELS_CPU_SPECTRAL_SPECTRAL_SIMD_H

#include "kernels/cpu/device/isa.h"
#include "kernels/cpu/device/plans.h"
#include "kernels/spectral.h"

#include <stdbool.h>
#include <stddef.h>

struct dst;

struct spectral_job {
    const struct spectral_args *args;
    const struct dst *across, *down; /* plans of width and height */
    double *field;                   /* planes × height × width */
};

struct spectral_simd {
    size_t lines;
    struct plan_maker plans; /* of struct dst */
    /** Bytes of work memory (64-byte aligned) for batches of lines of this plan. */
    size_t (*plan_work)(const struct dst *plan);
    /** Batch `batch` of the rows of all planes: b to field, or back from field to x. */
    void (*rows)(const struct spectral_job *job, size_t batch, bool back, void *work);
    /** Batch `batch` of the columns of `plane`: forward, modes' factors, back, in field. */
    void (*columns)(const struct spectral_job *job, size_t plane, size_t batch, void *work);
};

/** The table of an instruction set (spectral.c). */
const struct spectral_simd *spectral_simd_of(enum isa isa);

#define X(isa) extern const struct spectral_simd spectral_##isa##_f64;
KILN_CPU_ISAS(X)
#undef X

#endif
