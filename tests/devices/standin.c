/*
 * standin.c: a module that claims to be a GPU and computes on the CPU: a second device for tests
 * of a daemon with several, on machines without a GPU. Found through KILN_MODULE_PATH. Its table is
 * the CPU's with a list of devices of its own, and with no kernels but those that
 * KILN_STANDIN_KERNELS names ("mandelbrot,laplacian"), where that is set.
 */
#include "kernels/backend.h"

#include <stdlib.h>
#include <string.h>

static enum kiln_status standin_enumerate(struct text *json, char *why, size_t why_size) {
    (void)why, (void)why_size;
    text_string(json, "[{\"name\":\"stand-in\",\"index\":0}]");
    return KILN_OK;
}

extern __attribute__((visibility("default"))) struct backend kiln_backend;
struct backend kiln_backend;

static enum kiln_status standin_launch(struct stream *stream, enum kernel_id id, const void *args) {
    return (kiln_backend.kernels >> id & 1) != 0 ? cpu_backend.launch(stream, id, args)
                                                 : KILN_UNSUPPORTED;
}

static uint32_t kernels_named(const char *list) {
    uint32_t kernels = 0;
    for (int id = 0; id < KERNEL_COUNT; id++) {
        kernels |= strstr(list, kernel_name(id)) != NULL ? (uint32_t)1 << id : 0;
    }
    return kernels;
}

static __attribute__((constructor)) void standin_fill(void) {
    kiln_backend = cpu_backend;
    kiln_backend.name = "stand-in";
    kiln_backend.enumerate = standin_enumerate;
    const char *list = getenv("KILN_STANDIN_KERNELS");
    if (list != NULL) {
        kiln_backend.kernels = kernels_named(list);
        kiln_backend.launch = standin_launch;
    }
}
