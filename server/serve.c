/*
 * serve.c: starting, waiting for a signal, draining.
 *
 * Draining: readiness turns 503, new jobs are refused with 503, and probes are still answered, on
 * new connections too; jobs that were taken go on up to --drain-timeout; what is left then is
 * answered 503; answers get a moment to leave, which ends with --drain-timeout or soon after it,
 * whether their clients read them or not; then the library is stopped. No request is suspended at
 * that point, as the library demands.
 *
 * A socket that was passed on stays open for the next daemon: what comes to it while this one
 * drains waits there.
 */
#include "server/serve.h"

#include "compute/core/cgroup.h"
#include "compute/core/log.h"
#include "compute/worker/capabilities.h"
#include "compute/worker/sandbox.h"
#include "compute/worker/spawner.h"
#include "server/auth/access.h"
#include "server/core/service.h"
#include "server/descriptors.h"
#include "server/flow.h"
#include "server/http/connections/connection_limit.h"
#include "server/http/connections/socket.h"
#include "server/http/cors.h"
#include "server/http/request/listener.h"
#include "server/jobs/dispatcher.h"
#include "server/jobs/jobs.h"
#include "server/jobs/ledger.h"
#include "server/routes.h"
#include "server/sd_notify.h"
#include "server/socket_activation.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SEND_TIMEOUT_S 5.0 /* for answers to leave after the last job */
#define SEND_LEAST_S   1.0 /* of that, past --drain-timeout too */
#define PAUSE_NS       2000000

#define STORE_MEMORY_BYTES (UINT64_C(256) << 20) /* of kept jobs, without --state-dir */

