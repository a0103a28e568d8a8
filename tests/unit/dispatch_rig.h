/*
 * dispatch_rig.h: a dispatcher with real worker processes inside a test program.
 *
 * The program is its own worker and spawner: started as "… worker <device> …" it runs worker_run,
 * as kilnd does. Its list of job kinds has, besides the real Mandelbrot (which is the canary), a
 * kind made for trouble: it fills its result with a pattern and can wait at a gate, crash, hang or
 * lie. Gate and counter of attempts lie in the job's input block, which both processes see.
 */
#ifndef KILN_TESTS_DISPATCH_RIG_H
#define KILN_TESTS_DISPATCH_RIG_H

#include "compute/dispatch/dispatch.h"
#include "compute/worker/spawner.h"
#include "compute/worker/worker.h"
#include "kernels/mandelbrot.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the troublesome kind ---- */

enum deed {
    DEED_FILL,     /* fills the result */
    DEED_GATE,     /* waits until the gate opens, then fills */
    DEED_DIE,      /* kills its process */
    DEED_DIE_ONCE, /* kills its process at the first attempt, then fills */
    DEED_FAULT,    /* reports a device fault */
    DEED_HANG,     /* never comes back and does not look at its cancel word */
    DEED_LIE,      /* claims a result larger than its bound */
    DEED_SHORT,    /* finds no device memory as many times as its seed says, then fills */
    DEED_APART     /* fills, but not together with others */
};

struct trouble_params {
    int64_t deed, seed, bytes;
};

/* Start of the input block. */
struct trouble_shared {
    _Atomic uint32_t open, tries;
};

static const struct field trouble_fields[] = {
    {.name = "deed",
     .type = FIELD_INT,
     .offset = offsetof(struct trouble_params, deed),
     .min = 0,
     .max = 100,
     .preset = "0",
     .unit = "",
     .help = "What to do."},
    {.name = "seed",
     .type = FIELD_INT,
     .offset = offsetof(struct trouble_params, seed),
     .min = 0,
     .max = 1e9,
     .preset = "0",
     .unit = "",
     .help = "Of the pattern."},
    {.name = "bytes",
     .type = FIELD_INT,
     .offset = offsetof(struct trouble_params, bytes),
     .min = 1,
     .max = 1e9,
     .preset = "4096",
     .unit = "bytes",
     .help = "Of the result."},
    {.name = NULL},
};

static const enum format trouble_formats[] = {FORMAT_RAW, FORMAT_NONE};

static inline uint8_t trouble_byte(int64_t seed, int64_t index) {
    uint64_t mixed = ((uint64_t)seed + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)index;
    mixed *= UINT64_C(0xff51afd7ed558ccd);
    return (uint8_t)(mixed >> 40);
}

static void sleep_ms(int ms) {
    struct timespec length = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    nanosleep(&length, NULL);
}

/* Waits at the gate as a job of many launches does: each of them looks at the cancel word. */
static enum kiln_status trouble_wait(struct task *task, struct trouble_shared *shared) {
    int32_t count;
    const struct mandelbrot_args args = {.width = 1,
                                         .height = 1,
                                         .views = 1,
                                         .view = {{.dx = 1, .dy = -1}},
                                         .max_iter = 1,
                                         .escape_radius = 2,
                                         .fp64 = 1,
                                         .count = &count};
    enum kiln_status status = KILN_OK;
    while (status == KILN_OK && atomic_load(&shared->open) == 0) {
        status = task->backend->launch(task->stream, KERNEL_MANDELBROT, &args);
        sleep_ms(1);
    }
    return status;
}

static enum kiln_status trouble_run(struct task *task) {
    const struct trouble_params *params = task->params;
    struct trouble_shared *shared = (struct trouble_shared *)(uintptr_t)task->data;
    uint32_t tries = shared ? atomic_fetch_add(&shared->tries, 1) : 0;
    enum kiln_status status = KILN_OK;
    task->backend->phase(task->stream, PHASE_KERNEL);
    switch (params->deed) {
    case DEED_GATE:
        status = trouble_wait(task, shared);
        break;
    case DEED_DIE_ONCE:
        if (tries > 0) {
            break;
        }
        /* fall through */
    case DEED_DIE:
        raise(SIGKILL);
        break;
    case DEED_FAULT:
        snprintf(task->detail, sizeof task->detail, "an illegal address was met");
        return KILN_DEVICE_FAULT;
    case DEED_HANG:
        for (;;) {
            sleep_ms(1000);
        }
    case DEED_SHORT:
        if (tries < params->seed) {
            return KILN_NO_MEMORY;
        }
        break;
    case DEED_LIE:
        task->size = task->capacity + 1;
        return KILN_OK;
    default:
        break;
    }
    task->backend->phase(task->stream, PHASE_ENCODE);
    for (int64_t i = 0; i < params->bytes; i++) {
        task->result[i] = trouble_byte(params->seed, i);
    }
    task->size = (uint64_t)params->bytes;
    return status;
}

