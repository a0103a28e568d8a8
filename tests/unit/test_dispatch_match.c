/*
 * test_dispatch_match.c: jobs and devices that lack kernels.
 *
 * Beside the CPU, which has every kernel but `png`, stands a module (tests/devices/standin.c) whose
 * device has `mandelbrot` and `laplacian` alone.
 */
#include "dispatch_rig.h"

#define ARENA (16u << 20)
#define TWO   (KERNEL_BIT(MANDELBROT) | KERNEL_BIT(LAPLACIAN))

static void open_with(struct rig *rig, const char *devices) {
    const struct dispatch_options options = {.program = "/proc/self/exe",
                                             .devices = devices,
                                             .slots = 2,
                                             .threads = 1,
                                             .queue = 16,
                                             .deadline_s = 60};
    struct dispatch_options all = options;
    assert_int_equal(arena_create(ARENA, &rig->arena), KILN_OK);
    all.arena = rig->arena;
    assert_int_equal(dispatch_create(&all, &rig->dispatch), KILN_OK);
}

static void call_make(struct call *call, uint32_t kernels, const char *device) {
    call_init(call, DEED_FILL, 1, 100);
    call->job.plan.kernels = kernels;
    snprintf(call->job.device, sizeof call->job.device, "%s", device);
}

static void expect_refused(struct rig *rig, uint32_t kernels, const char *device,
                           const char *words) {
    struct call call;
    call_make(&call, kernels, device);
    assert_int_equal(dispatch_submit(rig->dispatch, &call.job), KILN_INCAPABLE);
    assert_string_equal(call.job.detail, words);
}

static void expect_run(struct rig *rig, uint32_t kernels, const char *device, const char *by) {
    struct call call;
    call_make(&call, kernels, device);
    call_submit(rig, &call);
    assert_int_equal(call_wait(&call), KILN_OK);
    assert_string_equal(call.job.device_name, by);
    call_finish(rig, &call);
}

static void devices_tell_their_kernels(void **state) {
    struct rig rig;
    (void)state;
    open_with(&rig, "cpu");
    /* known from the probe, used or not */
    assert_int_equal(rig_look(&rig, "cpu:0").kernels, KERNELS_ALL & ~KERNEL_BIT(PNG));
    assert_int_equal(rig_look(&rig, "cuda:0").kernels, TWO);
    rig_close(&rig);
}

static void a_job_goes_where_its_kernels_are(void **state) {
    struct rig rig;
    struct call calls[12];
    (void)state;
    open_with(&rig, "cuda:0,cpu");
    rig_wait_state(&rig, "cuda:0", DEVICE_READY);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    assert_int_equal(rig_look(&rig, "cuda:0").kernels, TWO);
    expect_run(&rig, TWO, "", "cuda:0"); /* the preferred one */
    expect_run(&rig, TWO, "cpu", "cpu:0");
    expect_run(&rig, KERNEL_BIT(JACOBI), "", "cpu:0");
    /* also when more wait than it has slots for, and the other has none to do */
    for (int i = 0; i < 12; i++) {
        call_make(&calls[i], TWO | KERNEL_BIT(COLORIZE), "");
        call_submit(&rig, &calls[i]);
    }
    for (int i = 0; i < 12; i++) {
        assert_int_equal(call_wait(&calls[i]), KILN_OK);
        assert_string_equal(calls[i].job.device_name, "cpu:0");
        call_finish(&rig, &calls[i]);
    }
    /* a kind's own plan, on the stand-in */
    call_picture(&calls[0], "-2");
    snprintf(calls[0].job.device, sizeof calls[0].job.device, "cuda");
    call_submit(&rig, &calls[0]);
    assert_int_equal(call_wait(&calls[0]), KILN_OK);
    call_finish(&rig, &calls[0]);
    rig_close(&rig);
}

static void a_kernel_that_lacks_is_refused_at_once(void **state) {
    struct rig rig;
    (void)state;
    open_with(&rig, "cuda:0,cpu"); /* nothing is ready yet, and need not be */
    expect_refused(&rig, KERNEL_BIT(JACOBI), "cuda:0",
                   "cuda:0 lacks the kernel jacobi that this job needs; it can run on cpu:0");
    expect_refused(&rig, KERNEL_BIT(JACOBI) | KERNEL_BIT(SPECTRAL), "cuda",
                   "cuda:0 lacks the kernels jacobi, spectral that this job needs; it can run on "
                   "cpu:0");
    expect_refused(&rig, KERNEL_BIT(PNG), "",
                   "cuda:0 lacks the kernel png that this job needs; no device in use can run it");
    rig_close(&rig);
    open_with(&rig, "cuda:0");
    expect_refused(&rig, KERNEL_BIT(JACOBI), "",
                   "cuda:0 lacks the kernel jacobi that this job needs; no device in use can run "
                   "it");
    expect_refused(&rig, KERNEL_BIT(JACOBI), "cpu:0",
                   "cpu:0 is not in use (--device); no device in use can run it");
    expect_refused(&rig, TWO, "cpu:0", "cpu:0 is not in use (--device); it can run on cuda:0");
    rig_close(&rig);
}

/* Without the front's own canary, which needs a kernel that lacks: its heartbeat and its warm-up
   vouch for it. */
static void a_device_of_two_kernels_serves(void **state) {
    struct rig rig;
    char why[256];
    (void)state;
    open_with(&rig, "cuda:0");
    rig_wait_state(&rig, "cuda:0", DEVICE_READY);
    assert_true(dispatch_ready(rig.dispatch, why, sizeof why));
    expect_run(&rig, TWO, "", "cuda:0");
    assert_int_equal(rig_look(&rig, "cuda:0").respawns, 0);
    rig_close(&rig);
}

/* What is broken may come back: another answer than what never will. */
static void a_broken_device_is_no_refusal_for_good(void **state) {
    struct rig rig;
    struct call call;
    (void)state;
    open_with(&rig, "cuda:0,cpu");
    for (int i = 0; i < 5; i++) {
        rig_wait_state(&rig, "cuda:0", DEVICE_READY);
        pid_t pid = rig_look(&rig, "cuda:0").pid;
        kill(pid, SIGKILL);
        while (rig_look(&rig, "cuda:0").pid == pid) {
            sleep_ms(1);
        }
    }
    assert_int_equal(rig_look(&rig, "cuda:0").state, DEVICE_UNAVAILABLE);
    call_make(&call, TWO, "cuda:0");
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_NO_DEVICE);
    expect_refused(&rig, KERNEL_BIT(JACOBI), "cuda:0",
                   "cuda:0 lacks the kernel jacobi that this job needs; it can run on cpu:0");
    rig_close(&rig);
}

int main(int count, char **arguments) {
    int role = rig_role(count, arguments);
    if (role >= 0) {
        return role;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(devices_tell_their_kernels),
        cmocka_unit_test(a_job_goes_where_its_kernels_are),
        cmocka_unit_test(a_kernel_that_lacks_is_refused_at_once),
        cmocka_unit_test(a_device_of_two_kernels_serves),
        cmocka_unit_test(a_broken_device_is_no_refusal_for_good),
    };
    if (getenv("KILN_STANDIN") == NULL) {
        printf("KILN_STANDIN says where the stand-in module is: skipped\n");
        return 77;
    }
    setenv("KILN_MODULE_PATH", getenv("KILN_STANDIN"), 1);
    setenv("KILN_STANDIN_KERNELS", "mandelbrot,laplacian", 1);
    return cmocka_run_group_tests_name("dispatch_match", tests, NULL, NULL);
}
