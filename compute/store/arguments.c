/*
 * arguments.c: the role of the process (process.h): its arguments, written by who starts it and
 * read by itself, and what it gives up before it serves. Main thread.
 */
#include "compute/core/arena.h"
#include "compute/core/log.h"
#include "compute/store/process.h"
#include "compute/worker/capabilities.h"
#include "compute/worker/program.h"
#include "compute/worker/sandbox.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct {
    const char *flag;
    size_t offset; /* in struct store_options */
} numbers[] = {
    {"--boot", offsetof(struct store_options, boot)},
    {"--store-bytes", offsetof(struct store_options, bytes)},
    {"--store-reserve", offsetof(struct store_options, reserve)},
    {"--jobs", offsetof(struct store_options, jobs)},
    {"--owner-jobs", offsetof(struct store_options, owner_jobs)},
    {"--owner-bytes", offsetof(struct store_options, owner_bytes)},
    {"--record", offsetof(struct store_options, record)},
};

#define NUMBERS (sizeof numbers / sizeof *numbers)

void store_arguments_make(struct store_arguments *arguments, const struct store_options *options,
                          uint64_t arena_size) {
    size_t count = 0;
    arguments->list[count++] = "kilnd";
    arguments->list[count++] = "store";
    arguments->list[count++] = "--arena-size";
    snprintf(arguments->texts[count], STORE_ARGUMENT_SIZE, "%llu", (unsigned long long)arena_size);
    arguments->list[count] = arguments->texts[count];
    count++;
    arguments->list[count++] = "--state-dir";
    arguments->list[count++] = options->directory;
    for (size_t i = 0; i < NUMBERS; i++) {
        int64_t value;
        memcpy(&value, (const char *)options + numbers[i].offset, sizeof value);
        arguments->list[count++] = numbers[i].flag;
        snprintf(arguments->texts[count], STORE_ARGUMENT_SIZE, "%lld", (long long)value);
        arguments->list[count] = arguments->texts[count];
        count++;
    }
    arguments->list[count] = NULL;
}

static bool argument_take(struct store_options *options, size_t *arena_size, const char *flag,
                          const char *value) {
    char *end;
    if (strcmp(flag, "--state-dir") == 0) {
        options->directory = value;
        return true;
    }
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (errno != 0 || *end != '\0' || end == value || number < 0) {
        return false;
    }
    if (strcmp(flag, "--arena-size") == 0) {
        *arena_size = (size_t)number;
        return true;
    }
    for (size_t i = 0; i < NUMBERS; i++) {
        if (strcmp(flag, numbers[i].flag) == 0) {
            memcpy((char *)options + numbers[i].offset, &(int64_t){number}, sizeof(int64_t));
            return true;
        }
    }
    return false;
}

/* Out of the way of signals to the group; ends with who started it. */
static void settle(void) {
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ};
    const char *parent = getenv("KILN_PARENT_PID");
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        signal(ignored[i], SIG_IGN);
    }
    umask(077);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (parent != NULL && strtol(parent, NULL, 10) != (long)getppid()) {
        _exit(EXIT_FAILURE);
    }
}

int store_process(int argc, char **argv, int first) {
    struct store_options options = {.directory = ""};
    struct store_arena arena = {.size = 0};
    bool good = (argc - first) % 2 == 0;
    for (int i = first; good && i < argc; i += 2) {
        good = argument_take(&options, &arena.size, argv[i], argv[i + 1]);
    }
    if (!good || arena.size == 0) {
        fprintf(stderr, "kilnd store: these arguments are for kilnd only\n");
        return 2;
    }
    settle();
    log_init(log_level_environment(), "store");
    capabilities_drop();
    arena.base = arena_attach(PROGRAM_FD + 1, arena.size);
    if (arena.base == NULL) {
        log_error("the arena cannot be mapped");
        return EXIT_FAILURE;
    }
    if (options.directory[0] != '\0') {
        mkdir(options.directory, 0700); /* so that it can be named to the sandbox */
        sandbox_files_below(options.directory);
    }
    sandbox_enter(SANDBOX_STORE);
    return store_serve(&options, PROGRAM_FD, &arena);
}
