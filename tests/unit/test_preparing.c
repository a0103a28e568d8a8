/*
 * test_preparing.c: the list of requests that are prepared, what ends them, and that every parser
 * of a body looks for it as often as its length demands.
 */
#include "server/jobs/preparing.h"

#include "compute/codecs/csv.h"
#include "compute/codecs/json.h"
#include "compute/submission/input_arrays.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static _Atomic bool draining;

static const struct job_filter all;

static struct job_id id_of(uint8_t last) {
    return (struct job_id){.bytes = {[JOB_ID_SIZE - 1] = last}};
}

static bool is(const struct job_view *view, uint8_t last) {
    struct job_id id = id_of(last);
    return job_id_equal(&view->id, &id);
}

static struct preparation preparation_make(uint8_t id) {
    return (struct preparation){.id = id_of(id),
                                .type = job_type_find("jacobi"),
                                .since_ns = clock_ns(),
                                .until_ns = UINT64_MAX,
                                .fd = -1,
                                .draining = &draining};
}

static void listed_and_revoked(void **state) {
    (void)state;
    struct preparing preparing;
    struct preparation rows[3];
    struct job_view views[3];
    preparing_init(&preparing);
    for (uint8_t i = 0; i < 3; i++) {
        rows[i] = preparation_make((uint8_t)(i + 1));
        preparing_enter(&preparing, &rows[i]);
    }
    assert_int_equal(preparing_list(&preparing, &all, views, 2), 3);
    assert_true(is(&views[0], 1) && is(&views[1], 2) && views[0].preparing);
    assert_true(
        preparing_job(&preparing, &(struct job_id){.bytes = {[JOB_ID_SIZE - 1] = 3}}, &views[0]));
    assert_string_equal(views[0].type, "jacobi");
    assert_false(preparing_revoke(&preparing, &(struct job_id){.bytes = {[JOB_ID_SIZE - 1] = 4}}));
    assert_true(preparing_revoke(&preparing, &(struct job_id){.bytes = {[JOB_ID_SIZE - 1] = 2}}));
    assert_int_equal(preparing_ask(&rows[1]), KILN_REVOKED);
    assert_int_equal(preparing_ask(&rows[0]), KILN_OK);
    /* the middle, the last, the first: the list stays whole */
    preparing_leave(&preparing, &rows[1]);
    assert_int_equal(preparing_list(&preparing, &all, views, 3), 2);
    assert_true(is(&views[0], 1) && is(&views[1], 3));
    preparing_leave(&preparing, &rows[2]);
    preparing_enter(&preparing, &rows[1]);
    assert_int_equal(preparing_list(&preparing, &all, views, 3), 2);
    assert_true(is(&views[0], 1) && is(&views[1], 2));
    /* those that a filter means */
    strcpy(rows[1].request_id, "plot-7");
    struct job_filter filter = {.request_id = "plot-7"};
    assert_int_equal(preparing_list(&preparing, &filter, views, 3), 1);
    assert_true(is(&views[0], 2));
    filter.owner = 5;
    assert_int_equal(preparing_list(&preparing, &filter, views, 3), 0);
    filter = (struct job_filter){.state = JOBS_RUNNING};
    assert_int_equal(preparing_list(&preparing, &filter, views, 3), 0);
    filter = (struct job_filter){.state = JOBS_PREPARING, .type = job_type_find("mandelbrot")};
    assert_int_equal(preparing_list(&preparing, &filter, views, 3), 0);
    preparing_leave(&preparing, &rows[0]);
    preparing_leave(&preparing, &rows[1]);
    assert_int_equal(preparing_list(&preparing, &all, views, 3), 0);
    preparing_finish(&preparing);
}

struct move {
    struct preparing *preparing;
    pthread_t looker;
    struct job_id id;
    _Atomic bool submitted;
    bool missed;
};

/* As DELETE does: here first, then where submitted jobs are. */
static void *look(void *context) {
    struct move *move = context;
    struct job_view view;
    while (preparing_job(move->preparing, &move->id, &view)) {
    }
    move->missed = !atomic_load(&move->submitted);
    return NULL;
}

static void submit(void *context) {
    struct move *move = context;
    usleep(2000); /* time to be missed */
    atomic_store(&move->submitted, true);
}

static void moved_without_a_gap(void **state) {
    (void)state;
    struct preparing preparing;
    struct preparation row = preparation_make(1);
    struct move move = {.preparing = &preparing, .id = row.id};
    preparing_init(&preparing);
    preparing_enter(&preparing, &row);
    assert_int_equal(pthread_create(&move.looker, NULL, look, &move), 0);
    assert_true(preparing_move(&preparing, &row, submit, &move));
    pthread_join(move.looker, NULL);
    assert_false(move.missed);
    /* who has been told 204 does not find the job running */
    preparing_enter(&preparing, &row);
    atomic_store(&move.submitted, false);
    assert_true(preparing_revoke(&preparing, &row.id));
    assert_false(preparing_move(&preparing, &row, submit, &move));
    assert_false(atomic_load(&move.submitted));
    assert_true(preparing_revoke(&preparing, &row.id)); /* still its own */
    preparing_leave(&preparing, &row);
    preparing_finish(&preparing);
}

