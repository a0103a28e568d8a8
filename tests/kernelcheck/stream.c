/*
 * stream.c: checks of what the contract promises of a stream besides its kernels: scratch that is
 * aligned, separate and there again after begin; timing that is added; cancelling; progress; two
 * streams.
 */
#include "kernels/jacobi.h"
#include "kernels/laplacian.h"
#include "tests/kernelcheck/check.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

static void scratch_case(struct check *check, size_t size) {
    const struct backend *backend = check->backend;
    char *pieces[8];
    check_begin(check, "8 pieces of %zu bytes of device and host scratch", size);
    for (int i = 0; i < 8; i++) {
        pieces[i] = (i & 1 ? backend->host : backend->reserve)(check->stream, size);
        if (pieces[i] == NULL || (uintptr_t)pieces[i] % 256 != 0) {
            check_fail(check, "piece %d is at %p", i, (void *)pieces[i]);
            break;
        }
        if (i & 1) {
            memset(pieces[i], i, size);
        }
        for (int k = i & 1; k < i; k += 2) {
            uintptr_t a = (uintptr_t)pieces[i], b = (uintptr_t)pieces[k];
            if (a < b + size && b < a + size) {
                check_fail(check, "pieces %d and %d overlap", k, i);
            }
        }
    }
    check_end(check);
}

static void run_scratch(struct check *check) {
    static const size_t sizes[] = {1, 257, 65536, 3000000, 100, 9000000, 3000000, 0};
    check_group(check, "scratch");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        scratch_case(check, sizes[i]);
    }
    check_begin(check, "more bytes than there can be");
    if (check->backend->reserve(check->stream, SIZE_MAX / 2 + 1) != NULL ||
        check->backend->host(check->stream, SIZE_MAX - 64) != NULL) {
        check_fail(check, "an impossible size was given");
    }
    check_end(check);
    scratch_case(check, 1000);
    check_group_end(check);
}

/* A laplacian of a ramp on a stream; false unless it is what it should be. */
static bool laplacian_right(const struct backend *backend, struct stream *stream) {
    enum { SIDE = 64 };
    static const int32_t zero[SIDE * SIDE];
    int32_t result[SIDE * SIDE], x[SIDE * SIDE];
    struct laplacian_args args = {SIDE, SIDE, 1, 0, NULL, NULL};
    for (int i = 0; i < SIDE * SIDE; i++) {
        x[i] = i;
    }
    if (backend->begin(stream, NULL) != KILN_OK ||
        backend->phase(stream, PHASE_UPLOAD) != KILN_OK) {
        return false;
    }
    args.x = backend->upload(stream, x, sizeof x);
    args.b = backend->result(stream, result, sizeof result);
    if (args.x == NULL || args.b == NULL || backend->phase(stream, PHASE_KERNEL) != KILN_OK ||
        backend->launch(stream, KERNEL_LAPLACIAN, &args) != KILN_OK ||
        backend->download(stream, result, args.b, sizeof result) != KILN_OK ||
        backend->wait(stream) != KILN_OK) {
        return false;
    }
    struct timing timing = {.kernel = 1};
    if (backend->finish(stream, &timing) != KILN_OK || !(timing.kernel > 1)) {
        return false;
    }
    for (int i = 1; i < SIDE - 1; i++) {
        if (memcmp(result + i * SIDE + 1, zero, (SIDE - 2) * sizeof *result) != 0) {
            return false;
        }
    }
    return result[0] == 1 + SIDE;
}

static void *cancel_later(void *argument) {
    struct timespec pause = {0, 30000000};
    nanosleep(&pause, NULL);
    atomic_store((_Atomic uint32_t *)argument, 1);
    return NULL;
}

