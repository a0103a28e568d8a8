/*
 * test_log.c: what the log says of requests, in lines that every reader of JSON takes, without a
 * secret; and that a log which cannot be written stops nobody.
 */
#include "tests/api/lib_keys.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define PARENT "b7ad6b7169203331"

static struct keyfolder folder;
static struct secret good, stranger;

static int setup(void **state) {
    (void)state;
    keyfolder_make(&folder);
    secret_make(&good, "--id alice-1 --scopes read,compute");
    secret_make(&stranger, "--id stranger --scopes read");
    const struct secret *const one = &good;
    secrets_write(&folder, &one, 1, "");
    return 0;
}

static int teardown(void **state) {
    (void)state;
    keyfolder_remove(&folder);
    return 0;
}

/* ---- lines ---- */

/* Length of the well-formed UTF-8 sequence at `text` (RFC 3629), 0 for none. */
static size_t sequence(const unsigned char *text) {
    size_t size = text[0] < 0x80                      ? 1
                  : text[0] >= 0xc2 && text[0] < 0xe0 ? 2
                  : (text[0] & 0xf0) == 0xe0          ? 3
                  : text[0] >= 0xf0 && text[0] < 0xf5 ? 4
                                                      : 0;
    for (size_t i = 1; i < size; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool surrogate = text[0] == 0xed && text[1] >= 0xa0;
    bool overlong = (text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xf0 && text[1] < 0x90);
    return surrogate || overlong || (text[0] == 0xf4 && text[1] >= 0x90) ? 0 : size;
}

/* cJSON is lenient; what it lets through is looked for here. NULL is never returned. */
static cJSON *line_parse(const char *line) {
    size_t size = strlen(line);
    for (size_t i = 0; i < size;) {
        size_t length = sequence((const unsigned char *)line + i);
        if (length == 0 || (unsigned char)line[i] < 0x20 || line[i] == 0x7f) {
            fail_msg("byte 0x%02x in the line: %s", (unsigned char)line[i], line);
        }
        i += length;
    }
    const char *end = NULL;
    cJSON *object = cJSON_ParseWithOpts(line, &end, 1);
    if (!cJSON_IsObject(object) || line[0] != '{' || line[size - 1] != '}') {
        fail_msg("not an object: %s", line);
    }
    const cJSON *member, *other;
    cJSON_ArrayForEach(member, object) {
        assert_true(cJSON_IsString(member) || cJSON_IsNumber(member) || cJSON_IsBool(member));
        for (other = member->next; other != NULL; other = other->next) {
            assert_string_not_equal(member->string, other->string);
        }
    }
    return object;
}

static const char *text_of(const cJSON *object, const char *name) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    return text != NULL ? text : "";
}

static double number_of(const cJSON *object, const char *name) {
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(member) ? member->valuedouble : -1;
}

/* All lines of a daemon's log. */
struct lines {
    cJSON *rows[512];
    size_t count;
    char *text;
};

