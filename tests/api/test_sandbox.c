/*
 * test_sandbox.c: the processes of a running daemon are confined, and what becomes of the daemon
 * when the one that starts the others ends. That everything else works under the sandbox is what
 * all other suites show: it is on unless told otherwise.
 */
#include "tests/api/lib_daemon.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATIENCE 30.0 /* seconds; no measure but the end of patience */

/* The number after "Name:" in /proc/PID/status; -1 where there is no such process or line. */
static long status_of(pid_t pid, const char *name) {
    char path[64], line[256];
    long value = -1;
    size_t length = strlen(name);
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, name, length) == 0 && line[length] == ':') {
            value = strtol(line + length + 1, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return value;
}

/* All bits of a set ("CapEff:\t000001ff…") that any thread of a process has. */
static long status_of_threads(pid_t pid, const char *name) {
    char path[320], line[256];
    unsigned long long bits = 0;
    size_t length = strlen(name), lines = 0;
    snprintf(path, sizeof path, "/proc/%ld/task", (long)pid);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        snprintf(path, sizeof path, "/proc/%ld/task/%s/status", (long)pid, entry->d_name);
        FILE *file = entry->d_name[0] != '.' ? fopen(path, "re") : NULL;
        while (file != NULL && fgets(line, sizeof line, file) != NULL) {
            if (strncmp(line, name, length) == 0 && line[length] == ':') {
                bits |= strtoull(line + length + 1, NULL, 16);
                lines++;
            }
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    closedir(folder);
    assert_true(lines > 0);
    return (long)bits;
}

/* Is there a process of this id that has not ended? */
static bool lives(pid_t pid) {
    char path[64], line[256], state = 'X';
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        sscanf(line, "State: %c", &state);
    }
    if (file != NULL) {
        fclose(file);
    }
    return state != 'X' && state != 'Z';
}

static void end_wait(pid_t pid) {
    double end = now_s() + PATIENCE;
    while (lives(pid)) {
        assert_true(now_s() < end);
        sleep_s(0.005);
    }
}

/* The worker's parent. */
static pid_t spawner_of(const struct daemon *daemon, pid_t worker) {
    pid_t spawner = (pid_t)status_of(worker, "PPid");
    assert_true(spawner > 1 && spawner != daemon->pid);
    assert_int_equal(status_of(spawner, "PPid"), daemon->pid);
    return spawner;
}

static bool sandboxed_build(void) {
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    return false;
#else
    return true;
#endif
}

static void every_process_is_confined(void **state) {
    struct daemon daemon;
    (void)state;
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    pid_t worker = worker_pid(session), spawner = spawner_of(&daemon, worker);
    const pid_t pids[] = {daemon.pid, spawner, worker};
    const long filters[] = {2, 1, 2};
    for (int i = 0; sandboxed_build() && i < 3; i++) {
        assert_int_equal(status_of(pids[i], "Seccomp"), 2);
        assert_int_equal(status_of(pids[i], "NoNewPrivs"), 1);
        long count = status_of(pids[i], "Seccomp_filters"); /* Linux 5.9 */
        assert_true(count == -1 || count >= filters[i]);
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
    end_wait(spawner);
    end_wait(worker);
}

/* Nothing is left of root's rights, nor can come back with a program that is started. */
static void no_process_has_capabilities(void **state) {
    static const char *const sets[] = {"CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd"};
    static const char *const listens[] = {"127.0.0.1:0", "127.0.0.1:981"};
    (void)state;
    for (int row = 0; sandboxed_build() && row < 2; row++) {
        const char *const flags[] = {"--listen", listens[row], NULL};
        struct daemon daemon;
        if (row == 1 && geteuid() != 0) {
            break; /* a port that takes a right to bind */
        }
        daemon_start(&daemon, flags);
        struct session *session = session_create(&daemon);
        pid_t worker = worker_pid(session), spawner = spawner_of(&daemon, worker);
        const pid_t pids[] = {daemon.pid, spawner, worker};
        for (int i = 0; i < 3; i++) {
            for (int set = 0; set < (geteuid() == 0 ? 5 : 4); set++) {
                assert_int_equal(status_of_threads(pids[i], sets[set]), 0);
            }
        }
        session_destroy(session);
        assert_int_equal(daemon_stop(&daemon), 0);
    }
}

static void off_confines_nothing(void **state) {
    static const char *const flags[] = {"--sandbox", "off", NULL};
    struct daemon daemon;
    (void)state;
    long before = status_of(getpid(), "Seccomp_filters");
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    pid_t worker = worker_pid(session), spawner = spawner_of(&daemon, worker);
    assert_int_equal(status_of(daemon.pid, "Seccomp_filters"), before);
    assert_int_equal(status_of(spawner, "Seccomp_filters"), before);
    assert_int_equal(status_of(worker, "Seccomp_filters"), before);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

static void an_unknown_word_is_refused(void **state) {
    static const char *const arguments[] = {"kilnd", "--sandbox", "maybe", NULL};
    (void)state;
    assert_int_equal(daemon_run(arguments), 2);
}

/* A worker that is started later, by a front that is confined, is as confined as the first. */
static void workers_are_replaced(void **state) {
    struct daemon daemon;
    (void)state;
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    pid_t old = worker_pid(session), spawner = spawner_of(&daemon, old), other;
    double began = now_s();
    assert_int_equal(kill(old, SIGKILL), 0);
    do {
        sleep_s(0.0005);
        other = worker_pid(session);
        assert_true(now_s() - began < PATIENCE);
    } while (other == 0 || other == old);
    print_message("  ready again after %.1f ms\n", (now_s() - began) * 1e3);
    assert_int_equal(status_of(other, "PPid"), spawner);
    if (sandboxed_build()) {
        assert_int_equal(status_of(other, "Seccomp"), 2);
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* A long job in a thread of its own. */
static void *job_ask(void *argument) {
    static const char picture[] = "P2\n4 4\n255\n1 2 3 4 5 6 7 8 9 8 7 6 5 4 3 2\n";
    const struct daemon *daemon = argument;
    struct session *session = session_create(daemon);
    const struct request request = {.path = "/v1/jacobi?iterations=1000000000000",
                                    .type = "application/octet-stream",
                                    .body = picture};
    struct answer answer;
    session_ask(session, &request, &answer);
    int status = answer.status;
    answer_free(&answer);
    session_destroy(session);
    return (void *)(intptr_t)status;
}

/* Without the spawner no worker can be started: the daemon answers what it has and ends with a
   failure, for whoever looks after it to start it anew. It neither hangs nor claims to be ready. */
static void without_the_spawner_the_daemon_ends(int number) {
    static const char *const flags[] = {"--max-iterations", "1000000000000", NULL};
    struct daemon daemon;
    struct answer answer;
    pthread_t client;
    void *status;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    pid_t worker = worker_pid(session), spawner = spawner_of(&daemon, worker);
    assert_int_equal(pthread_create(&client, NULL, job_ask, &daemon), 0);
    double end = now_s() + PATIENCE;
    while (metric_get(session, "kiln_running_jobs") < 1) {
        assert_true(now_s() < end);
        sleep_s(0.005);
    }
    double began = now_s();
    assert_int_equal(kill(spawner, number), 0);
    if (number == SIGSTOP) {
        assert_int_equal(kill(worker, SIGKILL), 0); /* so that it is asked for something */
    } else {
        end_wait(worker); /* dies with it */
    }
    do {
        session_get(session, "/readyz", &answer);
        int got = answer.status;
        answer_free(&answer);
        if (got != 200) { /* 503, or nothing any more */
            break;
        }
        sleep_s(0.001);
    } while (now_s() < end);
    assert_true(now_s() < end);
    assert_int_equal(pthread_join(client, &status), 0);
    assert_true((intptr_t)status == 503);
    session_destroy(session);
    int code = daemon_wait(&daemon);
    print_message("  ended with code %d after %.2f s\n", code, now_s() - began);
    assert_int_equal(code, 1);
    end_wait(spawner);
    end_wait(worker);
}

static void a_dead_spawner_ends_the_daemon(void **state) {
    (void)state;
    without_the_spawner_the_daemon_ends(SIGKILL);
}

static void a_silent_spawner_ends_the_daemon(void **state) {
    (void)state;
    without_the_spawner_the_daemon_ends(SIGSTOP);
}

/* Nothing outlives a front that is killed, not even a worker in the middle of a job. */
static void nothing_outlives_the_front(void **state) {
    static const char *const flags[] = {"--max-iterations", "1000000000000", NULL};
    struct daemon daemon;
    pthread_t client;
    (void)state;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    pid_t worker = worker_pid(session), spawner = spawner_of(&daemon, worker);
    assert_int_equal(pthread_create(&client, NULL, job_ask, &daemon), 0);
    double end = now_s() + PATIENCE;
    while (metric_get(session, "kiln_running_jobs") < 1) {
        assert_true(now_s() < end);
        sleep_s(0.005);
    }
    daemon_signal(&daemon, SIGKILL);
    end_wait(spawner);
    end_wait(worker);
    assert_int_equal(daemon_wait(&daemon), -SIGKILL);
    pthread_join(client, NULL);
    session_destroy(session);
}

/* For this process and all that it starts from now on: no Landlock, as in kernels before 5.13. */
static bool landlock_hide(void) {
    struct sock_filter code[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_landlock_create_ruleset},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    const struct sock_fprog program = {sizeof code / sizeof code[0], code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Where the kernel cannot close files by their names, a worker on the CPU takes one filter more,
   which lets it open none; what it has told of its device stays. The last test: there is no way
   back. */
static void without_landlock_workers_shut_themselves(void **state) {
    struct daemon daemon;
    struct answer answer;
    (void)state;
    if (!sandboxed_build() || getenv("KILN_TEST_DEVICE") != NULL || !landlock_hide()) {
        skip();
    }
    long before = status_of(getpid(), "Seccomp_filters");
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    pid_t worker = worker_pid(session);
    assert_true(before == -1 || status_of(worker, "Seccomp_filters") == before + 3);
    sleep_s(2.2); /* notices later */
    session_get(session, "/v1/devices", &answer);
    const char *total = strstr(answer.body, "\"memory\":{\"total\":");
    assert_non_null(total);
    assert_true(strtod(total + strlen("\"memory\":{\"total\":"), NULL) > 1e6);
    answer_free(&answer);
    session_get(session, "/v1/mandelbrot?width=64&height=64", &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_process_is_confined),
        cmocka_unit_test(no_process_has_capabilities),
        cmocka_unit_test(off_confines_nothing),
        cmocka_unit_test(an_unknown_word_is_refused),
        cmocka_unit_test(workers_are_replaced),
        cmocka_unit_test(a_dead_spawner_ends_the_daemon),
        cmocka_unit_test(a_silent_spawner_ends_the_daemon),
        cmocka_unit_test(nothing_outlives_the_front),
        cmocka_unit_test(without_landlock_workers_shut_themselves),
    };
    return cmocka_run_group_tests_name("api.sandbox", tests, NULL, NULL);
}
