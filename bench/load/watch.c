/*
 * watch.c: /proc and /metrics, twice.
 */
#include "bench/load/watch.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define METRICS_MAX (1 << 20)

/* The value of "Key:   123 kB" in /proc/PID/status. */
static uint64_t status_value(const char *text, const char *key) {
    const char *line = strstr(text, key);
    return line != NULL ? strtoull(line + strlen(key), NULL, 10) : 0;
}

static bool proc_read(int pid, const char *name, char *text, size_t capacity) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return false;
    }
    size_t size = fread(text, 1, capacity - 1, file);
    text[size] = '\0';
    fclose(file);
    return size > 0;
}

static uint64_t descriptors_count(int pid) {
    char path[64];
    uint64_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return 0;
    }
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    return count;
}

static bool process_read(struct watch_process *process, int pid) {
    char text[8192];
    if (!proc_read(pid, "status", text, sizeof text)) {
        return false;
    }
    process->pid = pid;
    process->resident = status_value(text, "\nVmRSS:") * 1024;
    process->anonymous = status_value(text, "\nRssAnon:") * 1024;
    process->threads = status_value(text, "\nThreads:");
    process->descriptors = descriptors_count(pid);
    return true;
}

static int parent_of(int pid) {
    char text[1024];
    if (!proc_read(pid, "stat", text, sizeof text)) {
        return 0;
    }
    /* The name stands in parentheses and may hold anything. */
    const char *end = strrchr(text, ')');
    int parent = 0;
    return end != NULL && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

/* Is it a child of the process, or a child's? Workers are started by a process of their own. */
static bool descends_from(int pid, int ancestor) {
    for (int depth = 0; pid > 1 && depth < 4; depth++) {
        pid = parent_of(pid);
        if (pid == ancestor) {
            return true;
        }
    }
    return false;
}

static int number_compare(const void *a, const void *b) {
    return ((const struct watch_process *)a)->pid - ((const struct watch_process *)b)->pid;
}

static bool processes_read(struct watch *watch, int pid, char *why, size_t why_size) {
    DIR *folder = opendir("/proc");
    if (folder == NULL || !process_read(&watch->process[0], pid)) {
        snprintf(why, why_size, "process %d cannot be read", pid);
        if (folder != NULL) {
            closedir(folder);
        }
        return false;
    }
    snprintf(watch->process[0].name, sizeof watch->process[0].name, "front");
    watch->processes = 1;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        int child = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;
        if (child > 0 && descends_from(child, pid) && watch->processes < WATCH_PROCESSES_MAX &&
            process_read(&watch->process[watch->processes], child)) {
            watch->processes++;
        }
    }
    closedir(folder);
    qsort(watch->process + 1, watch->processes - 1, sizeof watch->process[0], number_compare);
    for (size_t i = 1; i < watch->processes; i++) {
        snprintf(watch->process[i].name, sizeof watch->process[i].name, "child %zu", i);
    }
    return true;
}

/* Gauges that a leak would show in. Peaks may rise, and so may what counts. */
static bool gauge_is_wanted(const char *name, size_t size) {
    static const char *const words[] = {"arena_used", "arena_blocks", "memory",
                                        "cache",      "_connections", "_jobs"};
    static const char *const not [] = {"_total", "peak", "_bucket", "_sum", "_count", "resident"};
    char copy[120];
    bool wanted = false;
    size = strcspn(name, "{ ") < size ? strcspn(name, "{ ") : size;
    if (size >= sizeof copy) {
        return false;
    }
    memcpy(copy, name, size);
    copy[size] = '\0';
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        wanted = wanted || strstr(copy, words[i]) != NULL;
    }
    for (size_t i = 0; i < sizeof not / sizeof not [0]; i++) {
        wanted = wanted && strstr(copy, not [i]) == NULL;
    }
    return wanted;
}

size_t watch_gauges_read(struct watch *watch, const char *text) {
    watch->gauges = 0;
    while (*text != '\0' && watch->gauges < WATCH_GAUGES_MAX) {
        size_t line = strcspn(text, "\n"), name = line;
        while (name > 0 && text[name] != ' ') {
            name--;
        }
        struct watch_gauge *gauge = &watch->gauge[watch->gauges];
        if (*text != '#' && name > 0 && name < sizeof gauge->name && gauge_is_wanted(text, name)) {
            memcpy(gauge->name, text, name);
            gauge->name[name] = '\0';
            gauge->value = strtod(text + name, NULL);
            watch->gauges++;
        }
        text += line + (text[line] == '\n');
    }
    return watch->gauges;
}

