/*
 * test_dispatch_jobs.c: unfinished jobs: looking at them, cancelling one (dispatch_rig.h).
 */
#include "dispatch_rig.h"

#define MIB   (1u << 20)
#define ARENA (32 * MIB)

/* A version 7 id that nobody was given. */
static const struct job_id stranger = {
    {1, 2, 3, 4, 5, 6, 0x70, 8, 0x80, 10, 11, 12, 13, 14, 15, 16}};

struct seen {
    struct job_view views[8];
    size_t count;
    struct dispatch *dispatch;
};

static void seen_each(const struct job_view *view, void *context) {
    struct seen *seen = context;
    struct dispatch_stats stats;
    dispatch_stats(seen->dispatch, &stats); /* takes the lock: it must be free */
    assert_true(seen->count < 8);
    seen->views[seen->count++] = *view;
}

static struct seen rig_jobs_by(struct rig *rig, struct job_filter filter) {
    struct seen seen = {.dispatch = rig->dispatch};
    size_t total = 0;
    assert_int_equal(dispatch_jobs(rig->dispatch, &filter, seen_each, &seen, &total), KILN_OK);
    assert_int_equal(total, seen.count);
    return seen;
}

static struct seen rig_jobs(struct rig *rig) {
    return rig_jobs_by(rig, (struct job_filter){.type = NULL});
}

/* Another request, "shared" of owner 9, waits for the job that "c" has brought. */
static bool shared_with(const struct job *job, const char *request_id, uint32_t owner) {
    return strcmp(job->request_id, "c") == 0 && strcmp(request_id, "shared") == 0 &&
           (owner == 0 || owner == 9);
}

/* How many a filter lets through, and which is the first. */
static void expect_jobs(struct rig *rig, struct job_filter filter, size_t count,
                        const struct call *first) {
    struct seen seen = rig_jobs_by(rig, filter);
    assert_int_equal(seen.count, count);
    assert_true(count == 0 || job_id_equal(&seen.views[0].id, &first->job.id));
}

