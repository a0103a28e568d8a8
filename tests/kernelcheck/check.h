/*
 * check.h: what the kernels' checks share: random input, guarded buffers on a device, verdicts.
 *
 * A case is: check_begin, inputs and outputs, check_launch, comparisons, all on one stream. An
 * output is poisoned and lies between guard bands, which check_launch examines; every launch is
 * made twice and must give the same bytes. Groups of cases print one line each.
 *
 * Only the contract of kernels/backend.h is used, so that the same program checks every backend.
 * Threads: one.
 */
#ifndef KILN_TESTS_KERNELCHECK_CHECK_H
#define KILN_TESTS_KERNELCHECK_CHECK_H

#include "kernels/backend.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CHECK_OUTPUTS 32
#define CHECK_BLOCKS  128

/** An output of the case. */
struct output {
    size_t size;
    unsigned char *host, *back,
        *again;            /* with guards: as uploaded; after the first, second launch */
    unsigned char *device; /* with guards */
};

struct check {
    const struct backend *backend;
    struct device *device;
    struct stream *stream;
    uint64_t seed, random;
    struct output outputs[CHECK_OUTPUTS];
    int output_count;
    void *blocks[CHECK_BLOCKS]; /* host memory of the case */
    int block_count;
    const char *kernel, *group;
    char input[256]; /* the case, for messages */
    bool quick;      /* few and small cases are wanted */
    bool case_failed;
    int group_cases, group_failed;
    int passed, failed; /* groups */
    double kernel_ms;   /* of the last launch */
};

/** The checks: one file a kernel, and one for the stream itself. `bench` (NULL: nothing to time)
    prints device times instead. */
struct kernel_check {
    const char *name;
    void (*run)(struct check *check);
    void (*bench)(struct check *check);
};

extern const struct kernel_check stream_check;
#define X(symbol, name, args) extern const struct kernel_check name##_check;
KILN_KERNELS(X) /* one without a check does not link */
#undef X

/* Random numbers (splitmix64), the same for the same seed everywhere. */
uint64_t check_random(struct check *check);
double check_uniform(struct check *check, double low, double high);
int check_pick(struct check *check, int count);

/** Opens and closes a group; the closing prints its line. */
void check_group(struct check *check, const char *name);
void check_group_end(struct check *check);

/** Begins a case; the format describes its input and is printed when it fails. */
void check_begin(struct check *check, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/** Host memory of the case, zeroed. */
void *check_alloc(struct check *check, size_t size);
/** Device copy of host data, which must live as long as the case. */
const void *check_input(struct check *check, const void *data, size_t size);
/** Device memory for an output of the kernel. */
void *check_output(struct check *check, size_t size);
/** Host copy of output number `index` (in order of check_output) after the launch. */
const void *check_result(const struct check *check, int index);
/** Launches twice and compares bytes and guards; false (and a failed case) on any error. */
bool check_launch(struct check *check, enum kernel_id id, const void *args);
void check_end(struct check *check);
/** Fails the case; the first message of a case is printed. */
void check_fail(struct check *check, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** Median device time in milliseconds of several launches, without comparisons; negative on
    failure. Inputs and outputs as for check_launch. */
double check_bench(struct check *check, enum kernel_id id, const void *args);

#endif
