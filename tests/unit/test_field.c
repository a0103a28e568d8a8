/*
 * test_field.c: parameters through a field table: texts, JSON, complaints, canonical texts.
 */
#include "compute/codecs/json.h"
#include "compute/jobs/field.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct params {
    int64_t count, spare;
    double ratio, bound, free;
    int32_t kind;
    bool flag;
    struct array_ref list, open;
    char name[8];
};

static const char *const kinds[] = {"auto", "fp32", "fp64", NULL};
static const char *const many[] = {
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa_one", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb_two",
    "cccccccccccccccccccccccccccccccccccccccc_three", "viridis", NULL};

#define AT(member) offsetof(struct params, member)

static const struct field fields[] = {
    {.name = "max_iter",
     .type = FIELD_INT,
     .offset = AT(count),
     .min = 1,
     .max = 65536,
     .preset = "400",
     .unit = "iterations",
     .help = "How many."},
    {.name = "spare", .type = FIELD_INT, .flags = FIELD_OPTIONAL, .offset = AT(spare)},
    {.name = "ratio",
     .type = FIELD_REAL,
     .flags = FIELD_ABOVE_MIN,
     .offset = AT(ratio),
     .max = 10,
     .preset = "0.3",
     .help = "Above \"0\"."},
    {.name = "bound", .type = FIELD_REAL, .offset = AT(bound), .min = 0, .max = INFINITY},
    {.name = "free", .type = FIELD_REAL, .flags = FIELD_OPTIONAL, .offset = AT(free)},
    {.name = "precision",
     .type = FIELD_ENUM,
     .offset = AT(kind),
     .preset = "auto",
     .choices = kinds},
    {.name = "shade", .type = FIELD_BOOL, .offset = AT(flag), .preset = "false"},
    {.name = "list",
     .type = FIELD_ARRAY,
     .flags = FIELD_OPTIONAL,
     .offset = AT(list),
     .min = 3,
     .max = 10},
    {.name = "open",
     .type = FIELD_ARRAY,
     .flags = FIELD_OPTIONAL,
     .offset = AT(open),
     .min = 3,
     .max = INFINITY},
    {.name = "name", .type = FIELD_TEXT, .flags = FIELD_OPTIONAL, .offset = AT(name), .max = 7},
    {.name = "image", .type = FIELD_BLOB, .flags = FIELD_OPTIONAL},
    {.name = NULL},
};

struct fixture {
    struct params params;
    struct complaints complaints;
    struct form form;
};

static struct fixture *start(struct fixture *f) {
    memset(f, 0, sizeof *f);
    form_init(&f->form, fields, &f->params, &f->complaints);
    return f;
}

/* The last complaint's reason; the test fails where there is none or it names another field. */
static const char *reason(struct fixture *f, const char *field) {
    assert_int_not_equal(f->complaints.count, 0);
    const struct complaint *row = &f->complaints.rows[f->complaints.count - 1];
    assert_string_equal(row->field, field);
    return row->reason;
}

static const char *refuse_text(const char *name, const char *text) {
    static struct fixture f;
    form_set_text(&start(&f)->form, name, text);
    return reason(&f, name);
}

static void take_text(struct fixture *f, const char *name, const char *text) {
    form_set_text(&start(f)->form, name, text);
    assert_int_equal(f->complaints.count, 0);
}

/* Sets every member of a JSON object; `taken` false where one was left to the caller. */
static bool set_object(struct fixture *f, const char *json) {
    char why[128], key[64];
    struct json_value object, value;
    size_t cursor = 0;
    bool taken = true;
    start(f);
    assert_int_equal(json_check(json, strlen(json), &object, why, sizeof why), KILN_OK);
    while (json_next_member(&object, &cursor, key, sizeof key, &value)) {
        taken = form_set_json(&f->form, key, &value) && taken;
    }
    return taken;
}

static const char *refuse_json(const char *name, const char *json) {
    static struct fixture f;
    assert_true(set_object(&f, json));
    return reason(&f, name);
}

static void defaults(void **state) {
    (void)state;
    struct fixture f;
    start(&f);
    assert_int_equal(f.complaints.count, 0);
    assert_int_equal(f.params.count, 400);
    assert_true(f.params.spare == FIELD_ABSENT);
    assert_true(f.params.ratio == 0.3);
    assert_true(isnan(f.params.free));
    assert_int_equal(f.params.kind, 0);
    assert_false(f.params.flag);
    assert_int_equal(f.params.list.count, 0);
    form_finish(&f.form);
    assert_int_equal(f.complaints.count, 1); /* bound has no default */
    assert_string_equal(reason(&f, "bound"), "is missing");
}

