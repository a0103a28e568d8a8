/*
 * input_arrays.c: series of numbers from text and arrays to doubles in the arena.
 */
#include "compute/submission/input_arrays.h"

#include "compute/codecs/json.h"
#include "compute/codecs/npy.h"
#include "compute/core/cancel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define NUMBERS_STRIDE 4096 /* numbers between two cancellation points */

static enum kiln_status too_many(uint64_t count, uint64_t most, char *why, size_t why_size) {
    snprintf(why, why_size, "has %llu numbers; at most %llu are taken (--max-samples)",
             (unsigned long long)count, (unsigned long long)most);
    return KILN_INVALID;
}

enum kiln_status series_reserve(struct series *series, uint64_t count, struct array_ref *array,
                                double **place) {
    if (count > (UINT64_MAX >> 8) / sizeof(double)) {
        return KILN_JOB_TOO_LARGE;
    }
    uint64_t needed = series->used + count * sizeof(double);
    bool roomy = needed <= series->block.size && series->block.size > 0;
    if (!roomy && series->block.size > 0) {
        roomy = arena_extend(series->arena, &series->block, needed);
    }
    if (!roomy) {
        struct block larger;
        enum kiln_status status =
            arena_take_for(series->arena, series->holder, needed, &series->block, &larger);
        if (status != KILN_OK) {
            return status;
        }
        if (series->used > 0) {
            memcpy(arena_at(series->arena, larger.offset),
                   arena_at(series->arena, series->block.offset), (size_t)series->used);
        }
        arena_give(series->arena, &series->block);
        series->block = larger;
    }
    *array = (struct array_ref){.offset = series->used, .count = count};
    *place = arena_at(series->arena, series->block.offset + series->used);
    series->used = needed;
    return KILN_OK;
}

/* A list of numbers is the inside of a JSON array; the strict reader of those reads it. */
enum kiln_status series_text(struct series *series, const char *text, uint64_t most, bool gaps,
                             struct array_ref *array, char *why, size_t why_size) {
    uint64_t count = 1;
    double *place;
    for (const char *at = text; *at != '\0'; at++) {
        count += *at == ',';
    }
    if (count > most) {
        return too_many(count, most, why, why_size);
    }
    enum kiln_status status = series_reserve(series, count, array, &place);
    if (status != KILN_OK) {
        return status;
    }
    const char *at = text;
    for (uint64_t i = 0; i < count; i++) {
        at += strspn(at, " \t\r\n");
        size_t size = strcspn(at, ",");
        size_t length = size;
        struct json_value value;
        char reason[96];
        while (length > 0 && strchr(" \t\r\n", at[length - 1]) != NULL) {
            length--;
        }
        if (i % NUMBERS_STRIDE == 0 && cancel_point(NUMBERS_STRIDE * (size + 1))) {
            return KILN_CANCELLED;
        }
        if (gaps && csv_missing_word(at, length)) {
            place[i] = NAN;
            at += size + (at[size] == ',');
            continue;
        }
        if (json_check(at, length, &value, reason, sizeof reason) != KILN_OK ||
            value.type != JSON_NUMBER) {
            snprintf(why, why_size, "element %llu is not a number", (unsigned long long)i);
            return KILN_MALFORMED;
        }
        place[i] = json_number(&value);
        at += size + (at[size] == ',');
    }
    return KILN_OK;
}

enum kiln_status series_csv(struct series *series, struct csv *csv, const struct column_map *map,
                            uint64_t most, struct array_ref arrays[COLUMN_ROLES],
                            struct csv_missing *missing, char *why, size_t why_size) {
    struct array_ref all;
    double *place, *values[COLUMN_ROLES] = {NULL};
    uint64_t rows = 0, columns = 0, start = series->used;
    uint64_t capacity = csv_rows_bound(csv->text + csv->at, csv->size - csv->at);
    if (capacity > most + 1) {
        capacity = most + 1; /* one row too many: the job's check says so */
    }
    for (size_t i = 0; i < COLUMN_ROLES; i++) {
        columns += map->at[i] != COLUMN_NOWHERE;
    }
    enum kiln_status status = series_reserve(series, columns * capacity, &all, &place);
    if (status != KILN_OK) {
        return status;
    }
    columns = 0;
    for (size_t i = 0; i < COLUMN_ROLES; i++) {
        if (map->at[i] != COLUMN_NOWHERE) {
            values[i] = place + columns++ * capacity;
        }
    }
    status = csv_read(csv, map, values, capacity, &rows, missing, why, why_size);
    /* One close behind the other: what lies between them would be part of the input's hash. */
    series->used = start;
    for (size_t i = 0; status == KILN_OK && i < COLUMN_ROLES; i++) {
        if (values[i] != NULL) {
            arrays[i] = (struct array_ref){.offset = series->used, .count = rows};
            memmove((char *)place + (series->used - start), values[i], rows * sizeof **values);
            series->used += rows * sizeof **values;
        }
    }
    return status;
}

