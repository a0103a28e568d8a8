/*
 * job.c: looking kinds up, and asserting that their tables are complete.
 *
 * Threads: constant; job_types_assert runs once at start.
 */
#include "compute/jobs/job.h"

#include <assert.h>
#include <string.h>

const struct job_type *job_type_find(const char *name) {
    for (size_t i = 0; job_types[i] != NULL; i++) {
        if (strcmp(job_types[i]->name, name) == 0) {
            return job_types[i];
        }
    }
    return NULL;
}

const struct job_type *job_type_at(int32_t index) {
    for (int32_t i = 0; job_types[i] != NULL; i++) {
        if (i == index) {
            return job_types[i];
        }
    }
    return NULL;
}

int job_type_index(const struct job_type *type) {
    for (int i = 0; job_types[i] != NULL; i++) {
        if (job_types[i] == type) {
            return i;
        }
    }
    return -1;
}

size_t job_type_inputs(const struct job_type *type) {
    size_t count = type->input == INPUT_SERIES;
    for (const struct field *field = type->fields;
         type->input == INPUT_IMAGE && field->name != NULL; field++) {
        count += field->type == FIELD_BLOB;
    }
    return count;
}

static size_t member_size(enum field_type type) {
    static const size_t sizes[] = {
        [FIELD_BOOL] = sizeof(bool),
        [FIELD_INT] = sizeof(int64_t),
        [FIELD_REAL] = sizeof(double),
        [FIELD_ENUM] = sizeof(int32_t),
        [FIELD_TEXT] = sizeof(char),
        [FIELD_ARRAY] = sizeof(struct array_ref),
        [FIELD_BLOB] = 0,
    };
    return sizes[type];
}

static void fields_assert(const struct job_type *type) {
    size_t count = 0;
    for (const struct field *field = type->fields; field->name != NULL; field++, count++) {
        assert(count < 64 && "form.seen has 64 bits");
        size_t more = field->type == FIELD_TEXT ? (size_t)field->max : 0;
        assert(field->offset + member_size(field->type) + more <= type->params_size);
        assert(!member_size(field->type) || field->offset % _Alignof(int32_t) == 0 ||
               field->type == FIELD_BOOL || field->type == FIELD_TEXT);
        assert((field->type == FIELD_ENUM) == (field->choices != NULL));
        assert(field->help != NULL && *field->help);
        assert(field->type != FIELD_BOOL || field->preset != NULL);
        for (const struct field *other = type->fields; other < field; other++) {
            assert(strcmp(other->name, field->name) != 0);
        }
    }
    _Alignas(16) unsigned char params[JOB_PARAMS_MAX] = {0};
    struct complaints complaints = {0};
    struct form form;
    form_init(&form, type->fields, params, &complaints); /* asserts that every default is valid */
}

/* An ENUM field of two choices that a table's shape names. */
static void choice_assert(const struct form *form, const char *name) {
    const struct field *field = name != NULL ? form_find(form, name) : NULL;
    assert(name == NULL || (field != NULL && field->type == FIELD_ENUM && field->preset != NULL));
    assert(name == NULL ||
           (field->choices[0] != NULL && field->choices[1] != NULL && field->choices[2] == NULL));
    (void)field;
}

static void table_assert(const struct job_type *type) {
    const struct form form = {.fields = type->fields};
    size_t count = 0, required = 0;
    assert((type->table != NULL) == (type->input == INPUT_SERIES));
    if (type->table == NULL) {
        return;
    }
    for (const struct column_role *role = type->table->columns; role->field != NULL;
         role++, count++) {
        const struct field *array = form_find(&form, role->field);
        const struct field *choice = form_find(&form, role->choice);
        assert(array != NULL && array->type == FIELD_ARRAY && (array->flags & FIELD_GAPS));
        assert(choice != NULL && choice->type == FIELD_TEXT && choice->max == COLUMN_TEXT_MAX - 1);
        assert(role->names != NULL && (role->patterns == NULL || count > 0));
        assert((role->patterns != NULL || required == count) && "optional roles come last");
        required += role->patterns == NULL;
        (void)array, (void)choice;
    }
    assert(required > type->table->values && type->table->values < 2 && count <= COLUMN_ROLES);
    choice_assert(&form, type->table->missing);
    choice_assert(&form, type->table->layout);
}

static void inputs_assert(const struct job_type *type) {
    size_t inputs = job_type_inputs(type);
    assert((type->input == INPUT_NONE) == (inputs == 0) && inputs <= INPUTS_MAX);
    for (const struct field *field = type->fields; field->name != NULL; field++) {
        assert(field->type != FIELD_BLOB || type->input == INPUT_IMAGE);
        assert(field->type != FIELD_ARRAY || type->input == INPUT_SERIES);
    }
    (void)inputs;
}

static void variants_assert(const struct job_type *type) {
    int count = 0;
    for (const struct work_variant *variant = type->variants; variant->name != NULL;
         variant++, count++) {
        for (int i = 0; i <= WORK_STEPS; i++) {
            assert(variant->seconds[i] > 0);
        }
        for (const struct work_variant *other = type->variants; other < variant; other++) {
            assert(strcmp(other->name, variant->name) != 0);
        }
    }
    assert(count > 0 && count <= WORK_VARIANTS);
    (void)count;
}

static void paths_assert(const struct job_type *type) {
    for (const struct job_path *path = type->paths; path != NULL && path->pattern != NULL; path++) {
        assert(path->pattern[0] == '/');
        assert(path->bind != NULL);
    }
}

void job_types_assert(void) {
    for (size_t i = 0; job_types[i] != NULL; i++) {
        const struct job_type *type = job_types[i];
        assert(type->name != NULL && *type->name && type->title != NULL && *type->title);
        assert(type->fields != NULL && type->params_size <= JOB_PARAMS_MAX);
        assert(type->formats != NULL && type->formats[0] != FORMAT_NONE);
        assert((type->input == INPUT_NONE) == (type->accepts == NULL));
        assert((type->input == INPUT_NONE) == (type->canary_input == NULL));
        assert(type->check != NULL && type->plan != NULL && type->run != NULL &&
               type->variants != NULL && type->estimate != NULL);
        assert((type->alike == NULL) == (type->run_group == NULL));
        assert(type->canary_query != NULL && type->canary_format != FORMAT_NONE);
        assert(type->version > 0);
        assert(job_type_find(type->name) == type && "names are unique");
        fields_assert(type);
        inputs_assert(type);
        table_assert(type);
        paths_assert(type);
        variants_assert(type);
    }
}