static void integers(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "1e3",
                                      "1.0",
                                      " 1",
                                      "1 ",
                                      "0x10",
                                      "-",
                                      "+",
                                      "1_000",
                                      "٣",
                                      "65537",
                                      "0",
                                      "-5",
                                      "99999999999999999999",
                                      "-99999999999999999999",
                                      "nan"};
    struct fixture f;
    take_text(&f, "max_iter", "65536");
    assert_int_equal(f.params.count, 65536);
    take_text(&f, "max_iter", "+007");
    assert_int_equal(f.params.count, 7);
    take_text(&f, "spare", "-9223372036854775807");
    assert_true(f.params.spare == -INT64_MAX);
    take_text(&f, "spare", "9223372036854775807");
    assert_true(f.params.spare == INT64_MAX);
    assert_string_equal(refuse_text("spare", "9223372036854775808"), "must be an integer");
    assert_string_equal(refuse_text("spare", "-9223372036854775808"), "must be an integer");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_string_equal(refuse_text("max_iter", bad[i]), "must be an integer from 1 to 65536");
    }
}

static void reals(void **state) {
    (void)state;
    static const char *const bad[] = {"",    "inf",  "-inf", "nan",  "0x1p3", ".",   "e5", "1e",
                                      "1e+", " 1.5", "1,5",  "1.5 ", "--1",   "1d3", "1f", "1.5.2"};
    static const struct {
        const char *text;
        double value;
    } good[] = {{"-2.25", -2.25}, {".5", 0.5},     {"5.", 5},    {"1e-3", 0.001},
                {"+1E+3", 1000},  {"1e-999", 0.0}, {"0.1", 0.1}, {"-0.75000000000000001", -0.75}};
    struct fixture f;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        take_text(&f, "free", good[i].text);
        assert_true(f.params.free == good[i].value);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_string_equal(refuse_text("free", bad[i]), "must be a number");
    }
    assert_string_equal(refuse_text("free", "1e999"), "must be a finite number");
    assert_string_equal(refuse_text("ratio", "0"), "must be a number above 0 and at most 10");
    assert_string_equal(refuse_text("ratio", "10.000001"),
                        "must be a number above 0 and at most 10");
    assert_string_equal(refuse_text("bound", "-1e-300"), "must be a number of at least 0");
    take_text(&f, "bound", "-0");
    assert_false(signbit(f.params.bound));
}

static void choices(void **state) {
    (void)state;
    static const char *const bools[] = {"yes", "TRUE", "", "2", "on"};
    struct fixture f;
    take_text(&f, "precision", "fp64");
    assert_int_equal(f.params.kind, 2);
    assert_string_equal(refuse_text("precision", "FP64"), "must be one of: auto, fp32, fp64");
    take_text(&f, "shade", "1");
    assert_true(f.params.flag);
    take_text(&f, "shade", "false");
    assert_false(f.params.flag);
    for (size_t i = 0; i < sizeof bools / sizeof *bools; i++) {
        assert_string_equal(refuse_text("shade", bools[i]), "must be true or false");
    }
}

static void long_lists(void **state) {
    (void)state;
    static const struct field table[] = {
        {.name = "map", .type = FIELD_ENUM, .preset = "viridis", .choices = many}, {.name = NULL}};
    int32_t value = -1;
    struct complaints complaints = {0};
    struct form form;
    form_init(&form, table, &value, &complaints);
    assert_int_equal(value, 3);
    form_set_text(&form, "map", "viridsi");
    assert_int_equal(complaints.count, 1);
    assert_non_null(strstr(complaints.rows[0].reason, "did you mean viridis?"));
    assert_non_null(strstr(complaints.rows[0].reason, "…"));
    assert_null(strstr(complaints.rows[0].reason, "ccc"));
}

