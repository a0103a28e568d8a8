/*
 * input_arrays.c: light curves from text and arrays to doubles in the arena.
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

enum kiln_status series_npy(struct series *series, const void *bytes, size_t size, uint64_t most,
                            struct array_ref arrays[3], int *count, char *why, size_t why_size) {
    struct npy npy;
    enum kiln_status status = npy_parse(bytes, size, true, &npy, why, why_size);
    if (status != KILN_OK) {
        return status;
    }
    bool flat = npy.dimensions == 2;
    bool rows = flat && (npy.shape[0] == 2 || npy.shape[0] == 3);
    if (!flat || (!rows && npy.shape[1] != 2 && npy.shape[1] != 3)) {
        snprintf(why, why_size,
                 "the array must have two or three rows or columns: times, values, uncertainties");
        return KILN_MALFORMED;
    }
    uint64_t points = rows ? npy.shape[1] : npy.shape[0];
    *count = (int)(rows ? npy.shape[0] : npy.shape[1]);
    if (points > most) {
        return too_many(points, most, why, why_size);
    }
    for (int i = 0; i < *count; i++) {
        double *place;
        status = series_reserve(series, points, &arrays[i], &place);
        if (status != KILN_OK) {
            return status;
        }
        for (uint64_t j = 0; j < points; j++) {
            uint64_t index = rows ? (uint64_t)i * points + j : j * (uint64_t)*count + (uint64_t)i;
            place[j] = npy_element(&npy, bytes, index);
        }
    }
    return KILN_OK;
}

enum kiln_status series_npy_batch(struct series *series, const void *bytes, size_t size,
                                  uint64_t most, struct array_ref arrays[3], int *count, char *why,
                                  size_t why_size) {
    struct npy npy;
    double *place;
    enum kiln_status status = npy_parse(bytes, size, true, &npy, why, why_size);
    if (status != KILN_OK) {
        return status;
    }
    if (npy.dimensions != 2 || npy.shape[0] < 2 || npy.shape[1] == 0) {
        snprintf(why, why_size, "the array must have a row of times and one for each series");
        return KILN_MALFORMED;
    }
    uint64_t points = npy.shape[1], rows = npy.shape[0] - 1;
    if (npy.count > most) {
        return too_many(npy.count, most, why, why_size);
    }
    *count = 2;
    status = series_reserve(series, points, &arrays[0], &place);
    for (uint64_t j = 0; status == KILN_OK && j < points; j++) {
        place[j] = npy_element(&npy, bytes, j);
    }
    if (status == KILN_OK) {
        status = series_reserve(series, rows * points + rows, &arrays[1], &place);
    }
    if (status != KILN_OK) {
        return status;
    }
    for (uint64_t j = 0; j < rows * points; j++) {
        place[j] = npy_element(&npy, bytes, points + j);
    }
    for (uint64_t i = 0; i < rows; i++) {
        place[rows * points + i] = (double)points;
    }
    arrays[1].count = rows * points;
    arrays[1].rows = rows;
    return KILN_OK;
}
