/*
 * driver.h: what a test and the failing driver library tell each other.
 *
 * The library exports one struct by the name fake_driver.
 */
#ifndef KILN_TESTS_FAULTS_DRIVER_H
#define KILN_TESTS_FAULTS_DRIVER_H

struct fake_driver {
    long fail_at;       /* number of the call that fails, from 1; 0: none */
    int code;           /* what it answers */
    long calls, live;   /* calls so far; objects that exist */
    long memory;        /* calls that take or free memory, which stop all streams */
    const char *failed; /* name of the call that failed, or NULL */
};

#endif
