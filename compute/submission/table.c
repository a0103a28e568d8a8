/*
 * table.c: from a table that was sent, and from arrays with gaps, to the arrays that a job's
 * check expects.
 *
 * Which columns are which arrays is the kind's table of roles; nothing here knows their names. It
 * all happens when every field is known, so that the order of a form's parts does not matter.
 *
 * Threads: the reading's.
 */
#include "compute/submission/private.h"

#include "compute/codecs/csv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The arrays that are there, of the roles, where they lie in the parameters. */
struct samples {
    struct array_ref *refs[COLUMN_ROLES];
    const struct field *fields[COLUMN_ROLES];
    size_t count;
    const struct array_ref *values; /* one of them: its rows are the series */
};

static const struct field *role_field(const struct reading *reading, const char *name) {
    return form_find(&reading->form, name); /* there: the registry asserts it */
}

static void *role_member(const struct reading *reading, const char *name) {
    return (char *)reading->form.params + role_field(reading, name)->offset;
}

/* What an enum field of the kind was set to; 0 where the kind has none (`name` NULL). */
static int32_t choice_of(const struct reading *reading, const char *name) {
    int32_t choice = 0;
    if (name != NULL) {
        memcpy(&choice, role_member(reading, name), sizeof choice);
    }
    return choice;
}

/* ---- a table ---- */

/* Notes the columns used, and the first missing sample for a message that may be needed. */
static void columns_note(struct reading *reading, const struct csv *csv,
                         const struct column_map *map, const struct csv_missing *missing) {
    const struct column_role *roles = reading->type->table->columns;
    for (size_t i = 0; roles[i].field != NULL; i++) {
        column_print(&csv->table, map->at[i], role_member(reading, roles[i].choice));
    }
    if (missing->line > 0) {
        snprintf(reading->missing, sizeof reading->missing, "line %llu: column %zu (%s) is %s%s%s",
                 (unsigned long long)missing->line, missing->column + 1,
                 (const char *)role_member(reading, roles[missing->role].choice),
                 missing->shown[0] == '\0' ? "empty" : "'", missing->shown,
                 missing->shown[0] == '\0' ? "" : "'");
    }
}

/* Whether a choice was refused already: what the columns are cannot be known then. */
static bool choice_refused(const struct reading *reading) {
    const struct complaints *complaints = reading->submission->complaints;
    for (size_t i = 0; i < complaints->count && i < COMPLAINTS_MAX; i++) {
        for (const struct column_role *role = reading->type->table->columns; role->field != NULL;
             role++) {
            if (strcmp(complaints->rows[i].field, role->choice) == 0) {
                return true;
            }
        }
    }
    return false;
}

static enum kiln_status csv_take(struct reading *reading, struct array_ref arrays[COLUMN_ROLES],
                                 char *why, size_t why_size) {
    const struct column_role *roles = reading->type->table->columns;
    struct column_choices choices = {{NULL}, {false}};
    struct column_map map = {{COLUMN_NOWHERE, COLUMN_NOWHERE, COLUMN_NOWHERE}};
    struct csv_missing missing;
    struct csv csv;
    const char *field;
    enum kiln_status status =
        csv_open(&csv, reading->table.bytes, reading->table.size, why, why_size);
    if (status != KILN_OK || choice_refused(reading)) {
        return status;
    }
    for (size_t i = 0; roles[i].field != NULL; i++) {
        choices.texts[i] = role_member(reading, roles[i].choice);
        choices.given[i] = form_has(&reading->form, roles[i].field);
    }
    if (!columns_find(roles, &csv.table, &choices, &map, &field, why, why_size)) {
        complaints_add(reading->submission->complaints, field, "%s", why);
        return KILN_OK;
    }
    status = series_csv(&reading->series, &csv, &map, reading_numbers_max(reading), arrays,
                        &missing, why, why_size);
    if (status == KILN_OK) {
        columns_note(reading, &csv, &map, &missing);
    }
    return status;
}

