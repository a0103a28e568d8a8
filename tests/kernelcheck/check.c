/*
 * check.c: cases on a stream, guards, verdicts.
 */
#include "tests/kernelcheck/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD    256
#define POISON   0xa5
#define RUNS_MAX 15
#define RUNS_MS  3000.0

uint64_t check_random(struct check *check) {
    uint64_t x = check->random += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

double check_uniform(struct check *check, double low, double high) {
    return low + (high - low) * ((double)(check_random(check) >> 11) * 0x1p-53);
}

int check_pick(struct check *check, int count) {
    return (int)(check_random(check) % (uint64_t)count);
}

void check_group(struct check *check, const char *name) {
    check->group = name;
    check->group_cases = check->group_failed = 0;
    /* The same input whatever ran before. */
    check->random = check->seed;
    for (const char *c = name; *c; c++) {
        check->random = check->random * 31 + (unsigned char)*c;
    }
}

void check_group_end(struct check *check) {
    bool ok = check->group_failed == 0;
    printf("%-12s %-28s %5d cases  %s\n", check->kernel, check->group, check->group_cases,
           ok ? "ok" : "FAILED");
    fflush(stdout);
    *(ok ? &check->passed : &check->failed) += 1;
}

void check_fail(struct check *check, const char *format, ...) {
    if (check->case_failed) {
        return;
    }
    check->case_failed = true;
    if (check->group_failed >= 5) {
        return;
    }
    va_list list;
    va_start(list, format);
    printf("%s %s: ", check->kernel, check->group);
    vprintf(format, list);
    printf("\n    input: %s\n", check->input);
    va_end(list);
}

void check_begin(struct check *check, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(check->input, sizeof check->input, format, list);
    va_end(list);
    check->case_failed = false;
    check->output_count = check->block_count = 0;
    check->group_cases++;
    if (check->backend->begin(check->stream, NULL) != KILN_OK ||
        check->backend->phase(check->stream, PHASE_UPLOAD) != KILN_OK) {
        check_fail(check, "begin failed: %s", check->backend->error(check->stream));
    }
}

static void *block_alloc(struct check *check, size_t size) {
    void *block = check->block_count < CHECK_BLOCKS ? calloc(1, size ? size : 1) : NULL;
    if (block == NULL) {
        fprintf(stderr, "kernelcheck: no memory for %zu bytes\n", size);
        exit(1);
    }
    check->blocks[check->block_count++] = block;
    return block;
}

void *check_alloc(struct check *check, size_t size) {
    return block_alloc(check, size);
}

const void *check_input(struct check *check, const void *data, size_t size) {
    const void *device = check->backend->upload(check->stream, data, size);
    if (device == NULL) {
        check_fail(check, "upload failed: %s", check->backend->error(check->stream));
    }
    return device;
}

/* The poison comes by upload, whose device copy is then the output: the contract has no fill. On a
   device that works in place the host memory itself is written. */
void *check_output(struct check *check, size_t size) {
    struct output *output = &check->outputs[check->output_count++];
    size_t all = size + 2 * GUARD;
    output->size = size;
    output->host = block_alloc(check, all);
    output->back = block_alloc(check, all);
    output->again = block_alloc(check, all);
    memset(output->host, POISON, all);
    output->device = (unsigned char *)(uintptr_t)check_input(check, output->host, all);
    return output->device != NULL ? output->device + GUARD : NULL;
}

const void *check_result(const struct check *check, int index) {
    return check->outputs[index].back + GUARD;
}

static bool succeeded(struct check *check, enum kiln_status status, const char *what) {
    if (status != KILN_OK) {
        check_fail(check, "%s: status %d, %s", what, (int)status,
                   check->backend->error(check->stream));
    }
    return status == KILN_OK;
}

static bool launch_once(struct check *check, enum kernel_id id, const void *args, bool again) {
    const struct backend *backend = check->backend;
    struct stream *stream = check->stream;
    if (!succeeded(check, backend->phase(stream, PHASE_KERNEL), "phase") ||
        !succeeded(check, backend->launch(stream, id, args), "launch") ||
        !succeeded(check, backend->phase(stream, PHASE_DOWNLOAD), "phase")) {
        return false;
    }
    for (int i = 0; i < check->output_count; i++) {
        struct output *output = &check->outputs[i];
        if (!succeeded(check,
                       backend->download(stream, again ? output->again : output->back,
                                         output->device, output->size + 2 * GUARD),
                       "download")) {
            return false;
        }
    }
    return succeeded(check, backend->wait(stream), "wait");
}

static void output_examine(struct check *check, const struct output *output) {
    for (size_t i = 0; i < GUARD; i++) {
        if (output->back[i] != POISON || output->back[GUARD + output->size + i] != POISON) {
            check_fail(check, "wrote outside its output, %zu bytes %s", i + 1,
                       output->back[i] != POISON ? "into the front guard" : "past the end");
            return;
        }
    }
    if (memcmp(output->back, output->again, output->size + 2 * GUARD) != 0) {
        check_fail(check, "a second launch gave other bytes");
    }
}

bool check_launch(struct check *check, enum kernel_id id, const void *args) {
    if (check->case_failed || !launch_once(check, id, args, false) ||
        !launch_once(check, id, args, true)) {
        return false;
    }
    for (int i = 0; i < check->output_count; i++) {
        output_examine(check, &check->outputs[i]);
    }
    return true;
}

void check_end(struct check *check) {
    struct timing timing = {0};
    check->backend->finish(check->stream, &timing);
    check->kernel_ms = timing.kernel;
    for (int i = 0; i < check->block_count; i++) {
        free(check->blocks[i]);
    }
    check->block_count = 0;
    if (check->case_failed) {
        check->group_failed++;
    }
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Time of one launch by the stream's own clock: the difference of what finish adds would need a
   begin, which frees the inputs, so the phases are read from a finish that keeps the memory. */
static double launch_ms(struct check *check, enum kernel_id id, const void *args) {
    const struct backend *backend = check->backend;
    struct timing timing = {0};
    if (backend->phase(check->stream, PHASE_KERNEL) != KILN_OK ||
        backend->launch(check->stream, id, args) != KILN_OK ||
        backend->phase(check->stream, PHASE_DOWNLOAD) != KILN_OK ||
        backend->wait(check->stream) != KILN_OK ||
        backend->finish(check->stream, &timing) != KILN_OK) {
        return -1;
    }
    return timing.kernel;
}

double check_bench(struct check *check, enum kernel_id id, const void *args) {
    double times[RUNS_MAX], spent = 0;
    int runs = 0;
    if (check->case_failed || launch_ms(check, id, args) < 0) {
        return -1;
    }
    while (runs < RUNS_MAX && (runs < 3 || spent < RUNS_MS)) {
        times[runs] = launch_ms(check, id, args);
        if (times[runs] < 0) {
            return -1;
        }
        spent += times[runs++];
    }
    qsort(times, (size_t)runs, sizeof times[0], compare_doubles);
    return times[runs / 2];
}
