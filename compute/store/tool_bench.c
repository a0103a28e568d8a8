/*
 * tool_bench.c: `kilnd store bench`: what this disk and this machine give. A child of this process
 * is the store's, as the daemon's would be, and this one submits to it. Main thread.
 */
#include "compute/core/timing.h"
#include "compute/store/client.h"
#include "compute/store/process.h"
#include "compute/store/record.h"
#include "compute/store/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARENA      ((size_t)32 << 20)
#define SYNCS      300
#define PARAMS     400
#define BATCH      128
#define WINDOW_MAX 256
#define PATH_SIZE  1200

struct bench {
    char path[PATH_SIZE];
    int jobs;
    uint8_t *memory;
    struct store_arena arena;
    struct store_client *client;
    pid_t child;
    struct job_ids ids;
    char params[PARAMS + 1];
    double *ms; /* of each answer */
    size_t answers, failures;
    uint64_t began[WINDOW_MAX];
    int free[WINDOW_MAX], free_count;
    struct job_id last;
};

/* ---- times ---- */

static int by_value(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double quantile(double *values, size_t count, double share) {
    qsort(values, count, sizeof *values, by_value);
    return count > 0 ? values[(size_t)(share * (double)(count - 1))] : 0;
}

static double since(uint64_t began) {
    return (double)(clock_ns() - began) * 1e-6;
}

/* ---- the disk alone ---- */

static bool sync_times(const struct bench *bench, size_t size, double ms[SYNCS]) {
    char path[PATH_SIZE + 16];
    static uint8_t bytes[64 << 10];
    bool good = true;
    snprintf(path, sizeof path, "%s/sync", bench->path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (int i = 0; i < SYNCS && good; i++) {
        uint64_t began = clock_ns();
        good = write(fd, bytes, size) == (ssize_t)size && fdatasync(fd) == 0;
        ms[i] = since(began);
    }
    if (fd >= 0) {
        close(fd);
    }
    unlink(path);
    return good;
}

static bool sync_print(const struct bench *bench) {
    static const size_t sizes[] = {4 << 10, 64 << 10};
    double ms[SYNCS];
    for (size_t i = 0; i < 2; i++) {
        if (!sync_times(bench, sizes[i], ms)) {
            fprintf(stderr, "kilnd store: %s cannot be written\n", bench->path);
            return false;
        }
        double half = quantile(ms, SYNCS, 0.5);
        printf("| write of %zu KiB and fdatasync | | %.2f | %.2f |\n", sizes[i] >> 10, half,
               quantile(ms, SYNCS, 0.99));
    }
    return true;
}

/* ---- the store's process ---- */

static bool process_start(struct bench *bench) {
    int pair[2];
    const struct store_options options = {.directory = bench->path, .boot = 1};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return false;
    }
    fflush(NULL);
    bench->child = fork();
    if (bench->child == 0) {
        close(pair[0]);
        _exit(store_serve(&options, pair[1], &bench->arena));
    }
    close(pair[1]);
    if (bench->child < 0 || store_client_create(&bench->arena, WINDOW_MAX, &bench->client) != 0) {
        close(pair[0]);
        return false;
    }
    store_client_connect(bench->client, pair[0]);
    return true;
}

static bool step(struct bench *bench) {
    struct pollfd socket;
    socket.fd = store_client_fd(bench->client, &socket.events);
    if (socket.fd < 0) {
        return false;
    }
    poll(&socket, 1, 1000);
    store_client_serve(bench->client);
    return true;
}

struct question {
    struct bench *bench;
    int place;
};

static void answered(void *context, struct store_answer *answer) {
    struct question *question = context;
    struct bench *bench = question->bench;
    bench->ms[bench->answers++] = since(bench->began[question->place]);
    bench->failures += answer->status != KILN_OK;
    bench->free[bench->free_count++] = question->place;
}

static void job_make(struct bench *bench, struct store_job *job) {
    *job = record_empty;
    job->id = job_ids_next(&bench->ids, job_ids_now());
    job->type = "mandelbrot";
    job->format = "png";
    job->media = "image/png";
    job->params = bench->params;
    job->reserved = 4096;
    bench->last = job->id;
}

/* One accept of `size` jobs, or a look at one. */
static bool ask(struct bench *bench, int size, struct question *question) {
    static struct store_job jobs[BATCH];
    struct store_command command = {.task = TASK_GET, .id = bench->last};
    for (int i = 0; i < size; i++) {
        job_make(bench, &jobs[i]);
    }
    if (size > 0) {
        command.task = TASK_ACCEPT;
        command.accept =
            (struct store_accept){.jobs = jobs, .count = (size_t)size, .owner = "bench", .key = ""};
    }
    if (size > 1) {
        size_t room = bench->arena.size / WINDOW_MAX;
        struct pack lines = {.data = bench->memory + room * (size_t)question->place,
                             .capacity = room};
        command.accept.batch = job_ids_next(&bench->ids, job_ids_now());
        store_lines_pack(&lines, &command.accept, &bench->arena);
        command.lines = (struct store_bytes){lines.data, lines.size};
    }
    bench->began[question->place] = clock_ns();
    return store_client_submit(bench->client, &command, (struct store_call){answered, question}) ==
           KILN_OK;
}

/* `count` questions, `window` of them in flight; prints a row. */
static bool questions_run(struct bench *bench, const char *what, int count, int window, int size) {
    struct question questions[WINDOW_MAX];
    int asked = 0;
    bool good = true;
    bench->answers = bench->failures = 0;
    bench->free_count = 0;
    for (int i = 0; i < window; i++) {
        questions[i] = (struct question){bench, i};
        bench->free[bench->free_count++] = i;
    }
    uint64_t began = clock_ns();
    while (good && bench->answers < (size_t)count) {
        while (good && asked < count && bench->free_count > 0) {
            good = ask(bench, size, &questions[bench->free[--bench->free_count]]);
            asked++;
        }
        good = good && step(bench);
    }
    double ms = since(began);
    if (!good || bench->failures > 0) {
        fprintf(stderr, "kilnd store: %s: %zu answers failed\n", what, bench->failures);
        return false;
    }
    double half = quantile(bench->ms, bench->answers, 0.5);
    printf("| %s | %.0f | %.2f | %.2f |\n", what, (size > 1 ? size : 1) * count / ms * 1e3, half,
           quantile(bench->ms, bench->answers, 0.99));
    return fflush(stdout) == 0;
}

struct reload {
    struct job_id next;
    int64_t jobs;
    bool more, done;
};

static void page_answered(void *context, struct store_answer *answer) {
    struct reload *reload = context;
    reload->jobs += answer->count;
    reload->next = answer->page.next;
    reload->more = answer->status == KILN_OK && answer->page.more;
    reload->done = true;
}

/* All jobs that wait, page by page, as a daemon reads them when it starts. */
static bool reload_run(struct bench *bench) {
    struct reload reload = {.more = true};
    uint64_t began = clock_ns();
    while (reload.more) {
        const struct store_command command = {.task = TASK_LIST,
                                              .filter = {.states = 1u << STORE_QUEUED,
                                                         .after = reload.next,
                                                         .oldest_first = true,
                                                         .short_rows = true,
                                                         .limit = STORE_PAGE_MAX}};
        reload.done = false;
        if (store_client_submit(bench->client, &command,
                                (struct store_call){page_answered, &reload}) != KILN_OK) {
            return false;
        }
        while (!reload.done) {
            if (!step(bench)) {
                return false;
            }
        }
    }
    printf("\n%lld jobs that wait are read in %.0f ms.\n", (long long)reload.jobs, since(began));
    return true;
}

static long resident_kb(pid_t pid) {
    char path[64];
    long pages = 0;
    snprintf(path, sizeof path, "/proc/%ld/statm", (long)pid);
    FILE *file = fopen(path, "re");
    if (file != NULL && fscanf(file, "%*d %ld", &pages) != 1) {
        pages = 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static bool process_run(struct bench *bench) {
    int rest = bench->jobs;
    struct store_stats stats;
    while (!store_client_ready(bench->client, &stats)) {
        if (!step(bench)) {
            return false;
        }
    }
    if (!questions_run(bench, "accept, one at a time", rest / 10, 1, 1) ||
        !questions_run(bench, "accept, 8 in flight", rest / 4, 8, 1) ||
        !questions_run(bench, "accept, 64 in flight", rest / 4, 64, 1) ||
        !questions_run(bench, "accept, 256 in flight", rest / 4, WINDOW_MAX, 1) ||
        !questions_run(bench, "accept, batches of 128 jobs, one at a time", rest / 10 / BATCH + 1,
                       1, BATCH) ||
        !questions_run(bench, "look at a job, one at a time", 1000, 1, 0)) {
        return false;
    }
    if (!reload_run(bench)) {
        return false;
    }
    printf("The process of the store has %ld MB with all these jobs waiting.\n",
           resident_kb(bench->child) / 1024);
    return true;
}

/* ---- the folder ---- */

static int entry_remove(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static bool bench_run(struct bench *bench) {
    printf("| | a second | p50 ms | p99 ms |\n|---|---|---|---|\n");
    bool good = sync_print(bench) && process_start(bench) && process_run(bench);
    store_client_destroy(bench->client); /* which ends the child */
    if (bench->child > 0) {
        waitpid(bench->child, NULL, 0);
    }
    return good;
}

int store_bench(const char *directory, int jobs) {
    struct bench bench = {.jobs = jobs};
    bool good = false;
    snprintf(bench.path, sizeof bench.path, "%s/bench-XXXXXX", directory);
    bench.memory = mmap(NULL, ARENA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    bench.ms = calloc((size_t)jobs + 1000, sizeof *bench.ms);
    if (bench.memory == MAP_FAILED || bench.ms == NULL || !job_ids_init(&bench.ids)) {
        fprintf(stderr, "kilnd store: there is not enough memory\n");
    } else if (mkdtemp(bench.path) == NULL) {
        fprintf(stderr, "kilnd store: %s: %s\n", directory, strerror(errno));
    } else {
        bench.arena = (struct store_arena){bench.memory, ARENA};
        memset(bench.params, 'x', PARAMS);
        good = bench_run(&bench);
        nftw(bench.path, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
    }
    if (bench.memory != MAP_FAILED) {
        munmap(bench.memory, ARENA);
    }
    free(bench.ms);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
