/*
 * test_store_process.c: the store's process and its client: commands and answers, what must end the
 * process, what outlives it, and kill -9 at random moments, over and over.
 */
#include "compute/core/timing.h"
#include "compute/store/client.h"
#include "compute/store/process.h"
#include "compute/worker/sandbox.h"
#include "tests/unit/store_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define ARENA       ((size_t)4 << 20)
#define PATIENCE_MS 60000 /* no measure but the end of patience */
#define IN_FLIGHT   64

struct rig {
    char folder[64];
    struct store_options options;
    uint8_t *memory;
    struct store_arena arena;
    struct store_client *client;
    pid_t child;
};

/* As the spawner would. Its socket is the client's. */
static void process_start(struct rig *rig) {
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    fflush(NULL);
    rig->child = fork();
    if (rig->child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        signal(SIGABRT, SIG_DFL); /* cmocka's handlers are not for children */
        close(pair[0]);
        if (rig->folder[0] != '\0') {
            sandbox_files_below(rig->folder);
        }
        sandbox_enter(SANDBOX_SPAWNER); /* whose child it is */
        sandbox_enter(SANDBOX_STORE);
        _exit(store_serve(&rig->options, pair[1], &rig->arena));
    }
    assert_true(rig->child > 0);
    close(pair[1]);
    store_client_connect(rig->client, pair[0]);
}

