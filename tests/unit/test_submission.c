/*
 * Submissions of kinds that the daemon does not have: two pictures by name, and series whose values
 * are the first of their arrays. What every kind's own tests send over HTTP is not repeated here.
 */
#include "compute/submission/submission.h"

#include "compute/codecs/npy.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct pair_params {
    double weight;
};

static const struct field pair_fields[] = {
    {.name = "weight", .type = FIELD_REAL, .min = 0, .max = 1, .preset = "0.5", .help = "w"},
    {.name = "image", .type = FIELD_BLOB, .help = "The first."},
    {.name = "mask", .type = FIELD_BLOB, .flags = FIELD_OPTIONAL, .help = "The second."},
    {.name = NULL},
};

static const enum format pictures[] = {FORMAT_PNG, FORMAT_PGM, FORMAT_NPY, FORMAT_NONE};

static const struct job_type pair_job = {
    .name = "pair",
    .input = INPUT_IMAGE,
    .fields = pair_fields,
    .params_size = sizeof(struct pair_params),
    .accepts = pictures,
};

/* Values at even steps, with uncertainties or without. */
struct even_params {
    struct array_ref v, e;
    int32_t order;
    char v_column[COLUMN_TEXT_MAX], e_column[COLUMN_TEXT_MAX];
};

#define AT(member) offsetof(struct even_params, member)

static const char *const orders[] = {"one", "many", NULL};

static const struct field even_fields[] = {
    {.name = "v",
     .type = FIELD_ARRAY,
     .flags = FIELD_GAPS | FIELD_ROWS,
     .offset = AT(v),
     .min = 1,
     .max = INFINITY,
     .help = "v"},
    {.name = "e",
     .type = FIELD_ARRAY,
     .flags = FIELD_OPTIONAL | FIELD_GAPS | FIELD_SCALAR,
     .offset = AT(e),
     .min = 2,
     .max = INFINITY,
     .help = "e"},
    {.name = "v_column",
     .type = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = AT(v_column),
     .max = COLUMN_TEXT_MAX - 1,
     .help = "v"},
    {.name = "e_column",
     .type = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = AT(e_column),
     .max = COLUMN_TEXT_MAX - 1,
     .help = "e"},
    {.name = "order",
     .type = FIELD_ENUM,
     .offset = AT(order),
     .preset = "one",
     .choices = orders,
     .help = "order"},
    {.name = NULL},
};

static const char *const v_names[] = {"v", NULL}, *const e_names[] = {"e", NULL},
                         *const e_patterns[] = {"%_err", NULL};

static const struct column_role even_roles[] = {
    {.field = "v", .choice = "v_column", .names = v_names},
    {.field = "e", .choice = "e_column", .names = e_names, .patterns = e_patterns},
    {.field = NULL},
};

static const struct table_shape even_table = {.columns = even_roles, .layout = "order"};

static const enum format tables[] = {FORMAT_CSV, FORMAT_NPY, FORMAT_NONE};

static const struct job_type even_job = {
    .name = "even",
    .input = INPUT_SERIES,
    .fields = even_fields,
    .params_size = sizeof(struct even_params),
    .accepts = tables,
    .table = &even_table,
};

#define PGM_A   "P5\n2 1\n255\nab"
#define PGM_B   "P5\n1 3\n255\nxyz"
#define NINE    "123456789"
#define BASE_A  "UDUKMiAxCjI1NQphYg=="
#define BASE_B  "UDUKMSAzCjI1NQp4eXo="
#define FORM    "multipart/form-data; boundary=b"
#define PART(n) "--b\r\nContent-Disposition: form-data; name=\"" n "\"; filename=\"f\"\r\n\r\n"

static struct arena *arena;
static struct job job;
static struct complaints complaints;
static struct submission submission;

static int open_all(void **state) {
    (void)state;
    return arena_create_private(1 << 20, &arena) == KILN_OK ? 0 : -1;
}

static int close_all(void **state) {
    (void)state;
    arena_destroy(arena);
    return 0;
}

