/*
 * device_kind.c: the table of device kinds, and names of devices.
 */
#include "compute/worker/device_kind.h"

#include "kernels/backend.h"

#include <string.h>

/* Uploads, kernels, downloads and encoding of different jobs overlap; encoding on the host is the
   longest of the four for pictures; eight slots keep the device busy beside it, where the host has
   cores for as many threads (bench/results/2026-11-21-h200-gather.md). */
static int gpu_slots(int cores) {
    return cores < 8 ? 4 : 8;
}

/* Kernels share one pool, but decoding and encoding are serial in their slot, so it takes a slot a
   core to keep the cores busy with small jobs; beyond eight there is only more memory in use. */
static int cpu_slots(int cores) {
    return cores < 2 ? 2 : cores > 8 ? 8 : cores;
}

const struct device_kind device_kinds[] = {
    {
        .name = "cuda",
        .title = "CUDA",
        .module = "kiln_cuda.so",
        .sandbox = SANDBOX_CUDA,
        .spins = true,
        .slots = gpu_slots,
    },
    {
        .name = "cpu",
        .title = "CPU",
        .builtin = &cpu_backend,
        .sandbox = SANDBOX_CPU,
        .shuts = true,
        .fallback = true,
        .slots = cpu_slots,
    },
    {.name = NULL},
};

/* Reads ":12" or "" (0); false for anything else. */
static bool index_parse(const char *text, int *index) {
    int value = 0;
    if (*text == ':') {
        size_t digits = strspn(++text, "0123456789");
        if (digits < 1 || digits > 3) {
            return false;
        }
        for (size_t i = 0; i < digits; i++) {
            value = value * 10 + (text[i] - '0');
        }
        text += digits;
    }
    if (*text != '\0') {
        return false;
    }
    if (index != NULL) {
        *index = value;
    }
    return true;
}

const struct device_kind *device_kind_find(const char *device, int *index) {
    for (const struct device_kind *kind = device_kinds; kind->name != NULL; kind++) {
        size_t length = strlen(kind->name);
        if (strncmp(device, kind->name, length) == 0 && index_parse(device + length, index)) {
            return kind;
        }
    }
    return NULL;
}

bool device_kind_matches(const char *name, const char *wanted) {
    size_t length = strlen(wanted);
    return length == 0 || strcmp(name, wanted) == 0 ||
           (strncmp(name, wanted, length) == 0 && name[length] == ':');
}
