/*
 * registry.c: the list of job kinds. A new kind is one line in each of the two lists.
 *
 * Threads: constant; job_types_assert runs once at start.
 */
#include "compute/jobs/job.h"

#include <assert.h>
#include <string.h>

extern const struct job_type mandelbrot_job, jacobi_job, laplacian_job, lombscargle_job;

#ifdef KILN_FAULTS
extern const struct job_type fault_job; /* of kilnd-faults, in tests/devices/ */
#endif

const struct job_type *const job_types[] = {
    &mandelbrot_job,
    &jacobi_job,
    &laplacian_job,
    &lombscargle_job,
#ifdef KILN_FAULTS
    &fault_job,
#endif
    NULL,
};

const struct job_type *job_type_find(const char *name) {
    for (size_t i = 0; job_types[i]; i++)
        if (strcmp(job_types[i]->name, name) == 0)
            return job_types[i];
    return NULL;
}

int job_type_index(const struct job_type *type) {
    for (int i = 0; job_types[i]; i++)
        if (job_types[i] == type)
            return i;
    return -1;
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
    for (const struct field *field = type->fields; field->name; field++, count++) {
        assert(count < 64 && "form.seen has 64 bits");
        size_t more = field->type == FIELD_TEXT ? (size_t)field->max : 0;
        assert(field->offset + member_size(field->type) + more <= type->params_size);
        assert(!member_size(field->type) || field->offset % _Alignof(int32_t) == 0 ||
               field->type == FIELD_BOOL || field->type == FIELD_TEXT);
        assert((field->type == FIELD_ENUM) == (field->choices != NULL));
        assert(field->help && *field->help);
        assert(field->type != FIELD_BOOL || field->preset);
        for (const struct field *other = type->fields; other < field; other++)
            assert(strcmp(other->name, field->name) != 0);
    }
    _Alignas(16) unsigned char params[JOB_PARAMS_MAX] = {0};
    struct complaints complaints = {0};
    struct form form;
    form_init(&form, type->fields, params, &complaints); /* asserts that every default is valid */
}

static void columns_assert(const struct job_type *type) {
    const struct form form = {.fields = type->fields};
    size_t count = 0;
    for (const struct column_role *role = type->columns; role && role->field; role++, count++) {
        const struct field *array = form_find(&form, role->field);
        const struct field *choice = form_find(&form, role->choice);
        assert(array && array->type == FIELD_ARRAY && (array->flags & FIELD_GAPS));
        assert(choice && choice->type == FIELD_TEXT && choice->max == COLUMN_TEXT_MAX - 1);
        assert(role->names && (!role->patterns || count > 0));
        (void)array, (void)choice;
    }
    assert(count <= COLUMN_ROLES && (count > 0) == (type->input == INPUT_SERIES));
}

static void variants_assert(const struct job_type *type) {
    int count = 0;
    for (const struct work_variant *variant = type->variants; variant->name; variant++, count++) {
        for (int i = 0; i <= WORK_STEPS; i++)
            assert(variant->seconds[i] > 0);
        for (const struct work_variant *other = type->variants; other < variant; other++)
            assert(strcmp(other->name, variant->name) != 0);
    }
    assert(count > 0 && count <= WORK_VARIANTS);
    (void)count;
}

static void paths_assert(const struct job_type *type) {
    for (const struct job_path *path = type->paths; path && path->pattern; path++) {
        assert(path->pattern[0] == '/');
        assert(path->bind);
    }
}

void job_types_assert(void) {
    for (size_t i = 0; job_types[i]; i++) {
        const struct job_type *type = job_types[i];
        assert(type->name && *type->name && type->title && *type->title);
        assert(type->fields && type->params_size <= JOB_PARAMS_MAX);
        assert(type->formats && type->formats[0] != FORMAT_NONE);
        assert((type->input == INPUT_NONE) == (type->accepts == NULL));
        assert((type->input == INPUT_NONE) == (type->canary_input == NULL));
        assert(type->check && type->plan && type->run && type->variants && type->estimate);
        assert(!type->alike == !type->run_group);
        assert(type->canary_query && type->canary_format != FORMAT_NONE);
        assert(type->version > 0);
        assert(job_type_find(type->name) == type && "names are unique");
        fields_assert(type);
        columns_assert(type);
        paths_assert(type);
        variants_assert(type);
    }
}