static void jobs_are_found_by_what_they_are(void **state) {
    struct rig rig;
    struct call calls[3];
    struct trouble_shared *shared[3];
    (void)state;
    rig_open(&rig, 1, 4, 60, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    for (int i = 0; i < 3; i++) {
        call_init(&calls[i], DEED_GATE, i, 100);
        shared[i] = call_share(&rig, &calls[i]);
        calls[i].job.owner = (uint32_t)i + 1;
        calls[i].job.request_id[0] = (char)('a' + i);
        calls[i].job.shared = shared_with;
        call_submit(&rig, &calls[i]);
    }
    rig_wait_begun(shared[0]);
    const struct job_type *type = calls[0].job.type;
    expect_jobs(&rig, (struct job_filter){.state = JOBS_RUNNING}, 1, &calls[0]);
    expect_jobs(&rig, (struct job_filter){.state = JOBS_QUEUED}, 2, &calls[1]);
    expect_jobs(&rig, (struct job_filter){.type = type}, 3, &calls[0]);
    expect_jobs(&rig, (struct job_filter){.type = type, .state = JOBS_QUEUED}, 2, &calls[1]);
    expect_jobs(&rig,
                (struct job_filter){.type = job_types[0] == type ? job_types[1] : job_types[0]}, 0,
                NULL);
    expect_jobs(&rig, (struct job_filter){.request_id = "b"}, 1, &calls[1]);
    expect_jobs(&rig, (struct job_filter){.request_id = "b", .owner = 2}, 1, &calls[1]);
    expect_jobs(&rig, (struct job_filter){.request_id = "b", .owner = 3}, 0, NULL);
    expect_jobs(&rig, (struct job_filter){.request_id = "b", .state = JOBS_RUNNING}, 0, NULL);
    expect_jobs(&rig, (struct job_filter){.request_id = "shared"}, 1, &calls[2]);
    expect_jobs(&rig, (struct job_filter){.request_id = "shared", .owner = 9}, 1, &calls[2]);
    expect_jobs(&rig, (struct job_filter){.request_id = "shared", .owner = 3}, 0, NULL);
    expect_jobs(&rig, (struct job_filter){.request_id = ""}, 0, NULL);
    for (int i = 0; i < 3; i++) {
        atomic_store(&shared[i]->open, 1);
        call_expect_filled(&rig, &calls[i]);
    }
    rig_close(&rig);
}

static void jobs_are_shown_until_they_end(void **state) {
    struct rig rig;
    struct call calls[3];
    struct trouble_shared *shared[3];
    struct job_view view;
    (void)state;
    rig_open(&rig, 1, 4, 60, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    assert_int_equal(rig_jobs(&rig).count, 0);
    for (int i = 0; i < 3; i++) {
        call_init(&calls[i], DEED_GATE, i, 100);
        shared[i] = call_share(&rig, &calls[i]);
        snprintf(calls[i].job.device, sizeof calls[i].job.device, "%s", i == 2 ? "cpu" : "");
        call_submit(&rig, &calls[i]);
    }
    rig_wait_begun(shared[0]);
    struct seen seen = rig_jobs(&rig);
    assert_int_equal(seen.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(job_id_equal(&seen.views[i].id, &calls[i].job.id));
        assert_int_equal(seen.views[i].running, i == 0);
        assert_string_equal(seen.views[i].type, "trouble");
        assert_string_equal(seen.views[i].device, i == 0 ? "cpu:0" : i == 2 ? "cpu" : "");
        assert_int_equal(seen.views[i].attempt, 0);
        assert_true(seen.views[i].progress >= 0 && seen.views[i].progress <= 1);
        assert_true(seen.views[i].cost == 1);
        assert_true(seen.views[i].age_s >= seen.views[i].running_s);
    }
    assert_true(dispatch_job(rig.dispatch, &calls[1].job.id, &view));
    assert_true(job_id_equal(&view.id, &calls[1].job.id));
    assert_false(view.running);
    assert_false(dispatch_job(rig.dispatch, &stranger, &view));
    for (int i = 0; i < 3; i++) {
        atomic_store(&shared[i]->open, 1);
        call_expect_filled(&rig, &calls[i]);
        assert_false(dispatch_job(rig.dispatch, &calls[i].job.id, &view));
    }
    assert_int_equal(rig_jobs(&rig).count, 0);
    rig_close(&rig);
}

static void a_job_is_cancelled_by_its_number(void **state) {
    struct rig rig;
    struct call calls[2], after;
    struct trouble_shared *shared[2];
    struct dispatch_stats stats;
    (void)state;
    rig_open(&rig, 1, 4, 60, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    assert_int_equal(dispatch_cancel(rig.dispatch, &stranger), KILN_NOT_FOUND);
    for (int i = 0; i < 2; i++) {
        call_init(&calls[i], DEED_GATE, i, 100);
        shared[i] = call_share(&rig, &calls[i]);
        call_submit(&rig, &calls[i]);
    }
    rig_wait_begun(shared[0]);
    for (int i = 1; i >= 0; i--) { /* the waiting one first */
        assert_int_equal(dispatch_cancel(rig.dispatch, &calls[i].job.id), KILN_OK);
        assert_int_equal(call_wait(&calls[i]), KILN_REVOKED);
        assert_true(strlen(calls[i].job.detail) > 0);
        assert_int_equal(calls[i].job.result.size, 0);
        assert_int_equal(dispatch_cancel(rig.dispatch, &calls[i].job.id), KILN_NOT_FOUND);
        call_finish(&rig, &calls[i]);
    }
    dispatch_stats(rig.dispatch, &stats);
    assert_int_equal(stats.cancelled, 2);
    assert_int_equal(stats.failed, 0);
    call_init(&after, DEED_FILL, 5, 100);
    call_submit(&rig, &after);
    call_expect_filled(&rig, &after);
    rig_close(&rig);
}

/* Its worker is killed while it is being cancelled: it is not run again. */
static void a_cancelled_job_is_not_retried(void **state) {
    struct rig rig;
    struct call call;
    (void)state;
    rig_open(&rig, 1, 4, 60, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    call_init(&call, DEED_HANG, 1, 100);
    struct trouble_shared *shared = call_share(&rig, &call);
    call_submit(&rig, &call);
    rig_wait_begun(shared);
    assert_int_equal(dispatch_cancel(rig.dispatch, &call.job.id), KILN_OK);
    assert_int_equal(dispatch_cancel(rig.dispatch, &call.job.id), KILN_OK); /* not ended yet */
    rig_kill_worker(&rig);
    assert_int_equal(call_wait(&call), KILN_REVOKED);
    assert_int_equal(atomic_load(&shared->tries), 1);
    call_finish(&rig, &call);
    rig_close(&rig);
}

int main(int count, char **arguments) {
    int role = rig_role(count, arguments);
    if (role >= 0) {
        return role;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_shown_until_they_end),
        cmocka_unit_test(jobs_are_found_by_what_they_are),
        cmocka_unit_test(a_job_is_cancelled_by_its_number),
        cmocka_unit_test(a_cancelled_job_is_not_retried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
