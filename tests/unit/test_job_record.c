/*
 * test_job_record.c: jobs from what was sent to their results, without HTTP: by the dispatcher with
 * a real worker (dispatch_rig.h), and by an executor of the test's own, which holds jobs until it
 * is told how they end.
 */
#include "server/jobs/record.h"

#include "dispatch_rig.h"
#include "server/cache/etag.h"
#include "server/jobs/dispatcher.h"
#include "server/jobs/result_reuse.h"

#define MIB     (1u << 20)
#define ARENA   (32 * MIB)
#define HELD    4
#define PICTURE "width=16&height=16&max_iter=50&format=npy"

static const struct limits limits = {UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                     UINT64_MAX, UINT64_MAX, ARENA};

/* ---- an executor that holds what it is given ---- */

struct holding_executor {
    struct executor executor;
    bool closed;
    enum kiln_status refuses; /* what submitting answers */
    struct job *held[HELD];
    size_t count;
    uint8_t ids;
};

static struct holding_executor *holding_of(struct executor *executor) {
    return (struct holding_executor *)(void *)executor;
}

static bool hold_enter(struct executor *executor) {
    pthread_mutex_lock(&rig_lock);
    bool open = !holding_of(executor)->closed;
    pthread_mutex_unlock(&rig_lock);
    return open;
}

static void hold_leave(struct executor *executor) {
    (void)executor;
}

static struct job_id hold_id(struct executor *executor) {
    return (struct job_id){.bytes = {[JOB_ID_SIZE - 1] = ++holding_of(executor)->ids}};
}

static enum kiln_status hold_submit(struct executor *executor, struct job *job) {
    struct holding_executor *holding = holding_of(executor);
    if (holding->refuses != KILN_OK) {
        return holding->refuses;
    }
    pthread_mutex_lock(&rig_lock);
    if (job_id_empty(&job->id)) {
        job->id = hold_id(executor);
    }
    assert_true(holding->count < HELD);
    holding->held[holding->count++] = job;
    pthread_cond_broadcast(&rig_changed);
    pthread_mutex_unlock(&rig_lock);
    return KILN_OK;
}

static enum kiln_status hold_cancel(struct executor *executor, const struct job_id *id) {
    (void)executor, (void)id;
    return KILN_NOT_FOUND;
}

static bool hold_find(struct executor *executor, const struct job_id *id, struct job_view *view) {
    struct holding_executor *holding = holding_of(executor);
    for (size_t i = 0; i < holding->count; i++) {
        if (job_id_equal(&holding->held[i]->id, id)) {
            *view = (struct job_view){.id = *id, .type = holding->held[i]->type->name};
            return true;
        }
    }
    return false;
}

static enum kiln_status hold_list(struct executor *executor, const struct job_filter *filter,
                                  void (*each)(const struct job_view *view, void *context),
                                  void *context, size_t *total) {
    struct holding_executor *holding = holding_of(executor);
    (void)filter;
    for (*total = 0; *total < holding->count; ++*total) {
        const struct job_view view = {.id = holding->held[*total]->id};
        each(&view, context);
    }
    return KILN_OK;
}

static bool hold_knows(struct executor *executor, const char *name) {
    (void)executor;
    return strcmp(name, "cpu:7") == 0;
}

static const struct executor_type holding_type = {
    .enter = hold_enter,
    .leave = hold_leave,
    .id = hold_id,
    .submit = hold_submit,
    .cancel = hold_cancel,
    .find = hold_find,
    .list = hold_list,
    .knows_device = hold_knows,
};

/* ---- records ---- */

struct bench {
    struct arena *arena;
    struct jobs *jobs;
    struct holding_executor holding;
    _Atomic bool draining;
};

static void bench_open(struct bench *bench, struct executor *executor, double deadline_s) {
    const struct jobs_options options = {.arena = bench->arena,
                                         .limits = &limits,
                                         .draining = &bench->draining,
                                         .deadline_s = deadline_s,
                                         .cache_bytes = 4 * MIB};
    assert_int_equal(jobs_create(&options, &bench->jobs), KILN_OK);
    assert_int_equal(jobs_open(bench->jobs, executor, "cpu test"), KILN_OK);
}

/* With the executor that holds. */
static void bench_hold(struct bench *bench, double deadline_s) {
    *bench = (struct bench){.holding = {.executor = {&holding_type}}};
    assert_int_equal(arena_create(ARENA, &bench->arena), KILN_OK);
    bench_open(bench, &bench->holding.executor, deadline_s);
}

/* Nothing may be left in the arena. */
static void bench_close(struct bench *bench) {
    struct arena_stats stats;
    jobs_stop(bench->jobs);
    jobs_destroy(bench->jobs);
    arena_stats(bench->arena, &stats);
    assert_int_equal(stats.used, 0);
    arena_destroy(bench->arena);
}

