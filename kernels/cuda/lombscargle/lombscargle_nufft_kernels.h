/*
 * lombscargle_nufft_kernels.h: entries of the kernels of lombscargle_nufft.h, for device code.
 */
#ifndef KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_NUFFT_KERNELS_H
#define KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_NUFFT_KERNELS_H

#include "kernels/cuda/lombscargle/lombscargle_fourier.h"

extern "C" __global__ void __launch_bounds__(1024)
    lombscargle_nufft_count(const __grid_constant__ lombscargle_nufft job) {
    samples_count(job);
}

extern "C" __global__ void __launch_bounds__(NUFFT_THREADS)
    lombscargle_nufft_count_sparse(const __grid_constant__ lombscargle_nufft job) {
    samples_count_sparse(job);
}

extern "C" __global__ void __launch_bounds__(NUFFT_THREADS)
    lombscargle_nufft_lay(const __grid_constant__ lombscargle_nufft job) {
    tiles_lay(job);
}

extern "C" __global__ void __launch_bounds__(NUFFT_THREADS)
    lombscargle_nufft_order(const __grid_constant__ lombscargle_nufft job) {
    samples_order(job);
}

extern "C" __global__ void __launch_bounds__(NUFFT_THREADS, 3)
    lombscargle_nufft_spread_both(const __grid_constant__ lombscargle_nufft job) {
    items_spread<2>(job);
}

extern "C" __global__ void __launch_bounds__(NUFFT_THREADS, 3)
    lombscargle_nufft_spread_weights(const __grid_constant__ lombscargle_nufft job) {
    items_spread<1>(job);
}

extern "C" __global__ void __launch_bounds__(256, 2)
    lombscargle_nufft_short_columns(const __grid_constant__ lombscargle_nufft job) {
    short_columns(job);
}

/* Two blocks of 384 threads a multiprocessor. */
extern "C" __global__ void __maxnreg__(80)
    lombscargle_nufft_long_columns(const __grid_constant__ lombscargle_nufft job) {
    long_columns(job);
}

extern "C" __global__ void __launch_bounds__(NUFFT_THREADS, 2)
    lombscargle_nufft_rows(const __grid_constant__ lombscargle_nufft job) {
    rows_transform(job);
}

#endif