static void lines_read(const struct daemon *daemon, struct lines *lines) {
    char path[96];
    snprintf(path, sizeof path, "%s/log", daemon->folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    memset(lines, 0, sizeof *lines);
    lines->text = calloc(1, 1 << 20);
    assert_non_null(lines->text);
    size_t size = fread(lines->text, 1, (1 << 20) - 1, file);
    fclose(file);
    assert_int_equal(strlen(lines->text), size); /* no NUL either */
    char *copy = strdup(lines->text), *at = copy;
    for (char *line = strsep(&at, "\n"); at != NULL; line = strsep(&at, "\n")) {
        if (strncmp(line, "kilnd listening", 15) != 0) { /* standard output */
            assert_true(lines->count < sizeof lines->rows / sizeof lines->rows[0]);
            lines->rows[lines->count++] = line_parse(line);
        }
    }
    free(copy);
}

static void lines_free(struct lines *lines) {
    for (size_t i = 0; i < lines->count; i++) {
        cJSON_Delete(lines->rows[i]);
    }
    free(lines->text);
}

/* The request with this id; `role` "front", or another for a line with the span of `of`. */
static const cJSON *line_find(const struct lines *lines, const char *name, const char *value,
                              const char *role) {
    for (size_t i = 0; i < lines->count; i++) {
        if (strcmp(text_of(lines->rows[i], name), value) == 0 &&
            strcmp(text_of(lines->rows[i], "role"), role) == 0) {
            return lines->rows[i];
        }
    }
    fail_msg("no line of %s has %s \"%s\" in:\n%s", role, name, value, lines->text);
    return NULL;
}

/* ---- what is said ---- */

static struct answer ask(struct session *session, const char *path, const char *one,
                         const char *two, const char *three) {
    const struct request request = {.path = path, .headers = {one, two, three}};
    struct answer answer;
    session_ask(session, &request, &answer);
    return answer;
}

/* Sends bytes as they are and reads what comes. */
static void raw_ask(const struct daemon *daemon, const char *bytes, size_t size) {
    char out[4096];
    bool closed;
    int fd = raw_open(daemon);
    raw_exchange(fd, bytes, size, out, sizeof out, 5, &closed);
    assert_true(closed);
    close(fd);
}

static void odd_requests_send(const struct daemon *daemon) {
    static const char *const targets[] = {
        "/a\"b\\c{}?token=query-secret",
        "/\xc3\xa4\xff\xfe\xf0\x9f\x98\x80\xed\xa0\x80\xc0\x80",
        "/%0d%0a{\"level\":\"error\"}",
        "/\x01\x02\x1b[31m\x7f\x80",
        "http://user:userinfo-secret@127.0.0.1/v1/jobs?x=query-secret",
        "/v1/jobs#query-secret",
    };
    char request[2048];
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        int size = snprintf(request, sizeof request,
                            "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Request-Id: odd-%zu\r\n"
                            "Authorization: Bearer header-secret\r\nCookie: a=header-secret\r\n"
                            "X-Odd: \xff\"\\\r\nConnection: close\r\n\r\n",
                            targets[i], i);
        raw_ask(daemon, request, (size_t)size);
    }
    static const char forged[] = "GET /v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                                 "X-Request-Id: a\r\n {\"level\":\"error\"}\r\n\r\n";
    raw_ask(daemon, forged, sizeof forged - 1);
    char *huge = malloc(8192);
    assert_non_null(huge);
    size_t size = (size_t)sprintf(huge, "GET /");
    memset(huge + size, '"', 6000);
    size += 6000;
    size += (size_t)sprintf(huge + size, " HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Request-Id: huge\r\n"
                                         "Connection: close\r\n\r\n");
    raw_ask(daemon, huge, size);
    free(huge);
}

static void secrets_check(const struct lines *lines) {
    static const char *const secrets[] = {"query-secret", "userinfo-secret", "header-secret",
                                          "Bearer", "body-secret"};
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        if (strstr(lines->text, secrets[i]) != NULL) {
            fail_msg("\"%s\" is in the log", secrets[i]);
        }
    }
    assert_null(strstr(lines->text, good.key + 5));
    assert_null(strstr(lines->text, stranger.key + 5));
}

