/*
 * sandbox_private.h: the form of the written lists.
 *
 * A list is an array of rows that ends with a row of number SANDBOX_END; a profile is an array of
 * lists that ends with NULL. Constant.
 */
#ifndef KILN_COMPUTE_WORKER_SANDBOX_PRIVATE_H
#define KILN_COMPUTE_WORKER_SANDBOX_PRIVATE_H

#include "compute/worker/sandbox.h"

#include <stdint.h>

#define SANDBOX_END (-1)

/* One system call, or one use of it. Several rows with one number are alternatives. */
struct sandbox_call {
    int16_t number;
    uint8_t argument;     /* that is looked at, from 1; 0: none, all uses */
    uint8_t self;         /* its value must be this process's id */
    uint32_t mask, value; /* else (argument & mask) == value, of the lower 32 bits: all that the
                             kernel itself looks at in these */
};

/** What each profile allows. */
extern const struct sandbox_call *const *const sandbox_allowed[SANDBOX_PROFILES];
/** Files and folders that each profile may read, ended by NULL; NULL where it may read all. */
extern const char *const *const sandbox_readable[SANDBOX_PROFILES];
/** What ends the process, in every profile. */
extern const struct sandbox_call sandbox_hostile[];
/** What answers ENOSYS, in every profile, so that the C library takes another way. */
extern const struct sandbox_call sandbox_missing[];
/** What `report` needs on top of a profile. */
extern const struct sandbox_call sandbox_reporting[];
/** The newest call that the lists know: later ones are answered ENOSYS, as an older kernel does. */
extern const int16_t sandbox_newest;

#endif
