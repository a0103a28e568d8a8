/*
 * fault_cuda.c: launches the kernels of fault.cu on the job's own stream, so that their end is seen
 * by the backend as that of its own kernels is.
 *
 * The driver is the one that the CUDA module has loaded. Built only where a CUDA toolkit is; the
 * others say that there is no GPU. Slot thread of a worker.
 */
#include "tests/devices/fault.h"

#ifdef KILN_FAULT_CUDA

#include "kernels/cuda/device/stream.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

extern const unsigned char fault_image[];

static const char *const names[FAULT_DEVICE_MEMORY] = {
    [FAULT_STORE] = "fault_store",           [FAULT_TRAP] = "fault_trap",
    [FAULT_MISALIGNED] = "fault_misaligned", [FAULT_SPIN] = "fault_spin",
    [FAULT_POLITE] = "fault_polite",
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUfunction functions[FAULT_DEVICE_MEMORY];
static __typeof__(cuLaunchKernel) *launch_kernel;

static void *driver_symbol(const char *name) {
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return library ? dlsym(library, name) : NULL;
}

bool fault_has_gpu(void) {
    return driver_symbol("cuLaunchKernel") != NULL;
}

static CUresult functions_load(void) {
    __typeof__(cuModuleLoadData) *load;
    __typeof__(cuModuleGetFunction) *get;
    void *symbols[] = {driver_symbol("cuModuleLoadData"), driver_symbol("cuModuleGetFunction"),
                       driver_symbol("cuLaunchKernel")};
    CUmodule module;
    memcpy(&load, &symbols[0], sizeof load);
    memcpy(&get, &symbols[1], sizeof get);
    memcpy(&launch_kernel, &symbols[2], sizeof launch_kernel);
    CUresult result = load(&module, fault_image);
    for (int i = 0; result == CUDA_SUCCESS && i < FAULT_DEVICE_MEMORY; i++) {
        result = get(&functions[i], module, names[i]);
    }
    return result;
}

enum kiln_status fault_gpu(struct task *task, enum fault_what what) {
    struct stream *stream = task->stream;
    pthread_mutex_lock(&lock);
    CUresult result = functions[0] ? CUDA_SUCCESS : functions_load();
    pthread_mutex_unlock(&lock);
    if (result == CUDA_SUCCESS && what < FAULT_DEVICE_MEMORY) {
        void *base = task->backend->reserve(stream, 4096);
        const volatile uint32_t *stop = stream_stop_flag(stream);
        void *arguments[] = {&base, &stop};
        if (!base) {
            return KILN_NO_MEMORY;
        }
        stream->busy = true;
        result =
            launch_kernel(functions[what], 1, 1, 1, 32, 1, 1, 0, stream->handle, arguments, NULL);
    }
    if (result != CUDA_SUCCESS) {
        snprintf(task->detail, sizeof task->detail, "fault.cu: driver error %d", (int)result);
        return KILN_DEVICE_FAULT;
    }
    return task->backend->wait(stream);
}

#else

bool fault_has_gpu(void) {
    return false;
}

enum kiln_status fault_gpu(struct task *task, enum fault_what what) {
    (void)task, (void)what;
    return KILN_UNSUPPORTED;
}

#endif
