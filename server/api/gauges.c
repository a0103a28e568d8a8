/*
 * gauges.c: tables of names, kinds and helps, and where each value comes from.
 */
#include "server/api/gauges.h"

#include "compute/codecs/json.h"
#include "compute/core/log.h"
#include "server/api/metrics.h"
#include "server/jobs/dispatcher.h"
#include "server/jobs/result_reuse.h"

#include <inttypes.h>
#include <math.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A family without labels. */
struct gauge {
    const char *name, *type, *help;
    double value;
};

static void head_print(struct text *text, const char *name, const char *type, const char *help) {
    text_format(text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void gauges_list(struct text *text, const struct gauge *gauges, size_t count) {
    for (size_t i = 0; i < count; i++) {
        head_print(text, gauges[i].name, gauges[i].type, gauges[i].help);
        text_format(text, "%s ", gauges[i].name);
        text_double(text, gauges[i].value);
        text_string(text, "\n");
    }
}

#define COUNT(rows) (sizeof(rows) / sizeof(rows)[0])

/* ---- this process, by the names that Prometheus' own libraries use ---- */

/* Bytes of address space and of resident memory; 0 where /proc does not tell. */
static void memory_read(double *space, double *resident) {
    unsigned long long pages = 0, pages_resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL) {
        if (fscanf(file, "%llu %llu", &pages, &pages_resident) != 2) {
            pages = pages_resident = 0;
        }
        fclose(file);
    }
    *space = (double)pages * (double)sysconf(_SC_PAGESIZE);
    *resident = (double)pages_resident * (double)sysconf(_SC_PAGESIZE);
}

/* At most what a kernel allows by itself: fs.nr_open. */
static double descriptors_most(void) {
    struct rlimit limit;
    rlim_t most = 1 << 20;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < most ? (double)limit.rlim_cur
                                                                          : (double)most;
}

/* Open descriptors. Since Linux 6.2 the folder's size is their number; before, each is asked for:
   the front reads no folders. */
static double descriptors_count(double most) {
    enum { CHUNK = 256 };
    struct pollfd chunk[CHUNK];
    struct stat folder;
    double open = 0;
    if (stat("/proc/self/fd", &folder) == 0 && folder.st_size > 0) {
        return (double)folder.st_size;
    }
    for (int from = 0; from < most; from += CHUNK) {
        int count = most - from < CHUNK ? (int)most - from : CHUNK;
        for (int i = 0; i < count; i++) {
            chunk[i] = (struct pollfd){.fd = from + i};
        }
        if (poll(chunk, (nfds_t)count, 0) < 0) {
            break;
        }
        for (int i = 0; i < count; i++) {
            open += (chunk[i].revents & POLLNVAL) == 0;
        }
    }
    return open;
}

/* The same at every scrape: clocks that are set do not move it. */
static double started_read(const struct service *service) {
    static _Atomic uint64_t started_ms;
    uint64_t known = atomic_load(&started_ms);
    if (known == 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        double seconds = (double)now.tv_sec + (double)now.tv_nsec / 1e9 -
                         (double)(clock_ns() - service->started_ns) / 1e9;
        uint64_t fresh = (uint64_t)(seconds * 1e3);
        known = atomic_compare_exchange_strong(&started_ms, &known, fresh) ? fresh : known;
    }
    return (double)known / 1e3;
}

static void self_print(struct text *text, const struct service *service) {
    struct timespec spent = {0, 0};
    double space, resident, most = descriptors_most();
    memory_read(&space, &resident);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    const struct gauge rows[] = {
        {"process_cpu_seconds_total", "counter", "Processor time of the front.",
         (double)spent.tv_sec + (double)spent.tv_nsec / 1e9},
        {"process_open_fds", "gauge", "Open file descriptors of the front.",
         descriptors_count(most)},
        {"process_max_fds", "gauge", "Most file descriptors that the front may have open.", most},
        {"process_virtual_memory_bytes", "gauge", "Address space of the front.", space},
        {"process_resident_memory_bytes", "gauge", "Resident memory of the front.", resident},
        {"process_start_time_seconds", "gauge", "Start of the daemon, in seconds since 1970.",
         started_read(service)},
    };
    gauges_list(text, rows, COUNT(rows));
    head_print(text, "kiln_build_info", "gauge", "Always 1: what this daemon was built of.");
    text_format(text, "kiln_build_info{version=\"%s\",compiler=\"%s\",libmicrohttpd=\"%s\"} 1\n",
                KILN_VERSION, __VERSION__, MHD_get_version());
}

static void queue_print(struct text *text, struct dispatch *dispatch) {
    struct dispatch_stats stats = {0};
    dispatch_stats(dispatch, &stats);
    const struct gauge rows[] = {
        {"kiln_queue_jobs", "gauge", "Jobs that wait.", (double)stats.queued},
        {"kiln_queue_peak_jobs", "gauge", "Most jobs that ever waited.", (double)stats.queue_peak},
        {"kiln_queue_oldest_seconds", "gauge", "How long the oldest waiting job has waited.",
         stats.oldest_s},
        {"kiln_running_jobs", "gauge", "Jobs on devices.", (double)stats.running},
        {"kiln_jobs_submitted_total", "counter", "Jobs taken.", (double)stats.submitted},
        {"kiln_jobs_completed_total", "counter", "Jobs done.", (double)stats.completed},
        {"kiln_jobs_failed_total", "counter", "Jobs that failed.", (double)stats.failed},
        {"kiln_jobs_cancelled_total", "counter", "Jobs whose clients left, or that were deleted.",
         (double)stats.cancelled},
        {"kiln_jobs_retried_total", "counter", "Jobs run again after a worker died.",
         (double)stats.retried},
        {"kiln_jobs_refused_total", "counter",
         "Jobs refused: queue full, no memory, no device, or too large.", (double)stats.refused},
    };
    gauges_list(text, rows, COUNT(rows));
}

/* ---- devices ---- */

/* A number of the worker's description, such as "memory.free"; NAN if it is not there. */
static double described(const struct device_view *view, const char *outer, const char *inner) {
    struct json_value object;
    json_value_make(view->description, strlen(view->description), &object);
    struct json_value value = json_member(&object, outer);
    if (inner != NULL) {
        value = json_member(&value, inner);
    }
    double number = value.type == JSON_NUMBER ? json_number(&value) : NAN;
    return isfinite(number) ? number : NAN; /* a worker may write anything */
}

static double device_up(const struct device_view *view) {
    return view->state == DEVICE_READY;
}
static double device_slots(const struct device_view *view) {
    return view->slots;
}
static double device_running(const struct device_view *view) {
    return view->running;
}
static double device_done(const struct device_view *view) {
    return (double)view->jobs_done;
}
static double device_failed(const struct device_view *view) {
    return (double)view->jobs_failed;
}
static double device_respawns(const struct device_view *view) {
    return (double)view->respawns;
}
static double device_gathered(const struct device_view *view) {
    return (double)view->gathered;
}
static double device_busy(const struct device_view *view) {
    return view->busy_s;
}
static double device_active(const struct device_view *view) {
    return view->active_s;
}
static double memory_total(const struct device_view *view) {
    return described(view, "memory", "total");
}
static double memory_free(const struct device_view *view) {
    return described(view, "memory", "free");
}
static double memory_pools(const struct device_view *view) {
    double pools = described(view, "memory", "pools");
    return isnan(pools) ? described(view, "held", NULL) : pools;
}
static double device_energy(const struct device_view *view) {
    return described(view, "energy", NULL);
}
static double device_power(const struct device_view *view) {
    return described(view, "power", NULL);
}
static double device_temperature(const struct device_view *view) {
    return described(view, "temperature", NULL);
}

struct device_metric {
    const char *name, *type, *help;
    double (*value)(const struct device_view *view); /* NAN: this device does not tell */
};

static const struct device_metric device_metrics[] = {
    {"kiln_device_ready", "gauge", "1 while the device takes jobs.", device_up},
    {"kiln_device_slots", "gauge", "Jobs that the device can run at a time.", device_slots},
    {"kiln_device_running_jobs", "gauge",
     "Jobs on the device; more than its slots where small ones share one.", device_running},
    {"kiln_device_jobs_done_total", "counter", "Jobs done.", device_done},
    {"kiln_device_jobs_failed_total", "counter", "Jobs failed.", device_failed},
    {"kiln_device_gathered_jobs_total", "counter", "Jobs that ran together with others.",
     device_gathered},
    {"kiln_device_respawns_total", "counter", "Workers replaced.", device_respawns},
    {"kiln_device_busy_seconds_total", "counter",
     "Upload, kernel, download and encode time of jobs, summed over slots.", device_busy},
    {"kiln_device_active_seconds_total", "counter",
     "Time with at least one job on the device: its rate is the busy fraction.", device_active},
    {"kiln_device_memory_total_bytes", "gauge", "The device's memory.", memory_total},
    {"kiln_device_memory_free_bytes", "gauge", "Free memory of the device.", memory_free},
    {"kiln_device_memory_pools_bytes", "gauge", "Device memory held by our pools.", memory_pools},
    {"kiln_device_energy_joules_total", "counter",
     "Energy that the device has used since its driver was loaded.", device_energy},
    {"kiln_device_power_watts", "gauge", "Power drawn now.", device_power},
    {"kiln_device_temperature_celsius", "gauge", "Temperature.", device_temperature},
};

struct device_column {
    struct text *text;
    const struct device_metric *metric;
};

static void device_cell_print(const struct device_view *view, void *context) {
    const struct device_column *column = context;
    double value = column->metric->value(view);
    if (!isnan(value)) {
        text_format(column->text, "%s{device=\"%s\"} ", column->metric->name, view->name);
        text_double(column->text, value);
        text_string(column->text, "\n");
    }
}

static void devices_print(struct text *text, struct dispatch *dispatch) {
    for (size_t i = 0; i < COUNT(device_metrics); i++) {
        struct device_column column = {text, &device_metrics[i]};
        head_print(text, column.metric->name, column.metric->type, column.metric->help);
        dispatch_devices(dispatch, device_cell_print, &column);
    }
}

/* ---- memory and cache ---- */

static void arena_print(struct text *text, struct arena *arena) {
    struct arena_stats stats;
    struct holding most = {.bytes = 0};
    arena_stats(arena, &stats);
    arena_holders(arena, &most, 1);
    const struct gauge rows[] = {
        {"kiln_arena_bytes", "gauge", "Size of the arena.", (double)stats.size},
        {"kiln_arena_used_bytes", "gauge", "Taken now.", (double)stats.used},
        {"kiln_arena_peak_bytes", "gauge", "Most ever taken.", (double)stats.peak},
        {"kiln_arena_blocks", "gauge", "Blocks taken now.", (double)stats.blocks},
        {"kiln_arena_failures_total", "counter", "Blocks refused.", (double)stats.failures},
        {"kiln_arena_over_share_total", "counter",
         "Blocks refused although there was room: their client's share was used up.",
         (double)stats.over_share},
        {"kiln_arena_largest_free_bytes", "gauge", "Free in one piece.", (double)stats.largest},
        {"kiln_arena_clients", "gauge", "Keys or addresses that hold blocks.",
         (double)stats.holders},
        {"kiln_arena_client_most_bytes", "gauge", "What the one that holds most holds.",
         (double)most.bytes},
    };
    gauges_list(text, rows, COUNT(rows));
}

static void cache_requests_print(struct text *text, struct result_reuse *reuse) {
    static const char name[] = "kiln_cache_requests_total";
    const struct {
        const char *result;
        uint64_t value;
    } rows[] = {
        {"hit", atomic_load(&reuse->hits)},
        {"miss", atomic_load(&reuse->misses)},
        {"shared", atomic_load(&reuse->shared)},
        {"refused", atomic_load(&reuse->refused)},
    };
    head_print(text, name, "counter",
               "Requests for results: kept, run, waited for one that ran, run because the client "
               "wanted it so.");
    for (size_t i = 0; i < COUNT(rows); i++) {
        text_format(text, "%s{result=\"%s\"} %" PRIu64 "\n", name, rows[i].result, rows[i].value);
    }
}

static void cache_print(struct text *text, struct result_reuse *reuse) {
    struct cache_stats stats;
    cache_requests_print(text, reuse);
    cache_stats(reuse->cache, &stats);
    const struct gauge rows[] = {
        {"kiln_cache_bytes", "gauge", "Memory that kept results may take.", (double)stats.capacity},
        {"kiln_cache_used_bytes", "gauge", "Memory that they take.", (double)stats.used},
        {"kiln_cache_entries", "gauge", "Results kept.", (double)stats.entries},
        {"kiln_cache_stored_total", "counter", "Results that were taken.", (double)stats.stored},
        {"kiln_cache_declined_total", "counter", "Results that were not taken for their size.",
         (double)stats.declined},
        {"kiln_cache_evicted_total", "counter", "Results dropped for others or for their age.",
         (double)stats.evicted},
    };
    gauges_list(text, rows, COUNT(rows));
}

static void process_print(struct text *text, struct service *service) {
    uint64_t open, cut, counted, over_total, over_each;
    connections_count(service->connections, &open, &cut);
    connection_limit_count(service->connection_limit, &counted, &over_total, &over_each);
    const struct gauge rows[] = {
        {"kiln_connections", "gauge", "Open connections.", (double)open},
        {"kiln_connections_cut_total", "counter", "Connections cut for crawling.", (double)cut},
        {"kiln_connections_most", "gauge",
         "Connections that are taken at most: --connections, or what descriptors allow.",
         (double)connection_limit_most(service->connection_limit)},
        {"kiln_connections_refused_total", "counter", "Connections refused for --connections.",
         (double)over_total},
        {"kiln_connections_refused_address_total", "counter",
         "Connections refused for --connections-per-address.", (double)over_each},
        {"kiln_active_requests", "gauge", "Requests being read or answered.",
         (double)atomic_load(&service->active)},
        {"kiln_log_lines_lost_total", "counter",
         "Lines of the front's log that could not be written.", (double)log_dropped()},
        {"kiln_uptime_seconds", "gauge", "Time since the start.",
         (double)(clock_ns() - service->started_ns) / 1e9},
    };
    gauges_list(text, rows, COUNT(rows));
}

void gauges_print(struct http_request *request, struct text *text) {
    struct service *service = request->service;
    struct dispatch *dispatch = dispatcher_enter(service->dispatcher);
    metrics_print(text);
    if (dispatch != NULL) {
        queue_print(text, dispatch);
        devices_print(text, dispatch);
        dispatcher_leave(service->dispatcher);
    }
    arena_print(text, service->arena);
    if (service->jobs->reuse != NULL) {
        cache_print(text, service->jobs->reuse);
    }
    access_print(service->access, text);
    process_print(text, service);
    self_print(text, service);
}