static void requests_are_told_without_secrets(void **state) {
    (void)state;
    const char *flags[] = {"--keys",      folder.keys, "--log-format",   "json",
                           "--log-level", "debug",     "--log-requests", NULL};
    static const char path[] = "/v1/mandelbrot?width=20&height=10&format=png";
    char id[64], response[64], bytes[32];
    struct daemon daemon;
    struct lines lines;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    struct answer answer = ask(session, path, good.header, "X-Request-Id: named-1",
                               "traceparent: 00-" TRACE "-" PARENT "-01");
    assert_status(&answer, 200);
    assert_true(answer_header(&answer, "traceresponse", response, sizeof response));
    snprintf(bytes, sizeof bytes, "%zu", answer.size);
    answer_free(&answer);
    answer = ask(session, "/v1/jobs", stranger.header, "X-Request-Id: named-2", "tracestate: a=1");
    assert_status(&answer, 401);
    answer_free(&answer);
    answer = ask(session, "/healthz", "traceparent: 00-" TRACE "-" PARENT "-01",
                 "tracestate: a=1,b=\"\\", "tracestate: c=3");
    assert_true(answer_header(&answer, "X-Request-Id", id, sizeof id));
    answer_free(&answer);
    const struct request posted = {.path = "/v1/mandelbrot",
                                   .type = "application/json",
                                   .body = "{\"width\":\"body-secret\"}",
                                   .headers = {good.header, "X-Request-Id: named-3"}};
    session_ask(session, &posted, &answer);
    assert_status(&answer, 422);
    answer_free(&answer);
    odd_requests_send(&daemon);
    session_destroy(session);
    daemon_signal(&daemon, SIGTERM); /* the log is whole once it has ended, and removed after */
    for (double end = now_s() + 20; daemon_alive(&daemon) && now_s() < end;) {
        sleep_s(0.01);
    }
    lines_read(&daemon, &lines);
    assert_int_equal(daemon_wait(&daemon), 0);
    secrets_check(&lines);

    const cJSON *line = line_find(&lines, "request_id", "named-1", "front");
    assert_string_equal(text_of(line, "message"), "request");
    assert_string_equal(text_of(line, "level"), "info");
    assert_string_equal(text_of(line, "method"), "GET");
    assert_string_equal(text_of(line, "path"), "/v1/mandelbrot");
    assert_string_equal(text_of(line, "route"), "/v1/mandelbrot");
    assert_string_equal(text_of(line, "key"), "alice-1");
    assert_string_equal(text_of(line, "client"), "127.0.0.1");
    assert_string_equal(text_of(line, "trace_id"), TRACE);
    assert_string_equal(text_of(line, "parent_span_id"), PARENT);
    assert_string_not_equal(text_of(line, "device"), "");
    assert_int_equal(strlen(text_of(line, "job")), 36);
    assert_memory_equal(response + 36, text_of(line, "span_id"), 16);
    assert_true(number_of(line, "status") == 200);
    assert_true(number_of(line, "bytes") == strtod(bytes, NULL));
    static const char *const times[] = {"ms",        "queue_ms",    "upload_ms",
                                        "kernel_ms", "download_ms", "encode_ms"};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        assert_true(number_of(line, times[i]) >= 0);
    }
    /* the worker's line about the job has the same names */
    const cJSON *worker =
        line_find(&lines, "span_id", text_of(line, "span_id"), text_of(line, "device"));
    assert_string_equal(text_of(worker, "trace_id"), TRACE);
    assert_non_null(strstr(text_of(worker, "message"), text_of(line, "job")));

    line = line_find(&lines, "request_id", "named-2", "front");
    assert_true(number_of(line, "status") == 401);
    assert_string_equal(text_of(line, "key"), "");
    assert_string_equal(text_of(line, "trace_state"), ""); /* there is no trace that it is of */
    line = line_find(&lines, "request_id", id, "front");
    assert_string_equal(text_of(line, "trace_state"), "a=1,b=\"\\,c=3");
    assert_string_equal(text_of(line, "span_id"), id);
    line = line_find(&lines, "request_id", "named-3", "front");
    assert_true(number_of(line, "status") == 422);
    line = line_find(&lines, "request_id", "odd-0", "front");
    assert_string_equal(text_of(line, "path"), "/a\"b\\c{}");
    line = line_find(&lines, "request_id", "odd-2", "front");
    assert_string_equal(text_of(line, "path"), "/%0d%0a{\"level\":\"error\"}");
    line = line_find(&lines, "request_id", "odd-4", "front");
    assert_string_equal(text_of(line, "path"), "/v1/jobs");
    assert_true(number_of(line, "status") == 401);
    line = line_find(&lines, "request_id", "huge", "front");
    assert_int_equal(strlen(text_of(line, "path")), 256);
    assert_true(number_of(line, "path_bytes") == 6001);
    lines_free(&lines);
}