/* Names the roles that an array lacks: "t, y, dy". */
static void roles_print(const struct column_role *roles, size_t least, size_t most, char *why,
                        size_t why_size) {
    struct text text;
    text_init(&text, why, why_size);
    text_format(&text, "the array must have %zu", least);
    for (size_t i = least + 1; i <= most; i++) {
        text_format(&text, i == most ? " or %zu" : ", %zu", i);
    }
    text_string(&text, " rows or columns: ");
    for (size_t i = 0; i < most; i++) {
        text_format(&text, "%s%s", i > 0 ? ", " : "", roles[i].field);
    }
}

/* A row or a column for each role, of which `required` and more are there. */
static enum kiln_status npy_roles(struct series *series, const struct npy *npy, const void *bytes,
                                  const struct column_role *roles, size_t required, uint64_t most,
                                  struct array_ref arrays[COLUMN_ROLES], char *why,
                                  size_t why_size) {
    size_t all = required;
    while (roles[all].field != NULL) {
        all++;
    }
    bool rows = npy->dimensions == 2 && npy->shape[0] >= required && npy->shape[0] <= all;
    if (npy->dimensions != 2 || (!rows && (npy->shape[1] < required || npy->shape[1] > all))) {
        roles_print(roles, required, all, why, why_size);
        return KILN_MALFORMED;
    }
    uint64_t points = rows ? npy->shape[1] : npy->shape[0];
    uint64_t count = rows ? npy->shape[0] : npy->shape[1];
    if (points > most) {
        return too_many(points, most, why, why_size);
    }
    for (uint64_t i = 0; i < count; i++) {
        double *place;
        enum kiln_status status = series_reserve(series, points, &arrays[i], &place);
        if (status != KILN_OK) {
            return status;
        }
        for (uint64_t j = 0; j < points; j++) {
            place[j] = npy_element(npy, bytes, rows ? i * points + j : j * count + i);
        }
    }
    return KILN_OK;
}

/* Rows `first` to `first + rows` as one array, an array of arrays where `lengths` are wanted. */
static enum kiln_status npy_rows(struct series *series, const struct npy *npy, const void *bytes,
                                 uint64_t first, uint64_t rows, bool lengths,
                                 struct array_ref *array) {
    uint64_t points = npy->shape[1], count = rows * points;
    double *place;
    enum kiln_status status = series_reserve(series, count + (lengths ? rows : 0), array, &place);
    if (status != KILN_OK) {
        return status;
    }
    for (uint64_t i = 0; i < count; i++) {
        place[i] = npy_element(npy, bytes, first * points + i);
    }
    for (uint64_t i = 0; lengths && i < rows; i++) {
        place[count + i] = (double)points;
    }
    array->count = count;
    array->rows = lengths ? rows : 0;
    return KILN_OK;
}

/* Rows of series, behind one of what they share where the values are not the first role. */
static enum kiln_status npy_batch(struct series *series, const struct npy *npy, const void *bytes,
                                  const struct table_shape *table, uint64_t most,
                                  struct array_ref arrays[COLUMN_ROLES], char *why,
                                  size_t why_size) {
    uint64_t shared = table->values;
    if (npy->dimensions != 2 || npy->shape[0] <= shared || npy->shape[1] == 0) {
        snprintf(why, why_size, "the array must have a row of %s%sone for each series",
                 shared > 0 ? table->columns[0].field : "", shared > 0 ? " and " : "");
        return KILN_MALFORMED;
    }
    if (npy->count > most) {
        return too_many(npy->count, most, why, why_size);
    }
    enum kiln_status status =
        shared > 0 ? npy_rows(series, npy, bytes, 0, 1, false, &arrays[0]) : KILN_OK;
    return status == KILN_OK ? npy_rows(series, npy, bytes, shared, npy->shape[0] - shared, true,
                                        &arrays[table->values])
                             : status;
}

enum kiln_status series_npy(struct series *series, const void *bytes, size_t size,
                            const struct table_shape *table, enum layout layout, uint64_t most,
                            struct array_ref arrays[COLUMN_ROLES], char *why, size_t why_size) {
    struct npy npy;
    size_t required = 0;
    enum kiln_status status = npy_parse(bytes, size, true, &npy, why, why_size);
    if (status != KILN_OK) {
        return status;
    }
    while (table->columns[required].field != NULL && table->columns[required].patterns == NULL) {
        required++;
    }
    return layout == LAYOUT_BATCH
               ? npy_batch(series, &npy, bytes, table, most, arrays, why, why_size)
               : npy_roles(series, &npy, bytes, table->columns, required, most, arrays, why,
                           why_size);
}
