/*
 * cgroup.h: how much memory the control groups of this process leave it.
 *
 * Version 2 (memory.max, memory.high) and version 1 (memory.limit_in_bytes), of the group itself
 * and of every one around it that can be seen.
 *
 * Threads: any.
 */
#ifndef KILN_COMPUTE_CORE_CGROUP_H
#define KILN_COMPUTE_CORE_CGROUP_H

#include <stdint.h>

struct cgroup_memory {
    uint64_t limit; /* bytes of the tightest limit; UINT64_MAX: none */
    uint64_t free;  /* what is left of the one that leaves least, page cache that is not in use
                       counted in; UINT64_MAX: no limit */
};

/** Reads `root`/proc/self and what it points to below `root` ("" for the system's own). What cannot
    be read limits nothing. */
void cgroup_memory_read(const char *root, struct cgroup_memory *memory);

#endif