/* The dispatcher's line about a job whose worker died has the names of its request. */
static void jobs_that_run_again_are_told_by_name(void **state) {
    (void)state;
    static const char *const flags[] = {"--log-format", "json", "--max-iterations", "1000000000000",
                                        NULL};
    static const char request[] =
        "POST /v1/jacobi?format=npy&method=sweeps&iterations=1000000000000 HTTP/1.1\r\n"
        "Host: 127.0.0.1\r\nContent-Type: image/x-portable-graymap\r\nContent-Length: 15\r\n"
        "traceparent: 00-" TRACE "-" PARENT "-01\r\n\r\nP5\n2 2\n255\nabcd";
    struct daemon daemon;
    struct lines lines;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    int fd = raw_open(&daemon);
    assert_int_equal(send(fd, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
    for (double end = now_s() + 20; metric_get(session, "kiln_running_jobs") < 1;) {
        assert_true(now_s() < end);
        sleep_s(0.005);
    }
    assert_int_equal(kill(worker_pid(session), SIGKILL), 0);
    for (double end = now_s() + 20; metric_get(session, "kiln_jobs_retried_total") < 1;) {
        assert_true(now_s() < end);
        sleep_s(0.005);
    }
    lines_read(&daemon, &lines);
    const cJSON *line = line_find(&lines, "trace_id", TRACE, "front");
    assert_non_null(strstr(text_of(line, "message"), "waits again"));
    assert_int_equal(strlen(text_of(line, "span_id")), 16);
    lines_free(&lines);
    close(fd); /* it is cancelled */
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* Plain lines: nobody makes two of one. */
static void plain_lines_cannot_be_forged(void **state) {
    (void)state;
    const char *flags[] = {"--keys", folder.keys, "--log-requests", NULL};
    struct daemon daemon;
    char path[96];
    daemon_start(&daemon, flags);
    odd_requests_send(&daemon);
    snprintf(path, sizeof path, "%s/log", daemon.folder);
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(daemon_stop(&daemon), 0);
    FILE *file = fdopen(fd, "r");
    assert_non_null(file);
    char line[8192];
    int requests = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        size_t size = strlen(line);
        assert_true(line[size - 1] == '\n');
        assert_true(strncmp(line, "20", 2) == 0 || strncmp(line, "kilnd listening", 15) == 0);
        for (size_t i = 0; i + 1 < size; i++) {
            assert_true((unsigned char)line[i] >= 0x20 && line[i] != 0x7f);
        }
        assert_null(strstr(line, "secret"));
        requests += strstr(line, " front request method=GET path=") != NULL;
    }
    fclose(file);
    assert_true(requests >= 6);
}

static void requests_are_told_only_when_asked(void **state) {
    (void)state;
    static const char *const quiet[][5] = {{"--log-format", "json", NULL},
                                           {"--log-requests=false", NULL},
                                           {"--log-requests", "--log-level", "warning", NULL}};
    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++) {
        struct daemon daemon;
        char path[96], line[4096];
        daemon_start(&daemon, quiet[i]);
        snprintf(path, sizeof path, "%s/log", daemon.folder);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        assert_int_equal(daemon_stop(&daemon), 0);
        while (fgets(line, sizeof line, file) != NULL) {
            assert_null(strstr(line, "request_id"));
        }
        fclose(file);
    }
}

/* ---- a log that cannot be written ---- */

#define ASKED 400

static void unread_start(struct daemon *daemon, int error_fd, char port_file[96]) {
    const char *device = getenv("KILN_TEST_DEVICE");
    const char *arguments[] = {"kilnd",
                               "--listen",
                               "127.0.0.1:0",
                               "--port-file",
                               port_file,
                               "--device",
                               device != NULL ? device : "cpu",
                               "--log-requests",
                               "--log-format",
                               "json",
                               NULL};
    memset(daemon, 0, sizeof *daemon);
    snprintf(port_file, 96, "%s/port", folder.folder);
    unlink(port_file);
    daemon->pid = fork();
    if (daemon->pid == 0) {
        daemon_tie();
        int null = open("/dev/null", O_RDWR);
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        if (error_fd >= 0) {
            dup2(error_fd, STDERR_FILENO);
        } else {
            close(STDERR_FILENO);
        }
        closefrom(3);
        execv(getenv("KILND"), (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    assert_true(daemon->pid > 0);
    double end = now_s() + 60;
    while (!daemon_ready(daemon, port_file)) {
        assert_true(daemon_alive(daemon) && now_s() < end);
        sleep_s(0.01);
    }
}

/* Every request is answered. Returns how many lines were lost. */
static double unread_serve(const struct daemon *daemon) {
    struct session *session = session_create(daemon);
    struct answer answer;
    for (int i = 0; i < ASKED; i++) {
        session_get(session, i % 8 == 0 ? "/v1/mandelbrot?width=8&height=8&xmin=-2" : "/healthz",
                    &answer);
        assert_status(&answer, 200);
        answer_free(&answer);
    }
    double lost = metric_get(session, "kiln_log_lines_lost_total");
    session_destroy(session);
    return lost;
}

/* Lines that whole lines of a text say are missing; of the front alone. */
static double lost_lines(const char *text) {
    double missing = 0;
    for (const char *end = strchr(text, '\n'); end != NULL; end = strchr(text, '\n')) {
        char line[8192];
        assert_true((size_t)(end - text) < sizeof line);
        snprintf(line, sizeof line, "%.*s", (int)(end - text), text);
        cJSON *object = line_parse(line);
        const char *message = text_of(object, "message");
        if (strcmp(text_of(object, "role"), "front") == 0 &&
            strstr(message, "lines of this log were lost") != NULL) {
            missing += strtod(message, NULL);
        }
        cJSON_Delete(object);
        text = end + 1;
    }
    return missing;
}

/* What a reader that comes late finds: whole lines, and how many are missing. */
static void late_reader(const struct daemon *daemon, int fd, double lost) {
    static char text[1 << 20];
    text[0] = '\0';
    struct session *session = session_create(daemon);
    struct answer answer;
    size_t size = 0;
    double missing = 0;
    for (double end = now_s() + 20; missing < lost && now_s() < end;) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        if (poll(&polled, 1, 20) == 1 && size + 1 < sizeof text) {
            ssize_t got = read(fd, text + size, sizeof text - 1 - size);
            assert_true(got > 0);
            size += (size_t)got;
            text[size] = '\0';
        } else {
            session_get(session, "/healthz", &answer); /* has something to say */
            answer_free(&answer);
        }
        missing = lost_lines(text);
    }
    session_destroy(session);
    assert_true(missing >= lost);
}

static void a_log_that_is_not_read_stops_nobody(void **state) {
    (void)state;
    static const char *const kinds[] = {"pipe", "socket", "gone", "full", "closed"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *kind = kinds[i];
        int ends[2] = {-1, -1}; /* read, write */
        char port_file[96];
        struct daemon daemon;
        if (strcmp(kind, "pipe") == 0 || strcmp(kind, "gone") == 0) {
            assert_int_equal(pipe(ends), 0);
            fcntl(ends[1], F_SETPIPE_SZ, 4096);
        } else if (strcmp(kind, "socket") == 0) {
            const int room = 4096;
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
            setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
        } else if (strcmp(kind, "full") == 0) {
            ends[1] = open("/dev/full", O_WRONLY);
            assert_true(ends[1] >= 0);
        }
        if (strcmp(kind, "gone") == 0) {
            close(ends[0]);
            ends[0] = -1;
        }
        unread_start(&daemon, ends[1], port_file);
        double lost = unread_serve(&daemon);
        print_message("%s: %.0f lines lost\n", kind, lost);
        assert_true(strcmp(kind, "closed") == 0 ? lost == 0 : lost > 0);
        if (ends[0] >= 0) {
            late_reader(&daemon, ends[0], lost);
        }
        assert_int_equal(daemon_stop(&daemon), 0);
        unlink(port_file);
        close(ends[0]);
        close(ends[1]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_are_told_without_secrets),
        cmocka_unit_test(jobs_that_run_again_are_told_by_name),
        cmocka_unit_test(plain_lines_cannot_be_forged),
        cmocka_unit_test(requests_are_told_only_when_asked),
        cmocka_unit_test(a_log_that_is_not_read_stops_nobody),
    };
    return cmocka_run_group_tests_name("api.log", tests, setup, teardown);
}
