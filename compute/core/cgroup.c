/*
 * cgroup.c: limits of memory along the path of this process's control group.
 *
 * /proc/self/cgroup tells the group, /proc/self/mountinfo where its hierarchy is mounted, and which
 * part of it: in a container that is often the container's own group, whose path on the host means
 * nothing inside. So the path is taken relative to the mounted part, where it lies in it, and else
 * left out; from there the way goes up to the mount's own folder.
 */
#include "compute/core/cgroup.h"

#include "compute/core/words.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_LIMIT (UINT64_C(1) << 60) /* version 1 says "none" with a number like this */
#define LEVELS   64

/* What the two versions call things. */
struct version {
    const char *type;                          /* of the file system */
    const char *controller;                    /* NULL: one hierarchy for all */
    const char *limits[2], *usage, *reclaimed; /* `reclaimed`: a line of memory.stat */
};

static const struct version versions[] = {
    {"cgroup2", NULL, {"memory.max", "memory.high"}, "memory.current", "inactive_file"},
    {"cgroup",
     "memory",
     {"memory.limit_in_bytes", NULL},
     "memory.usage_in_bytes",
     "total_inactive_file"},
};

/* Calls `each` for the lines of root/proc/self/<name> until it says true. */
static bool lines_read(const char *root, const char *name, const struct version *version,
                       bool (*each)(char *line, const struct version *version, char *a, char *b),
                       char *a, char *b) {
    char path[PATH_MAX];
    char *line = NULL;
    size_t capacity = 0;
    bool found = false;
    if (snprintf(path, sizeof path, "%s/proc/self/%s", root, name) >= (int)sizeof path)
        return false;
    FILE *file = fopen(path, "re");
    while (file && !found && getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\n")] = '\0';
        found = each(line, version, a, b);
    }
    free(line);
    if (file)
        fclose(file);
    return found;
}

static void text_copy(char *to, const char *from, size_t size) {
    size = size < PATH_MAX ? size : PATH_MAX - 1;
    memcpy(to, from, size);
    to[size] = '\0';
}

/* "4:cpu,memory:/path" or "0::/path". */
static bool group_take(char *line, const struct version *version, char *path, char *unused) {
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    (void)unused;
    if (!group)
        return false;
    size_t size = (size_t)(group - controllers) - 1;
    if (version->controller ? !words_have(controllers + 1, size, version->controller) : size > 0)
        return false;
    text_copy(path, group + 1, strlen(group + 1));
    return true;
}

/* "36 35 0:30 /root /mount/point rw … - cgroup2 source rw,…": the fourth and fifth word. */
static bool mount_take(char *line, const struct version *version, char *mounted, char *point) {
    char *tail = strstr(line, " - ");
    char *words[5], type[32], options[1024];
    char *next = line;
    if (!tail || sscanf(tail + 3, "%31s %*s %1023s", type, options) != 2 ||
        strcmp(type, version->type) != 0 ||
        (version->controller && !words_have(options, strlen(options), version->controller)))
        return false;
    for (int i = 0; i < 5; i++) {
        words[i] = next;
        next = strchr(next, ' ');
        if (!next)
            return false;
        *next++ = '\0';
    }
    text_copy(mounted, words[3], strlen(words[3]));
    text_copy(point, words[4], strlen(words[4]));
    return true;
}

/* A number in a file; UINT64_MAX for "max", none, or one that is no limit. With `key`, that of the
   line "key number". */
static uint64_t value_read(const char *folder, const char *name, const char *key) {
    char path[2 * PATH_MAX], word[64], number[32];
    uint64_t value = UINT64_MAX;
    if (!name || snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return value;
    FILE *file = fopen(path, "re");
    if (!file)
        return value;
    if (!key) {
        if (fscanf(file, "%31s", number) == 1 && number[0] >= '0' && number[0] <= '9')
            value = strtoull(number, NULL, 10);
    } else {
        while (value == UINT64_MAX && fscanf(file, "%63s %31s", word, number) == 2)
            value = strcmp(word, key) == 0 ? strtoull(number, NULL, 10) : UINT64_MAX;
    }
    fclose(file);
    return value < NO_LIMIT ? value : UINT64_MAX;
}

static void level_read(const char *folder, const struct version *version,
                       struct cgroup_memory *memory) {
    uint64_t limit = UINT64_MAX;
    for (int i = 0; i < 2; i++) {
        uint64_t one = value_read(folder, version->limits[i], NULL);
        limit = one < limit ? one : limit;
    }
    if (limit == UINT64_MAX)
        return;
    uint64_t used = value_read(folder, version->usage, NULL);
    uint64_t cached = value_read(folder, "memory.stat", version->reclaimed);
    used = used == UINT64_MAX ? 0 : used;
    used -= cached == UINT64_MAX ? 0 : cached < used ? cached : used;
    uint64_t left = used < limit ? limit - used : 0;
    memory->limit = limit < memory->limit ? limit : memory->limit;
    memory->free = left < memory->free ? left : memory->free;
}

/* From the group's folder up to the mount point. */
static void way_read(const char *root, const char *group, const char *mounted, const char *point,
                     const struct version *version, struct cgroup_memory *memory) {
    char folder[2 * PATH_MAX];
    size_t prefix = strcmp(mounted, "/") == 0 ? 0 : strlen(mounted);
    bool inside = strncmp(group, mounted, prefix) == 0 &&
                  (group[prefix] == '/' || group[prefix] == '\0') && !strstr(group, "/..");
    int base = snprintf(folder, sizeof folder, "%s%s", root, point);
    if (base < 0 || base >= (int)sizeof folder)
        return;
    if (inside)
        snprintf(folder + base, sizeof folder - (size_t)base, "%s", group + prefix);
    for (int i = 0; i < LEVELS; i++) {
        char *slash = strrchr(folder + base, '/');
        level_read(folder, version, memory);
        if (!slash)
            return;
        *slash = '\0';
    }
}

void cgroup_memory_read(const char *root, struct cgroup_memory *memory) {
    char group[PATH_MAX], mounted[PATH_MAX], point[PATH_MAX];
    *memory = (struct cgroup_memory){UINT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (lines_read(root, "cgroup", &versions[i], group_take, group, NULL) &&
            lines_read(root, "mountinfo", &versions[i], mount_take, mounted, point))
            way_read(root, group, mounted, point, &versions[i], memory);
    }
}
