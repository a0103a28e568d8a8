/*
 * fault_job.c: the job kind of fault.h: its table, and which part of the machine does the deed.
 * Front (check, plan) and worker (run).
 */
#include "tests/devices/fault.h"

#include "compute/core/cancel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define AT(member) offsetof(struct fault_params, member)

static const char *const whats[] = {
    [FAULT_STORE] = "store",
    [FAULT_TRAP] = "trap",
    [FAULT_MISALIGNED] = "misaligned",
    [FAULT_SPIN] = "spin",
    [FAULT_POLITE] = "polite",
    [FAULT_DEVICE_MEMORY] = "device-memory",
    [FAULT_HOST_MEMORY] = "host-memory",
    [FAULT_KILL] = "kill",
    [FAULT_STOP] = "stop",
    [FAULT_EXIT] = "exit",
    [FAULT_LIE] = "lie",
    [FAULT_FORGE] = "forge",
    [FAULT_GARBAGE] = "garbage",
    [FAULT_TIMES] = "times",
    [FAULT_OPEN] = "open",
    [FAULT_REPORT] = "report",
    [FAULT_NONE] = "none",
    [FAULT_CANARY] = "canary",
    [FAULT_PREPARE] = "prepare",
    [FAULT_COUNT] = NULL,
};

static const struct field fields[] = {
    {.name = "what",
     .type = FIELD_ENUM,
     .offset = AT(what),
     .preset = "none",
     .choices = whats,
     .unit = "",
     .help = "What to do."},
    {.name = "seed",
     .type = FIELD_INT,
     .offset = AT(seed),
     .min = 0,
     .max = 1e9,
     .preset = "0",
     .unit = "",
     .help = "First byte of the result."},
    {.name = "bytes",
     .type = FIELD_INT,
     .offset = AT(bytes),
     .min = 1,
     .max = 1e9,
     .preset = "4096",
     .unit = "bytes",
     .help = "Size of the result."},
    {.name = "ms",
     .type = FIELD_INT,
     .offset = AT(ms),
     .min = 0,
     .max = 1e6,
     .preset = "0",
     .unit = "milliseconds",
     .help = "How long to wait before."},
    {.name = "device_bytes",
     .type = FIELD_INT,
     .offset = AT(device_bytes),
     .min = 0,
     .max = 1e15,
     .preset = "0",
     .unit = "bytes",
     .help = "Device memory that the plan claims."},
    {.name = NULL},
};

static const enum format formats[] = {FORMAT_RAW, FORMAT_NONE};

static void check(void *params, const struct input *input, const uint8_t *data, enum format format,
                  const struct limits *limits, struct complaints *complaints) {
    const struct fault_params *fault = params;
    const struct timespec pause = {.tv_nsec = 1000000};
    (void)input, (void)data, (void)format, (void)limits, (void)complaints;
    for (int64_t i = 0; fault->what == FAULT_PREPARE && i < fault->ms; i++) {
        if (cancel_point(CANCEL_STRIDE)) {
            return;
        }
        nanosleep(&pause, NULL);
    }
}

static enum kiln_status plan(const void *raw, const struct input *input, enum format format,
                             struct plan *plan) {
    const struct fault_params *params = raw;
    (void)input, (void)format;
    plan->result_bytes = (uint64_t)params->bytes;
    plan->device_bytes = (uint64_t)params->device_bytes;
    plan->cost = 1;
    plan->kernels = 0; /* any device will do */
    return KILN_OK;
}

static const struct work_variant variants[] = {{"all", {1e-3, 1, 1e-9, 1, 1, 1}}, {NULL}};

static void estimate(const void *raw, const struct input *input, const uint8_t *data,
                     enum format format, bool closely, struct work *work) {
    const struct fault_params *params = raw;
    (void)input, (void)data, (void)format, (void)closely;
    *work = (struct work){.ways = 1,
                          .way[0].steps = {(double)params->ms / 1000, (double)params->bytes}};
}

/* Is there a file $KILN_FAULT_FILE.<device>? It need not be read, which a worker may not. */
static bool file_names(const char *device) {
    const char *path = getenv("KILN_FAULT_FILE");
    char name[256];
    struct stat status;
    return path != NULL && snprintf(name, sizeof name, "%s.%s", path, device) < (int)sizeof name &&
           stat(name, &status) == 0;
}

static enum kiln_status deed(struct task *task, enum fault_what what) {
    if (what == FAULT_CANARY) {
        if (file_names(task->device_name)) {
            return fault_host(task, FAULT_REPORT);
        }
        /* code is loaded when nothing runs: loading waits for what does */
        return fault_has_gpu() ? fault_gpu(task, what) : KILN_OK;
    }
    bool gpu =
        what < FAULT_DEVICE_MEMORY && strncmp(task->device_name, "cuda", 4) == 0 && fault_has_gpu();
    return gpu ? fault_gpu(task, what) : fault_host(task, what);
}

static enum kiln_status run(struct task *task) {
    const struct fault_params *params = task->params;
    struct timespec wait = {.tv_sec = params->ms / 1000, .tv_nsec = params->ms % 1000 * 1000000};
    enum kiln_status status = task->backend->phase(task->stream, PHASE_KERNEL);
    if (params->what != FAULT_PREPARE) { /* which has waited already */
        nanosleep(&wait, NULL);
    }
    if (status == KILN_OK && params->what != FAULT_NONE && params->what != FAULT_PREPARE) {
        status = deed(task, (enum fault_what)params->what);
    }
    if (status != KILN_OK || task->size > 0) {
        return status;
    }
    task->backend->phase(task->stream, PHASE_ENCODE);
    for (int64_t i = 0; i < params->bytes; i++) {
        task->result[i] = (uint8_t)(params->seed + i * 31);
    }
    task->size = (uint64_t)params->bytes;
    return KILN_OK;
}

extern const struct job_type fault_job;

const struct job_type fault_job = {
    .name = "fault",
    .title = "Faults, for tests",
    .get = true,
    .fields = fields,
    .params_size = sizeof(struct fault_params),
    .formats = formats,
    .version = 1,
    .check = check,
    .plan = plan,
    .variants = variants,
    .estimate = estimate,
    .run = run,
    .canary_query = "what=canary",
    .canary_format = FORMAT_RAW,
};
