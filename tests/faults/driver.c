/*
 * driver.c: a libcuda.so.1 without a GPU, one chosen call of which fails.
 *
 * Device memory is host memory, kernels do nothing, streams are always done. Objects are counted;
 * one whose release failed counts as gone, since nothing more can be done about it.
 *
 * Threads: the test's only.
 */
#include "tests/faults/driver.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern struct fake_driver fake_driver;
struct fake_driver fake_driver;

static bool fails(const char *name) {
    if (++fake_driver.calls != fake_driver.fail_at) {
        return false;
    }
    fake_driver.failed = name;
    return true;
}

#define CALL                                                                                       \
    if (fails(__func__)) {                                                                         \
        return (CUresult)fake_driver.code;                                                         \
    }

/* For calls that release: the object is gone either way. */
#define RELEASE                                                                                    \
    fake_driver.live--;                                                                            \
    CALL

static CUresult made(void *place) {
    void *object = calloc(1, 16);
    memcpy(place, &object, sizeof object);
    fake_driver.live++;
    return CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags) {
    (void)flags;
    CALL return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
    CALL *version = 13000;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
    (void)error;
    CALL *name = "CUDA_ERROR_CHOSEN";
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
    (void)error;
    CALL *text = "the test wanted it";
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
    CALL *count = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int index) {
    CALL *device = index;
    return index == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
    (void)device;
    CALL snprintf(name, (size_t)size, "GPU of a test");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    (void)device;
    CALL memset(uuid, 7, sizeof *uuid);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *name, int size, CUdevice device) {
    (void)device;
    CALL snprintf(name, (size_t)size, "0000:00:00.0");
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device) {
    (void)device;
    CALL *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 4;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
    (void)device;
    CALL *bytes = (size_t)1 << 33;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    (void)device;
    CALL return made(context);
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    (void)device;
    RELEASE return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
    (void)context;
    CALL return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t *available, size_t *total) {
    CALL *available = *total = (size_t)1 << 33;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    (void)image;
    CALL return made(module);
}

CUresult cuModuleUnload(CUmodule module) {
    free(module);
    RELEASE return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    (void)name;
    CALL *function = (CUfunction)module;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
    (void)function;
    (void)which;
    (void)value;
    CALL return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
                                                     size_t shared) {
    (void)function;
    (void)threads;
    (void)shared;
    CALL *blocks = 2;
    return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    (void)flags;
    CALL return made(stream);
}

CUresult cuStreamDestroy(CUstream stream) {
    free(stream);
    RELEASE return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream stream) {
    (void)stream;
    CALL return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    (void)stream;
    (void)event;
    (void)flags;
    CALL return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
    (void)flags;
    CALL return made(event);
}

CUresult cuEventDestroy(CUevent event) {
    free(event);
    RELEASE return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    (void)event;
    (void)stream;
    CALL return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event) {
    (void)event;
    CALL return CUDA_SUCCESS;
}

#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent stop);
CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent stop) {
    (void)start;
    (void)stop;
    CALL *milliseconds = 1;
    return CUDA_SUCCESS;
}

/* Only touched pages cost anything. */
static void *memory(size_t size) {
    fake_driver.live++;
    return aligned_alloc(256, (size + 255) / 256 * 256);
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t size) {
    fake_driver.memory++;
    CALL *address = (CUdeviceptr)memory(size);
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr address) {
    fake_driver.memory++;
    free((void *)address);
    RELEASE return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **address, size_t size, unsigned flags) {
    fake_driver.memory++;
    (void)flags;
    CALL *address = memory(size);
    return CUDA_SUCCESS;
}

CUresult cuMemFreeHost(void *address) {
    fake_driver.memory++;
    free(address);
    RELEASE return CUDA_SUCCESS;
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *device, void *host, unsigned flags) {
    (void)flags;
    CALL *device = (CUdeviceptr)host;
    return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void *base, size_t size, unsigned flags) {
    (void)base;
    (void)size;
    (void)flags;
    CALL fake_driver.live++;
    return CUDA_SUCCESS;
}

CUresult cuMemHostUnregister(void *base) {
    (void)base;
    RELEASE return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size, CUstream stream) {
    (void)stream;
    CALL memcpy((void *)to, from, size);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream stream) {
    (void)stream;
    CALL memcpy(to, (void *)from, size);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream) {
    (void)stream;
    CALL memcpy((void *)to, (void *)from, size);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t size, CUstream stream) {
    (void)stream;
    CALL memset((void *)to, byte, size);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **arguments, void **extra) {
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared, (void)stream, (void)arguments, (void)extra;
    CALL return CUDA_SUCCESS;
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                                   unsigned grid_z, unsigned block_x, unsigned block_y,
                                   unsigned block_z, unsigned shared, CUstream stream,
                                   void **arguments) {
    (void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y;
    (void)block_z, (void)shared, (void)stream, (void)arguments;
    CALL return CUDA_SUCCESS;
}