bool watch_take(struct watch *watch, int pid, const struct target *target, char *why,
                size_t why_size) {
    static struct load_answer answer;
    bool fine = false;
    char *text = malloc(METRICS_MAX);
    memset(watch, 0, sizeof *watch);
    if (text == NULL) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    /* Processes first: the connection that asks for metrics is a descriptor as well. */
    if (processes_read(watch, pid, why, why_size) &&
        target_get(target, "/metrics", &answer, text, METRICS_MAX, why, why_size)) {
        fine = answer.status == 200 && watch_gauges_read(watch, text) > 0;
        if (!fine) {
            snprintf(why, why_size, "/metrics has none of the gauges (HTTP %d)", answer.status);
        }
    }
    free(text);
    return fine;
}

struct comparison {
    FILE *file;
    size_t broken;
};

/* Free memory of a GPU is what is judged there, because it is what others have left; that of a CPU
   device is the whole machine's. */
static bool gauge_is_free(const char *name) {
    return strncmp(name, "kiln_device_memory_free", 23) == 0 && strstr(name, "\"cpu") == NULL;
}

static void row_print(struct comparison *comparison, const char *who, const char *what,
                      double before, double after, double limit) {
    double growth = gauge_is_free(who) ? before - after : after - before;
    bool broken = limit >= 0 && growth > limit;
    comparison->broken += broken;
    fprintf(comparison->file, "| %s%s | %.0f | %.0f | %+.0f |", who, what, before, after,
            after - before);
    if (limit < 0) {
        fprintf(comparison->file, " | |\n");
    } else {
        fprintf(comparison->file, " %.0f | %s |\n", limit, broken ? "**grew**" : "ok");
    }
}

static void processes_compare(struct comparison *comparison, const struct watch *before,
                              const struct watch *after, const struct watch_limits *limits) {
    for (size_t i = 0; i < before->processes || i < after->processes; i++) {
        const struct watch_process *old = &before->process[i], *new = &after->process[i];
        if (i >= before->processes || i >= after->processes || old->pid != new->pid) {
            fprintf(comparison->file, "| process %d | | is now %d | | | **replaced** |\n", old->pid,
                    new->pid);
            comparison->broken++;
            continue;
        }
        row_print(comparison, old->name, ": anonymous memory, KiB", (double)(old->anonymous >> 10),
                  (double)(new->anonymous >> 10), (double)(limits->memory >> 10));
        /* Resident memory holds the arena's pages as well, which are touched in any order. */
        row_print(comparison, old->name, ": resident memory, KiB", (double)(old->resident >> 10),
                  (double)(new->resident >> 10), -1);
        row_print(comparison, old->name, ": descriptors", (double)old->descriptors,
                  (double)new->descriptors, (double)limits->descriptors);
        row_print(comparison, old->name, ": threads", (double)old->threads, (double)new->threads,
                  0);
    }
}

static const struct watch_gauge *gauge_find(const struct watch *watch, const char *name) {
    for (size_t i = 0; i < watch->gauges; i++) {
        if (strcmp(watch->gauge[i].name, name) == 0) {
            return &watch->gauge[i];
        }
    }
    return NULL;
}

/* The growth that a gauge may have; negative where it is only shown. A cache may fill; its memory
   is not the arena's. */
static double gauge_limit(const char *name, const struct watch_limits *limits) {
    if (gauge_is_free(name) || strncmp(name, "kiln_device_memory_pools", 24) == 0) {
        return (double)limits->device;
    }
    return strncmp(name, "kiln_arena_", 11) == 0 || strstr(name, "_jobs") != NULL ? 0 : -1;
}

size_t watch_compare(FILE *file, const struct watch *before, const struct watch *after,
                     const struct watch_limits *limits) {
    struct comparison comparison = {file, 0};
    fprintf(file, "| what | before | after | growth | allowed | |\n|---|--:|--:|--:|--:|---|\n");
    processes_compare(&comparison, before, after, limits);
    for (size_t i = 0; i < after->gauges; i++) {
        const char *name = after->gauge[i].name;
        const struct watch_gauge *old = gauge_find(before, name);
        row_print(&comparison, name, "", old != NULL ? old->value : 0, after->gauge[i].value,
                  gauge_limit(name, limits));
    }
    return comparison.broken;
}