static void ended_by_deadline_hangup_and_drain(void **state) {
    (void)state;
    int ends[2];
    struct preparation row = preparation_make(1);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    row.fd = ends[0];
    assert_int_equal(preparing_ask(&row), KILN_OK);
    assert_int_equal(write(ends[1], "x", 1), 1); /* a pipelined request is no farewell */
    assert_int_equal(preparing_ask(&row), KILN_OK);
    close(ends[1]);
    assert_int_equal(preparing_ask(&row), KILN_CANCELLED);
    row.until_ns = clock_ns() - 1;
    assert_int_equal(preparing_ask(&row), KILN_DEADLINE);
    draining = true;
    assert_int_equal(preparing_ask(&row), KILN_DRAINING);
    draining = false;
    close(ends[0]);
}

/* ---- parsers ---- */

static size_t asked, allowed;

static enum kiln_status ask(void *context) {
    (void)context;
    return ++asked > allowed ? KILN_DEADLINE : KILN_OK;
}

static size_t size;
static char *text;

static void repeat(const char *head, const char *piece, const char *tail) {
    size_t step = strlen(piece);
    size = strlen(head);
    memcpy(text, head, size);
    while (size < 40 * CANCEL_STRIDE) {
        memcpy(text + size, piece, step);
        size += step;
    }
    memcpy(text + size, tail, strlen(tail) + 1);
    size += strlen(tail);
}

static enum kiln_status read_json(void) {
    struct json_value value;
    char why[96];
    return json_check(text, size, &value, why, sizeof why);
}

static enum kiln_status read_numbers(void) {
    size_t bad, most = size;
    struct json_value value;
    double *out = malloc(most * sizeof *out);
    json_value_make(text, size, &value);
    size_t count = json_numbers(&value, false, out, most, &bad);
    free(out);
    return count == SIZE_MAX ? KILN_CANCELLED : KILN_OK;
}

static enum kiln_status read_csv(void) {
    uint64_t rows, most = size / 2;
    struct csv csv;
    struct csv_missing missing;
    const struct column_map map = {{0, 1, COLUMN_NOWHERE}};
    char why[96];
    double *out = malloc(2 * most * sizeof *out);
    double *const values[COLUMN_ROLES] = {out, out + most, NULL};
    enum kiln_status status = csv_open(&csv, text, size, why, sizeof why);
    if (status == KILN_OK)
        status = csv_read(&csv, &map, values, most, &rows, &missing, why, sizeof why);
    free(out);
    return status;
}

static enum kiln_status list_read(bool gaps) {
    struct arena *arena;
    struct array_ref array;
    char why[96];
    assert_int_equal(arena_create((size_t)64 << 20, &arena), KILN_OK);
    struct series series = {.arena = arena};
    enum kiln_status status = series_text(&series, text, size, gaps, &array, why, sizeof why);
    arena_give(arena, &series.block);
    arena_destroy(arena);
    return status;
}

static enum kiln_status read_list(void) {
    return list_read(false);
}

static enum kiln_status read_gaps(void) {
    return list_read(true);
}

static const struct {
    const char *name, *head, *piece, *tail;
    enum kiln_status (*read)(void);
} parsers[] = {
    {"members", "{\"a\":{", "\"b\":1,", "\"b\":2}}", read_json},
    {"an array", "{\"a\":[", "1.5,", "2]}", read_json},
    {"one string", "{\"a\":\"", "long", "\"}", read_json},
    {"escapes", "{\"a\":\"", "\\n\\u1234", "\"}", read_json},
    {"blanks", "{\"a\":1", " ", "}", read_json},
    {"one number", "{\"a\":1", "0", "e-3000000}", read_json},
    {"numbers", "[", "1,", "1]", read_numbers},
    {"a list", "", "1.5,", "1", read_list},
    {"a list of gaps", "", "nan,", "1", read_gaps},
    {"lines", "", "1,2\n", "", read_csv},
    {"comments", "", "#\n", "1,2\n", read_csv},
};

/* As many questions as there are strides, and the end soon after the answer that wants it. */
static void parsers_look(void **state) {
    (void)state;
    struct cancel cancel;
    text = malloc(41 * CANCEL_STRIDE);
    for (size_t i = 0; i < sizeof parsers / sizeof parsers[0]; i++) {
        repeat(parsers[i].head, parsers[i].piece, parsers[i].tail);
        asked = 0;
        allowed = SIZE_MAX;
        cancel_begin(&cancel, ask, NULL);
        assert_int_equal(parsers[i].read(), KILN_OK);
        assert_int_equal(cancel_end(), KILN_OK);
        print_message("%s: asked %zu times\n", parsers[i].name, asked);
        assert_in_range(asked, 10, 90);
        asked = 0;
        allowed = 3;
        cancel_begin(&cancel, ask, NULL);
        assert_int_equal(parsers[i].read(), KILN_CANCELLED);
        assert_int_equal(cancel_end(), KILN_DEADLINE);
        assert_int_equal(asked, 4);
        assert_int_equal(parsers[i].read(), KILN_OK); /* nobody is asked any more */
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listed_and_revoked),
        cmocka_unit_test(moved_without_a_gap),
        cmocka_unit_test(ended_by_deadline_hangup_and_drain),
        cmocka_unit_test(parsers_look),
    };
    return cmocka_run_group_tests_name("preparing", tests, NULL, NULL);
}