static int process_wait(struct rig *rig) {
    int status;
    assert_int_equal(waitpid(rig->child, &status, 0), rig->child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void rig_start(struct rig *rig, bool files) {
    *rig = (struct rig){.options = {.boot = 1}};
    if (files) {
        rig_folder_make(rig->folder);
    }
    rig->options.directory = rig->folder;
    rig->memory = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(rig->memory, MAP_FAILED);
    rig->arena = (struct store_arena){rig->memory, ARENA};
    assert_int_equal(store_client_create(&rig->arena, IN_FLIGHT, &rig->client), KILN_OK);
    process_start(rig);
}

static void rig_end(struct rig *rig) {
    store_client_destroy(rig->client);
    assert_int_equal(process_wait(rig), 0);
    munmap(rig->memory, ARENA);
    if (rig->folder[0] != '\0') {
        rig_folder_remove(rig->folder);
    }
}

/* One turn of an event loop; false where the process is gone. */
static bool turn(struct rig *rig) {
    struct pollfd socket;
    socket.fd = store_client_fd(rig->client, &socket.events);
    if (socket.fd < 0) {
        return false;
    }
    assert_true(poll(&socket, 1, PATIENCE_MS) > 0);
    store_client_serve(rig->client);
    return store_client_fd(rig->client, &socket.events) >= 0;
}

/* ---- one command at a time ---- */

struct told {
    bool done;
    enum kiln_status status;
    struct store_answer answer; /* its pointers are not kept */
    char owner[STORE_NAME_MAX + 1];
    char bytes[64];
    int rows;
};

static void tell(void *context, struct store_answer *answer) {
    struct told *told = context;
    struct store_job job;
    struct store_event event;
    assert_false(told->done);
    told->done = true;
    told->status = answer->status;
    told->answer = *answer;
    if (answer->task == TASK_GET) {
        snprintf(told->owner, sizeof told->owner, "%s", answer->job.owner);
    }
    if (answer->task == TASK_OPEN && answer->content.fd < 0 && answer->content.size < 64) {
        memcpy(told->bytes, answer->content.data, (size_t)answer->content.size);
    }
    while (answer->task == TASK_LIST && store_answer_job(answer, &job)) {
        assert_string_equal(job.type, "mandelbrot");
        told->rows++;
    }
    while (answer->task == TASK_EVENTS && store_answer_event(answer, &event)) {
        told->rows++;
    }
}

static struct told ask(struct rig *rig, const struct store_command *command) {
    struct told told = {.done = false};
    assert_int_equal(store_client_submit(rig->client, command, (struct store_call){tell, &told}),
                     KILN_OK);
    while (!told.done) {
        assert_true(turn(rig));
    }
    return told;
}

static struct store_command accept_command(uint64_t number, struct store_job *job) {
    *job = rig_job(number);
    return (struct store_command){
        .task = TASK_ACCEPT,
        .accept = {.jobs = job, .count = 1, .owner = "alice", .key = ""},
    };
}

static struct store_command change_command(uint64_t number, enum store_verb verb) {
    return (struct store_command){.task = TASK_CHANGE, .change = rig_verb(number, verb, 1)};
}

static void a_job_goes_its_way_by_packets(struct rig *rig) {
    struct store_job job;
    struct store_command command = accept_command(1, &job);
    const struct store_bytes input = {rig->memory, 50000};
    struct told told;
    memset(rig->memory, 'i', 50000);
    command.accept.inputs = &input;
    told = ask(rig, &command);
    assert_true(told.status == KILN_OK && !told.answer.accepted.repeated);
    command = change_command(1, STORE_START);
    assert_int_equal(ask(rig, &command).status, KILN_OK);
    command = (struct store_command){.task = TASK_OPEN, .id = rig_id(1), .of_input = true};
    told = ask(rig, &command);
    assert_true(told.status == KILN_OK && told.answer.content.size == 50000);
    assert_true(told.answer.content.fd >= 0);
    char *bytes = malloc(50000);
    assert_int_equal(pread(told.answer.content.fd, bytes, 50000, 0), 50000);
    assert_memory_equal(bytes, rig->memory, 50000);
    free(bytes);
    close(told.answer.content.fd);
    command = change_command(1, STORE_FINISH);
    command.change.state = STORE_SUCCEEDED;
    memcpy(rig->memory, "result", 6);
    command.change.result = (struct store_bytes){rig->memory, 6};
    assert_int_equal(ask(rig, &command).status, KILN_OK);
    command = (struct store_command){.task = TASK_OPEN, .id = rig_id(1)};
    told = ask(rig, &command);
    assert_true(told.status == KILN_OK && told.answer.content.fd < 0);
    assert_memory_equal(told.bytes, "result", 6);
    command = (struct store_command){.task = TASK_GET, .id = rig_id(1)};
    told = ask(rig, &command);
    assert_true(told.status == KILN_OK && told.answer.job.state == STORE_SUCCEEDED);
    assert_string_equal(told.owner, "alice");
    command.id = rig_id(77);
    assert_int_equal(ask(rig, &command).status, KILN_NOT_FOUND);
    command = (struct store_command){.task = TASK_EVENTS, .events = {.limit = 100}};
    assert_int_equal(ask(rig, &command).rows, 3);
}

/* A batch comes in the arena; its list goes in pages that fit into packets. */
static void a_batch_and_its_pages(struct rig *rig) {
    static struct store_job jobs[1000];
    struct store_command command = {
        .task = TASK_ACCEPT,
        .accept = {.jobs = jobs, .count = 1000, .owner = "bob", .key = "", .batch = rig_id(99999)}};
    struct pack lines = {.data = rig->memory, .capacity = ARENA};
    int rows = 0, pages = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        jobs[i] = rig_job(1000 + i);
        jobs[i].line = (int64_t)i;
    }
    assert_true(store_lines_pack(&lines, &command.accept, &rig->arena));
    command.lines = (struct store_bytes){lines.data, lines.size};
    assert_int_equal(ask(rig, &command).status, KILN_OK);
    struct store_command list = {.task = TASK_LIST, .filter = {.owner = "bob", .limit = 1000}};
    for (bool more = true; more; pages++) {
        struct told told = ask(rig, &list);
        assert_int_equal(told.status, KILN_OK);
        rows += told.rows;
        more = told.answer.page.more;
        list.filter.after = told.answer.page.next;
    }
    assert_int_equal(rows, 1000);
    assert_true(pages > 1 && pages < 50);
    /* lines that are cut, or somebody's idea of lines */
    command.accept.batch = rig_id(99998);
    command.lines.size -= 5;
    assert_int_equal(ask(rig, &command).status, KILN_INVALID);
    memset(rig->memory, 0xff, 4096);
    assert_int_equal(ask(rig, &command).status, KILN_INVALID);
}

static void every_command(void **state) {
    (void)state;
    for (int files = 0; files < 2; files++) {
        struct rig rig;
        rig_start(&rig, files == 1);
        a_job_goes_its_way_by_packets(&rig);
        a_batch_and_its_pages(&rig);
        rig_end(&rig);
    }
}

/* ---- bounds ---- */

static void what_does_not_fit_is_refused(void **state) {
    struct rig rig;
    struct store_job job;
    struct store_stats stats;
    struct told told[IN_FLIGHT + 1] = {{.done = false}};
    (void)state;
    rig_start(&rig, false);
    assert_true(turn(&rig));
    struct store_command command = accept_command(1, &job);
    const struct store_bytes outside[] = {{rig.memory + ARENA - 1, 2},
                                          {rig.memory - 1, 1},
                                          {rig.memory, ARENA + 1},
                                          {rig.memory + 4, SIZE_MAX}};
    for (size_t i = 0; i < 4; i++) {
        command.accept.inputs = &outside[i];
        assert_int_equal(
            store_client_submit(rig.client, &command, (struct store_call){tell, &told[0]}),
            KILN_INVALID);
    }
    command = (struct store_command){.task = TASK_STATS};
    for (int i = 0; i <= IN_FLIGHT; i++) {
        assert_int_equal(
            store_client_submit(rig.client, &command, (struct store_call){tell, &told[i]}),
            i < IN_FLIGHT ? KILN_OK : KILN_BUSY);
    }
    while (store_client_in_flight(rig.client) > 0) {
        assert_true(turn(&rig));
    }
    assert_true(store_client_ready(rig.client, &stats));
    assert_true(told[IN_FLIGHT - 1].done && !told[IN_FLIGHT].done);
    rig_end(&rig);
}

/* Packets that make no sense end the process, and harm nothing that it has. */
static void nonsense_ends_it(void **state) {
    static const char text[] = "GET / HTTP/1.1\r\n";
    static uint8_t huge[STORE_PACKET_MAX + 1];
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct rig rig;
        struct store_job job;
        short events;
        rig_start(&rig, true);
        struct store_command command = accept_command(1, &job);
        assert_int_equal(ask(&rig, &command).status, KILN_OK);
        int socket = store_client_fd(rig.client, &events);
        struct pack pack = {.data = huge, .capacity = sizeof huge};
        command = (struct store_command){.task = TASK_STATS, .ticket = 5};
        store_command_pack(&pack, &command, &rig.arena);
        size_t size = i == 0 ? sizeof text : i == 1 ? sizeof huge : pack.size - 1;
        const void *bytes = i == 0 ? (const void *)text : huge;
        assert_int_equal(send(socket, bytes, size, MSG_NOSIGNAL), size);
        assert_int_equal(process_wait(&rig), EXIT_FAILURE);
        while (turn(&rig)) {
        }
        command = accept_command(2, &job);
        struct told told = {.done = false};
        assert_int_equal(
            store_client_submit(rig.client, &command, (struct store_call){tell, &told}),
            KILN_STORE);
        process_start(&rig);
        command = (struct store_command){.task = TASK_GET, .id = rig_id(1)};
        assert_int_equal(ask(&rig, &command).status, KILN_OK);
        rig_end(&rig);
    }
}