static void names(void **state) {
    (void)state;
    char endless[5000];
    struct fixture f;
    assert_string_equal(refuse_text("maxiter", "1"),
                        "is not a field of this job; did you mean max_iter?");
    assert_string_equal(refuse_text("hsade", "1"),
                        "is not a field of this job; did you mean shade?");
    assert_string_equal(refuse_text("telescope", "1"), "is not a field of this job");
    assert_string_equal(refuse_text("", "1"), "is not a field of this job");
    memset(endless, 'm', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    form_set_text(&start(&f)->form, endless, endless);
    assert_int_equal(f.complaints.count, 1);
    assert_int_equal(strlen(f.complaints.rows[0].field), sizeof f.complaints.rows[0].field - 1);
    form_set_text(&start(&f)->form, "shade", "true");
    form_set_text(&f.form, "shade", "true");
    assert_string_equal(reason(&f, "shade"), "is duplicated");
    assert_true(form_has(&f.form, "shade"));
    assert_false(form_has(&f.form, "ratio"));
    assert_false(form_has(&f.form, "no such"));
}

static void json(void **state) {
    (void)state;
    struct fixture f;
    assert_true(set_object(&f,
                           "{\"max_iter\":1000.0,\"ratio\":\"2.5e-1\",\"bound\":3,\"shade\":true,"
                           "\"precision\":\"fp32\",\"free\":null,\"list\":null}"));
    assert_int_equal(f.complaints.count, 0);
    assert_int_equal(f.params.count, 1000);
    assert_true(f.params.ratio == 0.25 && f.params.bound == 3);
    assert_true(f.params.flag);
    assert_int_equal(f.params.kind, 1);
    assert_true(isnan(f.params.free));
    assert_false(form_has(&f.form, "free"));
    assert_false(set_object(&f, "{\"list\":[1,2,3]}"));
    assert_false(set_object(&f, "{\"image\":\"AAAA\"}"));
    assert_int_equal(f.complaints.count, 0);
}

static void json_refused(void **state) {
    (void)state;
    static const char *const integers_bad[] = {
        "{\"max_iter\":1.5}", "{\"max_iter\":\"12\"}", "{\"max_iter\":true}",
        "{\"max_iter\":[1]}", "{\"max_iter\":1e300}",  "{\"max_iter\":0}",
    };
    for (size_t i = 0; i < sizeof integers_bad / sizeof *integers_bad; i++) {
        assert_string_equal(refuse_json("max_iter", integers_bad[i]),
                            "must be an integer from 1 to 65536");
    }
    assert_string_equal(refuse_json("spare", "{\"spare\":9007199254740994}"), "must be an integer");
    assert_string_equal(refuse_json("free", "{\"free\":\"nan\"}"), "must be a number");
    assert_string_equal(refuse_json("free", "{\"free\":\"1\\u00002\"}"), "must be a number");
    assert_string_equal(refuse_json("free", "{\"free\":false}"), "must be a number");
    assert_string_equal(refuse_json("shade", "{\"shade\":1}"), "must be true or false");
    assert_string_equal(refuse_json("shade", "{\"shade\":\"true\"}"), "must be true or false");
    assert_string_equal(refuse_json("precision", "{\"precision\":1}"),
                        "must be one of: auto, fp32, fp64");
    assert_string_equal(refuse_json("shdae", "{\"shdae\":null}"),
                        "is not a field of this job; did you mean shade?");
}

static void arrays(void **state) {
    (void)state;
    struct fixture f;
    form_set_array(&start(&f)->form, "list", (struct array_ref){.offset = 64, .count = 10});
    assert_int_equal(f.complaints.count, 0);
    assert_int_equal(f.params.list.offset, 64);
    assert_int_equal(f.params.list.count, 10);
    form_set_array(&f.form, "list", (struct array_ref){.offset = 64, .count = 10});
    assert_string_equal(reason(&f, "list"), "is duplicated");
    form_set_array(&start(&f)->form, "list", (struct array_ref){.offset = 0, .count = 2});
    assert_string_equal(reason(&f, "list"), "must have 3 to 10 elements");
    form_set_array(&start(&f)->form, "open", (struct array_ref){.offset = 0, .count = 2});
    assert_string_equal(reason(&f, "open"), "must have at least 3 elements");
    assert_int_equal(f.params.list.count, 0);
    assert_non_null(strstr(refuse_text("list", "1,2,3"), "request body"));
    form_mark(&start(&f)->form, "image");
    form_mark(&f.form, "image");
    assert_string_equal(reason(&f, "image"), "is duplicated");
}

/* Texts: any UTF-8 that fits; in a query with escapes for all that it could not hold. */
static void texts(void **state) {
    static const struct {
        const char *text, *query, *json;
    } good[] = {{"mag", "mag", "\"mag\""},
                {"a b&c=%", "a%20b%26c%3D%25", "\"a b&c=%\""},
                {"\xc3\xb6\"\\", "%C3%B6%22%5C", "\"\xc3\xb6\\\"\\\\\""},
                {"1234567", "1234567", "\"1234567\""}};
    static const char *const bad[] = {"", "12345678", "a\nb", "\x7f", "\xff", "\xc3"};
    struct fixture f;
    char buffer[256];
    struct text text;
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        start(&f);
        form_set_text(&f.form, "name", good[i].text);
        assert_int_equal(f.complaints.count, 0);
        text_init(&text, buffer, sizeof buffer);
        fields_print_query(fields, &f.params, &text);
        assert_string_equal(strstr(buffer, "&name=") + 6, good[i].query);
        text_init(&text, buffer, sizeof buffer);
        fields_print_json(fields, &f.params, &text);
        assert_string_equal(strstr(buffer, "\"name\":") + 7, good[i].json);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        start(&f);
        form_set_text(&f.form, "name", bad[i]);
        assert_string_equal(reason(&f, "name"),
                            "must be a text of 1 to 7 bytes of UTF-8 without control characters");
        assert_string_equal(f.params.name, "");
    }
    static const char *const objects[] = {"{\"name\":3}", "{\"name\":\"a\\u0000\"}",
                                          "{\"name\":\"12345678\"}", "{\"name\":[\"a\"]}"};
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        start(&f);
        set_object(&f, objects[i]);
        assert_int_equal(f.complaints.count, 1);
    }
    start(&f);
    assert_true(set_object(&f, "{\"name\":\"\\u00f6\",\"bound\":1}"));
    assert_string_equal(f.params.name, "\xc3\xb6");
}