/* Fills, or fails before its last task has begun. */
static inline enum kiln_status trouble_run_group(struct task *tasks, size_t count) {
    enum kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i < count; i++) {
        const struct trouble_params *params = tasks[i].params;
        status = params->deed == DEED_APART ? KILN_UNSUPPORTED : trouble_run(&tasks[i]);
    }
    return status;
}

/* As large, and done at once. */
static inline bool trouble_alike(const struct job *one, const struct job *other) {
    const struct trouble_params *a = (const void *)one->params, *b = (const void *)other->params;
    return a->bytes == b->bytes && a->deed != DEED_GATE && b->deed != DEED_GATE;
}

static void trouble_check(void *params, const struct input *input, const uint8_t *data,
                          enum format format, const struct limits *limits,
                          struct complaints *complaints) {
    (void)params, (void)input, (void)data, (void)format, (void)limits, (void)complaints;
}

static enum kiln_status trouble_plan(const void *params, const struct input *input,
                                     enum format format, struct plan *plan) {
    (void)input, (void)format;
    plan->result_bytes = (uint64_t)((const struct trouble_params *)params)->bytes;
    plan->cost = 1;
    plan->kernels = 0; /* any device will do */
    return KILN_OK;
}

static const struct job_type trouble_job = {
    .name = "trouble",
    .title = "Trouble",
    .fields = trouble_fields,
    .params_size = sizeof(struct trouble_params),
    .formats = trouble_formats,
    .version = 1,
    .check = trouble_check,
    .plan = trouble_plan,
    .run = trouble_run,
    .alike = trouble_alike,
    .run_group = trouble_run_group,
};

/* ---- this program's registry, instead of registry.c ---- */

extern const struct job_type mandelbrot_job;

const struct job_type *const job_types[] = {&mandelbrot_job, &trouble_job, NULL};

/* ---- the rig ---- */

struct rig {
    struct arena *arena;
    struct dispatch *dispatch;
};

/* One job of a test and its end. */
struct call {
    struct job job;
    bool done;
    int calls; /* of done */
};

static pthread_mutex_t rig_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t rig_changed = PTHREAD_COND_INITIALIZER;

static inline void call_done(struct job *job) {
    struct call *call = job->context;
    pthread_mutex_lock(&rig_lock);
    call->done = true;
    call->calls++;
    pthread_cond_broadcast(&rig_changed);
    pthread_mutex_unlock(&rig_lock);
}

static inline void call_init(struct call *call, enum deed deed, int64_t seed, int64_t bytes) {
    *call = (struct call){.job = {.type = &trouble_job, .format = FORMAT_RAW, .watch_fd = -1}};
    const struct trouble_params params = {.deed = deed, .seed = seed, .bytes = bytes};
    memcpy(call->job.params, &params, sizeof params);
    assert_int_equal(trouble_plan(&params, NULL, FORMAT_RAW, &call->job.plan), KILN_OK);
    call->job.done = call_done;
    call->job.context = call;
}

/* Makes it an array of the Mandelbrot set whose left edge is at `xmin`. */
static inline void call_picture(struct call *call, const char *xmin) {
    struct complaints complaints = {.count = 0};
    struct form form;
    struct job *job = &call->job;
    call_init(call, DEED_FILL, 0, 1);
    memset(job->params, 0, sizeof job->params);
    form_init(&form, mandelbrot_job.fields, job->params, &complaints);
    form_set_text(&form, "width", "64");
    form_set_text(&form, "height", "48");
    form_set_text(&form, "xmin", xmin);
    form_finish(&form);
    const struct limits limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                  UINT64_MAX, UINT64_MAX, UINT64_MAX};
    mandelbrot_job.check(job->params, job->inputs, NULL, FORMAT_NPY, &limits, &complaints);
    assert_int_equal(complaints.count, 0);
    job->type = &mandelbrot_job;
    job->format = FORMAT_NPY;
    assert_int_equal(mandelbrot_job.plan(job->params, job->inputs, FORMAT_NPY, &job->plan),
                     KILN_OK);
}

/* Gives the call an input block with a closed gate. */
static inline struct trouble_shared *call_share(struct rig *rig, struct call *call) {
    assert_int_equal(arena_take(rig->arena, sizeof(struct trouble_shared), &call->job.body),
                     KILN_OK);
    struct trouble_shared *shared = arena_at(rig->arena, call->job.body.offset);
    atomic_store(&shared->open, 0);
    atomic_store(&shared->tries, 0);
    return shared;
}

static inline void call_submit(struct rig *rig, struct call *call) {
    assert_int_equal(dispatch_submit(rig->dispatch, &call->job), KILN_OK);
}

/* Waits for the end; a minute is no measure but the end of patience. */
static inline enum kiln_status call_wait(struct call *call) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    int error = 0;
    pthread_mutex_lock(&rig_lock);
    while (!call->done && error == 0) {
        error = pthread_cond_timedwait(&rig_changed, &rig_lock, &until);
    }
    bool done = call->done;
    pthread_mutex_unlock(&rig_lock);
    assert_true(done);
    assert_int_equal(call->calls, 1);
    return call->job.status;
}