/* Who waits for a record. */
struct waiting {
    int ended;
};

static void waiting_ended(struct job_record *record) {
    struct waiting *waiting = record->context;
    pthread_mutex_lock(&rig_lock);
    waiting->ended++;
    pthread_cond_broadcast(&rig_changed);
    pthread_mutex_unlock(&rig_lock);
}

/* A minute is no measure but the end of patience. */
static void wait_until(const int *number, int value) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    int error = 0;
    pthread_mutex_lock(&rig_lock);
    while (*number < value && error == 0) {
        error = pthread_cond_timedwait(&rig_changed, &rig_lock, &until);
    }
    assert_int_equal(*number, value);
    pthread_mutex_unlock(&rig_lock);
}

static struct job_order order_of(struct waiting *waiting, const char *query) {
    return (struct job_order){.type = &mandelbrot_job,
                              .query = query,
                              .find = true,
                              .keep = true,
                              .age_ns = UINT64_MAX,
                              .watch_fd = -1,
                              .ended = waiting_ended,
                              .context = waiting};
}

static void run(struct bench *bench, struct job_record *record) {
    assert_true(jobs_enter(bench->jobs));
    job_record_run(record);
    jobs_leave(bench->jobs);
}

/* Makes a record that does not end at once, and runs it. */
static struct job_record *record_run(struct bench *bench, const struct job_order *order) {
    struct job_record *record = job_record_create(bench->jobs, order);
    assert_non_null(record);
    assert_false(job_record_begin(record));
    run(bench, record);
    return record;
}

/* Ends the job that is held longest, with these bytes where it goes well. */
static void held_end(struct bench *bench, enum kiln_status status, const char *bytes) {
    struct holding_executor *holding = &bench->holding;
    assert_true(holding->count > 0);
    struct job *job = holding->held[0];
    memmove(holding->held, holding->held + 1, --holding->count * sizeof holding->held[0]);
    job->status = status;
    if (status == KILN_OK) {
        assert_int_equal(arena_take(bench->arena, strlen(bytes), &job->result), KILN_OK);
        memcpy(arena_at(bench->arena, job->result.offset), bytes, strlen(bytes));
        job->result_size = strlen(bytes);
        strcpy(job->device_name, "cpu:7");
    }
    job->done(job);
}

static void expect_result(const struct job_record *record, const char *bytes) {
    uint64_t size;
    const void *result = job_record_result(record, &size);
    assert_non_null(result);
    assert_int_equal(size, strlen(bytes));
    assert_memory_equal(result, bytes, strlen(bytes));
}

/* ---- by the dispatcher ---- */

static void a_worker_runs_it(void **state) {
    struct bench bench = {.draining = false};
    struct waiting waiting = {0};
    struct dispatcher *dispatcher;
    uint64_t size, again;
    (void)state;
    assert_int_equal(arena_create(ARENA, &bench.arena), KILN_OK);
    const struct dispatch_options options = {.program = "/proc/self/exe",
                                             .devices = "cpu",
                                             .slots = 1,
                                             .threads = 1,
                                             .queue = 4,
                                             .deadline_s = 60,
                                             .arena = bench.arena};
    assert_int_equal(dispatcher_create(&options, &dispatcher), KILN_OK);
    assert_string_equal(dispatcher->kinds, "cpu");
    struct rig rig = {.dispatch = dispatcher->dispatch};
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    bench_open(&bench, &dispatcher->executor, 60);
    struct job_order order = order_of(&waiting, PICTURE);
    struct job_record *first = record_run(&bench, &order);
    wait_until(&waiting.ended, 1);
    assert_int_equal(first->outcome, RECORD_JOB);
    assert_int_equal(first->job.status, KILN_OK);
    assert_int_equal(first->reused, REUSED_MISS);
    assert_string_equal(first->job.device_name, "cpu:0");
    assert_false(job_id_empty(&first->job.id));
    const uint8_t *result = job_record_result(first, &size);
    assert_non_null(result);
    assert_memory_equal(result, "\x93NUMPY", 6);
    assert_true(size > 16 * 16 * sizeof(float));
    /* the same again is there, before it has been looked at by any device */
    struct job_record *second = job_record_create(bench.jobs, &order);
    assert_true(job_record_begin(second));
    assert_int_equal(second->reused, REUSED_HIT);
    assert_string_equal(second->etag, first->etag);
    assert_memory_equal(job_record_result(second, &again), result, size);
    assert_int_equal(again, size);
    job_record_destroy(first);
    job_record_destroy(second);
    dispatcher_close(dispatcher);
    assert_false(jobs_enter(bench.jobs));
    bench_close(&bench);
    dispatcher_destroy(dispatcher);
}

