/* test_load_scenario.c: kiln-bench's scenarios, variables, addresses, options and leak table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/load/options.h"
#include "bench/load/picture.h"
#include "bench/load/scenario.h"
#include "bench/load/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char why[600];

static void test_template(void **unused) {
    struct template template;
    struct dice dice = {7};
    char out[256];
    (void)unused;
    assert_true(template_compile(&template, "a${i}b${i:4}c$ {}${random:-3:3}", why, sizeof why));
    assert_true(template.varies);
    for (uint64_t number = 0; number < 200000; number += 12345) {
        size_t size = template_render(&template, number, &dice, out);
        int64_t third = 9;
        uint64_t first = 0;
        unsigned second = 0;
        assert_true(size <= template.size_max);
        out[size] = '\0';
        assert_int_equal(sscanf(out, "a%lub%4uc$ {}%ld", &first, &second, &third), 3);
        assert_int_equal(first, number);
        assert_int_equal(second, number % 10000);
        assert_in_range(third + 3, 0, 6);
    }
    assert_true(template_compile(&template, "${random}", why, sizeof why));
    out[template_render(&template, 0, &dice, out)] = '\0';
    assert_in_range(atof(out) * 1e6, 0, 1000000);
    assert_true(template_compile(&template, "plain", why, sizeof why));
    assert_false(template.varies);
    static const char *const bad[] = {"${",     "${}",           "${j}",        "${i:0}", "${i:20}",
                                      "${i:x}", "${random:2:1}", "${random:1}", "${i}${"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        why[0] = '\0';
        assert_false(template_compile(&template, bad[i], why, sizeof why));
        assert_true(why[0] != '\0');
    }
}

/* Both ends of a range come up, and nothing else. */
static void test_random_range(void **unused) {
    struct template template;
    struct dice dice = {3};
    bool seen[4] = {false};
    char out[64];
    (void)unused;
    assert_true(template_compile(&template, "${random:0:3}", why, sizeof why));
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(template_render(&template, 0, &dice, out), 1);
        assert_in_range(out[0], '0', '3');
        seen[out[0] - '0'] = true;
    }
    assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
}

static bool parse(struct scenario *scenario, const char *text) {
    return scenario_parse(scenario, text, strlen(text), "", why, sizeof why);
}

static void test_scenario(void **unused) {
    static const char text[] =
        "{\"about\": \"two\", \"requests\": [{\"name\": \"a\", \"path\": \"/x?n=${i}\", "
        "\"weight\": 3,"
        " \"headers\": {\"Accept\": \"image/png\"}}, {\"path\": \"/y\", \"body\": \"n=${i}!\","
        " \"expect\": 422}]}";
    struct scenario *scenario = scenario_create();
    struct target target = {.host = "h:1", .prefix = "/p"};
    struct dice dice = {5};
    char out[1024];
    bool rest;
    size_t picked[2] = {0, 0};
    (void)unused;
    assert_non_null(scenario);
    assert_true(parse(scenario, text));
    assert_int_equal(scenario->count, 2);
    assert_true(scenario_prepare(scenario, &target, why, sizeof why));
    assert_true(scenario_size_max(scenario) < sizeof out);
    size_t size = item_render(&scenario->items[0], 12, &dice, out, &rest);
    out[size] = '\0';
    assert_string_equal(out, "GET /p/x?n=12 HTTP/1.1\r\nHost: h:1\r\nAccept: image/png\r\n\r\n");
    size = item_render(&scenario->items[1], 12345, &dice, out, &rest);
    out[size] = '\0';
    assert_false(rest);
    assert_string_equal(out,
                        "POST /p/y HTTP/1.1\r\nHost: h:1\r\nContent-Length: 8\r\n\r\nn=12345!");
    assert_int_equal(scenario->items[1].expect, 422);
    for (int i = 0; i < 4000; i++) {
        picked[scenario_pick(scenario, &dice)]++;
    }
    assert_in_range(picked[0], 2800, 3200);
    scenario_destroy(scenario);
    scenario_destroy(NULL);
}

