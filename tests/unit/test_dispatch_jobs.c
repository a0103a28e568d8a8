/*
 * test_dispatch_jobs.c: unfinished jobs: looking at them, cancelling one (dispatch_rig.h).
 */
#include "dispatch_rig.h"

#define MIB   (1u << 20)
#define ARENA (32 * MIB)

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

static struct seen rig_jobs(struct rig *rig) {
    struct seen seen = {.dispatch = rig->dispatch};
    size_t total = 0;
    assert_int_equal(dispatch_jobs(rig->dispatch, seen_each, &seen, &total), KILN_OK);
    assert_int_equal(total, seen.count);
    return seen;
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
        assert_int_equal(seen.views[i].id, calls[i].job.id);
        assert_int_equal(seen.views[i].running, i == 0);
        assert_string_equal(seen.views[i].type, "trouble");
        assert_string_equal(seen.views[i].device, i == 0 ? "cpu:0" : i == 2 ? "cpu" : "");
        assert_int_equal(seen.views[i].attempt, 0);
        assert_true(seen.views[i].progress >= 0 && seen.views[i].progress <= 1);
        assert_true(seen.views[i].cost == 1);
        assert_true(seen.views[i].age_s >= seen.views[i].running_s);
    }
    assert_true(dispatch_job(rig.dispatch, calls[1].job.id, &view));
    assert_int_equal(view.id, calls[1].job.id);
    assert_false(view.running);
    assert_false(dispatch_job(rig.dispatch, calls[2].job.id + 1000, &view));
    for (int i = 0; i < 3; i++) {
        atomic_store(&shared[i]->open, 1);
        call_expect_filled(&rig, &calls[i]);
        assert_false(dispatch_job(rig.dispatch, calls[i].job.id, &view));
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
    assert_int_equal(dispatch_cancel(rig.dispatch, 1u << 30), KILN_NOT_FOUND);
    for (int i = 0; i < 2; i++) {
        call_init(&calls[i], DEED_GATE, i, 100);
        shared[i] = call_share(&rig, &calls[i]);
        call_submit(&rig, &calls[i]);
    }
    rig_wait_begun(shared[0]);
    for (int i = 1; i >= 0; i--) { /* the waiting one first */
        assert_int_equal(dispatch_cancel(rig.dispatch, calls[i].job.id), KILN_OK);
        assert_int_equal(call_wait(&calls[i]), KILN_REVOKED);
        assert_true(strlen(calls[i].job.detail) > 0);
        assert_int_equal(calls[i].job.result.size, 0);
        assert_int_equal(dispatch_cancel(rig.dispatch, calls[i].job.id), KILN_NOT_FOUND);
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
    assert_int_equal(dispatch_cancel(rig.dispatch, call.job.id), KILN_OK);
    assert_int_equal(dispatch_cancel(rig.dispatch, call.job.id), KILN_OK); /* not ended yet */
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
        cmocka_unit_test(a_job_is_cancelled_by_its_number),
        cmocka_unit_test(a_cancelled_job_is_not_retried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
