/*
 * describe.c: what the system tells about its processor and memory, as JSON.
 *
 * Everything is read from /proc and /sys when asked; what is not there is left out. Any thread.
 */
#include "compute/core/cgroup.h"
#include "kernels/cpu/device/stream.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct processor {
    char name[128];
    char flags[8192];
    double mhz; /* 0: unknown */
};

/* The value of a "key : value" line, or NULL. */
static const char *line_value(const char *line, const char *key) {
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0) {
        return NULL;
    }
    const char *value = line + length;
    while (*value == ' ' || *value == '\t') {
        value++;
    }
    if (*value++ != ':') {
        return NULL;
    }
    while (*value == ' ' || *value == '\t') {
        value++;
    }
    return value;
}

static void copy_value(char *to, size_t size, const char *value) {
    size_t length = strcspn(value, "\n");
    if (length >= size) {
        length = size - 1;
    }
    memcpy(to, value, length);
    to[length] = '\0';
}

/* Reads the first processor's block of /proc/cpuinfo. */
static void processor_read(struct processor *processor) {
    memset(processor, 0, sizeof *processor);
    FILE *file = fopen("/proc/cpuinfo", "re");
    char *line = NULL;
    size_t capacity = 0;
    while (file != NULL && getline(&line, &capacity, file) > 1) {
        const char *value;
        if ((value = line_value(line, "model name")) != NULL ||
            (value = line_value(line, "CPU part")) != NULL) {
            copy_value(processor->name, sizeof processor->name, value);
        } else if ((value = line_value(line, "flags")) != NULL ||
                   (value = line_value(line, "Features")) != NULL) {
            copy_value(processor->flags, sizeof processor->flags, value);
        } else if ((value = line_value(line, "cpu MHz")) != NULL) {
            processor->mhz = strtod(value, NULL);
        }
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
    if (!processor->name[0]) {
        snprintf(processor->name, sizeof processor->name, "CPU");
    }
}

/* Kibibytes of a line of /proc/meminfo, in bytes; 0: unknown. */
static uint64_t memory_read(const char *key) {
    FILE *file = fopen("/proc/meminfo", "re");
    char line[256];
    uint64_t bytes = 0;
    while (file != NULL && bytes == 0 && fgets(line, sizeof line, file) != NULL) {
        const char *value = line_value(line, key);
        if (value != NULL) {
            bytes = strtoull(value, NULL, 10) * 1024;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

/* A number from a one-line file, or -1. */
static double number_read(const char *path) {
    FILE *file = fopen(path, "re");
    double number = -1;
    if (file != NULL) {
        if (fscanf(file, "%lf", &number) != 1) {
            number = -1;
        }
        fclose(file);
    }
    return number;
}

uint64_t cpu_memory_total(void) {
    struct cgroup_memory group;
    uint64_t total = memory_read("MemTotal");
    cgroup_memory_read("", &group);
    total = total == 0 ? UINT64_MAX : total;
    total = group.limit < total ? group.limit : total;
    return total == UINT64_MAX ? 0 : total;
}

/* The host's, or what a control group leaves of it. */
static void write_memory(struct text *json) {
    struct cgroup_memory group;
    uint64_t left = memory_read("MemAvailable");
    cgroup_memory_read("", &group);
    text_format(json, "\"memory\":{\"total\":%llu,\"free\":%llu}",
                (unsigned long long)cpu_memory_total(),
                (unsigned long long)(group.free < left ? group.free : left));
}

static void write_clocks(const struct processor *processor, struct text *json) {
    const char *folder = "/sys/devices/system/cpu/cpu0/cpufreq";
    char path[128];
    snprintf(path, sizeof path, "%s/scaling_cur_freq", folder);
    double current = number_read(path) / 1000;
    snprintf(path, sizeof path, "%s/cpuinfo_max_freq", folder);
    double maximum = number_read(path) / 1000;
    if (current <= 0) {
        current = processor->mhz;
    }
    const char *comma = "";
    text_string(json, ",\"clocks\":{");
    if (current > 0) {
        text_format(json, "\"core\":%.0f", current);
        comma = ",";
    }
    if (maximum > 0) {
        text_format(json, "%s\"core_maximum\":%.0f", comma, maximum);
    }
    text_string(json, "}");
}

static void write_caches(struct text *json) {
    static const struct {
        const char *name;
        int key;
    } rows[] = {
        {"l1d", _SC_LEVEL1_DCACHE_SIZE},
        {"l1i", _SC_LEVEL1_ICACHE_SIZE},
        {"l2", _SC_LEVEL2_CACHE_SIZE},
        {"l3", _SC_LEVEL3_CACHE_SIZE},
    };
    const char *comma = "";
    text_string(json, ",\"caches\":{");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        long size = sysconf(rows[i].key);
        if (size <= 0) {
            continue;
        }
        text_format(json, "%s\"%s\":%ld", comma, rows[i].name, size);
        comma = ",";
    }
    text_string(json, "}");
}

static void write_temperature(struct text *json) {
    double degrees = number_read("/sys/class/thermal/thermal_zone0/temp") / 1000;
    if (degrees > 0) {
        text_format(json, ",\"temperature\":%.1f", degrees);
    }
}

/* Every flag of the processor by name. */
static void write_attributes(const struct processor *processor, struct text *json) {
    text_format(json, ",\"attributes\":{\"page_size\":%ld,\"processors_online\":%ld",
                sysconf(_SC_PAGESIZE), sysconf(_SC_NPROCESSORS_ONLN));
    const char *flag = processor->flags;
    while (*flag) {
        size_t length = strcspn(flag, " ");
        if (length) {
            text_string(json, ",");
            text_json_string(json, flag, length);
            text_string(json, ":true");
        }
        flag += length + strspn(flag + length, " ");
    }
    text_string(json, "}");
}

enum kiln_status cpu_enumerate(struct text *json, char *why, size_t why_size) {
    struct processor processor;
    processor_read(&processor);
    text_string(json, "[{\"name\":");
    text_json_string(json, processor.name, strlen(processor.name));
    text_format(json, ",\"index\":0,\"cores\":%d,\"simd\":\"%s\",", thread_pool_processors(),
                isa_name(isa_choose()));
    write_memory(json);
    text_string(json, "}]");
    if (why_size) {
        why[0] = '\0';
    }
    return KILN_OK;
}

enum kiln_status cpu_describe(struct device *device, struct text *json) {
    struct processor processor;
    processor_read(&processor);
    text_string(json, "{\"name\":");
    text_json_string(json, processor.name, strlen(processor.name));
    text_format(
        json, ",\"cores\":%d,\"threads\":%d,\"simd\":\"%s\",\"held\":%llu,",
        thread_pool_processors(), thread_pool_width(device->pool), isa_name(device->isa),
        (unsigned long long)atomic_load_explicit(&device->account.held, memory_order_relaxed));
    write_memory(json);
    write_clocks(&processor, json);
    write_caches(json);
    write_temperature(json);
    write_attributes(&processor, json);
    text_string(json, "}");
    return KILN_OK;
}
