/*
 * test_store_power.c: the store on a disk that loses what was not synced, and on one that is full
 * (tests/faults/disk.h).
 *
 * A store works while every write is recorded, and what it acknowledges is noted with its moment.
 * Then the power is cut at random moments: whatever was acknowledged before must be there, and all
 * that is there must agree. The same with syncs that do nothing has to lose something, or the test
 * would see nothing.
 */
#include "compute/store/client.h"
#include "compute/store/process.h"
#include "tests/faults/disk.h"
#include "tests/unit/store_rig.h"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define RUNS   10
#define CUTS   50 /* of each */
#define GROUPS 60
#define JOBS   200

/* What was acknowledged of a job, and when. */
struct promise {
    size_t accepted, ended, forgotten; /* moments; 0: not */
    int64_t state;                     /* at its end */
    int64_t attempt;                   /* asked for next */
    bool started;
    size_t input, result;
};

static struct promise promises[JOBS + 1];
static uint8_t bytes[70000];

static const uint8_t *bytes_of(int number) {
    return bytes + number; /* other bytes for each */
}

static size_t size_random(uint64_t *seed) {
    static const size_t sizes[] = {0, 1, 500, 20000, STORE_SMALL + 1, 60000};
    return sizes[rig_below(seed, 6)];
}

/* ---- work ---- */

static enum kiln_status submit(struct store *store, int number, size_t size) {
    struct store_job job = rig_job((uint64_t)number);
    const struct store_bytes input = {bytes_of(number), size};
    const struct store_accept accept = {
        .jobs = &job, .inputs = &input, .count = 1, .owner = "alice", .key = ""};
    struct store_accepted accepted;
    return store->engine->accept(store, &accept, &accepted);
}

/* Something with one job, in the open transaction; tells in `next` what is promised with it. */
static bool something(struct store *store, int number, struct promise *next, uint64_t *seed) {
    struct store_change change = rig_verb((uint64_t)number, STORE_START, next->attempt);
    struct store_changed changed;
    if (next->accepted == 0) {
        next->input = size_random(seed);
        next->accepted = 1;
        next->attempt = 1;
        return submit(store, number, next->input) == KILN_OK;
    }
    if (next->ended != 0) {
        change.verb = STORE_FORGET;
        next->forgotten = 1;
    } else if (!next->started) {
        bool cancelled = rig_below(seed, 4) == 0;
        change.verb = cancelled ? STORE_CANCEL : STORE_START;
        next->started = !cancelled;
        next->ended = cancelled;
        next->state = STORE_CANCELLED;
    } else if (rig_below(seed, 5) == 0) {
        change.verb = STORE_RETRY;
        next->attempt++;
        next->started = false;
    } else {
        change.verb = STORE_FINISH;
        next->ended = 1;
        next->result = size_random(seed);
        next->state = change.state = rig_below(seed, 4) == 0 ? STORE_FAILED : STORE_SUCCEEDED;
        change.result = (struct store_bytes){bytes_of(number), next->result};
    }
    return store->engine->change(store, &change, &changed) == KILN_OK;
}

static void work(const char *folder, uint64_t *seed) {
    const struct store_options options = {.directory = folder, .boot = 1};
    struct store *store = rig_open(&options);
    memset(promises, 0, sizeof promises);
    for (int group = 0; group < GROUPS; group++) {
        int numbers[8], count = 1 + (int)rig_below(seed, 8);
        struct promise next[8];
        assert_int_equal(store->engine->begin(store, false), KILN_OK);
        for (int i = 0; i < count; i++) {
            numbers[i] = 1 + ((int)rig_below(seed, 24) + group * 2) % JOBS;
            for (int k = 0; k < i; k++) {
                numbers[i] = numbers[k] == numbers[i] ? 0 : numbers[i];
            }
            next[i] = promises[numbers[i]];
            if (numbers[i] > 0) {
                assert_true(something(store, numbers[i], &next[i], seed));
            }
        }
        assert_int_equal(store->engine->commit(store), KILN_OK);
        for (int i = 0; i < count; i++) {
            struct promise *promise = &promises[numbers[i]];
            size_t now = disk_moment();
            next[i].accepted = promise->accepted != 0 ? promise->accepted : now;
            next[i].ended = promise->ended != 0 ? promise->ended : next[i].ended != 0 ? now : 0;
            *promise = next[i];
        }
        if (group % 10 == 9) {
            bool more;
            assert_int_equal(store->engine->tick(store, &more), KILN_OK);
        }
    }
    store_close(store);
}

/* ---- after the cut ---- */

