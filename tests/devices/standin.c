/*
 * standin.c: a module that claims to be a GPU and computes on the CPU: a second device for tests
 * of a daemon with several, on machines without a GPU. Found through KILN_MODULE_PATH. Its table is
 * the CPU's with a list of devices of its own.
 */
#include "kernels/backend.h"

static enum kiln_status standin_enumerate(struct text *json, char *why, size_t why_size) {
    (void)why, (void)why_size;
    text_string(json, "[{\"name\":\"stand-in\",\"index\":0}]");
    return KILN_OK;
}

extern __attribute__((visibility("default"))) struct backend kiln_backend;
struct backend kiln_backend;

static __attribute__((constructor)) void standin_fill(void) {
    kiln_backend = cpu_backend;
    kiln_backend.name = "stand-in";
    kiln_backend.enumerate = standin_enumerate;
}
