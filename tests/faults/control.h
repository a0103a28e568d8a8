/*
 * control.h: what a test and the failing allocator tell each other, in a file that both map.
 *
 * A test names the file in KILN_FAULTS. One block for each role of kilnd that is watched.
 * Threads: any; every word is atomic.
 */
#ifndef KILN_TESTS_FAULTS_CONTROL_H
#define KILN_TESTS_FAULTS_CONTROL_H

#include <stdatomic.h>
#include <stdint.h>

enum fault_role { FAULT_FRONT, FAULT_WORKER, FAULT_ROLES };

struct fault_block {
    _Atomic int64_t countdown; /* the call that brings it from 1 to 0 fails; 0: none does */
    _Atomic uint64_t calls;    /* so far */
    _Atomic uint64_t failed;   /* calls that were made to fail */
    _Atomic int64_t live;      /* blocks that are not freed */
};

#endif
