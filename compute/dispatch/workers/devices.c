/*
 * devices.c: the devices there are, and those that --device chose.
 *
 * The probe's JSON gives one row per device; devices that were asked for by name but are not there
 * get a row too, with the reason, and so does a kind as a whole when it is missing, so that
 * /v1/devices says why there is no GPU. Rows stand in the order of device_kinds: at equal load the
 * first one gets the job.
 */
#include "compute/dispatch/workers/devices.h"

#include "compute/codecs/json.h"
#include "compute/core/log.h"
#include "compute/core/words.h"
#include "compute/worker/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBE_TIMEOUT_MS 10000
#define PROBE_TEXT_MAX   (256u << 10)

static struct supervisor *row_find(struct workers *workers, const char *name) {
    for (int i = 0; i < workers->queue->count; i++) {
        if (strcmp(workers->queue->supervisors[i].name, name) == 0) {
            return &workers->queue->supervisors[i];
        }
    }
    return NULL;
}

/* Adds a row; NULL when there are too many devices or too little memory. */
static struct supervisor *row_add(struct workers *workers, const char *kind, int index,
                                  const char *description, size_t size) {
    if (workers->queue->count == DEVICES_MAX) {
        return NULL;
    }
    struct supervisor *row = &workers->queue->supervisors[workers->queue->count];
    row->description = malloc(NOTICE_TEXT_MAX);
    if (row->description == NULL) {
        return NULL;
    }
    if (size >= NOTICE_TEXT_MAX) {
        description = "{}";
        size = 2;
    }
    memcpy(row->description, description, size);
    row->description[size] = '\0';
    row->described_ns = clock_ns();
    row->pidfd = row->job_fd = row->control_fd = -1;
    snprintf(row->name, sizeof row->name, "%s:%d", kind, index);
    row->index = workers->queue->count++;
    return row;
}

/* Rows of one kind from the probe's array. */
static void rows_from_array(struct workers *workers, const char *kind,
                            const struct json_value *array) {
    struct json_value entry;
    size_t cursor = 0;
    int position = 0;
    while (array->type == JSON_ARRAY && json_next_element(array, &cursor, &entry)) {
        int index = position++;
        if (entry.type != JSON_OBJECT) {
            continue;
        }
        struct json_value number = json_member(&entry, "index");
        if (number.type == JSON_NUMBER) {
            double value = json_number(&number);
            index = value >= 0 && value < 1000 ? (int)value : index;
        }
        struct supervisor *row = row_add(workers, kind, index, entry.text, entry.size);
        if (row != NULL) {
            row->present = true;
        }
    }
}

/* The kind's first device, or the row that says why there is none; NULL if it has no row yet. */
static struct supervisor *row_of_kind(const struct workers *workers, const char *kind) {
    for (int i = 0; i < workers->queue->count; i++) {
        if (device_kind_matches(workers->queue->supervisors[i].name, kind)) {
            return &workers->queue->supervisors[i];
        }
    }
    return NULL;
}

/* A row for a kind of which there is nothing, with the reason. */
static void row_explain(struct workers *workers, const char *kind, const struct json_value *why) {
    struct supervisor *row = row_add(workers, kind, 0, "{}", 2);
    if (row == NULL) {
        return;
    }
    struct json_value text = json_member(why, kind);
    if (text.type == JSON_STRING) {
        json_string(&text, row->reason, sizeof row->reason);
    } else {
        snprintf(row->reason, sizeof row->reason, "the probe found no such device");
    }
}

/* The kernels of all devices of a kind: its own table's, or what the probe found in its module. */
static void kernels_learn(struct workers *workers, const struct device_kind *kind,
                          const struct json_value *named) {
    struct json_value names = json_member(named, kind->name), entry;
    uint32_t kernels = kind->builtin != NULL ? kind->builtin->kernels : 0;
    size_t cursor = 0;
    while (names.type == JSON_ARRAY && json_next_element(&names, &cursor, &entry)) {
        char name[32] = "";
        if (entry.type == JSON_STRING) {
            json_string(&entry, name, sizeof name);
        }
        for (int id = 0; id < KERNEL_COUNT; id++) {
            kernels |= strcmp(name, kernel_name(id)) == 0 ? (uint32_t)1 << id : 0;
        }
    }
    for (int i = 0; i < workers->queue->count; i++) {
        struct supervisor *row = &workers->queue->supervisors[i];
        row->kernels = device_kind_matches(row->name, kind->name) ? kernels : row->kernels;
    }
}

