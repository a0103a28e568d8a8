/*
 * kernelcheck: compares every kernel of a backend with a plain reference, or times it.
 *
 *   kernelcheck [--backend cpu|cuda] [--device N] [--module PATH] [--require] [--bench]
 *               [--seed S] [--kernel NAME] [--quick]
 *
 * --quick takes a few small cases of kernels that have many: for runs under a memory checker.
 * Exit code: 0 all passed, 1 a mismatch or wrong usage, 77 the backend is not available here and
 * --require was not given.
 */
#include "compute/worker/worker.h"
#include "tests/kernelcheck/check.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct kernel_check *const checks[] = {&stream_check,
#define X(symbol, name, args) &name##_check,
                                                    KILN_KERNELS(X)
#undef X
};
#define CHECKS (sizeof checks / sizeof checks[0])

struct options {
    const char *backend, *module, *kernel;
    int device;
    uint64_t seed;
    bool require, bench, quick;
};

static int usage(void) {
    fputs("usage: kernelcheck [--backend cpu|cuda] [--device N] [--module PATH] [--require] "
          "[--bench] [--seed S] [--kernel NAME] [--quick]\n",
          stderr);
    return 1;
}

/* Takes one option from the front of the arguments; returns how many it took, 0 for a wrong one. */
static int option_take(struct options *options, char **arguments) {
    const char *name = arguments[0], *value = arguments[1];
    if (strcmp(name, "--require") == 0)
        return options->require = true, 1;
    if (strcmp(name, "--bench") == 0)
        return options->bench = true, 1;
    if (strcmp(name, "--quick") == 0)
        return options->quick = true, 1;
    if (!value)
        return 0;
    if (strcmp(name, "--backend") == 0)
        return options->backend = value, 2;
    if (strcmp(name, "--module") == 0)
        return options->module = value, 2;
    if (strcmp(name, "--kernel") == 0)
        return options->kernel = value, 2;
    if (strcmp(name, "--device") == 0)
        return options->device = atoi(value), 2;
    if (strcmp(name, "--seed") == 0)
        return options->seed = strtoull(value, NULL, 0), 2;
    return 0;
}

static const struct backend *module_open(const char *path, char *why, size_t why_size) {
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const struct backend *backend = module ? dlsym(module, BACKEND_SYMBOL) : NULL;
    if (!backend)
        snprintf(why, why_size, "%s", dlerror());
    else if (backend->abi != BACKEND_ABI)
        snprintf(why, why_size, "%s has another ABI", path), backend = NULL;
    return backend;
}

static const struct backend *backend_open(const struct options *options, struct check *check,
                                          char *why, size_t why_size) {
    char name[64];
    int index = 0;
    snprintf(name, sizeof name, "%.32s:%d", options->backend, options->device);
    const struct backend *backend = options->module ? module_open(options->module, why, why_size)
                                                    : backend_find(name, &index, why, why_size);
    struct device_options device_options = {0};
    if (!backend ||
        backend->open(options->device, &device_options, &check->device, why, why_size) != KILN_OK)
        return NULL;
    if (backend->stream_create(check->device, &check->stream) != KILN_OK) {
        snprintf(why, why_size, "no stream could be made");
        backend->close(check->device);
        return NULL;
    }
    return backend;
}

static bool selected(const struct options *options, const struct kernel_check *kernel) {
    return !options->kernel || strcmp(options->kernel, kernel->name) == 0;
}

/* What is checked beside kernels is always there. */
static bool has(const struct backend *backend, const char *name) {
    for (int id = 0; id < KERNEL_COUNT; id++)
        if (strcmp(kernel_name(id), name) == 0)
            return (backend->kernels >> id & 1) != 0;
    return true;
}

static void checks_run(struct check *check, const struct options *options) {
    for (size_t i = 0; i < CHECKS; i++) {
        if (!selected(options, checks[i]))
            continue;
        check->kernel = checks[i]->name;
        if (!has(check->backend, check->kernel)) {
            printf("%-12s %-28s not there\n", check->kernel, "");
            continue;
        }
        if (options->bench && checks[i]->bench)
            checks[i]->bench(check);
        else if (!options->bench)
            checks[i]->run(check);
    }
}

static bool name_known(const struct options *options) {
    bool found = false;
    for (size_t i = 0; i < CHECKS; i++) {
        found = found || selected(options, checks[i]);
    }
    return found;
}

int main(int argc, char **argv) {
    struct options options = {.backend = "cpu", .seed = 1};
    for (int i = 1, taken; i < argc; i += taken) {
        taken = option_take(&options, argv + i);
        if (!taken)
            return usage();
    }
    if (!name_known(&options))
        return usage();
    char why[256] = "";
    struct check check = {.seed = options.seed, .quick = options.quick};
    check.backend = backend_open(&options, &check, why, sizeof why);
    if (!check.backend) {
        printf("%s:%d is not available: %s\n", options.backend, options.device, why);
        return options.require ? 1 : 77;
    }
    checks_run(&check, &options);
    check.backend->stream_destroy(check.stream);
    check.backend->close(check.device);
    if (!options.bench)
        printf("%s:%d seed %llu: %d passed, %d failed\n", check.backend->name, options.device,
               (unsigned long long)options.seed, check.passed, check.failed);
    return check.failed ? 1 : 0;
}