static enum kiln_status npy_take(struct reading *reading, struct array_ref arrays[COLUMN_ROLES],
                                 char *why, size_t why_size) {
    const struct table_shape *shape = reading->type->table;
    return series_npy(&reading->series, reading->table.bytes, reading->table.size, shape,
                      (enum layout)choice_of(reading, shape->layout), reading_numbers_max(reading),
                      arrays, why, why_size);
}

/* Choices among columns where there are none. */
static void choices_refuse(struct reading *reading) {
    const struct column_role *roles = reading->type->table->columns;
    for (size_t i = 0; roles[i].field != NULL; i++) {
        if (*(const char *)role_member(reading, roles[i].choice) != '\0') {
            complaints_add(reading->submission->complaints, roles[i].choice,
                           "chooses among the columns of a table, and none was sent as text");
        }
    }
}

static enum kiln_status table_take(struct reading *reading) {
    const struct column_role *roles = reading->type->table->columns;
    struct array_ref arrays[COLUMN_ROLES] = {{0}};
    struct submission *submission = reading->submission;
    enum format format = reading->table.format;
    char why[192] = "";
    enum kiln_status status = format == FORMAT_NPY ? npy_take(reading, arrays, why, sizeof why)
                                                   : csv_take(reading, arrays, why, sizeof why);
    if (status == KILN_MALFORMED) {
        return reading_fault(reading, status, "The %s data cannot be read: %s",
                             format_row(format)->name, why);
    }
    if (status == KILN_INVALID) {
        complaints_add(submission->complaints, roles[0].field, "%s", why);
    } else if (status != KILN_OK) {
        return reading_fault(reading, status, "There is no room for the data now.");
    }
    for (size_t i = 0; roles[i].field != NULL; i++) {
        if (submission->complaints->count > 0) {
            form_mark_quietly(&reading->form, roles[i].field); /* one reason is enough */
        } else if (arrays[i].count > 0 || roles[i].patterns == NULL) {
            form_set_array(&reading->form, roles[i].field, arrays[i]);
        }
    }
    return KILN_OK;
}

/* ---- one number for all ---- */

static double *doubles_at(const struct reading *reading, const struct array_ref *array) {
    const struct series *series = &reading->series;
    return arena_at(series->arena, series->block.offset + array->offset);
}

static enum kiln_status no_room(struct reading *reading, enum kiln_status status) {
    return reading_fault(reading, status, "There is no room for the data now.");
}

/* Appends an array of the shape of `like`, with its rows' lengths. */
static enum kiln_status array_like(struct reading *reading, const struct array_ref *like,
                                   struct array_ref *array) {
    double *place;
    enum kiln_status status =
        series_reserve(&reading->series, like->count + like->rows, array, &place);
    if (status == KILN_OK) {
        array->count = like->count;
        array->rows = like->rows;
        memcpy(place + like->count, doubles_at(reading, like) + like->count,
               (size_t)like->rows * sizeof *place);
    }
    return status;
}

/* One number for all becomes as many as the first role's array has, or the values where that has
   rows of its own. */
static enum kiln_status scalar_expand(struct reading *reading, const struct samples *samples,
                                      size_t role) {
    struct array_ref *ref = samples->refs[role], array;
    const struct array_ref *like = samples->refs[0]->rows == 0 ? samples->refs[0] : samples->values;
    double value = *doubles_at(reading, ref);
    enum kiln_status status = array_like(reading, like, &array);
    if (status != KILN_OK) {
        return no_room(reading, status);
    }
    double *place = doubles_at(reading, &array);
    for (uint64_t i = 0; i < array.count; i++) {
        place[i] = value;
    }
    *ref = array;
    return KILN_OK;
}

/* ---- missing samples ---- */

/* The next curve of `samples`: how many samples it has, where they begin in each array. False at
   the end, or where shapes do not agree, which the job's check tells. Lengths lie in memory that
   others can write: each use looks at them. */
struct walk {
    uint64_t curve, at, count; /* number, first sample in arrays with rows, samples */
};