/* The probe's whole output; whatever is wrong with it, the fallback is there. */
static void rows_from_probe(struct workers *workers, const char *text, size_t size) {
    char complaint[128] = "";
    struct json_value root = {.type = JSON_NULL}, why = root, kernels = root;
    if (size == 0 || json_check(text, size, &root, complaint, sizeof complaint) != KILN_OK ||
        root.type != JSON_OBJECT) {
        log_error("the probe's answer cannot be used: %s",
                  size ? complaint : "it failed or took too long");
        root.type = JSON_NULL;
    } else {
        why = json_member(&root, "why");
        kernels = json_member(&root, "kernels");
    }
    for (const struct device_kind *kind = device_kinds; kind->name != NULL; kind++) {
        if (root.type == JSON_OBJECT) {
            struct json_value array = json_member(&root, kind->name);
            rows_from_array(workers, kind->name, &array);
        }
        struct supervisor *row = row_of_kind(workers, kind->name);
        if (row == NULL) {
            row_explain(workers, kind->name, &why);
            row = row_of_kind(workers, kind->name);
        }
        if (kind->fallback && row != NULL && !row->present) {
            row->present = true;
            row->reason[0] = '\0';
        }
        kernels_learn(workers, kind, &kernels);
    }
}

static enum kiln_status probe(struct workers *workers) {
    size_t size = 0;
    char *text = malloc(PROBE_TEXT_MAX);
    if (text == NULL) {
        return KILN_NO_MEMORY;
    }
    if (spawn_probe(&workers->spawner, PROBE_TIMEOUT_MS, text, PROBE_TEXT_MAX, &size) != KILN_OK) {
        size = 0;
    }
    rows_from_probe(workers, text, size);
    free(text);
    return KILN_OK;
}

/* ---- choosing ---- */

/* All devices of the first kind that has any. */
static void choose_auto(struct workers *workers) {
    bool any = false;
    for (const struct device_kind *kind = device_kinds; kind->name != NULL && !any; kind++) {
        for (int i = 0; i < workers->queue->count; i++) {
            struct supervisor *row = &workers->queue->supervisors[i];
            row->chosen = row->present && device_kind_matches(row->name, kind->name);
            any = any || row->chosen;
        }
    }
}

static enum kiln_status choose_one(struct workers *workers, const char *name) {
    char whole[DEVICE_NAME_MAX];
    int index = 0;
    const struct device_kind *kind = device_kind_find(name, &index);
    if (kind == NULL || (kind->fallback && index > 0)) {
        log_error("there is no device called \"%s\" (auto, cpu, cuda:0, cuda:1, …)", name);
        return KILN_INVALID;
    }
    snprintf(whole, sizeof whole, "%s:%d", kind->name, index);
    struct supervisor *row = row_find(workers, whole);
    if (row == NULL) {
        const struct supervisor *other = row_of_kind(workers, kind->name);
        row = row_add(workers, kind->name, index, "{}", 2);
        if (row == NULL) {
            return KILN_NO_MEMORY;
        }
        snprintf(row->reason, sizeof row->reason, "%s",
                 other != NULL && !other->present ? other->reason
                                                  : "there is no device of this number");
    }
    row->chosen = true;
    return KILN_OK;
}

static enum kiln_status choose_list(struct workers *workers, const char *list) {
    enum kiln_status status = KILN_OK;
    for (struct words names = words_of(list, strlen(list));
         status == KILN_OK && words_next(&names);) {
        char name[DEVICE_NAME_MAX];
        snprintf(name, sizeof name, "%.*s", (int)names.size, names.word);
        status = choose_one(workers, name);
    }
    return status;
}

enum kiln_status devices_find(struct workers *workers, const char *chosen) {
    enum kiln_status status = probe(workers);
    if (status == KILN_OK && (chosen == NULL || strcmp(chosen, "auto") == 0)) {
        choose_auto(workers);
    } else if (status == KILN_OK) {
        status = choose_list(workers, chosen);
    }
    for (int i = 0; status == KILN_OK && i < workers->queue->count; i++) {
        struct supervisor *row = &workers->queue->supervisors[i];
        if (row->chosen && row->present) {
            row->phase = WORKER_WAITING; /* the first sweep starts it */
        }
        log_info("%s is %s%s%s", row->name, device_state_name(supervisor_state(row)),
                 row->reason[0] ? ": " : "", row->reason);
    }
    return status;
}