static void test_bad_scenarios(void **unused) {
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        "{\"requests\": []}",
        "{\"requests\": {}}",
        "{\"requests\": [1]}",
        "{\"requests\": [{}]}",
        "{\"requests\": [{\"path\": \"x\"}]}",
        "{\"requests\": [{\"path\": \"/a b\"}]}",
        "{\"requests\": [{\"path\": \"/a\\r\\nb\"}]}",
        "{\"requests\": [{\"path\": \"/\", \"weight\": 0}]}",
        "{\"requests\": [{\"path\": \"/\", \"weight\": \"1\"}]}",
        "{\"requests\": [{\"path\": \"/\", \"method\": \"get\"}]}",
        "{\"requests\": [{\"path\": \"/\", \"expect\": 42}]}",
        "{\"requests\": [{\"path\": \"/\", \"speed\": 1}]}",
        "{\"requests\": [{\"path\": \"/\", \"headers\": {\"A\": \"b\\r\\nC: d\"}}]}",
        "{\"requests\": [{\"path\": \"/\", \"headers\": {\"A b\": \"c\"}}]}",
        "{\"requests\": [{\"path\": \"/\", \"body\": \"a\", \"body_file\": \"b\"}]}",
        "{\"requests\": [{\"path\": \"/\", \"body_file\": \"/nonexistent/file\"}]}",
        "{\"requests\": [{\"path\": \"/${k}\"}], \"more\": 1}",
    };
    (void)unused;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct scenario *scenario = scenario_create();
        assert_non_null(scenario);
        why[0] = '\0';
        if (parse(scenario, bad[i]) || why[0] == '\0') {
            fail_msg("taken, or refused without a reason: %s", bad[i]);
        }
        scenario_destroy(scenario);
    }
}

static void test_target(void **unused) {
    static const char *const bad[] = {"",
                                      "127.0.0.1:80",
                                      "https://127.0.0.1",
                                      "http://",
                                      "http://:80",
                                      "http://[::1",
                                      "http://127.0.0.1:123456789",
                                      "unix:",
                                      "http://127.0.0.1/a?b"};
    struct target target;
    (void)unused;
    assert_true(target_read(&target, "http://127.0.0.1:8080/p/", why, sizeof why));
    assert_string_equal(target.host, "127.0.0.1:8080");
    assert_string_equal(target.prefix, "/p");
    assert_true(target_read(&target, "unix:/tmp/socket", why, sizeof why));
    assert_int_equal(target.address.ss_family, AF_UNIX);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (target_read(&target, bad[i], why, sizeof why)) {
            fail_msg("`%s` was taken", bad[i]);
        }
    }
}

static bool options_of(struct load_options *options, const char *a, const char *b, const char *c) {
    char *argv[] = {(char *)(uintptr_t) "kiln-bench", (char *)(uintptr_t)a, (char *)(uintptr_t)b,
                    (char *)(uintptr_t)c};
    int argc = c != NULL ? 4 : b != NULL ? 3 : 2;
    return options_read(options, argc, argv, why, sizeof why);
}

static void test_options(void **unused) {
    struct load_options options;
    (void)unused;
    assert_true(options_of(&options, "--sweep=connections=1,16", "http://h", NULL));
    assert_int_equal(options.step_count, 2);
    assert_true(options.steps[1] == 16);
    assert_true(options_of(&options, "--sweep", "rates", "http://h"));
    assert_true(options.kind == REPORT_RATES && options.step_count > 5);
    assert_true(options_of(&options, "--leak-memory", "2M", "http://h"));
    assert_true(options.leak_memory == 2 << 20);
    assert_false(options_of(&options, "--sweep=connections=1,,2", "http://h", NULL));
    assert_false(options_of(&options, "--sweep=connections=1.5", "http://h", NULL));
    assert_false(options_of(&options, "--sweep=rates=0", "http://h", NULL));
    assert_false(options_of(&options, "--connections", "0", "http://h"));
    assert_false(options_of(&options, "--connections", "1.5", "http://h"));
    assert_false(options_of(&options, "--rate", "x", "http://h"));
    assert_false(options_of(&options, "--header", "no colon", "http://h"));
    assert_false(options_of(&options, "--unknown", "http://h", NULL));
    assert_false(options_of(&options, "--watch=1", "http://h", NULL));
    assert_false(options_of(&options, "http://h", "http://i", NULL));
    assert_false(options_of(&options, "--rate=5", NULL, NULL));
}

