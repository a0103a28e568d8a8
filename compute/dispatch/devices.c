/*
 * devices.c: the devices there are, and those that --device chose.
 *
 * The probe's JSON gives one row per device; devices that were asked for by name but are not there
 * get a row too, with the reason, and so does a kind as a whole when it is missing, so that
 * /v1/devices says why there is no GPU. Rows stand in the order of device_kinds: at equal load the
 * first one gets the job.
 *
 * Thread: the caller of dispatch_create and dispatch_destroy.
 */
#include "compute/codecs/json.h"
#include "compute/core/log.h"
#include "compute/core/words.h"
#include "compute/dispatch/private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROBE_TIMEOUT_MS 10000
#define PROBE_TEXT_MAX   (256u << 10)

static struct supervisor *row_find(struct dispatch *dispatch, const char *name) {
    for (int i = 0; i < dispatch->count; i++) {
        if (strcmp(dispatch->supervisors[i].name, name) == 0) {
            return &dispatch->supervisors[i];
        }
    }
    return NULL;
}

/* Adds a row; NULL when there are too many devices or too little memory. */
static struct supervisor *row_add(struct dispatch *dispatch, const char *kind, int index,
                                  const char *description, size_t size) {
    if (dispatch->count == DEVICES_MAX) {
        return NULL;
    }
    struct supervisor *row = &dispatch->supervisors[dispatch->count];
    row->description = malloc(NOTICE_TEXT_MAX);
    if (!row->description) {
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
    dispatch->count++;
    return row;
}

/* Rows of one kind from the probe's array. */
static void rows_from_array(struct dispatch *dispatch, const char *kind,
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
        struct supervisor *row = row_add(dispatch, kind, index, entry.text, entry.size);
        if (row) {
            row->present = true;
        }
    }
}

/* The kind's first device, or the row that says why there is none; NULL if it has no row yet. */
static struct supervisor *row_of_kind(const struct dispatch *dispatch, const char *kind) {
    for (int i = 0; i < dispatch->count; i++) {
        if (device_kind_matches(dispatch->supervisors[i].name, kind)) {
            return &dispatch->supervisors[i];
        }
    }
    return NULL;
}

/* A row for a kind of which there is nothing, with the reason. */
static void row_explain(struct dispatch *dispatch, const char *kind, const struct json_value *why) {
    struct supervisor *row = row_add(dispatch, kind, 0, "{}", 2);
    if (!row) {
        return;
    }
    struct json_value text = json_member(why, kind);
    if (text.type == JSON_STRING) {
        json_string(&text, row->reason, sizeof row->reason);
    } else {
        snprintf(row->reason, sizeof row->reason, "the probe found no such device");
    }
}

/* The probe's whole output; whatever is wrong with it, the fallback is there. */
static void rows_from_probe(struct dispatch *dispatch, const char *text, size_t size) {
    char complaint[128] = "";
    struct json_value root = {.type = JSON_NULL}, why = {.type = JSON_NULL};
    if (size == 0 || json_check(text, size, &root, complaint, sizeof complaint) != KILN_OK ||
        root.type != JSON_OBJECT) {
        log_error("the probe's answer cannot be used: %s",
                  size ? complaint : "it failed or took too long");
        root.type = JSON_NULL;
    } else {
        why = json_member(&root, "why");
    }
    for (const struct device_kind *kind = device_kinds; kind->name != NULL; kind++) {
        if (root.type == JSON_OBJECT) {
            struct json_value array = json_member(&root, kind->name);
            rows_from_array(dispatch, kind->name, &array);
        }
        struct supervisor *row = row_of_kind(dispatch, kind->name);
        if (row == NULL) {
            row_explain(dispatch, kind->name, &why);
            row = row_of_kind(dispatch, kind->name);
        }
        if (kind->fallback && row != NULL && !row->present) {
            row->present = true;
            row->reason[0] = '\0';
        }
    }
}

static enum kiln_status probe(struct dispatch *dispatch) {
    size_t size = 0;
    char *text = malloc(PROBE_TEXT_MAX);
    if (!text) {
        return KILN_NO_MEMORY;
    }
    if (spawn_probe(dispatch, PROBE_TIMEOUT_MS, text, PROBE_TEXT_MAX, &size) != KILN_OK) {
        size = 0;
    }
    rows_from_probe(dispatch, text, size);
    free(text);
    return KILN_OK;
}

/* ---- choosing ---- */

/* All devices of the first kind that has any. */
static void choose_auto(struct dispatch *dispatch) {
    bool any = false;
    for (const struct device_kind *kind = device_kinds; kind->name != NULL && !any; kind++) {
        for (int i = 0; i < dispatch->count; i++) {
            struct supervisor *row = &dispatch->supervisors[i];
            row->chosen = row->present && device_kind_matches(row->name, kind->name);
            any = any || row->chosen;
        }
    }
}

static enum kiln_status choose_one(struct dispatch *dispatch, const char *name) {
    char whole[DEVICE_NAME_MAX];
    int index = 0;
    const struct device_kind *kind = device_kind_find(name, &index);
    if (kind == NULL || (kind->fallback && index > 0)) {
        log_error("there is no device called \"%s\" (auto, cpu, cuda:0, cuda:1, …)", name);
        return KILN_INVALID;
    }
    snprintf(whole, sizeof whole, "%s:%d", kind->name, index);
    struct supervisor *row = row_find(dispatch, whole);
    if (row == NULL) {
        const struct supervisor *other = row_of_kind(dispatch, kind->name);
        row = row_add(dispatch, kind->name, index, "{}", 2);
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

static enum kiln_status choose_list(struct dispatch *dispatch, const char *list) {
    enum kiln_status status = KILN_OK;
    for (struct words names = words_of(list, strlen(list));
         status == KILN_OK && words_next(&names);) {
        char name[DEVICE_NAME_MAX];
        snprintf(name, sizeof name, "%.*s", (int)names.size, names.word);
        status = choose_one(dispatch, name);
    }
    return status;
}

enum kiln_status devices_create(struct dispatch *dispatch, const char *chosen) {
    dispatch->supervisors = calloc(DEVICES_MAX, sizeof *dispatch->supervisors);
    if (!dispatch->supervisors) {
        return KILN_NO_MEMORY;
    }
    enum kiln_status status = probe(dispatch);
    if (status == KILN_OK && (!chosen || strcmp(chosen, "auto") == 0)) {
        choose_auto(dispatch);
    } else if (status == KILN_OK) {
        status = choose_list(dispatch, chosen);
    }
    for (int i = 0; status == KILN_OK && i < dispatch->count; i++) {
        struct supervisor *row = &dispatch->supervisors[i];
        if (row->chosen && row->present) {
            row->phase = WORKER_WAITING; /* the first sweep starts it */
        }
        log_info("%s is %s%s%s", row->name, device_state_name(supervisor_state(row)),
                 row->reason[0] ? ": " : "", row->reason);
    }
    return status;
}

void devices_destroy(struct dispatch *dispatch) {
    for (int i = 0; i < dispatch->count; i++) {
        arena_give(dispatch->arena, &dispatch->supervisors[i].control);
        arena_give(dispatch->arena, &dispatch->supervisors[i].reserve);
        free(dispatch->supervisors[i].description);
    }
    free(dispatch->supervisors);
}
