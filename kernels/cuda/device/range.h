/*
 * range.h: named ranges for profilers, header-only (NVTX 3). Without a profiler a range is a test
 * of one pointer; without the toolkit's header it is nothing.
 *
 * Threads: any.
 */
#ifndef KILN_KERNELS_CUDA_DEVICE_RANGE_H
#define KILN_KERNELS_CUDA_DEVICE_RANGE_H

#include <stdint.h>

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
static inline uint64_t range_start(const char *name) {
    return nvtxRangeStartA(name);
}
static inline void range_stop(uint64_t range) {
    nvtxRangeEnd(range);
}
#else
static inline uint64_t range_start(const char *name) {
    (void)name;
    return 0;
}
static inline void range_stop(uint64_t range) {
    (void)range;
}
#endif

#endif
