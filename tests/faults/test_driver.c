/*
 * test_driver.c: each call of the driver fails once, without a GPU.
 *
 *     test_driver PATH/libcuda.so.1 [STRIDE]
 *
 * The real CUDA module runs over the library of tests/faults/driver.c: open, pin, a stream, every
 * kernel's host side, describe, close. For every number of a call there is a child process in which
 * that call fails, once with want of memory and once with a device fault. Wanted: no crash; an
 * error with a reason; after want of memory the same stream does the next job; after a fault it
 * refuses it; nothing is left when all is closed.
 */
#include "compute/worker/worker.h"
#include "kernels/backend.h"
#include "kernels/jacobi.h"
#include "kernels/laplacian.h"
#include "kernels/lombscargle.h"
#include "kernels/mandelbrot.h"
#include "kernels/spectral.h"
#include "tests/faults/driver.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIDE      24
#define CELLS     (SIDE * SIDE)
#define CALLS_MAX 5000
#define OOM       2   /* CUDA_ERROR_OUT_OF_MEMORY */
#define FAULT     719 /* CUDA_ERROR_LAUNCH_FAILED */

static struct fake_driver *fake;
static const struct backend *backend;
static double host[CELLS], result[CELLS];

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

/* The device side of one kernel's job: takes its memory and launches. */
static enum kiln_status kernel_run(struct stream *stream, enum kernel_id id) {
    size_t size = CELLS * sizeof(double);
    void *b = (void *)(uintptr_t)backend->upload(stream, host, size);
    void *x = b != NULL ? backend->result(stream, result, size) : NULL;
    if (x == NULL) {
        return KILN_NO_MEMORY; /* or a fault, which every later call repeats */
    }
    backend->phase(stream, PHASE_KERNEL);
    struct laplacian_args laplacian = {SIDE, SIDE, 1, 1, b, x};
    struct jacobi_args jacobi = {SIDE, SIDE, 1, 1, 30, 0, b, NULL, x, NULL};
    struct spectral_args spectral = {SIDE, SIDE, 1, 1, 1000, 1, b, x};
    struct mandelbrot_args mandelbrot = {SIDE, SIDE, 1, {{-2, 1, 0.1, -0.1}}, 50, 2, 1, 1, NULL, x};
    struct lombscargle_args lombscargle = {
        .n = 10, .t = b, .y = b, .w = b, .yy = 1, .nf = 50, .f0 = 0.1, .df = 0.01, .power = x};
    const void *const arguments[KERNEL_COUNT] = {
        [KERNEL_LAPLACIAN] = &laplacian,     [KERNEL_JACOBI] = &jacobi,
        [KERNEL_SPECTRAL] = &spectral,       [KERNEL_MANDELBROT] = &mandelbrot,
        [KERNEL_LOMBSCARGLE] = &lombscargle,
    };
    enum kiln_status status = backend->launch(stream, id, arguments[id]);
    backend->phase(stream, PHASE_DOWNLOAD);
    return status != KILN_OK ? status : backend->download(stream, result, x, size);
}

static enum kiln_status job_run(struct stream *stream, enum kernel_id id) {
    struct timing timing = {0};
    enum kiln_status status = backend->begin(stream, NULL);
    if (status == KILN_OK) {
        status = backend->phase(stream, PHASE_UPLOAD);
    }
    if (status == KILN_OK) {
        status = kernel_run(stream, id);
    }
    if (status == KILN_OK) {
        status = backend->wait(stream);
    }
    enum kiln_status finished = backend->finish(stream, &timing);
    return status != KILN_OK ? status : finished;
}

/* A failed job, and the one after it. */
static void failure_check(struct stream *stream, enum kernel_id id, enum kiln_status status) {
    EXPECT(status == KILN_NO_MEMORY || status == KILN_DEVICE_FAULT);
    EXPECT(fake->failed != NULL);
    EXPECT(backend->error(stream)[0] != '\0');
    status = job_run(stream, id);
    EXPECT(status == KILN_OK || (status == KILN_DEVICE_FAULT && fake->code == FAULT));
}

static void stream_use(struct stream *stream) {
    static const enum kernel_id ids[] = {KERNEL_LAPLACIAN, KERNEL_MANDELBROT, KERNEL_JACOBI,
                                         KERNEL_SPECTRAL, KERNEL_LOMBSCARGLE};
    for (size_t i = 0; i < 2 * sizeof ids / sizeof ids[0]; i++) {
        enum kernel_id id = ids[i % (sizeof ids / sizeof ids[0])];
        enum kiln_status status = job_run(stream, id);
        if (status != KILN_OK) {
            failure_check(stream, id, status);
            return;
        }
    }
}

