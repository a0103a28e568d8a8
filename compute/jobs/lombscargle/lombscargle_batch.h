/*
 * lombscargle_batch.h: light curves on their way through one launch: those of a request, or one of
 * each request of a group.
 *
 * Threads: a worker's slot thread. Arrays are host scratch of the task's stream.
 */
#ifndef KILN_COMPUTE_JOBS_LOMBSCARGLE_LOMBSCARGLE_BATCH_H
#define KILN_COMPUTE_JOBS_LOMBSCARGLE_LOMBSCARGLE_BATCH_H

#include "compute/jobs/lombscargle/lombscargle.h"

struct batch {
    struct periodogram *periodograms;
    struct lombscargle_curve *curves; /* where each one's samples lie */
    bool many;                        /* the kernel is told of curves; else there is one */
    uint64_t count, nf;
    uint64_t total;          /* samples of all curves, elements of y */
    uint64_t times, weights; /* elements of t and w: as many, unless curves share them */
    double *t, *y, *w;
    struct lombscargle_peak *found; /* by the device; NULL: the host looks for peaks */
    uint64_t found_count;           /* for each curve */
    int32_t method;                 /* that the kernel used; -1: it did not run */
};

/** Reads and prepares the curves of one request into a batch of zeros. KILN_MALFORMED where the
    input cannot be used, KILN_NO_MEMORY. */
enum kiln_status batch_prepare(struct task *task, struct batch *batch);

/** The same for requests of one curve each on the same grid. KILN_UNSUPPORTED where they are not.
 */
enum kiln_status batch_gather(struct task *tasks, size_t count, struct batch *batch);

#endif