/* What kills it twice is given up; the rest is answered by the third. */
static void commands_outlive_the_process(void **state) {
    struct rig rig;
    struct store_job job;
    struct told told = {.done = false}, late = {.done = false};
    (void)state;
    rig_start(&rig, true);
    struct store_command command = accept_command(1, &job);
    assert_int_equal(ask(&rig, &command).status, KILN_OK);
    kill(rig.child, SIGSTOP); /* takes nothing any more */
    command = change_command(1, STORE_START);
    assert_int_equal(store_client_submit(rig.client, &command, (struct store_call){tell, &told}),
                     KILN_OK);
    for (int i = 0; i < STORE_SENDS_MAX; i++) {
        assert_false(told.done);
        kill(rig.child, SIGKILL);
        assert_int_equal(process_wait(&rig), -SIGKILL);
        while (turn(&rig)) {
        }
        if (i + 1 < STORE_SENDS_MAX) {
            int pair[2]; /* one that never answers */
            assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
            store_client_connect(rig.client, pair[0]);
            command = (struct store_command){.task = TASK_GET, .id = rig_id(1)};
            store_client_submit(rig.client, &command, (struct store_call){tell, &late});
            rig.child = fork();
            if (rig.child == 0) {
                struct store_answer ready = {.task = TASK_READY, .content.fd = -1};
                uint8_t bytes[512];
                struct pack pack = {.data = bytes, .capacity = sizeof bytes};
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                store_answer_pack(&pack, &ready, NULL);
                send(pair[1], pack.data, pack.size, MSG_NOSIGNAL);
                for (;;) {
                    pause();
                }
            }
            close(pair[1]);
            assert_true(turn(&rig));
        }
    }
    process_start(&rig);
    assert_true(told.done && told.status == KILN_STORE);
    while (!late.done) {
        assert_true(turn(&rig));
    }
    assert_int_equal(late.status, KILN_OK);
    assert_int_equal(late.answer.job.state, STORE_QUEUED);
    rig_end(&rig);
}

/* ---- kill -9 ---- */

#define KILLS 25
#define MANY  6000

struct life {
    struct rig *rig;
    struct slot {
        struct life *life;
        int job;
    } slots[IN_FLIGHT];
    uint8_t done[MANY + 1]; /* 1 accepted, 2 started, 3 finished: as acknowledged */
    int free[IN_FLIGHT], free_count;
    int next; /* the first job that was not submitted yet */
    uint64_t seed;
    int answers, repeated, unknown;
};