/* ---- by the one that holds ---- */

static void what_is_wrong_is_said_without_an_executor(void **state) {
    struct bench bench;
    struct waiting waiting = {0};
    (void)state;
    bench_hold(&bench, 60);
    struct job_order order = order_of(&waiting, "width=0&device=cpu:3&format=jpeg");
    struct job_record *record = job_record_create(bench.jobs, &order);
    assert_true(job_record_begin(record));
    assert_int_equal(record->outcome, RECORD_FAULT);
    assert_int_equal(record->fault, KILN_INVALID);
    assert_int_equal(record->complaints->count, 3);
    assert_string_equal(record->complaints->rows[0].field, "width");
    assert_string_equal(record->complaints->rows[1].field, "device");
    assert_string_equal(record->complaints->rows[2].field, "format");
    job_record_destroy(record);
    order = order_of(&waiting, "width=%zz");
    record = job_record_create(bench.jobs, &order);
    assert_true(job_record_begin(record));
    assert_int_equal(record->fault, KILN_MALFORMED);
    job_record_destroy(record);
    order = order_of(&waiting, "width=16&height=16");
    order.accept = "text/html";
    record = job_record_create(bench.jobs, &order);
    assert_true(job_record_begin(record));
    assert_int_equal(record->fault, KILN_NOT_ACCEPTABLE);
    job_record_destroy(record);
    assert_int_equal(waiting.ended, 0);
    bench_close(&bench);
}

/* What is sent may go as soon as the record is made. */
static void it_owns_what_was_sent(void **state) {
    struct bench bench;
    struct waiting waiting = {0};
    char query[] = "width=16&height=16&device=cpu:7", accept[] = "application/json";
    char name[] = "somebody";
    (void)state;
    bench_hold(&bench, 60);
    struct job_order order = order_of(&waiting, query);
    order.accept = accept;
    order.holder = (struct holder){{1, 1}, name};
    order.request_id = name;
    struct job_record *record = job_record_create(bench.jobs, &order);
    memset(query, '#', sizeof query - 1);
    memset(accept, '#', sizeof accept - 1);
    memset(name, '#', sizeof name - 1);
    assert_false(job_record_begin(record));
    assert_int_equal(record->job.format, FORMAT_JSON);
    assert_true(record->negotiated);
    assert_string_equal(record->job.device, "cpu:7");
    assert_string_equal(record->job.holder.name, "somebody");
    assert_string_equal(record->job.request_id, "somebody");
    run(&bench, record);
    held_end(&bench, KILN_OK, "{}");
    assert_int_equal(waiting.ended, 1);
    expect_result(record, "{}");
    job_record_destroy(record);
    bench_close(&bench);
}

static void who_has_the_result_is_told(void **state) {
    struct bench bench;
    struct waiting waiting = {0};
    char tag[RESULT_ETAG_MAX];
    (void)state;
    bench_hold(&bench, 60);
    struct job_order order = order_of(&waiting, PICTURE);
    struct job_record *record = job_record_create(bench.jobs, &order);
    assert_false(job_record_begin(record));
    strcpy(tag, record->etag);
    job_record_destroy(record); /* instead of running it */
    order.tags = tag;
    record = job_record_create(bench.jobs, &order);
    assert_true(job_record_begin(record));
    assert_int_equal(record->outcome, RECORD_UNCHANGED);
    assert_int_equal(bench.holding.count, 0);
    job_record_destroy(record);
    bench_close(&bench);
}

static void those_who_ask_at_once_share_a_job(void **state) {
    struct bench bench;
    struct waiting waiting = {0};
    (void)state;
    bench_hold(&bench, 60);
    struct job_order order = order_of(&waiting, PICTURE);
    struct job_record *first = record_run(&bench, &order), *second = record_run(&bench, &order);
    order.find = false; /* wants a run of its own */
    struct job_record *third = record_run(&bench, &order);
    assert_int_equal(bench.holding.count, 2);
    held_end(&bench, KILN_OK, "first");
    assert_int_equal(waiting.ended, 2);
    held_end(&bench, KILN_OK, "third");
    assert_int_equal(waiting.ended, 3);
    expect_result(first, "first");
    expect_result(second, "first");
    expect_result(third, "third");
    assert_int_equal(first->reused, REUSED_MISS);
    assert_int_equal(second->reused, REUSED_SHARED);
    assert_int_equal(third->reused, REUSED_REFUSED);
    job_record_destroy(first);
    job_record_destroy(second);
    job_record_destroy(third);
    bench_close(&bench);
}

