/*
 * main.c: the roles of the one binary.
 */
#include "compute/core/log.h"
#include "compute/store/tool.h"
#include "compute/worker/capabilities.h"
#include "compute/worker/spawner.h"
#include "compute/worker/worker.h"
#include "server/auth/keytool.h"
#include "server/configuration.h"
#include "server/core/options.h"
#include "server/core/service.h"
#include "server/healthcheck.h"
#include "server/serve.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#define EXIT_USAGE 2

static void usage_print(FILE *out) {
    fprintf(
        out,
        "kilnd %s: an HTTP compute daemon\n\n"
        "  kilnd [serve] [options]      serve HTTP\n"
        "  kilnd probe                  list the devices as JSON\n"
        "  kilnd healthcheck [options]  ask the daemon at --listen whether it is ready\n"
        "  kilnd key new [flags]        make an API key (kilnd key shows the flags)\n"
        "  kilnd key check FILE         read a key file and say what is wrong with it\n"
        "  kilnd store check|backup|export|bench DIR\n"
        "                               look at a directory of jobs (kilnd store shows more)\n"
        "  kilnd --check-config [options]\n"
        "                               say what is wrong with the options, the file of --config\n"
        "                               and the files that they name; serve nothing\n"
        "  kilnd version | help         also --version, --help\n\n",
        KILN_VERSION);
    options_help(out);
}

/* Reads the options of a role; true if the role is to run, else its exit code is in `code`. */
static bool options_take(struct options *options, int argc, char **argv, int first, int *code) {
    char why[OPTION_WHY_MAX];
    bool help;
    if (!options_read(options, argc, argv, first, &help, why, sizeof why)) {
        fprintf(stderr, "kilnd: %s\n", why);
        *code = EXIT_USAGE;
        return false;
    }
    if (help) {
        usage_print(stdout);
        *code = EXIT_SUCCESS;
    }
    return !help;
}

/* Takes a flag that is no option out of the arguments. */
static bool flag_take(const char *flag, int *argc, char **argv, int first) {
    int kept = first;
    for (int i = first; i < *argc; i++) {
        if (strcmp(argv[i], flag) != 0) {
            argv[kept++] = argv[i];
        }
    }
    bool found = kept < *argc;
    *argc = kept;
    return found;
}

static int config_check(const struct options *options) {
    char why[OPTION_WHY_MAX];
    log_init(LOG_LEVEL_ERROR, "check");
    if (!configuration_check(options, why, sizeof why)) {
        fprintf(stderr, "kilnd: %s\n", why);
        return EXIT_FAILURE;
    }
    printf("kilnd can start with this configuration\n");
    return EXIT_SUCCESS;
}

static int role_serve(int argc, char **argv, int first) {
    bool check = flag_take("--check-config", &argc, argv, first);
    struct options options;
    int code;
    if (!options_take(&options, argc, argv, first, &code)) {
        return code;
    }
    return check ? config_check(&options) : serve_run(&options);
}

static int role_help(int argc, char **argv, int first) {
    (void)argc;
    (void)argv;
    (void)first;
    usage_print(stdout);
    return EXIT_SUCCESS;
}

static int role_version(int argc, char **argv, int first) {
    (void)argc;
    (void)argv;
    (void)first;
    printf("kilnd %s\n", KILN_VERSION);
    return EXIT_SUCCESS;
}

static int role_healthcheck(int argc, char **argv, int first) {
    struct options options;
    int code;
    if (!options_take(&options, argc, argv, first, &code)) {
        return code;
    }
    capabilities_drop();
    return healthcheck_run(&options);
}

static int role_probe(int argc, char **argv, int first) {
    (void)argc;
    (void)argv;
    (void)first;
    if (getenv("KILN_PARENT_PID") != NULL) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* a driver that hangs must not outlive the daemon */
    }
    log_init(LOG_LEVEL_WARNING, "probe");
    capabilities_drop();
    return worker_probe();
}

/* A worker's flags come from the front, never from a person; each is a number. */
static bool worker_flag(struct worker_options *options, const char *flag, const char *value) {
    char *end;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (errno != 0 || *end != '\0' || end == value || number < 0) {
        return false;
    }
    if (strcmp(flag, "--arena-size") == 0) {
        options->arena_size = (size_t)number;
        return true;
    }
    if (strcmp(flag, "--device-bytes") == 0) {
        options->device_bytes = (uint64_t)number;
        return true;
    }
    const struct {
        const char *flag;
        int *place;
    } rows[] = {
        {"--job-fd", &options->job_fd},     {"--control-fd", &options->control_fd},
        {"--arena-fd", &options->arena_fd}, {"--slots", &options->slots},
        {"--threads", &options->threads},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].flag, flag) == 0 && number <= INT_MAX) {
            *rows[i].place = (int)number;
            return true;
        }
    }
    return false;
}

/* The front ends its workers by closing their sockets. Signals that a terminal or a service
   manager sends to the whole group must not take them away from jobs that are being drained. */
static int role_worker(int argc, char **argv, int first) {
    struct worker_options options = {.job_fd = -1, .control_fd = -1, .arena_fd = -1};
    bool good = first < argc;
    if (good) {
        options.device = argv[first];
    }
    for (int i = first + 1; good && i < argc; i += 2) {
        good = i + 1 < argc && worker_flag(&options, argv[i], argv[i + 1]);
    }
    if (!good || options.job_fd < 0 || options.control_fd < 0 || options.arena_fd < 0) {
        fprintf(stderr, "kilnd worker: started by kilnd only\n");
        return EXIT_USAGE;
    }
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    log_init(LOG_LEVEL_INFO, options.device);
    capabilities_drop();
    return worker_run(&options);
}

static int role_spawner(int argc, char **argv, int first) {
    (void)argc;
    (void)argv;
    (void)first;
    return spawner_run();
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv, int first);
} roles[] = {
    {"serve", role_serve},
    {"worker", role_worker},
    {"spawner", role_spawner},
    {"probe", role_probe},
    {"healthcheck", role_healthcheck},
    {"key", keytool_run},
    {"store", store_role},
    {"help", role_help},
    {"version", role_version},
    {"--version", role_version},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof roles / sizeof roles[0]; i++) {
        if (strcmp(argv[1], roles[i].name) == 0) {
            return roles[i].run(argc, argv, 2);
        }
    }
    return role_serve(argc, argv, 1);
}