/* SIGHUP has a meaning where there is a file to read again; else it ends the process, as ever. */
static void signals_block(sigset_t *set, bool reloads) {
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    if (reloads) {
        sigaddset(set, SIGHUP);
    }
    pthread_sigmask(SIG_BLOCK, set, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* What workers inherit: the log level, their sandbox, where the driver caches compiled kernels, and
   where the store keeps jobs. */
static void environment_set(const struct options *options) {
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    static const char *const sandboxes[] = {"on", "off", "report"};
    char path[OPTION_TEXT_MAX + 16];
    setenv("KILN_LOG_LEVEL", levels[options->log_level], 1);
    setenv("KILN_SANDBOX", sandboxes[options->sandbox], 1);
    setenv(STORE_DIRECTORY_VARIABLE, options->state_dir, 1);
    if (options->state_dir[0] == '\0') {
        return;
    }
    if (mkdir(options->state_dir, 0700) != 0 && errno != EEXIST) {
        log_warning("--state-dir %s: %s", options->state_dir, strerror(errno));
        return;
    }
    snprintf(path, sizeof path, "%s/cuda", options->state_dir);
    setenv("CUDA_CACHE_PATH", path, 0);
}

static bool port_write(const char *path, int port) {
    if (path[0] == '\0') {
        return true;
    }
    char temporary[OPTION_TEXT_MAX + 8];
    snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *file = fopen(temporary, "we");
    if (file == NULL) {
        return false;
    }
    bool good = fprintf(file, "%d\n", port) > 0;
    good = fclose(file) == 0 && good;
    return good && rename(temporary, path) == 0; /* whole or not there */
}

static void pause_briefly(void) {
    const struct timespec time = {0, PAUSE_NS};
    nanosleep(&time, NULL);
}

/* Waits until no request is being read or answered. */
static void requests_wait(struct service *service, double seconds) {
    uint64_t until = clock_ns() + (uint64_t)(seconds * 1e9);
    while (atomic_load(&service->active) > 0 && clock_ns() < until) {
        pause_briefly();
    }
}

/* Returns how long answers may still take. */
static double drain(struct service *service, struct listener *listener) {
    double timeout = service->options->drain_timeout;
    uint64_t began = clock_ns();
    log_info("draining: up to %.0f s for running jobs", timeout);
    atomic_store(&service->draining, true);
    if (socket_activation_taken()) {
        listener_quiesce(listener);
    }
    dispatch_drain(service->dispatcher->dispatch);
    if (!dispatch_wait_idle(service->dispatcher->dispatch, timeout)) {
        log_warning("draining: jobs did not finish in time and are given up");
        return SEND_LEAST_S;
    }
    double left = timeout - (double)(clock_ns() - began) / 1e9;
    return left < SEND_LEAST_S ? SEND_LEAST_S : left > SEND_TIMEOUT_S ? SEND_TIMEOUT_S : left;
}

/* After this, nothing is suspended and nothing can be. Bodies that were still arriving are refused;
   their answers and those that are on their way get `seconds`. */
static void stop(struct service *service, struct listener *listener, double seconds) {
    dispatcher_close(service->dispatcher);
    jobs_stop(service->jobs);
    ledger_stop(service->ledger);
    if (listener != NULL) {
        listener_quiesce(listener);
        requests_wait(service, seconds);
    }
    listener_destroy(listener);
    ledger_destroy(service->ledger);
    jobs_destroy(service->jobs);
    dispatcher_destroy(service->dispatcher);
    connections_destroy(service->connections);
    connection_limit_destroy(service->connection_limit);
    access_destroy(service->access);
    cors_destroy(service->cors);
    service_finish(service);
}

static void device_count(const struct device_view *view, void *context) {
    uint64_t *count = context;
    *count += view->state != DEVICE_OFF;
}

/* As many connections as --connections says, or as there are descriptors for. */
static bool connections_plan(struct service *service, const struct options *options, uint64_t limit,
                             struct descriptors *plan, char *why, size_t why_size) {
    uint64_t devices = 0;
    dispatch_devices(service->dispatcher->dispatch, device_count, &devices);
    if (!descriptors_plan(limit, descriptors_open(), listener_loops(options), devices,
                          options->connections, plan)) {
        snprintf(why, why_size,
                 "the limit of open files (ulimit -n, LimitNOFILE=) is %" PRIu64 "; the daemon "
                 "itself needs %" PRIu64 " and each connection one more: at least %" PRIu64
                 " would do",
                 limit, plan->kept, plan->kept + 16);
        return false;
    }
    if (plan->connections < options->connections) {
        log_warning("--connections %" PRIu64 " is more than the limit of open files (ulimit -n, "
                    "LimitNOFILE=) of %" PRIu64 " leaves room for: %" PRIu64
                    " connections are taken",
                    options->connections, limit, plan->connections);
    }
    service->connection_limit =
        connection_limit_create(plan->connections, options->connections_per_address);
    if (service->connection_limit == NULL) {
        snprintf(why, why_size, "no memory for --connections");
        return false;
    }
    return true;
}

/* Who may come in. */
static bool doors_make(struct service *service, const struct options *options, char *why,
                       size_t why_size) {
    if (options->keys[0] != '\0') {
        service->access = access_create(options->keys, options->wrong_keys, why, why_size);
        if (service->access == NULL) {
            return false;
        }
    }
    if (options->cors_origin[0] != '\0') {
        service->cors = cors_create(options->cors_origin, why, why_size);
        return service->cors != NULL;
    }
    return true;
}

/* What is set aside may be more than this process may ever have. */
static void memory_compare(const struct options *options) {
    struct cgroup_memory group;
    cgroup_memory_read("", &group);
    if (options->arena > group.limit || options->cache_bytes > group.limit - options->arena) {
        log_warning("--arena and --cache-bytes come to %.1f MB together, but the control group may "
                    "have %.1f MB: the kernel will end the daemon when they fill up",
                    (double)(options->arena + options->cache_bytes) * 1e-6,
                    (double)group.limit * 1e-6);
    }
}

/* What holds for a thread holds for those that it starts: this comes before there are any. Of files
   only these are read from here on; the keys are read again on SIGHUP, from where they lie by then.
 */
static void front_confine(const struct options *options) {
    sandbox_folder_of(options->keys);
    sandbox_file(options->tls_cert);
    sandbox_file(options->tls_key);
    sandbox_enter(SANDBOX_OPENING);
}

/* The arena, the cache, and what requests share besides. */
static enum kiln_status shared_make(struct service *service, const struct options *options) {
    enum kiln_status status = service_init(service, options);
    const struct jobs_options jobs = {
        .arena = service->arena,
        .limits = &service->limits,
        .draining = &service->draining,
        .deadline_s = options->deadline,
        .cache_bytes = options->cache_bytes,
    };
    status = status == KILN_OK ? jobs_create(&jobs, &service->jobs) : status;
    const struct ledger_options ledger = {
        .jobs = service->jobs,
        .arena = service->arena,
        .draining = &service->draining,
        .bytes = (int64_t)(options->state_dir[0] == '\0' && options->store_bytes == 0
                               ? STORE_MEMORY_BYTES
                               : options->store_bytes),
        .jobs_max = (int64_t)options->store_jobs,
        .durable = options->state_dir[0] != '\0',
    };
    return status == KILN_OK ? ledger_create(&ledger, &service->ledger) : status;
}

/* Ends the daemon as its operator would: whoever looks after it starts it anew. */
static void on_lost(void *context) {
    struct service *service = context;
    atomic_store(&service->crippled, true);
    if (!atomic_load(&service->draining)) {
        kill(getpid(), SIGTERM);
    }
}

static enum kiln_status devices_open(struct service *service) {
    const struct options *options = service->options;
    const struct dispatch_options wanted = {
        .program = "/proc/self/exe",
        .devices = options->device,
        .slots = (int)options->slots,
        .gather = (int)options->gather,
        .threads = (int)options->threads,
        .queue = (int)options->queue,
        .deadline_s = options->deadline,
        .device_bytes = options->device_memory,
        .arena = service->arena,
        .lost = on_lost,
        .lost_context = service,
        .driven = true, /* by the first event loop */
    };
    return dispatcher_create(&wanted, &service->dispatcher);
}

static bool listen_on(struct service *service, int fd, struct listener **listener, char *why,
                      size_t why_size) {
    struct dispatcher *dispatcher = service->dispatcher;
    const struct listener_options options = {
        .service = service,
        .flow = &flow,
        .driven = {.fd = dispatch_fd(dispatcher->dispatch),
                   .turn = dispatcher_turn,
                   .timeout = dispatcher_timeout,
                   .context = dispatcher},
        .spins = dispatcher->spins,
    };
    return listener_create(&options, fd, listener, why, why_size);
}

static bool start(struct service *service, const struct options *options, uint64_t descriptors,
                  struct listener **listener, char *why, size_t why_size) {
    enum kiln_status status = shared_make(service, options);
    memory_compare(options);
    if (status != KILN_OK) {
        snprintf(why, why_size, "the arena (--arena) or the cache (--cache-bytes) cannot be made");
        return false;
    }
    if (!doors_make(service, options, why, why_size)) {
        return false;
    }
    status = devices_open(service);
    if (status != KILN_OK) {
        snprintf(why, why_size, "no device can be used as --device %.60s says: %s", options->device,
                 status_row(status)->title);
        return false;
    }
    struct descriptors plan;
    if (!connections_plan(service, options, descriptors, &plan, why, why_size)) {
        return false;
    }
    front_confine(options); /* whoever has to start programs has been started */
    int fd = socket_open(options, socket_activation_socket(), why, why_size);
    if (fd < 0) {
        return false;
    }
    capabilities_drop();
    if (connections_create(options->idle_timeout, options->transfer_timeout, (size_t)plan.lingers,
                           &service->connections) != KILN_OK ||
        jobs_open(service->jobs, &service->dispatcher->executor, service->dispatcher->variants) !=
            KILN_OK ||
        ledger_open(service->ledger) != KILN_OK) {
        snprintf(why, why_size, "threads cannot be made");
        close(fd);
        return false;
    }
    atomic_store(&service->dispatcher->ledger, service->ledger);
    return listen_on(service, fd, listener, why, why_size);
}

/* Waits for a signal; meanwhile a service manager that wants signs of life gets them, as long as
   every loop, and with the first the dispatcher, turns. They are looked at twice as often as
   needed, so that one late turn is no missed sign. */
static int signal_wait(const sigset_t *set, struct listener *listener) {
    uint64_t period = sd_notify_watchdog_ns() / 4;
    const struct timespec time = {(time_t)(period / 1000000000), (long)(period % 1000000000)};
    bool turned = true;
    for (;;) {
        int number = period > 0 ? sigtimedwait(set, NULL, &time) : sigwaitinfo(set, NULL);
        if (number > 0) {
            return number;
        }
        if (errno != EAGAIN) {
            continue; /* interrupted */
        }
        bool turns = listener_turns(listener);
        if (turns) {
            sd_notify_send("WATCHDOG=1");
        } else if (turned) {
            log_error("an event loop does not turn any more: the watchdog is not told");
        }
        turned = turns;
    }
}

/* From here on the default action of the two signals ends the process. */
static void signals_unblock(const sigset_t *set) {
    pthread_sigmask(SIG_UNBLOCK, set, NULL);
}

int serve_run(const struct options *options) {
    struct service *service = calloc(1, sizeof *service);
    struct listener *listener = NULL;
    char why[OPTION_WHY_MAX];
    sigset_t set;
    int code = EXIT_FAILURE;
    double seconds = SEND_LEAST_S;
    setenv("KILN_LOG_FORMAT", options->log_format == 1 ? "json" : "text", 1);
    log_init((enum log_level)options->log_level, "front");
    if (service == NULL) {
        return EXIT_FAILURE;
    }
    if (!socket_activation_take(why, sizeof why)) {
        log_error("%s", why);
        free(service);
        return EXIT_FAILURE;
    }
    capabilities_reduce(); /* before the first thread, and before any file is read */
    if (options->unknown[0] != '\0') {
        log_warning("in the environment, but no option: %s", options->unknown);
    }
    sd_notify_open();
    signals_block(&set, options->keys[0] != '\0');
    uint64_t descriptors = descriptors_raise(options->connections);
    environment_set(options);
    job_types_assert();
    routes_init();
    if (!start(service, options, descriptors, &listener, why, sizeof why)) {
        log_error("%s", why);
        goto out;
    }
    printf("kilnd listening on %s\n", listener_place(listener));
    fflush(stdout);
    if (!port_write(options->port_file, listener_port(listener))) {
        log_error("--port-file %s: %s", options->port_file, strerror(errno));
        goto out;
    }
    sandbox_enter(SANDBOX_FRONT); /* everything is open that ever will be */
    log_info("kilnd %s on %s, devices: %s", KILN_VERSION, listener_place(listener),
             service->dispatcher->kinds);
    sd_notify_send("READY=1\nSTATUS=%s, devices: %s", listener_place(listener),
                   service->dispatcher->kinds);
    while (signal_wait(&set, listener) == SIGHUP) {
        access_reload(service->access);
    }
    if (service->access != NULL) {
        signal(SIGHUP, SIG_IGN); /* the next one is not to end the drain */
    }
    signals_unblock(&set);
    sd_notify_send("STOPPING=1\nSTATUS=finishing the jobs that it has, up to %.0f s",
                   options->drain_timeout);
    seconds = drain(service, listener);
    code = atomic_load(&service->crippled) ? EXIT_FAILURE : EXIT_SUCCESS;
out:
    stop(service, listener, seconds);
    log_info("stopped");
    free(service);
    return code;
}
