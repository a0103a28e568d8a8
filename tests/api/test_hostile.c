/*
 * test_hostile.c: hostile values in every field of every job kind, and bodies broken at random. No
 * status of 500 or above, every refusal a problem document, the daemon unharmed.
 *
 * The broken ones depend on their number alone. KILN_SOAK in the environment asks for ten times as
 * many.
 */
#include "tests/api/lib_acceptance.h"
#include "tests/api/lib_daemon.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JSON      "application/json"
#define FORM      "application/x-www-form-urlencoded"
#define ANY       "application/octet-stream"
#define MULTIPART "multipart/form-data; boundary=b"
#define BODY_MAX  4096

static struct daemon daemon_;
static struct session *session;
static unsigned asked, refused, taken;

static int setup(void **state) {
    static const char *const flags[] = {"--max-body",
                                        "200000",
                                        "--max-pixels",
                                        "20000",
                                        "--max-iterations",
                                        "2000",
                                        "--max-samples",
                                        "1000",
                                        "--max-frequencies",
                                        "5000",
                                        NULL};
    (void)state;
    daemon_start(&daemon_, flags);
    session = session_create(&daemon_);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    session_destroy(session);
    return daemon_stop(&daemon_);
}

static unsigned times(unsigned count) {
    return acceptance_is_long() ? 10 * count : count;
}

/* An answer that a hostile request may get. `what` names it. */
static void ask(const struct request *request, const char *what) {
    struct answer answer;
    char type[64] = "";
    session_ask(session, request, &answer);
    answer_header(&answer, "Content-Type", type, sizeof type);
    bool problem = strcmp(type, "application/problem+json") == 0;
    if (answer.status == 0 || answer.status >= 500 || (answer.status >= 400 && !problem)) {
        fail_msg("%s, %s %s: %d %s: %.400s", what, request->path, request->type, answer.status,
                 type, answer.body);
    }
    asked++;
    refused += answer.status >= 400;
    taken += answer.status == 200;
    answer_free(&answer);
}

static void assert_unharmed(pid_t worker, const char *row, const char *target) {
    struct answer answer;
    session_get(session, "/v1/mandelbrot?width=16&height=16&format=npy", &answer);
    int status = answer.status;
    answer_free(&answer);
    bool lives = worker_pid(session) == worker;
    /* an answer of 5xx has failed the test before */
    acceptance_print(status == 200 && lives, row, target,
                     "%u requests, %u refused with a problem, %u taken, 0 answered 5xx, the worker "
                     "%s",
                     asked, refused, taken, lives ? "lives" : "is another");
    assert_int_equal(status, 200);
    assert_true(lives);
    asked = refused = taken = 0;
}

static const char *const naughty[] = {
    "",
    " ",
    "\t",
    "0",
    "-0",
    "1",
    "-1",
    "1.0",
    "1e2",
    "1e999",
    "-1e999",
    "1e-999",
    "nan",
    "NaN",
    "inf",
    "-Infinity",
    "0x10",
    "010",
    "+1",
    "1,5",
    "1 ",
    " 1",
    "1_000",
    "٣",
    "¼",
    "1/0",
    "$1.00",
    "2147483647",
    "2147483648",
    "-2147483649",
    "4294967296",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "99999999999999999999999999999999999999",
    "1e400",
    "0.00000000000000000000000000000000000001",
    "true",
    "TRUE",
    "yes",
    "null",
    "undefined",
    "None",
    "[]",
    "{}",
    "[[[[[[[[",
    "\"",
    "'",
    "\\",
    "`",
    "\\u0000",
    "\x01\x02\x1f",
    "\x7f",
    "a\nb",
    "a\r\nX-Injected: 1",
    "%s%s%s%n",
    "%00",
    "%p%x%d",
    "../../../../etc/passwd",
    "file:///etc/passwd",
    "http://127.0.0.1:1/",
    "|cat /etc/passwd",
    "$(id)",
    "`id`",
    "; id",
    "${jndi:ldap://x/a}",
    "{{7*7}}",
    "<script>alert(1)</script>",
    "' OR 1=1 --",
    "<!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]>",
    "𝕳𝖊𝖑𝖑𝖔",
    "مرحبا",
    "\xe2\x80\xae"
    "abc",
    "\xef\xbb\xbf"
    "1",
    "\xe2\x80\x8b"
    "1",
    "Ω≈ç√∫",
    "👩‍👩‍👧‍👦",
    "\xed\xa0\x80",
    "\xff\xfe",
    "\xc0\xaf",
    "CON",
    "cuda:64",
    "cpu:99999999999999",
    "auto",
    "auto,auto",
    "png",
    "image/png",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
};
#define NAUGHTY (sizeof naughty / sizeof naughty[0])