static void life_answer(void *context, struct store_answer *answer) {
    struct slot *slot = context;
    struct life *life = slot->life;
    life->answers++;
    if (answer->status == KILN_STORE) {
        life->unknown++; /* it has seen two deaths: asked again */
    } else {
        assert_int_equal(answer->status, KILN_OK);
        life->done[slot->job]++;
    }
    life->repeated += answer->accepted.repeated || answer->changed.repeated;
    life->free[life->free_count++] = (int)(slot - life->slots);
}

/* The next thing to be done with a job: each is accepted, started, finished. */
static bool life_step(struct life *life) {
    struct rig *rig = life->rig;
    struct slot *slot = &life->slots[life->free[life->free_count - 1]];
    uint8_t *place = rig->memory + (size_t)(slot - life->slots) * (ARENA / IN_FLIGHT);
    struct store_job job;
    struct store_command command;
    uint64_t number = (uint64_t)slot->job;
    if (slot->job == 0 || life->done[slot->job] == 3) {
        if (life->next > MANY) {
            return false;
        }
        number = (uint64_t)life->next;
    }
    int step = life->done[number];
    size_t size = number % 7 == 0 ? 40000 : number % 100;
    const struct store_bytes bytes = {place, size};
    memset(place, (int)(number % 251), size);
    if (step == 0) {
        command = accept_command(number, &job);
        command.accept.inputs = &bytes;
    } else {
        command = change_command(number, step == 1 ? STORE_START : STORE_FINISH);
        command.change.state = STORE_SUCCEEDED;
        command.change.result = step == 1 ? (struct store_bytes){0} : bytes;
    }
    slot->life = life;
    slot->job = (int)number;
    if (store_client_submit(rig->client, &command, (struct store_call){life_answer, slot}) !=
        KILN_OK) {
        return false;
    }
    life->free_count--;
    life->next += step == 0;
    return true;
}

/* Works until the moment of death, or until all is done; true then. */
static bool life_run(struct life *life, bool mortal) {
    int last_answer = life->answers + (int)rig_below(&life->seed, 600);
    uint64_t last_ns = rig_below(&life->seed, 4000000), death = 0;
    for (;;) {
        while (life->free_count > 0 && life_step(life)) {
        }
        if (life->free_count == IN_FLIGHT && life->next > MANY) {
            return true;
        }
        if (life->answers >= last_answer && death == 0) {
            death = clock_ns() + last_ns; /* somewhere in the groups that follow */
        }
        if (mortal && death != 0 && clock_ns() > death) {
            kill(life->rig->child, SIGKILL);
            assert_int_equal(process_wait(life->rig), -SIGKILL);
            while (turn(life->rig)) { /* answers that had left before */
            }
            return false;
        }
        short events;
        struct pollfd socket = {.fd = store_client_fd(life->rig->client, &events)};
        socket.events = events;
        poll(&socket, 1, 1);
        store_client_serve(life->rig->client);
    }
}

/* Everything acknowledged is there, with its bytes, and ended once. */
static bool finishes_count(void *context, const struct store_event *event) {
    uint8_t *ends = context;
    int number = event->job.bytes[14] << 8 | event->job.bytes[15];
    ends[number] += event->kind == STORE_SUCCEEDED;
    ends[0] = 1;
    return true;
}

static int64_t last_seq;

static bool seq_keep(void *context, const struct store_event *event) {
    last_seq = event->seq;
    return finishes_count(context, event);
}

static void life_check(const struct life *life) {
    static uint8_t ends[MANY + 1];
    static uint8_t bytes[40000];
    struct store_options options = life->rig->options;
    options.inspect = true;
    struct store *store = rig_open(&options);
    struct store_events_filter filter = {.limit = 1000};
    assert_int_equal(store_check(store), 0);
    memset(ends, 0, sizeof ends);
    do {
        ends[0] = 0;
        assert_int_equal(store->engine->events(store, &filter, seq_keep, ends), KILN_OK);
        filter.after = last_seq;
    } while (ends[0] != 0);
    for (int i = 1; i < life->next; i++) {
        assert_true(life->done[i] == 0 || rig_state(store, (uint64_t)i) >= 0);
        assert_true(ends[i] <= 1);
        if (life->done[i] == 3) {
            size_t size = i % 7 == 0 ? 40000 : (size_t)i % 100;
            memset(bytes, i % 251, size);
            assert_true(rig_bytes(store, (uint64_t)i, false, bytes, size));
            assert_int_equal(ends[i], 1);
        }
    }
    store_close(store);
}

