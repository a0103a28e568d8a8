/*
 * record.c: one row for every member of a job (record.h). Constant; reentrant.
 */
#include "compute/store/record.h"

#include <math.h>
#include <string.h>

#define ROW(name, kind, max, long_rows)                                                            \
    { #name, RECORD_##kind, offsetof(struct store_job, name), max, long_rows }
#define NUMBER(name) ROW(name, NUMBER, 0, false)

const struct record_field record_fields[] = {
    ROW(id, ID, 0, false),
    ROW(batch, ID, 0, false),
    NUMBER(line),
    ROW(owner, TEXT, STORE_NAME_MAX, false),
    ROW(type, TEXT, STORE_NAME_MAX, false),
    NUMBER(version),
    ROW(params, TEXT, STORE_PARAMS_MAX, true),
    ROW(format, TEXT, STORE_NAME_MAX, false),
    ROW(media, TEXT, STORE_HOOK_MAX, false),
    ROW(device, TEXT, STORE_NAME_MAX, false),
    ROW(node, TEXT, STORE_NAME_MAX, false),
    ROW(etag, TEXT, STORE_HOOK_MAX, true),
    ROW(label, TEXT, STORE_NAME_MAX, false),
    ROW(hook, TEXT, STORE_HOOK_MAX, true),
    NUMBER(class),
    NUMBER(state),
    NUMBER(revision),
    NUMBER(attempt),
    NUMBER(losses),
    NUMBER(cancel),
    NUMBER(boot),
    NUMBER(created),
    NUMBER(started),
    NUMBER(finished),
    NUMBER(expires),
    NUMBER(timeout),
    NUMBER(retain),
    NUMBER(discard),
    NUMBER(fetched),
    NUMBER(reserved),
    NUMBER(input_bytes),
    NUMBER(bytes),
    ROW(cost, REAL, 0, false),
    ROW(seconds, REAL, 0, false),
    ROW(input, HASH, 0, false),
    ROW(result, HASH, 0, false),
    ROW(outcome, TEXT, STORE_OUTCOME_MAX, true),
    ROW(trace, TRACE, 0, false),
};
const size_t record_count = sizeof record_fields / sizeof record_fields[0];

const struct store_job record_empty = {.owner = "",
                                       .type = "",
                                       .params = "",
                                       .format = "",
                                       .media = "",
                                       .device = "",
                                       .node = "",
                                       .etag = "",
                                       .label = "",
                                       .hook = "",
                                       .outcome = ""};

static const char *const states[STORE_STATES] = {"queued", "running",   "succeeded",
                                                 "failed", "cancelled", "expired"};

const char *store_state_name(int64_t state) {
    return state >= 0 && state < STORE_STATES ? states[state] : "unknown";
}

/* Bytes of the kinds that have a fixed size. */
static size_t size_of(enum record_kind kind) {
    return kind == RECORD_ID      ? sizeof(struct job_id)
           : kind == RECORD_HASH  ? STORE_HASH
           : kind == RECORD_TRACE ? sizeof(struct trace)
                                  : sizeof(int64_t);
}

bool record_valid(const struct store_job *job) {
    for (size_t i = 0; i < record_count; i++) {
        const struct record_field *field = &record_fields[i];
        const char *place = (const char *)job + field->offset;
        if (field->kind == RECORD_TEXT &&
            strnlen(*(const char *const *)place, field->max + 1) > field->max) {
            return false;
        }
        if (field->kind == RECORD_NUMBER &&
            (*(const int64_t *)place < 0 || *(const int64_t *)place > STORE_NUMBER_MAX)) {
            return false;
        }
        if (field->kind == RECORD_REAL && !isfinite(*(const double *)place)) {
            return false;
        }
    }
    return job->state < STORE_STATES;
}

void record_pack(struct pack *pack, const struct store_job *job) {
    for (size_t i = 0; i < record_count; i++) {
        const struct record_field *field = &record_fields[i];
        const char *place = (const char *)job + field->offset;
        if (field->kind == RECORD_TEXT) {
            pack_text(pack, *(const char *const *)place);
        } else {
            pack_bytes(pack, place, size_of(field->kind));
        }
    }
}

void record_unpack(struct unpack *unpack, struct store_job *job) {
    *job = record_empty;
    for (size_t i = 0; i < record_count; i++) {
        const struct record_field *field = &record_fields[i];
        char *place = (char *)job + field->offset;
        if (field->kind == RECORD_TEXT) {
            *(const char **)place = unpack_text(unpack, field->max);
        } else if (field->kind == RECORD_NUMBER) {
            *(int64_t *)place = unpack_range(unpack, 0, STORE_NUMBER_MAX);
        } else if (field->kind == RECORD_REAL) {
            *(double *)place = unpack_real(unpack);
        } else {
            unpack_bytes(unpack, place, size_of(field->kind));
        }
    }
    if (job->state >= STORE_STATES) {
        unpack->bad = true;
        job->state = 0;
    }
}

/* ---- text ---- */

static void bytes_print(const uint8_t *bytes, size_t size, char *text) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        *text++ = digits[bytes[i] >> 4];
        *text++ = digits[bytes[i] & 15];
    }
    *text = '\0';
}

void hash_print(const uint8_t hash[STORE_HASH], char text[HASH_TEXT]) {
    bytes_print(hash, STORE_HASH, text);
}

static int digit_read(char digit) {
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                          : -1;
}

bool hash_parse(const char *text, uint8_t hash[STORE_HASH]) {
    for (size_t i = 0; i < STORE_HASH; i++) {
        int high = digit_read(text[2 * i]), low = high < 0 ? -1 : digit_read(text[2 * i + 1]);
        if (low < 0) {
            return false;
        }
        hash[i] = (uint8_t)(high << 4 | low);
    }
    return text[2 * STORE_HASH] == '\0';
}

bool hash_empty(const uint8_t hash[STORE_HASH]) {
    static const uint8_t none[STORE_HASH];
    return memcmp(hash, none, STORE_HASH) == 0;
}

static bool bytes_empty(const char *bytes, size_t size) {
    size_t i = 0;
    while (i < size && bytes[i] == 0) {
        i++;
    }
    return i == size;
}

static void value_print(struct text *text, const struct record_field *field, const char *place) {
    char digits[HASH_TEXT];
    const char *string = digits;
    if (field->kind == RECORD_NUMBER && strcmp(field->name, "state") != 0) {
        text_integer(text, *(const int64_t *)place);
        return;
    }
    if (field->kind == RECORD_REAL) {
        text_double(text, *(const double *)place);
        return;
    }
    if (field->kind == RECORD_ID) {
        job_id_print((const struct job_id *)place, digits);
    } else if (field->kind == RECORD_NUMBER) {
        string = store_state_name(*(const int64_t *)place);
    } else if (field->kind == RECORD_TEXT) {
        string = *(const char *const *)place;
    } else {
        bytes_print((const uint8_t *)place, size_of(field->kind), digits);
    }
    text_json_string(text, string, strlen(string));
}

void record_print(struct text *text, const struct store_job *job) {
    const char *comma = "{";
    for (size_t i = 0; i < record_count; i++) {
        const struct record_field *field = &record_fields[i];
        const char *place = (const char *)job + field->offset;
        bool empty = field->kind == RECORD_TEXT ? **(const char *const *)place == '\0'
                                                : bytes_empty(place, size_of(field->kind));
        if (!empty || strcmp(field->name, "state") == 0) {
            text_format(text, "%s\"%s\":", comma, field->name);
            value_print(text, field, place);
            comma = ",";
        }
    }
    text_string(text, "}\n");
}
