/*
 * object.c: JSON objects, their arrays and their base64 texts.
 *
 * The text is validated once and walked where it lies; arrays go straight to doubles in the arena.
 */
#include "compute/submission/private.h"

#include <stdio.h>
#include <string.h>

/* Validated arrays of numbers have one comma less than elements; nested ones have no more. */
static uint64_t elements_bound(const struct json_value *array) {
    uint64_t commas = 0;
    for (size_t i = 0; i < array->size; i++) {
        commas += array->text[i] == ',';
    }
    return commas + 1;
}

/* True for an array whose first element is one. */
static bool nested(const struct json_value *value) {
    struct json_value first;
    size_t cursor = 0;
    return value->type == JSON_ARRAY && json_next_element(value, &cursor, &first) &&
           first.type == JSON_ARRAY;
}

/* The rows of an array of arrays one after the other, their lengths behind them. */
static enum kiln_status rows_read(const struct json_value *value, bool gaps, double *place,
                                  uint64_t bound, struct array_ref *array, char *why,
                                  size_t why_size) {
    struct json_value row;
    uint64_t used = 0, rows = 0;
    double *lengths = place + bound;
    for (size_t cursor = 0; json_next_element(value, &cursor, &row); rows++) {
        size_t bad = 0;
        size_t count = row.type == JSON_ARRAY
                           ? json_numbers(&row, gaps, place + used, (size_t)(bound - used), &bad)
                           : SIZE_MAX;
        if (row.type != JSON_ARRAY) {
            snprintf(why, why_size, "element %llu is not an array, but the first is",
                     (unsigned long long)rows);
            return KILN_INVALID;
        }
        if (count == SIZE_MAX) {
            snprintf(why, why_size, "element %zu of series %llu is not a number", bad,
                     (unsigned long long)rows);
            return KILN_INVALID;
        }
        lengths[rows] = (double)count;
        used += count;
    }
    memmove(place + used, lengths, (size_t)rows * sizeof *lengths);
    array->count = used;
    array->rows = rows;
    return KILN_OK;
}

static enum kiln_status nested_read(struct reading *reading, const struct field *field,
                                    const struct json_value *value, uint64_t bound) {
    struct array_ref array = {0};
    double *place;
    char why[96];
    uint64_t rows = 0;
    struct json_value row;
    for (size_t cursor = 0; json_next_element(value, &cursor, &row);) {
        rows++;
    }
    enum kiln_status status = series_reserve(&reading->series, bound + rows, &array, &place);
    if (status == KILN_OK) {
        status = rows_read(value, (field->flags & FIELD_GAPS) != 0, place, bound, &array, why,
                           sizeof why);
    }
    return reading_array(reading, field->name, status, array, why);
}

static enum kiln_status array_read(struct reading *reading, const char *name,
                                   const struct json_value *value) {
    struct array_ref array = {0};
    double *place;
    char why[96];
    size_t bad = 0;
    const struct field *field = form_find(&reading->form, name);
    uint64_t bound = elements_bound(value), most = reading_numbers_max(reading);
    if (value->type == JSON_NUMBER && (field->flags & FIELD_SCALAR)) {
        enum kiln_status status = series_reserve(&reading->series, 1, &array, &place);
        if (status == KILN_OK) {
            *place = json_number(value);
        }
        return reading_array(reading, name, status, array, "");
    }
    if (value->type != JSON_ARRAY || bound > most) {
        if (value->type != JSON_ARRAY) {
            snprintf(why, sizeof why, "must be an array of numbers%s",
                     field->flags & FIELD_SCALAR ? ", or one number" : "");
        } else {
            snprintf(why, sizeof why,
                     "has more than %llu elements (--max-samples, --max-frequencies)",
                     (unsigned long long)most);
        }
        return reading_array(reading, name, KILN_INVALID, array, why);
    }
    if (nested(value) && field->flags & FIELD_ROWS) {
        return nested_read(reading, field, value, bound);
    }
    enum kiln_status status = series_reserve(&reading->series, bound, &array, &place);
    if (status == KILN_OK) {
        size_t count =
            json_numbers(value, (field->flags & FIELD_GAPS) != 0, place, (size_t)bound, &bad);
        if (count == SIZE_MAX) {
            snprintf(why, sizeof why, "element %zu is not a number", bad);
            status = KILN_INVALID;
        }
        array.count = count;
    }
    return reading_array(reading, name, status, array, why);
}

/* A string without escapes is base64 as it stands; others are unescaped where they lie. */
static enum kiln_status blob_read(struct reading *reading, const char *name,
                                  const struct json_value *value) {
    char *text = (char *)value->text; /* in the body, which is the reader's to change */
    if (value->type != JSON_STRING) {
        return reading_base64(reading, name, NULL, 0);
    }
    if (memchr(text, '\\', value->size) == NULL) {
        return reading_base64(reading, name, text + 1, value->size - 2);
    }
    return reading_base64(reading, name, text, json_string(value, text, value->size));
}

/* `format` and `device`, which are no fields of the job; false if `name` is neither. */
static bool common_read(struct reading *reading, const char *name, const struct json_value *value) {
    char text[FORMAT_TEXT_MAX + 1];
    if (strcmp(name, "format") != 0 && strcmp(name, "device") != 0) {
        return false;
    }
    if (value->type == JSON_NULL) {
        return true;
    }
    bool good = value->type == JSON_STRING && json_string(value, text, sizeof text) < sizeof text &&
                strlen(text) == json_string(value, text, sizeof text);
    return reading_set_common(reading, name, good ? text : NULL);
}

static enum kiln_status member_read(struct reading *reading, const char *name,
                                    const struct json_value *value) {
    if (reading_reserved(reading, name) || common_read(reading, name, value) ||
        form_set_json(&reading->form, name, value)) {
        return KILN_OK;
    }
    if (form_find(&reading->form, name)->type == FIELD_BLOB) {
        return blob_read(reading, name, value);
    }
    if (form_has(&reading->form, name)) {
        form_mark(&reading->form, name); /* complains */
        return KILN_OK;
    }
    return array_read(reading, name, value);
}

enum kiln_status reading_json(struct reading *reading, char *text, size_t size) {
    struct json_value object, value;
    char name[128], why[160];
    size_t cursor = 0;
    enum kiln_status status = json_check(text, size, &object, why, sizeof why);
    if (status != KILN_OK) {
        return reading_fault(reading, status, "The JSON body is broken: %s", why);
    }
    if (object.type != JSON_OBJECT) {
        return reading_fault(reading, KILN_MALFORMED, "The JSON body must be an object of fields.");
    }
    while (status == KILN_OK && json_next_member(&object, &cursor, name, sizeof name, &value)) {
        status = reading_count(reading, "JSON object");
        if (status == KILN_OK) {
            status = member_read(reading, name, &value);
        }
    }
    return status;
}