/* At a leader's deadline its follower brings the job again. */
static void a_follower_takes_over(void **state) {
    struct bench bench;
    struct waiting waiting = {0};
    (void)state;
    bench_hold(&bench, 60);
    struct job_order order = order_of(&waiting, PICTURE);
    struct job_record *first = record_run(&bench, &order), *second = record_run(&bench, &order);
    held_end(&bench, KILN_DEADLINE, NULL);
    assert_int_equal(waiting.ended, 1);
    assert_int_equal(first->job.status, KILN_DEADLINE);
    assert_int_equal(bench.holding.count, 1);
    assert_ptr_equal(bench.holding.held[0], &second->job);
    held_end(&bench, KILN_OK, "second");
    assert_int_equal(waiting.ended, 2);
    expect_result(second, "second");
    job_record_destroy(first);
    job_record_destroy(second);
    bench_close(&bench);
}

static void a_refusal_ends_it(void **state) {
    struct bench bench;
    struct waiting waiting = {0};
    uint64_t size;
    (void)state;
    bench_hold(&bench, 60);
    bench.holding.refuses = KILN_BUSY;
    struct job_order order = order_of(&waiting, PICTURE);
    struct job_record *record = record_run(&bench, &order);
    assert_int_equal(waiting.ended, 1);
    assert_int_equal(record->outcome, RECORD_JOB);
    assert_int_equal(record->job.status, KILN_BUSY);
    assert_null(job_record_result(record, &size));
    job_record_destroy(record);
    bench_close(&bench);
}

/* A body that is long enough to be read by an offload's thread. */
static void body_make(struct bench *bench, struct job_order *order) {
    static const char text[] = "{\"width\":16,\"height\":16,\"format\":\"npy\"}";
    order->body_size = 2 * OFFLOAD_BODY_MIN;
    assert_int_equal(arena_take(bench->arena, order->body_size + 1, &order->body), KILN_OK);
    char *bytes = arena_at(bench->arena, order->body.offset);
    memset(bytes, ' ', order->body_size);
    memcpy(bytes, text, sizeof text - 1);
    order->media = "application/json";
}

static void count_each(const struct job_view *view, void *context) {
    size_t *count = context;
    (void)view;
    ++*count;
}

static void long_bodies_are_read_elsewhere(void **state) {
    struct bench bench;
    struct waiting waiting = {0};
    struct job_view view;
    size_t seen = 0, total;
    (void)state;
    bench_hold(&bench, 60);
    struct job_order order = order_of(&waiting, NULL);
    body_make(&bench, &order);
    struct job_record *record = record_run(&bench, &order);
    pthread_mutex_lock(&rig_lock);
    while (bench.holding.count == 0) {
        pthread_cond_wait(&rig_changed, &rig_lock);
    }
    pthread_mutex_unlock(&rig_lock);
    /* it is found by the id that it had while it was read */
    assert_true(jobs_find(bench.jobs, &record->preparation.id, &view));
    assert_int_equal(
        jobs_list(bench.jobs, &(struct job_filter){.type = NULL}, count_each, &seen, &total),
        KILN_OK);
    assert_int_equal(seen, 1);
    assert_int_equal(total, 1);
    held_end(&bench, KILN_OK, "long");
    wait_until(&waiting.ended, 1);
    expect_result(record, "long");
    job_record_destroy(record);
    bench_close(&bench);
}

/* Once the executor has closed, what is being read ends, and so does what is drained. */
static void closing_ends_what_is_read(void **state) {
    struct bench bench;
    struct waiting waiting = {0};
    (void)state;
    bench_hold(&bench, 60);
    struct job_order order = order_of(&waiting, NULL);
    body_make(&bench, &order);
    struct job_record *record = job_record_create(bench.jobs, &order);
    assert_false(job_record_begin(record));
    assert_true(jobs_enter(bench.jobs));
    pthread_mutex_lock(&rig_lock);
    bench.holding.closed = true; /* for everybody who enters from here on */
    pthread_mutex_unlock(&rig_lock);
    job_record_run(record);
    jobs_leave(bench.jobs);
    wait_until(&waiting.ended, 1);
    assert_int_equal(record->outcome, RECORD_FAULT);
    assert_int_equal(record->fault, KILN_DRAINING);
    assert_false(job_id_empty(&record->job.id));
    job_record_destroy(record);
    bench_close(&bench);
}

int main(int count, char **arguments) {
    int code = rig_role(count, arguments);
    if (code >= 0) {
        return code;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_runs_it),
        cmocka_unit_test(what_is_wrong_is_said_without_an_executor),
        cmocka_unit_test(it_owns_what_was_sent),
        cmocka_unit_test(who_has_the_result_is_told),
        cmocka_unit_test(those_who_ask_at_once_share_a_job),
        cmocka_unit_test(a_follower_takes_over),
        cmocka_unit_test(a_refusal_ends_it),
        cmocka_unit_test(long_bodies_are_read_elsewhere),
        cmocka_unit_test(closing_ends_what_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
