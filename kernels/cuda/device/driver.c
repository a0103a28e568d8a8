/*
 * driver.c: loading libcuda.so.1 (driver.h).
 *
 * Any thread; the work is done once.
 */
#include "kernels/cuda/device/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OLDEST_VERSION 12000 /* CUDA 12.0, driver 525 */

struct driver driver;

static pthread_once_t load_once = PTHREAD_ONCE_INIT;
static enum kiln_status load_status = KILN_NO_DEVICE;
static char load_why[256];

/* Beside the loader's own places: where containers and WSL put the driver's libraries. */
static const char *const places[] = {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
                                     "/usr/lib/wsl/lib/libcuda.so.1", NULL};

#define STRING_OF(name) #name
#define STRING(name)    STRING_OF(name)

static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
#define X(name) {STRING(name), offsetof(struct driver, name)},
    DRIVER_FUNCTIONS(X)
#undef X
        {"cuEventElapsedTime", offsetof(struct driver, event_elapsed)},
};

void *driver_open(const char *const *paths, char *why, size_t why_size) {
    void *library = NULL;
    for (; library == NULL && *paths != NULL; paths++) {
        library = dlopen(*paths, RTLD_NOW | RTLD_LOCAL);
        if (library == NULL) {
            snprintf(why, why_size, "%s", dlerror());
        }
    }
    return library;
}

void driver_explain(CUresult result, char *text, size_t size) {
    const char *name = NULL, *description = NULL;
    if (driver.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name) {
        name = "unknown error";
    }
    if (driver.cuGetErrorString(result, &description) != CUDA_SUCCESS || !description) {
        description = "the driver has no text for it";
    }
    snprintf(text, size, "%s (%d): %s", name, (int)result, description);
}

enum kiln_status driver_status(CUresult result) {
    switch (result) {
    case CUDA_SUCCESS:
        return KILN_OK;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return KILN_NO_MEMORY;
    default:
        return KILN_DEVICE_FAULT;
    }
}

static bool symbols_find(void *library) {
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (address == NULL) {
            snprintf(load_why, sizeof load_why,
                     "the NVIDIA driver is too old: its libcuda.so.1 lacks %s (kiln needs 525 or "
                     "newer)",
                     symbols[i].name);
            return false;
        }
        memcpy((char *)&driver + symbols[i].offset, &address, sizeof address);
    }
    return true;
}

static bool driver_start(void) {
    /* Every kernel is loaded when its module is: a first launch must not load code. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    CUresult result = driver.cuInit(0);
    if (result == CUDA_ERROR_NO_DEVICE) {
        snprintf(load_why, sizeof load_why, "the NVIDIA driver is installed but sees no GPU");
        return false;
    }
    if (result != CUDA_SUCCESS) {
        char text[160];
        driver_explain(result, text, sizeof text);
        snprintf(load_why, sizeof load_why, "the NVIDIA driver did not start: %s", text);
        return false;
    }
    result = driver.cuDriverGetVersion(&driver.version);
    if (result != CUDA_SUCCESS || driver.version < OLDEST_VERSION) {
        snprintf(load_why, sizeof load_why,
                 "the NVIDIA driver is too old: it supports CUDA %d.%d, kiln needs %d.%d or newer",
                 driver.version / 1000, driver.version % 1000 / 10, OLDEST_VERSION / 1000,
                 OLDEST_VERSION % 1000 / 10);
        return false;
    }
    return true;
}

/* Entry `index` of a list with commas, or NULL; all of it where there is no list. */
static const char *entry_of(const char *list, int index, char *copy, size_t size) {
    if (list == NULL) {
        snprintf(copy, size, "%d", index);
        return copy;
    }
    if (strlen(list) >= size) {
        return NULL;
    }
    snprintf(copy, size, "%s", list);
    char *rest, *entry = strtok_r(copy, ",", &rest);
    while (entry != NULL && index-- > 0) {
        entry = strtok_r(NULL, ",", &rest);
    }
    return entry;
}

int driver_narrow(int index) {
    static const char name[] = "CUDA_VISIBLE_DEVICES";
    char copy[1024];
    const char *entry = entry_of(getenv(name), index, copy, sizeof copy);
    /* Entries behind one that does not exist do not count: such lists stay as they are. */
    if (load_status == KILN_OK || index < 0 || entry == NULL || *entry == '-' ||
        setenv(name, entry, 1) != 0) {
        return index;
    }
    return 0;
}

static void load(void) {
    char reason[160] = "";
    void *library = driver_open(places, reason, sizeof reason);
    if (library == NULL) {
        /* The loader's own words help only where a library is there but cannot be used. */
        if (strstr(reason, "No such file") != NULL) {
            snprintf(load_why, sizeof load_why,
                     "libcuda.so.1 not found: no NVIDIA driver on this machine");
        } else {
            snprintf(load_why, sizeof load_why, "libcuda.so.1 cannot be loaded: %s", reason);
        }
        return;
    }
    if (symbols_find(library) && driver_start()) {
        load_status = KILN_OK;
    }
}

enum kiln_status driver_load(char *why, size_t why_size) {
    pthread_once(&load_once, load);
    if (load_status != KILN_OK) {
        snprintf(why, why_size, "%s", load_why);
    }
    return load_status;
}