/* Sweeps for hours unless cancelled. */
static void cancel_case(struct check *check, int width, int height, bool before) {
    const struct backend *backend = check->backend;
    struct control control = {.cancel = before};
    pthread_t thread;
    size_t size = (size_t)width * (size_t)height * sizeof(float);
    check_begin(check, "jacobi %dx%d, cancelled %s", width, height,
                before ? "before" : "while running");
    float *b = check_alloc(check, size);
    b[0] = 1;
    struct jacobi_args args = {width, height, 1, 0, (int64_t)1 << 40, 0, NULL, NULL, NULL, NULL};
    enum kiln_status status = backend->begin(check->stream, &control);
    bool started = !before && pthread_create(&thread, NULL, cancel_later, &control.cancel) == 0;
    if (status == KILN_OK && (before || started)) {
        backend->phase(check->stream, PHASE_KERNEL);
        args.b = check_input(check, b, size);
        args.x = backend->reserve(check->stream, size);
        status =
            args.x != NULL ? backend->launch(check->stream, KERNEL_JACOBI, &args) : KILN_NO_MEMORY;
        if (status == KILN_OK) {
            status = backend->wait(check->stream);
        }
    }
    if (status != KILN_CANCELLED) {
        check_fail(check, "status %d instead of cancelled", (int)status);
    }
    if (started) {
        pthread_join(thread, NULL);
    }
    check_end(check);
}

static void run_cancel(struct check *check) {
    check_group(check, "cancelling");
    for (int before = 0; before <= 1; before++) {
        cancel_case(check, 64, 64, before);
        cancel_case(check, 700, 500, before);
    }
    check_begin(check, "a job after a cancelled one");
    if (!laplacian_right(check->backend, check->stream)) {
        check_fail(check, "the stream does not work any more");
    }
    check_end(check);
    check_group_end(check);
}

/* Watches a run from beside: its progress must rise `steps` times and never fall; then it is
   cancelled. A minute without is the end of patience. */
struct observer {
    struct control control;
    int steps, risen;
    bool fell;
};