static const char metrics[] = "# HELP kiln_arena_used_bytes Taken now.\n"
                              "kiln_arena_used_bytes 4096\n"
                              "kiln_arena_peak_bytes 9999\n"
                              "kiln_arena_blocks 1\n"
                              "kiln_device_memory_pools_bytes{device=\"cuda:0\"} 1e9\n"
                              "kiln_device_memory_free_bytes{device=\"cuda:0\"} 2e9\n"
                              "kiln_device_memory_free_bytes{device=\"cpu:0\"} 3e9\n"
                              "kiln_cache_used_bytes 0\n"
                              "kiln_jobs_completed_total 12\n"
                              "kiln_running_jobs 0";

/* What grew is found, each kind by itself; what may grow is not. */
static void test_watch(void **unused) {
    struct watch before = {.processes = 1}, after;
    const struct watch_limits limits = {1 << 20, 1 << 20, 2};
    FILE *file = fopen("/dev/null", "w");
    (void)unused;
    assert_non_null(file);
    before.process[0] = (struct watch_process){1, "front", 8 << 20, 4 << 20, 10, 4};
    assert_int_equal(watch_gauges_read(&before, metrics), 7);
    after = before;
    assert_int_equal(watch_compare(file, &before, &after, &limits), 0);
    after.process[0].anonymous += 1 << 20;
    after.process[0].resident += 1 << 30;
    after.process[0].descriptors += 2;
    assert_int_equal(watch_compare(file, &before, &after, &limits), 0);
    after.process[0].anonymous += 1 << 20;
    assert_int_equal(watch_compare(file, &before, &after, &limits), 1);
    after.process[0].descriptors++;
    assert_int_equal(watch_compare(file, &before, &after, &limits), 2);
    after.process[0].threads++;
    assert_int_equal(watch_compare(file, &before, &after, &limits), 3);
    after.process[0].pid = 2;
    assert_int_equal(watch_compare(file, &before, &after, &limits), 1);
    after = before;
    after.gauge[0].value += 64; /* arena */
    assert_int_equal(watch_compare(file, &before, &after, &limits), 1);
    after.gauge[5].value += 1 << 30; /* a cache that fills */
    after.gauge[4].value -= 1 << 30; /* the machine's free memory */
    assert_int_equal(watch_compare(file, &before, &after, &limits), 1);
    after.gauge[2].value += 8 << 20; /* pools */
    assert_int_equal(watch_compare(file, &before, &after, &limits), 2);
    after.gauge[3].value -= 8 << 20; /* the GPU's free memory */
    assert_int_equal(watch_compare(file, &before, &after, &limits), 3);
    after = before;
    after.gauge[3].value += 8 << 20; /* more of it is fine */
    assert_int_equal(watch_compare(file, &before, &after, &limits), 0);
    after.processes = 0; /* the daemon is gone */
    assert_int_equal(watch_compare(file, &before, &after, &limits), 1);
    fclose(file);
}

/* A picture is whole, has no number that is none, and escapes its title. */
static void test_picture(void **unused) {
    static struct measure_point points[3];
    struct report report = {"a < b & c", "http://h", REPORT_CONNECTIONS, points, 3, 0};
    char text[16384];
    (void)unused;
    for (size_t i = 0; i < 3; i++) {
        points[i].connections = i + 1;
        points[i].rate = 1000.0 * (double)i; /* one without any answers */
        points[i].latency =
            (struct quantiles){.count = i, .p50 = 0.1 * (double)i, .p99 = (double)i};
    }
    FILE *file = fmemopen(text, sizeof text, "w");
    assert_non_null(file);
    assert_true(picture_write(file, &report));
    fclose(file);
    assert_non_null(strstr(text, "a &lt; b &amp; c"));
    assert_non_null(strstr(text, "</svg>"));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    report.count = 1;
    file = fmemopen(text, sizeof text, "w");
    assert_non_null(file);
    assert_false(picture_write(file, &report));
    fclose(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_template), cmocka_unit_test(test_random_range),
        cmocka_unit_test(test_scenario), cmocka_unit_test(test_bad_scenarios),
        cmocka_unit_test(test_target),   cmocka_unit_test(test_options),
        cmocka_unit_test(test_watch),    cmocka_unit_test(test_picture),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
