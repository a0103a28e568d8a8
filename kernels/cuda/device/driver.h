/*
 * driver.h: NVIDIA's driver library, found when it is needed.
 *
 * libcuda.so.1 comes with the driver and not with kiln, so it is loaded by name and its functions
 * stand in one table. `driver.cuMemAlloc(…)` reads like the plain call; cuda.h's version macros
 * (cuMemAlloc is cuMemAlloc_v2) apply to the members as to the functions. Only functions that
 * drivers have had since CUDA 12.0 are in the list.
 *
 * Threads: driver_load from any; the table is constant after its first success.
 */
#ifndef KILN_KERNELS_CUDA_DEVICE_DRIVER_H
#define KILN_KERNELS_CUDA_DEVICE_DRIVER_H

#include "compute/core/status.h"

#include <cuda.h>
#include <stddef.h>

#define DRIVER_FUNCTIONS(X)                                                                        \
    X(cuInit)                                                                                      \
    X(cuDriverGetVersion)                                                                          \
    X(cuGetErrorName)                                                                              \
    X(cuGetErrorString)                                                                            \
    X(cuDeviceGetCount)                                                                            \
    X(cuDeviceGet)                                                                                 \
    X(cuDeviceGetName)                                                                             \
    X(cuDeviceGetUuid)                                                                             \
    X(cuDeviceGetPCIBusId)                                                                         \
    X(cuDeviceGetAttribute)                                                                        \
    X(cuDeviceTotalMem)                                                                            \
    X(cuDevicePrimaryCtxRetain)                                                                    \
    X(cuDevicePrimaryCtxRelease)                                                                   \
    X(cuCtxSetCurrent)                                                                             \
    X(cuMemGetInfo)                                                                                \
    X(cuModuleLoadData)                                                                            \
    X(cuModuleUnload)                                                                              \
    X(cuModuleGetFunction)                                                                         \
    X(cuFuncSetAttribute)                                                                          \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                 \
    X(cuStreamCreate)                                                                              \
    X(cuStreamDestroy)                                                                             \
    X(cuStreamQuery)                                                                               \
    X(cuStreamWaitEvent)                                                                           \
    X(cuEventCreate)                                                                               \
    X(cuEventDestroy)                                                                              \
    X(cuEventRecord)                                                                               \
    X(cuEventQuery)                                                                                \
    X(cuMemAlloc)                                                                                  \
    X(cuMemFree)                                                                                   \
    X(cuMemHostAlloc)                                                                              \
    X(cuMemFreeHost)                                                                               \
    X(cuMemHostGetDevicePointer)                                                                   \
    X(cuMemHostRegister)                                                                           \
    X(cuMemHostUnregister)                                                                         \
    X(cuMemcpyHtoDAsync)                                                                           \
    X(cuMemcpyDtoHAsync)                                                                           \
    X(cuMemcpyDtoDAsync)                                                                           \
    X(cuMemsetD8Async)                                                                             \
    X(cuLaunchKernel)                                                                              \
    X(cuLaunchCooperativeKernel)

/* The first version: cuda.h 13 names one that older drivers lack. */
typedef CUresult driver_event_elapsed(float *milliseconds, CUevent start, CUevent stop);

struct driver {
#define X(name) __typeof__(name) *name;
    DRIVER_FUNCTIONS(X)
#undef X
    driver_event_elapsed *event_elapsed;
    int version; /* CUDA version of the driver, 1000 * major + 10 * minor */
};

/** Filled by driver_load. */
extern struct driver driver;

/** Loads the library, fills the table and starts the driver; once, later calls repeat the answer.
    KILN_NO_DEVICE with the reason in `why`. */
enum kiln_status driver_load(char *why, size_t why_size);

/** Before the first driver_load: starts the driver with GPU `index` of those there are and no
   other, which takes a fifth of the time where there are four of them. Returns the number that the
   GPU has then, which is `index` where the driver runs already or the GPU cannot be named. Sets an
    environment variable: while no other thread reads those. */
int driver_narrow(int index);

/** Loads the first of `paths` (NULL-terminated) that can be loaded; NULL with the loader's last
    message in `why`. Also used for the management library. */
void *driver_open(const char *const *paths, char *why, size_t why_size);

/** KILN_OK, KILN_NO_MEMORY, or KILN_DEVICE_FAULT for everything else. */
enum kiln_status driver_status(CUresult result);
/** "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered" into `text`. */
void driver_explain(CUresult result, char *text, size_t size);

#endif
