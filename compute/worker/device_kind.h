/*
 * device_kind.h: the kinds of device that kiln can compute on, one row each.
 *
 * A new backend is a module that implements kernels/backend.h, and one row here. The front reads
 * the rows too (which device to prefer, whether to spin for answers) but never loads a module.
 *
 * Threads: constant.
 */
#ifndef KILN_COMPUTE_WORKER_DEVICE_KIND_H
#define KILN_COMPUTE_WORKER_DEVICE_KIND_H

#include "compute/worker/sandbox.h"

#include <stdbool.h>

#define DEVICE_NAME_MAX 24 /* "cuda:12" with its NUL */

struct backend;

struct device_kind {
    const char *name;              /* "cuda": device names are "cuda:0", "cuda:1", … */
    const char *title;             /* in sentences: "CUDA" */
    const struct backend *builtin; /* linked in; NULL: the module */
    const char *module;            /* file name of the shared object; NULL: linked in */
    enum sandbox_profile sandbox;  /* of its workers */
    bool shuts;    /* opens no file once it is warm: where the kernel cannot name the files that it
                      may read (Landlock), it may open none from then on */
    bool fallback; /* there is exactly one, number 0, whatever a probe says; `auto` takes it where
                      there is nothing better */
    bool spins;    /* calls are so short that waking a sleeping thread would double them: worker and
                      front look for the next one for a moment before they sleep */
    /** Jobs, or groups of small ones, that a worker runs at a time by default, on a host with
        `cores` processors. */
    int (*slots)(int cores);
};

/** All kinds, the preferred one first, ended by a row with name NULL. Devices of an earlier kind
    get a job first when load is equal; `--device auto` takes all devices of the first kind that
    has any. */
extern const struct device_kind device_kinds[];

/** The kind of "cuda:1", or of "cuda", which is its number 0; NULL for anything else, with `index`
    unchanged. Numbers have three digits at most. `index` may be NULL. */
const struct device_kind *device_kind_find(const char *device, int *index);

/** Is `name` ("cuda:1") the wanted device? "" wants any, "cuda" any of that kind. */
bool device_kind_matches(const char *name, const char *wanted);

#endif