static inline void call_finish(struct rig *rig, struct call *call) {
    arena_give(rig->arena, &call->job.body);
    arena_give(rig->arena, &call->job.result);
}

/* Waits for a good end and compares every byte of the result. */
static inline void call_expect_filled(struct rig *rig, struct call *call) {
    struct trouble_params params;
    assert_int_equal(call_wait(call), KILN_OK);
    memcpy(&params, call->job.params, sizeof params);
    assert_int_equal(call->job.result_size, params.bytes);
    const uint8_t *bytes = arena_at(rig->arena, call->job.result.offset);
    for (int64_t i = 0; i < params.bytes; i++) {
        assert_int_equal(bytes[i], trouble_byte(params.seed, i));
    }
    call_finish(rig, call);
}

/* What dispatch_devices says of one device. */
struct look {
    const char *name;
    int pid, slots, running;
    enum device_state state;
    uint64_t respawns, gathered;
    uint32_t kernels;
    char reason[256];
    bool found;
};

static inline void look_each(const struct device_view *view, void *context) {
    struct look *look = context;
    if (strcmp(view->name, look->name) == 0) {
        look->found = true;
        look->pid = view->pid;
        look->slots = view->slots;
        look->running = view->running;
        look->state = view->state;
        look->respawns = view->respawns;
        look->gathered = view->gathered;
        look->kernels = view->kernels;
        snprintf(look->reason, sizeof look->reason, "%s", view->reason);
    }
}

static inline struct look rig_look(struct rig *rig, const char *device) {
    struct look look = {.name = device};
    dispatch_devices(rig->dispatch, look_each, &look);
    return look;
}

static inline void rig_wait_state(struct rig *rig, const char *device, enum device_state state) {
    for (int i = 0; rig_look(rig, device).state != state; i++) {
        assert_true(i < 60000);
        sleep_ms(1);
    }
}

/* Kills the worker as an operator would, and returns when it is certainly noticed. */
static inline void rig_kill_worker(struct rig *rig) {
    struct look before = rig_look(rig, "cpu:0");
    assert_int_not_equal(before.pid, 0);
    kill(before.pid, SIGKILL);
    for (int i = 0; rig_look(rig, "cpu:0").pid == before.pid; i++) {
        assert_true(i < 60000);
        sleep_ms(1);
    }
}

/* Spins until the job has begun to run in a worker. */
static inline void rig_wait_begun(struct trouble_shared *shared) {
    for (int i = 0; atomic_load(&shared->tries) == 0; i++) {
        assert_true(i < 60000);
        sleep_ms(1);
    }
}

/* With what is the same for every test filled in. */
static inline void rig_open_with(struct rig *rig, struct dispatch_options options,
                                 size_t arena_bytes) {
    assert_int_equal(arena_create(arena_bytes, &rig->arena), KILN_OK);
    options.program = "/proc/self/exe";
    options.devices = "cpu";
    options.threads = 1;
    options.arena = rig->arena;
    assert_int_equal(dispatch_create(&options, &rig->dispatch), KILN_OK);
}

static inline void rig_open(struct rig *rig, int slots, int queue, double deadline_s,
                            size_t arena_bytes) {
    const struct dispatch_options options = {
        .slots = slots, .queue = queue, .deadline_s = deadline_s};
    rig_open_with(rig, options, arena_bytes);
}

/* Ends everything; nothing may be left in the arena. */
static inline void rig_close(struct rig *rig) {
    struct arena_stats stats;
    dispatch_destroy(rig->dispatch);
    arena_stats(rig->arena, &stats);
    assert_int_equal(stats.used, 0);
    assert_int_equal(stats.blocks, 0);
    arena_destroy(rig->arena);
}

/* ---- this program as a worker ---- */

static long option_of(int count, char **arguments, const char *name) {
    for (int i = 3; i + 1 < count; i += 2) {
        if (strcmp(arguments[i], name) == 0) {
            return atol(arguments[i + 1]);
        }
    }
    return -1;
}

/* The exit code when this process is a worker or a probe; -1 when it is the test. */
static int rig_role(int count, char **arguments) {
    if (count >= 2 && strcmp(arguments[1], "probe") == 0) {
        return worker_probe();
    }
    if (count >= 2 && strcmp(arguments[1], "spawner") == 0) {
        return spawner_run();
    }
    if (count < 3 || strcmp(arguments[1], "worker") != 0) {
        return -1;
    }
    const struct worker_options options = {
        .device = arguments[2],
        .job_fd = (int)option_of(count, arguments, "--job-fd"),
        .control_fd = (int)option_of(count, arguments, "--control-fd"),
        .arena_fd = (int)option_of(count, arguments, "--arena-fd"),
        .arena_size = (size_t)option_of(count, arguments, "--arena-size"),
        .slots = (int)option_of(count, arguments, "--slots"),
        .threads = (int)option_of(count, arguments, "--threads"),
    };
    return worker_run(&options);
}

#endif