static bool walk_next(const struct reading *reading, const struct samples *samples,
                      struct walk *walk) {
    uint64_t rows = samples->values->rows;
    walk->at += walk->count;
    if (walk->curve >= (rows > 0 ? rows : 1)) {
        return false;
    }
    walk->count = samples->refs[0]->count;
    for (size_t i = 0; i < samples->count; i++) {
        const struct array_ref *ref = samples->refs[i];
        double length = (double)ref->count;
        if (ref->rows > 0) {
            length = doubles_at(reading, ref)[ref->count + walk->curve];
            if (!(length >= 0 && length <= (double)(ref->count - walk->at))) {
                return false;
            }
        }
        if (i == 0) {
            walk->count = (uint64_t)length;
        } else if (length != (double)walk->count) {
            return false;
        }
    }
    walk->curve++;
    return true;
}

/* Whether the roles' arrays have one shape: all rows alike, or shared by all curves. */
static bool shapes_agree(const struct samples *samples) {
    uint64_t rows = samples->values->rows, count = samples->values->count;
    for (size_t i = 0; i < samples->count; i++) {
        const struct array_ref *ref = samples->refs[i];
        if (ref->rows > 0 ? ref->rows != rows || ref->count != count
                          : rows == 0 && ref->count != count) {
            return false;
        }
    }
    return samples->refs[0]->count > 0;
}

static const double *curve_values(const struct reading *reading, const struct array_ref *ref,
                                  const struct walk *walk) {
    return doubles_at(reading, ref) + (ref->rows > 0 ? walk->at : 0);
}

/* Which of a curve's samples have all their parts: the role of the first part missing, or -1. */
static int missing_part(const double *const values[COLUMN_ROLES], size_t count, uint64_t i) {
    for (size_t role = 0; role < count; role++) {
        if (isnan(values[role][i])) {
            return (int)role;
        }
    }
    return -1;
}

/* Counts missing samples; tells of the first. */
static uint64_t missing_count(const struct reading *reading, const struct samples *samples,
                              struct walk *first, uint64_t *index, int *role) {
    const double *values[COLUMN_ROLES];
    struct walk walk = {0, 0, 0};
    uint64_t missing = 0;
    while (walk_next(reading, samples, &walk)) {
        for (size_t i = 0; i < samples->count; i++) {
            values[i] = curve_values(reading, samples->refs[i], &walk);
        }
        for (uint64_t i = 0; i < walk.count; i++) {
            int part = missing_part(values, samples->count, i);
            if (part >= 0 && missing++ == 0) {
                *first = walk;
                *index = i;
                *role = part;
            }
        }
    }
    return missing;
}

/* Copies what is there. `to` may be the same arrays, or larger ones with rows; lengths of rows are
   written behind `kept`, and moved down at the end. */
static void samples_copy(struct reading *reading, const struct samples *samples,
                         struct array_ref to[COLUMN_ROLES], uint64_t missing) {
    const double *values[COLUMN_ROLES];
    double *places[COLUMN_ROLES];
    struct walk walk = {0, 0, 0};
    uint64_t kept = 0, before;
    for (size_t i = 0; i < samples->count; i++) {
        places[i] = doubles_at(reading, &to[i]);
    }
    while (before = kept, walk_next(reading, samples, &walk)) {
        for (size_t i = 0; i < samples->count; i++) {
            values[i] = curve_values(reading, samples->refs[i], &walk);
        }
        for (uint64_t i = 0; i < walk.count; i++) {
            if (missing_part(values, samples->count, i) >= 0) {
                continue;
            }
            for (size_t role = 0; role < samples->count; role++) {
                places[role][kept] = values[role][i];
            }
            kept++;
        }
        for (size_t role = 0; role < samples->count && to[role].rows > 0; role++) {
            places[role][to[role].count + walk.curve - 1] = (double)(kept - before);
        }
    }
    for (size_t i = 0; i < samples->count; i++) {
        memmove(places[i] + kept, places[i] + to[i].count, (size_t)to[i].rows * sizeof(double));
        to[i].count = kept;
        to[i].dropped = missing;
    }
}