static void *observer_main(void *argument) {
    struct observer *observer = argument;
    uint32_t last = 0;
    for (int i = 0; i < 60000 && observer->risen < observer->steps; i++) {
        uint32_t now = atomic_load(&observer->control.progress);
        observer->fell = observer->fell || now < last || now > CONTROL_FULL;
        observer->risen += now > last;
        last = now;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    atomic_store(&observer->control.cancel, 1);
    return NULL;
}

/* One launch of jacobi between begin and finish. */
static enum kiln_status jacobi_once(struct check *check, struct control *control, int width,
                                    int height, int64_t iterations) {
    const struct backend *backend = check->backend;
    size_t size = (size_t)width * (size_t)height * sizeof(float);
    float *b = check_alloc(check, size);
    struct jacobi_args args = {width, height, 1, 0, iterations, 0, NULL, NULL, NULL, NULL};
    struct timing timing = {0};
    b[0] = 1;
    enum kiln_status status = backend->begin(check->stream, control);
    if (status != KILN_OK) {
        return status;
    }
    if (control != NULL && atomic_load(&control->progress) != 0) {
        check_fail(check, "progress is not 0 after begin");
    }
    backend->phase(check->stream, PHASE_KERNEL);
    args.b = check_input(check, b, size);
    args.x = backend->reserve(check->stream, size);
    status = args.x != NULL ? backend->launch(check->stream, KERNEL_JACOBI, &args) : KILN_NO_MEMORY;
    if (status == KILN_OK) {
        status = backend->wait(check->stream);
    }
    enum kiln_status end = backend->finish(check->stream, &timing);
    return status == KILN_OK ? end : status;
}

/* Sweeps for very long, but with steps of progress that come soon. */
static void observed_case(struct check *check, int width, int height, int64_t iterations) {
    struct observer observer = {.steps = 3};
    pthread_t thread;
    check_begin(check, "jacobi %dx%d, %lld sweeps, observed", width, height, (long long)iterations);
    if (pthread_create(&thread, NULL, observer_main, &observer) != 0) {
        check_fail(check, "no thread");
    } else {
        enum kiln_status status = jacobi_once(check, &observer.control, width, height, iterations);
        pthread_join(thread, NULL);
        if (status != KILN_CANCELLED) {
            check_fail(check, "status %d instead of cancelled", (int)status);
        }
        if (observer.risen < observer.steps || observer.fell) {
            check_fail(check, "progress rose %d times%s", observer.risen,
                       observer.fell ? " and fell" : "");
        }
        if (atomic_load(&observer.control.progress) >= CONTROL_FULL) {
            check_fail(check, "a cancelled job has full progress");
        }
    }
    check_end(check);
}

static void full_case(struct check *check, int width, int height, int64_t iterations) {
    struct control control = {0};
    check_begin(check, "jacobi %dx%d, %lld sweeps, to the end", width, height,
                (long long)iterations);
    enum kiln_status status = jacobi_once(check, &control, width, height, iterations);
    if (status != KILN_OK || atomic_load(&control.progress) != CONTROL_FULL) {
        check_fail(check, "status %d, progress %u of %u", (int)status,
                   atomic_load(&control.progress), CONTROL_FULL);
    }
    check_end(check);
}

static void run_progress(struct check *check) {
    check_group(check, "progress");
    observed_case(check, 64, 64, (int64_t)1 << 34);
    observed_case(check, 700, 500, (int64_t)1 << 28);
    full_case(check, 64, 64, 5000);
    full_case(check, 700, 500, 100);
    full_case(check, 9, 7, 1);
    full_case(check, 9, 7, 0);
    check_group_end(check);
}

struct neighbour {
    const struct backend *backend;
    struct stream *stream;
    int wrong;
};

static void *neighbour_main(void *argument) {
    struct neighbour *neighbour = argument;
    for (int i = 0; i < 300; i++) {
        neighbour->wrong += !laplacian_right(neighbour->backend, neighbour->stream);
    }
    return NULL;
}

/* Streams of one device on threads of their own. */
static void run_streams(struct check *check) {
    enum { STREAMS = 4 };
    struct neighbour neighbours[STREAMS] = {{0}};
    pthread_t threads[STREAMS];
    int count = 0;
    check_group(check, "several streams");
    check_begin(check, "%d streams, 300 jobs each", STREAMS);
    for (; count < STREAMS; count++) {
        neighbours[count].backend = check->backend;
        if (check->backend->stream_create(check->device, &neighbours[count].stream) != KILN_OK) {
            break;
        }
        if (pthread_create(&threads[count], NULL, neighbour_main, &neighbours[count]) != 0) {
            check->backend->stream_destroy(neighbours[count].stream);
            break;
        }
    }
    if (count < STREAMS) {
        check_fail(check, "only %d streams could be made", count);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        check->backend->stream_destroy(neighbours[i].stream);
        if (neighbours[i].wrong) {
            check_fail(check, "stream %d: %d wrong answers", i, neighbours[i].wrong);
        }
    }
    check_end(check);
    check_group_end(check);
}

/* The description is one JSON object that names the device; its syntax is the worker's test. */
static void run_describe(struct check *check) {
    static char buffer[65536];
    struct text json;
    check_group(check, "description");
    check_begin(check, "describe");
    text_init(&json, buffer, sizeof buffer);
    if (check->backend->describe(check->device, &json) != KILN_OK || json.full || json.size < 2 ||
        buffer[0] != '{' || buffer[json.size - 1] != '}' || strstr(buffer, "\"name\"") == NULL ||
        strstr(buffer, "\"memory\"") == NULL || strstr(buffer, "\"attributes\"") == NULL) {
        check_fail(check, "the description is \"%.200s\"", buffer);
    }
    check_end(check);
    check_group_end(check);
}

static void run(struct check *check) {
    run_scratch(check);
    run_cancel(check);
    run_progress(check);
    run_streams(check);
    run_describe(check);
}

const struct kernel_check stream_check = {.name = "stream", .run = run};