static int lost(struct store *store, size_t moment) {
    int count = 0;
    for (int i = 1; i <= JOBS; i++) {
        const struct promise *promise = &promises[i];
        if (promise->accepted == 0 || promise->accepted > moment) {
            continue;
        }
        int64_t state = rig_state(store, (uint64_t)i);
        bool right = state >= 0;
        if (right && promise->ended != 0 && promise->ended <= moment) {
            right = state == promise->state;
            if (right && state == STORE_SUCCEEDED && promise->forgotten == 0) {
                right = rig_bytes(store, (uint64_t)i, false, bytes_of(i), promise->result);
            }
        } else if (right && state == STORE_QUEUED && promise->input > 0) {
            right = rig_bytes(store, (uint64_t)i, true, bytes_of(i), promise->input);
        }
        count += !right;
    }
    return count;
}

/* Promises that were broken by a cut at this moment; JOBS where the store does not open. */
static int cut(size_t moment, bool honest, uint64_t *seed) {
    char target[64], why[320];
    struct store *store = NULL;
    rig_folder_make(target);
    disk_cut(moment, honest, seed, target);
    const struct store_options options = {.directory = target, .boot = 2};
    int count = JOBS;
    if (store_open(&options, &store, why, sizeof why) == KILN_OK) {
        bool more = true;
        count = lost(store, moment);
        while (more) { /* files of nobody go, and nothing else */
            assert_int_equal(store->engine->tick(store, &more), KILN_OK);
        }
        count += (int)store_check(store) + lost(store, moment);
    } else if (honest) {
        fail_msg("%s", why);
    }
    store_close(store);
    rig_folder_remove(target);
    return count;
}

static int cuts(bool honest, int runs) {
    int broken = 0;
    for (int run = 0; run < runs; run++) {
        char folder[64];
        uint64_t seed = (uint64_t)run + 1;
        rig_folder_make(folder);
        disk_watch(folder, NULL, true);
        work(folder, &seed);
        size_t end = disk_moment();
        for (int i = 0; i < CUTS; i++) {
            int count = cut(rig_below(&seed, end + 1), honest, &seed);
            if (honest && count > 0) {
                fail_msg("run %d, cut %d: %d promises broken", run, i, count);
            }
            broken += count > 0;
        }
        rig_folder_remove(folder);
        disk_forget();
    }
    return broken;
}

static void nothing_acknowledged_is_lost_with_the_power(void **state) {
    (void)state;
    assert_int_equal(cuts(true, RUNS), 0);
    print_message("  %d cuts\n", RUNS * CUTS);
}

/* Damage is told in the log and by checks: not here. */
static void without_syncs_something_is(void **state) {
    (void)state;
    fflush(NULL);
    int out = dup(STDOUT_FILENO), error = dup(STDERR_FILENO);
    assert_non_null(freopen("/dev/null", "w", stdout));
    assert_non_null(freopen("/dev/null", "w", stderr));
    int broken = cuts(false, 1);
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(error, STDERR_FILENO);
    close(out);
    close(error);
    print_message("  %d of %d cuts break a promise\n", broken, CUTS);
    assert_true(broken > CUTS / 10);
}

/* ---- a full disk ---- */

#define RUNNING 200

struct rig {
    char folder[64];
    int64_t *quota;  /* shared with the process of the store */
    uint8_t *memory; /* the same, its arena */
    struct store_arena arena;
    struct store_client *client;
    pid_t child;
    int good, full, other;
};

static void count_answer(void *context, struct store_answer *answer) {
    struct rig *rig = context;
    rig->good += answer->status == KILN_OK;
    rig->full += answer->status == KILN_STORE_FULL;
    rig->other += answer->status != KILN_OK && answer->status != KILN_STORE_FULL;
    if (answer->task == TASK_STATS) {
        memcpy(rig->memory, &answer->stats, sizeof answer->stats);
    }
}

static void turn(struct rig *rig) {
    struct pollfd socket;
    socket.fd = store_client_fd(rig->client, &socket.events);
    assert_true(socket.fd >= 0);
    assert_true(poll(&socket, 1, 60000) > 0);
    store_client_serve(rig->client);
}

static void ask(struct rig *rig, const struct store_command *command) {
    assert_int_equal(
        store_client_submit(rig->client, command, (struct store_call){count_answer, rig}), KILN_OK);
}

static void answers_wait(struct rig *rig) {
    while (store_client_in_flight(rig->client) > 0) {
        turn(rig);
    }
}

static void ask_accept(struct rig *rig, uint64_t number, size_t size) {
    struct store_job job = rig_job(number);
    const struct store_bytes input = {rig->memory + 4096 + number, size};
    const struct store_command command = {
        .task = TASK_ACCEPT,
        .accept = {.jobs = &job, .inputs = &input, .count = 1, .owner = "alice", .key = ""}};
    ask(rig, &command);
}