/* Leaves missing samples out. Curves that share times get times of their own. */
static enum kiln_status samples_drop(struct reading *reading, struct samples *samples,
                                     uint64_t missing) {
    struct array_ref to[COLUMN_ROLES];
    const struct array_ref *like = samples->values;
    for (size_t i = 0; i < samples->count; i++) {
        to[i] = *samples->refs[i];
        enum kiln_status status = like->rows > 0 ? array_like(reading, like, &to[i]) : KILN_OK;
        if (status != KILN_OK) {
            return no_room(reading, status);
        }
    }
    samples_copy(reading, samples, to, missing);
    for (size_t i = 0; i < samples->count; i++) {
        *samples->refs[i] = to[i];
    }
    return KILN_OK;
}

static void missing_refuse(struct reading *reading, const struct samples *samples,
                           const struct walk *first, uint64_t index, int role, uint64_t missing) {
    char where[160];
    if (reading->missing[0] != '\0') {
        snprintf(where, sizeof where, "%s", reading->missing);
    } else if (samples->values->rows > 0) {
        snprintf(where, sizeof where, "element %llu of series %llu is null or NaN",
                 (unsigned long long)index, (unsigned long long)(first->curve - 1));
    } else {
        snprintf(where, sizeof where, "element %llu is null or NaN", (unsigned long long)index);
    }
    const char *choice = reading->type->table->missing;
    if (choice == NULL) {
        complaints_add(reading->submission->complaints, samples->fields[role]->name, "%s", where);
        return;
    }
    complaints_add(reading->submission->complaints, samples->fields[role]->name,
                   "%s; %s=%s leaves such samples out, of which there are %llu", where, choice,
                   role_field(reading, choice)->choices[MISSING_DROP], (unsigned long long)missing);
}

/* The arrays that were given; optional ones may be absent. False where one lacks that may not. */
static bool samples_find(const struct reading *reading, struct samples *samples) {
    const struct column_role *roles = reading->type->table->columns;
    samples->count = 0;
    for (size_t i = 0; roles[i].field != NULL; i++) {
        struct array_ref *ref = role_member(reading, roles[i].field);
        if (ref->count > 0) {
            samples->fields[samples->count] = role_field(reading, roles[i].field);
            samples->refs[samples->count++] = ref;
        } else if (roles[i].patterns == NULL) {
            return false;
        }
    }
    samples->values = samples->refs[reading->type->table->values]; /* no optional one before it */
    return true;
}

enum kiln_status reading_table(struct reading *reading) {
    const struct complaints *complaints = reading->submission->complaints;
    enum kiln_status status = KILN_OK;
    struct samples samples;
    struct walk first = {0, 0, 0};
    uint64_t index = 0;
    int role = 0;
    if (reading->table.bytes == NULL || reading->table.format == FORMAT_NPY) {
        choices_refuse(reading);
    }
    if (reading->table.bytes != NULL) {
        status = table_take(reading);
    }
    if (status != KILN_OK || complaints->count > 0 || !samples_find(reading, &samples)) {
        return status;
    }
    for (size_t i = 0; status == KILN_OK && i < samples.count; i++) {
        bool scalar = (samples.fields[i]->flags & FIELD_SCALAR) != 0;
        if (scalar && samples.refs[i]->count == 1 && samples.refs[i]->rows == 0) {
            status = scalar_expand(reading, &samples, i);
        }
    }
    if (status != KILN_OK || !shapes_agree(&samples)) {
        return status;
    }
    uint64_t missing = missing_count(reading, &samples, &first, &index, &role);
    if (missing > 0 && choice_of(reading, reading->type->table->missing) == MISSING_DROP) {
        return samples_drop(reading, &samples, missing);
    }
    if (missing > 0) {
        missing_refuse(reading, &samples, &first, index, role, missing);
    }
    return KILN_OK;
}