static void nothing_acknowledged_is_lost_by_kill_9(void **state) {
    static struct life life;
    struct rig rig;
    int kills = 0;
    (void)state;
    rig_start(&rig, true);
    life = (struct life){.rig = &rig, .next = 1, .seed = 42};
    for (int i = 0; i < IN_FLIGHT; i++) {
        life.free[life.free_count++] = i;
    }
    while (!life_run(&life, kills < KILLS)) {
        kills++;
        if (kills % 5 == 0) {
            life_check(&life);
        }
        process_start(&rig);
    }
    print_message("  %d jobs, %d kills, %d answers to what had been done before, %d unknown\n",
                  life.next - 1, kills, life.repeated, life.unknown);
    assert_int_equal(kills, KILLS);
    store_client_destroy(rig.client);
    assert_int_equal(process_wait(&rig), 0);
    life_check(&life);
    munmap(rig.memory, ARENA);
    rig_folder_remove(rig.folder);
}

/* ---- the role and its commands ---- */

static void arguments_are_those_that_the_role_reads(void **state) {
    struct store_arguments arguments;
    const struct store_options options = {.directory = "/var/lib/kiln", .boot = 77, .bytes = 5};
    (void)state;
    store_arguments_make(&arguments, &options, 4096);
    size_t count = 0;
    while (arguments.list[count] != NULL) {
        count++;
    }
    assert_true(count <= STORE_ARGUMENTS_MAX - 1 && count % 2 == 0);
    assert_string_equal(arguments.list[1], "store");
    assert_string_equal(arguments.list[2], "--arena-size");
    assert_string_equal(arguments.list[3], "4096");
    assert_string_equal(arguments.list[5], "/var/lib/kiln");
    assert_string_equal(arguments.list[7], "77");
    const char *wrong[] = {"kilnd", "store", "--arena-size", "-1"};
    assert_int_equal(store_role(4, (char **)(uintptr_t)wrong, 2), 2);
    assert_int_equal(store_role(2, (char **)(uintptr_t)wrong, 2), 2);
}

/* A command in a child of its own, its output in `out`; its exit code. */
static int command_run(const char *const *arguments, int count, char *out, size_t size) {
    int ends[2], status;
    size_t used = 0;
    ssize_t got;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        int code = store_role(count, (char **)(uintptr_t)arguments, 0);
        fflush(stdout);
        _exit(code);
    }
    close(ends[1]);
    while ((got = read(ends[0], out + used, size - 1 - used)) > 0) {
        used += (size_t)got;
    }
    out[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void commands_of_an_operator(void **state) {
    static char out[65536], large[50000];
    char folder[64], target[80];
    (void)state;
    rig_folder_make(folder);
    snprintf(target, sizeof target, "%s-copy", folder);
    const struct store_options options = {.directory = folder, .boot = 1};
    struct store *store = rig_open(&options);
    rig_submit(store, 1, "alice", large, sizeof large);
    rig_submit(store, 2, "bob \"x\"", "abc", 3);
    store_close(store);
    const char *check[] = {"check", folder}, *backup[] = {"backup", folder, target};
    const char *export[] = {"export", target}, *copy[] = {"check", target};
    const char *nowhere[] = {"check", "/nowhere"}, *odd[] = {"mend", folder};
    assert_int_equal(command_run(check, 2, out, sizeof out), 0);
    assert_non_null(strstr(out, "jobs: 2 queued"));
    assert_non_null(strstr(out, "files: 1, of which 0 of nobody"));
    assert_int_equal(command_run(backup, 3, out, sizeof out), 0);
    assert_int_equal(command_run(backup, 3, out, sizeof out), 1); /* it is there already */
    rig_folder_remove(folder);
    assert_int_equal(command_run(copy, 2, out, sizeof out), 0);
    assert_int_equal(command_run(export, 2, out, sizeof out), 0);
    assert_non_null(strstr(out, "\"owner\":\"alice\""));
    assert_non_null(strstr(out, "\"owner\":\"bob \\\"x\\\"\""));
    assert_non_null(strstr(out, "\"state\":\"queued\""));
    assert_int_equal(command_run(nowhere, 2, out, sizeof out), 1);
    assert_int_equal(command_run(odd, 2, out, sizeof out), 2);
    rig_folder_remove(target);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_command),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(nonsense_ends_it),
        cmocka_unit_test(commands_outlive_the_process),
        cmocka_unit_test(nothing_acknowledged_is_lost_by_kill_9),
        cmocka_unit_test(arguments_are_those_that_the_role_reads),
        cmocka_unit_test(commands_of_an_operator),
    };
    return cmocka_run_group_tests_name("store_process", tests, NULL, NULL);
}