static void ask_change(struct rig *rig, uint64_t number, enum store_verb verb, size_t size) {
    struct store_command command = {.task = TASK_CHANGE, .change = rig_verb(number, verb, 1)};
    command.change.state = STORE_SUCCEEDED;
    command.change.result = (struct store_bytes){rig->memory + 4096 + 2 * number, size};
    ask(rig, &command);
}

static struct store_stats ask_stats(struct rig *rig) {
    const struct store_command command = {.task = TASK_STATS};
    struct store_stats stats;
    ask(rig, &command);
    answers_wait(rig);
    memcpy(&stats, rig->memory, sizeof stats);
    return stats;
}

static void *shared(size_t size) {
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

static void rig_start(struct rig *rig) {
    int pair[2];
    rig_folder_make(rig->folder);
    rig->quota = shared(4096);
    *rig->quota = INT64_C(1) << 40;
    rig->memory = shared((size_t)1 << 20);
    for (size_t i = 0; i < (size_t)1 << 20; i++) {
        rig->memory[i] = (uint8_t)(i * i >> 7);
    }
    rig->arena = (struct store_arena){rig->memory, (size_t)1 << 20};
    assert_int_equal(store_client_create(&rig->arena, 512, &rig->client), KILN_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    fflush(NULL);
    rig->child = fork();
    if (rig->child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGABRT, SIG_DFL);
        close(pair[0]);
        disk_watch(rig->folder, rig->quota, false);
        const struct store_options options = {.directory = rig->folder, .boot = 1};
        _exit(store_serve(&options, pair[1], &rig->arena));
    }
    close(pair[1]);
    store_client_connect(rig->client, pair[0]);
}

static void a_full_disk_stops_what_is_new_and_nothing_else(void **state) {
    struct rig rig = {.good = 0};
    int status;
    (void)state;
    rig_start(&rig);
    for (uint64_t i = 1; i <= RUNNING; i++) {
        ask_accept(&rig, i, 40000);
        ask_change(&rig, i, STORE_START, 0);
        if (i % 100 == 0) {
            answers_wait(&rig);
        }
    }
    assert_true(rig.good == 2 * RUNNING && rig.full == 0 && rig.other == 0);
    *rig.quota = 0; /* nothing grows any more; the ballast is 16 MiB */
    for (uint64_t i = 1001; i <= 1050; i++) {
        ask_accept(&rig, i, 40000);
    }
    answers_wait(&rig);
    assert_true(rig.full == 50 && rig.other == 0);
    /* as if somebody else had filled the disk: what the ballast gave is all there is */
    *rig.quota = INT64_C(24) << 20;
    for (uint64_t i = 1; i <= RUNNING; i++) {
        ask_change(&rig, i, STORE_FINISH, i % 10 == 0 ? 36000 : 2000);
        if (i % 100 == 0) {
            answers_wait(&rig);
        }
    }
    assert_true(rig.full == 50 && rig.other == 0); /* all have finished */
    assert_int_equal(rig.good, 3 * RUNNING);
    assert_int_equal(ask_stats(&rig).full, 1);
    *rig.quota = INT64_C(1) << 40; /* there is room again: without a restart */
    while (ask_stats(&rig).full != 0) {
        poll(NULL, 0, 50);
    }
    rig.good = rig.full = 0;
    ask_accept(&rig, 2001, 40000);
    answers_wait(&rig);
    assert_true(rig.good == 1 && rig.full == 0);
    store_client_destroy(rig.client);
    assert_int_equal(waitpid(rig.child, &status, 0), rig.child);
    assert_int_equal(status, 0);
    const struct store_options options = {.directory = rig.folder, .inspect = true};
    struct store *store = rig_open(&options);
    for (uint64_t i = 1; i <= RUNNING; i++) {
        assert_int_equal(rig_state(store, i), STORE_SUCCEEDED);
        assert_true(
            rig_bytes(store, i, false, rig.memory + 4096 + 2 * i, i % 10 == 0 ? 36000 : 2000));
    }
    assert_int_equal(store_check(store), 0);
    store_close(store);
    munmap(rig.memory, (size_t)1 << 20);
    munmap(rig.quota, 4096);
    rig_folder_remove(rig.folder);
}

int main(void) {
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i * 31 + (i >> 8));
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost_with_the_power),
        cmocka_unit_test(without_syncs_something_is),
        cmocka_unit_test(a_full_disk_stops_what_is_new_and_nothing_else),
    };
    return cmocka_run_group_tests_name("store_power", tests, NULL, NULL);
}