/* Members that are JSON, though not what a field wants. */
static const char *const values[] = {
    "null",
    "true",
    "[]",
    "{}",
    "[null]",
    "[[1]]",
    "[{}]",
    "{\"a\":1}",
    "1e308",
    "-1e308",
    "1e-320",
    "0.1",
    "[1e308,-1e308]",
    "[1,\"1\"]",
    "9223372036854775808",
    "-9223372036854775809",
    "\"\"",
    "[1,2,3]",
    "[[1,2,3],[4,5,6]]",
    "[[],[]]",
    "\"\\u0000\"",
    "\"\\ud83d\\ude00\"",
};
#define VALUES (sizeof values / sizeof values[0])

static void percent_write(char *out, const char *text) {
    for (; *text != '\0'; text++) {
        out += sprintf(out, "%%%02x", (unsigned char)*text);
    }
    *out = '\0';
}

static void json_write(char *out, const char *text) {
    *out++ = '"';
    for (; *text != '\0'; text++) {
        out += (unsigned char)*text < 0x20 || *text == '"' || *text == '\\'
                   ? sprintf(out, "\\u%04x", (unsigned char)*text)
                   : sprintf(out, "%c", *text);
    }
    strcpy(out, "\"");
}

/* What goes with the field, so that a job that likes the value is small. */
static const char *company(const char *job, const char *field) {
    bool light =
        strcmp(job, "lombscargle") == 0 && strcmp(field, "t") != 0 && strcmp(field, "y") != 0;
    bool image = (strcmp(job, "laplacian") == 0 || strcmp(job, "jacobi") == 0) &&
                 strcmp(field, "image") != 0;
    return light   ? ",\"t\":[1,2,3.5,4],\"y\":[1,2,4,1]"
           : image ? ",\"image\":\"UDIKMSAxCjI1NQox\""
                   : "";
}

static void field_try(const char *job, const char *field) {
    char path[BODY_MAX], body[BODY_MAX], text[1024];
    for (size_t i = 0; i < NAUGHTY; i++) {
        percent_write(text, naughty[i]);
        snprintf(path, sizeof path, "/v1/%s?%s=%s", job, field, text);
        ask(&(struct request){.path = path}, field);
        ask(&(struct request){.path = path, .type = ANY, .body = "P2\n2 1\n9\n1 2\n"}, field);
        snprintf(body, sizeof body, "%s=%s", field, text);
        snprintf(path, sizeof path, "/v1/%s", job);
        ask(&(struct request){.path = path, .type = FORM, .body = body}, field);
        json_write(text, naughty[i]);
        snprintf(body, sizeof body, "{\"%s\":%s%s}", field, text, company(job, field));
        ask(&(struct request){.path = path, .type = JSON, .body = body}, field);
        snprintf(body, sizeof body, "{%s:1,\"%s\":1%s}", text, field, company(job, field));
        ask(&(struct request){.path = path, .type = JSON, .body = body}, field);
    }
    for (size_t i = 0; i < VALUES; i++) {
        snprintf(path, sizeof path, "/v1/%s", job);
        snprintf(body, sizeof body, "{\"%s\":%s%s}", field, values[i], company(job, field));
        ask(&(struct request){.path = path, .type = JSON, .body = body}, field);
    }
}

/* Every field of every kind, as the daemon lists them; and in headers. */
static void naughty_strings(void **state) {
    struct answer answer;
    pid_t worker = worker_pid(session);
    int fields = 0;
    (void)state;
    session_get(session, "/v1/jobs/types", &answer);
    assert_status(&answer, 200);
    cJSON *document = cJSON_Parse(answer.body);
    const cJSON *type, *field;
    assert_non_null(document);
    cJSON_ArrayForEach(type, cJSON_GetObjectItemCaseSensitive(document, "jobs")) {
        const char *job = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(type, "name"));
        assert_non_null(job);
        cJSON_ArrayForEach(field, cJSON_GetObjectItemCaseSensitive(type, "fields")) {
            field_try(job, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(field, "name")));
            fields++;
        }
        field_try(job, "format");
        field_try(job, "device");
    }
    cJSON_Delete(document);
    answer_free(&answer);
    assert_true(fields > 20);
    for (size_t i = 0; i < NAUGHTY; i++) {
        static const char *const names[] = {"Accept", "If-None-Match", "Content-Type", "Range",
                                            "Prefer", "traceparent",   "Cookie"};
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            char header[256];
            if (strpbrk(naughty[i], "\r\n\x01\x02\x1f\x7f") != NULL) {
                continue;
            }
            snprintf(header, sizeof header, "%s: %s", names[k], naughty[i]);
            ask(&(struct request){.path = "/v1/mandelbrot?width=4&height=4", .headers = {header}},
                names[k]);
        }
    }
    assert_unharmed(worker, "naughty strings in every field", "0 5xx");
}

static uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* One change: a bit, a byte, a piece away, a piece twice, a word into it. */
static size_t mutate(char *bytes, size_t size, uint64_t *state) {
    static const char *const words[] = {"-1",  "1e999", "\"",      "[",    "{",   "}",
                                        ",",   ":",     "\\u0000", "\r\n", "--b", "4294967296",
                                        "nan", "\xff",  "0",       "null"};
    size_t at = size > 0 ? random_next(state) % size : 0, length = 1 + random_next(state) % 16;
    const char *word = words[random_next(state) % (sizeof words / sizeof words[0])];
    length = length < size - at ? length : size - at;
    switch (random_next(state) % 5) {
    case 0:
        bytes[at] ^= (char)(1 << random_next(state) % 8);
        return size;
    case 1:
        bytes[at] = (char)random_next(state);
        return size;
    case 2:
        memmove(bytes + at, bytes + at + length, size - at - length);
        return size - length;
    case 3:
        memmove(bytes + at + length, bytes + at, size - at);
        return size + length;
    default:
        memmove(bytes + at + strlen(word), bytes + at, size - at);
        memcpy(bytes + at, word, strlen(word));
        return size + strlen(word);
    }
}

#define PART(name) "--b\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"
#define NPY                                                                                        \
    "\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }"                \
    "                                                          \n"                                 \
    "\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f\0\0\x80\x3f"

static const struct seed {
    const char *path, *type, *body;
    size_t size; /* 0: strlen */
} seeds[] = {
    {"/v1/mandelbrot", JSON, "{\"width\":20,\"height\":10,\"xmin\":-2.25,\"colormap\":\"viridis\"}",
     0},
    {"/v1/mandelbrot", FORM, "width=20&height=10&shade=true&colormap=%76iridis", 0},
    {"/v1/mandelbrot", MULTIPART, PART("width") "20\r\n" PART("height") "10\r\n--b--\r\n", 0},
    {"/v1/laplacian", ANY, "P5\n# a\n4 3\n255\nabcdefghijkl", 0},
    {"/v1/laplacian?format=npy", ANY, "P2\n4 2\n65535\n1 2 3 4 5 6 7 8\n", 0},
    {"/v1/laplacian", JSON, "{\"image\":\"UDIKMSAxCjI1NQox\",\"scale\":2}", 0},
    {"/v1/jacobi?iterations=3", "application/x-npy", NPY, sizeof NPY - 1},
    {"/v1/jacobi", MULTIPART, PART("iterations") "9\r\n" PART("image") "P2\n2 1\n9\n1 2\r\n--b--",
     0},
    {"/v1/lombscargle", JSON, "{\"t\":[1,2,3.5,4],\"y\":[1,2,4,1],\"dy\":[1,1,2,1],\"nterms\":2}",
     0},
    {"/v1/lombscargle", "text/csv", "t,y,dy\n1,2,1\n2,3,1\n3.5,4,2\n4,1,1\n", 0},
    {"/v1/lombscargle", FORM, "t=1,2,3.5,4&y=1,2,4,1&fields=peaks", 0},
};
#define SEEDS (sizeof seeds / sizeof seeds[0])

static size_t seed_broken(uint64_t number, const char *whole, size_t whole_size, char *bytes) {
    uint64_t state = number * UINT64_C(0xd1342543de82ef95);
    size_t size = whole_size;
    memcpy(bytes, whole, size);
    for (uint64_t n = 1 + random_next(&state) % 6; n > 0 && size + 64 < BODY_MAX; n--) {
        size = size > 0 ? mutate(bytes, size, &state) : 0;
    }
    return size;
}

static void broken_bodies(void **state) {
    static char bytes[BODY_MAX];
    pid_t worker = worker_pid(session);
    (void)state;
    for (unsigned i = 0; i < times(1000); i++) {
        const struct seed *seed = &seeds[i % SEEDS];
        char what[64];
        size_t size = seed->size > 0 ? seed->size : strlen(seed->body);
        size = seed_broken(i, seed->body, size, bytes);
        snprintf(what, sizeof what, "broken body %u", i);
        if (size > 0) {
            ask(
                &(struct request){
                    .path = seed->path, .type = seed->type, .body = bytes, .size = size},
                what);
        }
    }
    assert_unharmed(worker, "10 000 mutated bodies",
                    "0 crashes, 0 5xx, every handler error problem+json");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(naughty_strings),
        cmocka_unit_test(broken_bodies),
    };
    return cmocka_run_group_tests_name("api.hostile", tests, setup, teardown);
}
