/*
 * devices.h: the devices there are, and those that --device chose.
 *
 * Thread: the caller of dispatch_create.
 */
#ifndef KILN_COMPUTE_DISPATCH_WORKERS_DEVICES_H
#define KILN_COMPUTE_DISPATCH_WORKERS_DEVICES_H

#include "compute/dispatch/workers/workers.h"

/** Probes, and fills the queue's supervisors from what there is and from --device. KILN_INVALID,
    logged: there can be no such device; KILN_NO_MEMORY. */
enum kiln_status devices_find(struct workers *workers, const char *chosen);

#endif