/* All blocks must be back once the job's is. */
static void finish(void) {
    struct arena_stats stats;
    arena_give(arena, &job.body);
    arena_stats(arena, &stats);
    assert_int_equal(stats.blocks, 0);
}

static enum kiln_status submit_bytes(const struct job_type *type, const char *query,
                                     const char *media, const void *body, size_t size) {
    static const struct limits limits = {1 << 20, 64, 1000, 1000, 1000, 1 << 20};
    static char text[1024];
    memset(&job, 0, sizeof job);
    complaints.count = 0;
    snprintf(text, sizeof text, "%s", query);
    submission = (struct submission){
        .type = type,
        .limits = &limits,
        .arena = arena,
        .query = text,
        .query_end = text + strlen(text),
        .media = media,
        .body_size = size,
        .job = &job,
        .complaints = &complaints,
    };
    if (size > 0) {
        assert_int_equal(arena_take(arena, size + 1, &submission.body), KILN_OK);
        memcpy(arena_at(arena, submission.body.offset), body, size);
    }
    return submission_read(&submission);
}

static enum kiln_status submit(const struct job_type *type, const char *query, const char *media,
                               const char *body) {
    return submit_bytes(type, query, media, body, strlen(body));
}

static void expect_input(size_t index, const char *bytes) {
    const struct input *input = &job.inputs[index];
    assert_int_equal(input->kind, INPUT_IMAGE);
    assert_int_equal(input->format, FORMAT_PGM);
    assert_int_equal(input->size, strlen(bytes));
    assert_true(input->offset + input->size <= job.body.size);
    const char *block = arena_at(arena, job.body.offset);
    assert_memory_equal(block + input->offset, bytes, strlen(bytes));
}

static void expect_complaint(const char *field, const char *part) {
    if (complaints.count != 1 || strcmp(complaints.rows[0].field, field) != 0 ||
        strstr(complaints.rows[0].reason, part) == NULL) {
        fail_msg("%zu complaints, the first: %s %s", complaints.count, complaints.rows[0].field,
                 complaints.rows[0].reason);
    }
    finish();
}