static void canonical(void **state) {
    (void)state;
    struct fixture f;
    char buffer[1024], again[1024];
    struct text text;
    start(&f);
    form_set_text(&f.form, "bound", "1e300");
    form_set_text(&f.form, "shade", "1");
    form_set_text(&f.form, "ratio", "0.10000000000000001");
    text_init(&text, buffer, sizeof buffer);
    fields_print_query(fields, &f.params, &text);
    assert_string_equal(buffer, "max_iter=400&ratio=0.1&bound=1e300&precision=auto&shade=true");
    assert_null(strpbrk(buffer, "+% "));
    text_init(&text, buffer, sizeof buffer);
    text_string(&text, "{");
    fields_print_json(fields, &f.params, &text);
    text_string(&text, "}");
    assert_string_equal(buffer, "{\"max_iter\":400,\"ratio\":0.1,\"bound\":1e300,"
                                "\"precision\":\"auto\",\"shade\":true}");
    struct params before = f.params;
    assert_true(set_object(&f, buffer)); /* what is printed reads back the same */
    assert_int_equal(f.complaints.count, 0);
    assert_true(f.params.bound == before.bound && f.params.ratio == before.ratio);
    text_init(&text, again, sizeof again);
    text_string(&text, "{");
    fields_print_json(fields, &f.params, &text);
    text_string(&text, "}");
    assert_string_equal(again, buffer);
}

static void description(void **state) {
    (void)state;
    char buffer[4096], why[128];
    struct text text;
    struct json_value value, row;
    size_t cursor = 0, rows = 0;
    text_init(&text, buffer, sizeof buffer);
    fields_describe(fields, &text);
    assert_false(text.full);
    assert_int_equal(json_check(buffer, text.size, &value, why, sizeof why), KILN_OK);
    while (json_next_element(&value, &cursor, &row)) {
        rows++;
    }
    assert_int_equal(rows, sizeof fields / sizeof *fields - 1);
    assert_non_null(strstr(buffer, "{\"name\":\"max_iter\",\"type\":\"integer\",\"unit\":"
                                   "\"iterations\",\"minimum\":1,\"maximum\":65536,\"default\":400,"
                                   "\"required\":false,\"help\":\"How many.\"}"));
    assert_non_null(strstr(buffer, "\"exclusiveMinimum\":0,\"maximum\":10"));
    assert_non_null(strstr(buffer, "{\"name\":\"bound\",\"type\":\"number\",\"minimum\":0,"
                                   "\"required\":true}"));
    assert_non_null(strstr(buffer, "\"minItems\":3,\"maxItems\":10"));
    assert_non_null(strstr(buffer, "\"choices\":[\"auto\",\"fp32\",\"fp64\"]"));
}

static void overflow(void **state) {
    (void)state;
    struct complaints complaints = {0};
    for (int i = 0; i < 2 * COMPLAINTS_MAX; i++) {
        complaints_add(&complaints, "field", "number %d %0300d", i, 0);
    }
    assert_int_equal(complaints.count, 2 * COMPLAINTS_MAX);
    assert_int_equal(strlen(complaints.rows[COMPLAINTS_MAX - 1].reason),
                     sizeof complaints.rows[0].reason - 1);
    assert_memory_equal(complaints.rows[COMPLAINTS_MAX - 1].reason, "number 31 ", 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults), cmocka_unit_test(integers),     cmocka_unit_test(reals),
        cmocka_unit_test(choices),  cmocka_unit_test(long_lists),   cmocka_unit_test(names),
        cmocka_unit_test(json),     cmocka_unit_test(json_refused), cmocka_unit_test(arrays),
        cmocka_unit_test(texts),    cmocka_unit_test(canonical),    cmocka_unit_test(description),
        cmocka_unit_test(overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
