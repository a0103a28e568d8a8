/*
 * registry.c: the one list of job kinds: a line X(name) for each, whose table is name_job.
 *
 * Threads: constant.
 */
#include "compute/jobs/job.h"

#ifdef KILN_FAULTS
#define OTHERS(X) X(fault) /* of kilnd-faults, in tests/devices/ */
#else
#define OTHERS(X)
#endif

#define KILN_JOBS(X)                                                                               \
    X(mandelbrot)                                                                                  \
    X(jacobi)                                                                                      \
    X(laplacian)                                                                                   \
    X(lombscargle)                                                                                 \
    OTHERS(X)

#define X(name) extern const struct job_type name##_job;
KILN_JOBS(X)
#undef X

const struct job_type *const job_types[] = {
#define X(name) &name##_job,
    KILN_JOBS(X)
#undef X
        NULL,
};