static void test_two_pictures(void **state) {
    static const char *const bodies[][3] = {
        {"", FORM, PART("image") PGM_A "\r\n" PART("mask") PGM_B "\r\n--b--"},
        {"", FORM, PART("mask") PGM_B "\r\n" PART("whatever") PGM_A "\r\n--b--"},
        {"", "application/json", "{\"mask\":\"" BASE_B "\",\"weight\":1,\"image\":\"" BASE_A "\"}"},
        {"", "application/json",
         "{\"image\":\"\\u0055DUKMiAxCjI1NQphYg==\",\"mask\":\"data:a\\/b;base64," BASE_B "\"}"},
        {"mask=" BASE_B, FORM, PART("image") PGM_A "\r\n--b--"},
        {"mask=" BASE_B, "image/x-portable-graymap", PGM_A},
        {"mask=" BASE_B "&image=" BASE_A, NULL, ""},
        {"image=" BASE_A, "application/x-www-form-urlencoded", "mask=" BASE_B "&weight=0"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        enum kiln_status status = submit(&pair_job, bodies[i][0], bodies[i][1], bodies[i][2]);
        if (status != KILN_OK || complaints.count > 0) {
            fail_msg("%zu: %s %s", i, submission.detail, complaints.rows[0].reason);
        }
        expect_input(0, PGM_A);
        expect_input(1, PGM_B);
        assert_int_equal(job.inputs[0].image.width, 2);
        assert_int_equal(job.inputs[1].image.height, 3);
        assert_int_equal(job.inputs[2].kind, INPUT_NONE);
        finish();
    }
}

static void test_one_picture(void **state) {
    (void)state;
    assert_int_equal(submit(&pair_job, "weight=0.25&format=npy", "application/octet-stream", PGM_A),
                     KILN_OK);
    assert_int_equal(complaints.count, 0);
    expect_input(0, PGM_A);
    assert_int_equal(job.inputs[1].kind, INPUT_NONE);
    assert_string_equal(submission.format, "npy");
    assert_true(((const struct pair_params *)(const void *)job.params)->weight == 0.25);
    finish();
}

static void test_refused(void **state) {
    static const struct {
        const char *query, *media, *body, *field, *reason;
    } cases[] = {
        {"", FORM, PART("mask") PGM_B "\r\n--b--", "image", "is missing"},
        {"", FORM, PART("image") PGM_A "\r\n" PART("image") PGM_A "\r\n--b--", "image",
         "duplicated"},
        {"", FORM, PART("image") PGM_A "\r\n" PART("other") PGM_A "\r\n--b--", "image",
         "duplicated"},
        {"mask=" BASE_B, "application/json", "{\"image\":\"" BASE_A "\",\"mask\":\"" BASE_B "\"}",
         "mask", "duplicated"},
        {"", "application/json", "{\"image\":\"" BASE_A "\",\"mask\":\"!\"}", "mask", "base64"},
        {"", "application/json", "{\"image\":\"" BASE_A "\",\"mask\":[]}", "mask", "base64"},
        {"", FORM,
         PART("image") PGM_A "\r\n" PART(
             "mask") "P5\n9 9\n255\n" NINE NINE NINE NINE NINE NINE NINE NINE NINE "\r\n--b--",
         "mask", "pixels"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(submit(&pair_job, cases[i].query, cases[i].media, cases[i].body), KILN_OK);
        expect_complaint(cases[i].field, cases[i].reason);
    }
    assert_int_equal(
        submit(&pair_job, "", FORM, PART("image") PGM_A "\r\n" PART("mask") "?\r\n--b--"),
        KILN_MEDIA_TYPE);
    assert_non_null(strstr(submission.detail, "mask"));
    finish();
    assert_int_equal(submit(&pair_job, "", "text/html", "<p>"), KILN_MEDIA_TYPE);
    finish();
}

static const struct even_params *even(void) {
    return (const void *)job.params;
}

static const double *numbers(const struct array_ref *array) {
    return arena_at(arena, job.body.offset + array->offset);
}

static void test_values_first(void **state) {
    static const double rows[] = {1, 2, 3, 4, 5, 6};
    unsigned char npy[512];
    (void)state;
    assert_int_equal(submit(&even_job, "", "text/csv", "v,v_err\n1,0.5\n2,0.25\n"), KILN_OK);
    assert_int_equal(complaints.count, 0);
    assert_int_equal(even()->v.count, 2);
    assert_true(numbers(&even()->e)[1] == 0.25);
    finish();
    assert_int_equal(submit(&even_job, "", "application/json", "{\"v\":[[1,2],[3]],\"e\":7}"),
                     KILN_OK);
    assert_int_equal(complaints.count, 0);
    assert_int_equal(even()->e.rows, 2);
    assert_true(numbers(&even()->e)[2] == 7);
    finish();
    size_t head = npy_write_header(npy, sizeof npy, "<f8", (const uint64_t[]){2, 3}, 2);
    assert_true(head > 0);
    memcpy(npy + head, rows, sizeof rows);
    assert_int_equal(
        submit_bytes(&even_job, "order=many", "application/x-npy", npy, head + sizeof rows),
        KILN_OK);
    assert_int_equal(complaints.count, 0);
    assert_int_equal(even()->v.rows, 2);
    assert_true(numbers(&even()->v)[5] == 6);
    finish();
    assert_int_equal(submit_bytes(&even_job, "", "application/x-npy", npy, head + sizeof rows),
                     KILN_OK);
    assert_int_equal(even()->v.count, 3);
    assert_true(numbers(&even()->e)[0] == 4);
    finish();
}

/* A kind without a choice for gaps refuses them, and speaks of no such choice. */
static void test_gaps(void **state) {
    (void)state;
    assert_int_equal(submit(&even_job, "", "application/json", "{\"v\":[1,null]}"), KILN_OK);
    assert_null(strstr(complaints.rows[0].reason, "leaves such samples out"));
    expect_complaint("v", "element 1 is null or NaN");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_pictures), cmocka_unit_test(test_one_picture),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_values_first),
        cmocka_unit_test(test_gaps),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