/* Calls about memory that a job makes which takes `count` pieces of a chunk's size. */
static long pieces_take(struct stream *stream, int count) {
    struct timing timing = {0};
    long before = fake->memory;
    EXPECT(backend->begin(stream, NULL) == KILN_OK);
    for (int i = 0; i < count; i++) {
        EXPECT(backend->reserve(stream, (size_t)64 << 20) != NULL);
        EXPECT(backend->host(stream, (size_t)16 << 20) != NULL);
    }
    EXPECT(backend->finish(stream, &timing) == KILN_OK);
    return fake->memory - before;
}

/* Other streams' kernels wait for every call that frees memory. So a job that is like one before it
   makes none, not even in its begin; the chunks are joined when no stream has a job. */
static void memory_check(struct device *device) {
    struct stream *one = NULL, *other = NULL;
    EXPECT(backend->stream_create(device, &one) == KILN_OK);
    EXPECT(backend->stream_create(device, &other) == KILN_OK);
    EXPECT(pieces_take(one, 3) > 0); /* it grows */
    for (int i = 3; i > 0; i--) {
        EXPECT(backend->rest(one, false));
        EXPECT(pieces_take(one, i) == 0);
    }
    long before = fake->memory;
    EXPECT(backend->begin(other, NULL) == KILN_OK);
    EXPECT(backend->rest(one, true)); /* not now: later */
    EXPECT(fake->memory == before);
    struct timing timing = {0};
    EXPECT(backend->finish(other, &timing) == KILN_OK);
    EXPECT(!backend->rest(one, true));
    EXPECT(fake->memory > before);
    EXPECT(pieces_take(one, 3) == 0);
    EXPECT(!backend->rest(one, false));
    backend->stream_destroy(other);
    backend->stream_destroy(one);
}

static void device_use(struct device *device) {
    static char buffer[65536];
    struct stream *stream = NULL;
    struct text text;
    enum kiln_status status = backend->pin(device, host, sizeof host);
    EXPECT(status == KILN_OK || fake->failed != NULL);
    status = backend->stream_create(device, &stream);
    EXPECT((status == KILN_OK) == (stream != NULL));
    EXPECT(status == KILN_OK || fake->failed != NULL);
    if (stream != NULL) {
        stream_use(stream);
    }
    text_init(&text, buffer, sizeof buffer);
    status = backend->describe(device, &text);
    EXPECT(status == KILN_OK || fake->failed != NULL);
    backend->stream_destroy(stream);
}

/* A child's whole life. Exit code 0: as it should be. */
static void child_run(long fail_at, int code, struct fake_driver *told) {
    char why[512] = "";
    struct device *device = NULL;
    fake->fail_at = fail_at;
    fake->code = code;
    enum kiln_status status = backend->open(0, NULL, &device, why, sizeof why);
    EXPECT((status == KILN_OK) == (device != NULL));
    EXPECT(status == KILN_OK || (fake->failed != NULL && why[0] != '\0'));
    if (device != NULL) {
        device_use(device);
    }
    if (device != NULL && fail_at == 0) {
        long calls = fake->calls;
        memory_check(device);
        fake->calls = calls; /* none of these is to fail */
    }
    backend->close(device);
    *told = *fake;
    if (fake->live != 0) {
        fprintf(stderr, "%ld objects are left\n", fake->live);
        _exit(1);
    }
    _exit(0);
}

/* True if all was as it should be; `told` is what the library counted. */
static bool try(long fail_at, int code, struct fake_driver *told) {
    int status = 0;
    memset(told, 0, sizeof *told);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        child_run(fail_at, code, told);
    }
    bool good = waitpid(child, &status, 0) == child && status == 0;
    if (!good) {
        fprintf(stderr, "call %ld (%s) answers %d: status %x\n", fail_at,
                told->failed != NULL ? told->failed : "?", code, (unsigned)status);
    }
    return good;
}

int main(int count, char **arguments) {
    char why[256] = "";
    int index = 0, failures = 0;
    long stride = count > 2 ? strtol(arguments[2], NULL, 10) : 1, tried = 0;
    void *library = count > 1 ? dlopen(arguments[1], RTLD_NOW) : NULL;
    fake = library != NULL ? dlsym(library, "fake_driver") : NULL;
    backend = fake != NULL ? backend_find("cuda:0", &index, why, sizeof why) : NULL;
    struct fake_driver *told =
        mmap(NULL, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (backend == NULL || told == MAP_FAILED || stride < 1) {
        fprintf(stderr, "the library or the module cannot be loaded: %s\n", why);
        return 1;
    }
    failures += !try(0, 0, told);
    long calls = told->calls;
    for (long at = 1; at <= calls && failures < 20; at += stride) {
        failures += !try(at, OOM, told);
        failures += !try(at, FAULT, told);
        tried += 2;
    }
    printf("acceptance: each malloc and driver call failed once | %ld calls of the driver, %ld "
           "failures tried, %d not borne | no crash, next request fine | %s\n",
           calls, tried, failures, failures == 0 ? "yes" : "NO");
    return failures > 0 || calls < 100;
}
