/*
 * test_config.c: `kilnd --check-config` and what it reads: units behind numbers, quotes, files that
 * options name. One table of configuration files and one of flags; each row is a program run.
 */
#include "tests/api/lib_daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

/* Runs a shell line with $KILND in it; its output, both kinds, into `out`. */
static int line_run(const char *line, char *out, size_t size) {
    FILE *stream = popen(line, "re");
    assert_non_null(stream);
    size_t got = fread(out, 1, size - 1, stream);
    out[got] = '\0';
    int status = pclose(stream);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int check(const char *arguments, char *out, size_t size) {
    char line[1024];
    snprintf(line, sizeof line, "cd '%s' && \"$KILND\" --check-config %s 2>&1", folder, arguments);
    return line_run(line, out, size);
}

static void file_write(const char *name, const char *text) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* NULL: it can start. */
static const struct {
    const char *text, *why;
} files[] = {
    {"", NULL},
    {"# only a comment\n\n  deadline = 5m\n", NULL},
    {"max-body = \"64M\"\nmax-pixels = 4K  \nqueue = 1k\nthreads=2\n", NULL},
    {"deadline = '250ms'\ndrain-timeout = 1.5h # no comment here\n",
     "c.conf:2: \"1.5h # no comment"},
    {"deadline = \"90s\"  # a comment behind quotes\nidle-timeout = 1d\n", "c.conf:2: \"1d\""},
    {"hosts = \"a \\\"b\\\\\"\nport-file = ''\n", NULL},
    {"hosts = 'a\\'\n", NULL},
    {"hosts = \"a\n", "c.conf:1: the quotes around the value of \"hosts\""},
    {"hosts = \"a\" b\n", "c.conf:1: the quotes around the value of \"hosts\""},
    {"log-level = \"debug\"\nallow-open = 'true'\n", NULL},
    {"max-body = 64X\n", "c.conf:1: \"64X\" is not a number from 1024"},
    {"max-body = 64 M\n", "\"64 M\" is not a number"},
    {"max-body = 0x10000\n", "\"0x10000\" is not a number"},
    {"queue = 1.5\n", "\"1.5\" is not a number"},
    {"deadline = 5M\n", "\"5M\" is not a number of seconds"},
    {"deadline = 9m9\n", "\"9m9\" is not a number of seconds"},
    {"colour = red\n", "c.conf:1: there is no option \"colour\""},
    {"no equals\n", "c.conf:1: expected `name = value`"},
};

static void configuration_files(void **state) {
    char out[4096];
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        file_write("c.conf", files[i].text);
        int code = check("--config c.conf", out, sizeof out);
        bool good =
            files[i].why == NULL ? code == 0 : code != 0 && strstr(out, files[i].why) != NULL;
        if (!good) {
            fail_msg("%s: exit code %d: %s", files[i].text, code, out);
        }
    }
}

static const struct {
    const char *flags, *why;
} rows[] = {
    {"", NULL},
    {"--listen 127.0.0.1:0 --device cpu", NULL},
    {"--device cuda:0,cpu", NULL},
    {"--device cuda:", "--device: \"cuda:\" is not"},
    {"--device cpu,gpu", "--device: \"gpu\" is not"},
    {"--listen 127.0.0.1", "expected ADDRESS:PORT"},
    {"--listen :0", "other machines could use this daemon"},
    {"--listen :0 --allow-open", NULL},
    {"--keys none", "--keys none: No such file"},
    {"--keys bad", "--keys bad: line 1"},
    {"--listen :0 --keys good", NULL},
    {"--tls-cert good", "--tls-"},
    {"--tls-cert good --tls-key good", "--tls-"},
    {"--cors-origin https://a.example", NULL},
    {"--cors-origin https://a.example/", "--cors-origin"},
    {"--nothing", "unknown argument \"--nothing\""},
};

static void files_that_options_name(void **state) {
    char out[4096], line[512];
    (void)state;
    file_write("bad", "alice sha256:12 read\n");
    snprintf(line, sizeof line, "cd '%s' && \"$KILND\" key new 2>/dev/null | tail -n 1 >good",
             folder);
    assert_int_equal(line_run(line, out, sizeof out), 0);
    snprintf(line, sizeof line, "cd '%s' && \"$KILND\" key check good", folder);
    assert_int_equal(line_run(line, out, sizeof out), 0);
    assert_string_equal(out, "1 key\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int code = check(rows[i].flags, out, sizeof out);
        bool good = rows[i].why == NULL ? code == 0 : code != 0 && strstr(out, rows[i].why) != NULL;
        if (!good) {
            fail_msg("%s: exit code %d: %s", rows[i].flags, code, out);
        }
    }
}

/* It can be asked while a daemon serves on the same address. */
static void binds_nothing(void **state) {
    struct daemon daemon;
    char flags[64], out[1024];
    (void)state;
    daemon_start(&daemon, NULL);
    snprintf(flags, sizeof flags, "--listen 127.0.0.1:%d", daemon.port);
    assert_int_equal(check(flags, out, sizeof out), 0);
    assert_int_equal(daemon_stop(&daemon), 0);
}

static void words(void **state) {
    static const char *const same[][2] = {{"help", "--help"}, {"version", "--version"}};
    char a[16384], b[16384], line[64];
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        snprintf(line, sizeof line, "\"$KILND\" %s", same[i][0]);
        assert_int_equal(line_run(line, a, sizeof a), 0);
        snprintf(line, sizeof line, "\"$KILND\" %s", same[i][1]);
        assert_int_equal(line_run(line, b, sizeof b), 0);
        assert_true(strlen(a) > 8);
        assert_string_equal(a, b);
    }
    assert_int_equal(line_run("\"$KILND\" halp 2>&1", a, sizeof a), 2);
}

static int setup(void **state) {
    (void)state;
    strcpy(folder, "/tmp/kiln-config-XXXXXX");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int teardown(void **state) {
    char out[64], line[128];
    (void)state;
    snprintf(line, sizeof line, "rm -r '%s'", folder);
    return line_run(line, out, sizeof out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configuration_files),
        cmocka_unit_test(files_that_options_name),
        cmocka_unit_test(binds_nothing),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests_name("api.config", tests, setup, teardown);
}
