/*
 * backend.c: where the table of functions of a kind of device comes from.
 *
 * The CPU's is linked in. Others are shared objects that lie beside the program (or in ../lib/kiln
 * of it, or in KILN_MODULE_PATH), so that one binary runs with and without a driver. Worker and
 * probe only, on their main threads; a module once loaded stays.
 */
#include "kernels/backend.h"
#include "compute/worker/device_kind.h"
#include "compute/worker/worker.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Directory of the running program, without the last slash; "." where that is unknown. */
static void program_directory(char *path, size_t size) {
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL) {
        *slash = '\0';
    } else {
        snprintf(path, size, ".");
    }
}

/* Loads the module at this path; NULL with `why` set where the file is there but unfit, and with
   `why` unchanged where there is no file. */
static const struct backend *module_load(const char *path, char *why, size_t why_size) {
    if (access(path, F_OK) != 0) {
        return NULL;
    }
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module == NULL) {
        snprintf(why, why_size, "the module could not be loaded: %s", dlerror());
        return NULL;
    }
    const struct backend *backend = dlsym(module, BACKEND_SYMBOL);
    if (backend != NULL && backend->abi == BACKEND_ABI) {
        return backend;
    }
    snprintf(why, why_size, "the module %s belongs to another version of this program", path);
    dlclose(module);
    return NULL;
}

static const struct backend *module_find(const struct device_kind *kind, char *why,
                                         size_t why_size) {
    char directory[PATH_MAX], path[PATH_MAX + 64];
    const struct backend *backend = NULL;
    snprintf(why, why_size, "the %s module was not built or not found (%s)", kind->title,
             kind->module);
    program_directory(directory, sizeof directory);
    const char *chosen = getenv("KILN_MODULE_PATH");
    if (chosen != NULL && *chosen) {
        snprintf(path, sizeof path, "%s/%s", chosen, kind->module);
        backend = module_load(path, why, why_size);
    }
    static const char *const places[] = {"", "/../lib/kiln"};
    for (size_t i = 0; backend == NULL && i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "%s%s/%s", directory, places[i], kind->module);
        backend = module_load(path, why, why_size);
    }
    return backend;
}

const struct backend *backend_find(const char *device, int *index, char *why, size_t why_size) {
    const struct device_kind *kind = device_kind_find(device, index);
    if (kind == NULL) {
        snprintf(why, why_size, "there is no kind of device called \"%.32s\"", device);
        return NULL;
    }
    return kind->builtin != NULL ? kind->builtin : module_find(kind, why, why_size);
}
