/*
 * test_http.c: the HTTP side of the daemon: negotiation, caching, methods, connections, pages,
 * metrics, options.
 */
#include "tests/api/lib_daemon.h"

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define SMALL "/v1/mandelbrot?width=24&height=16"

static struct daemon daemon_;
static struct session *session;

static int setup(void **state) {
    static const char *const flags[] = {"--idle-timeout", "2", NULL};
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

static void ask(const char *method, const char *path, const char *header, struct answer *answer) {
    const struct request request = {.method = method, .path = path, .headers = {header}};
    session_ask(session, &request, answer);
}

static void negotiation(void **state) {
    (void)state;
    static const struct {
        const char *accept, *media;
        int status;
    } rows[] = {
        {"Accept:", "image/png", 200},
        {"Accept: */*", "image/png", 200},
        {"Accept: application/json", "application/json", 200},
        {"Accept: application/x-npy", "application/x-npy", 200},
        {"Accept: application/npy", "application/x-npy", 200},
        {"Accept: image/*", "image/png", 200},
        {"Accept: application/*", "application/x-npy", 200},
        {"Accept: application/json;q=0.5, application/x-npy;q=0.8", "application/x-npy", 200},
        {"Accept: image/png;q=0, application/json;q=0.001", "application/json", 200},
        {"Accept: image/png;q=0, */*", "application/x-npy", 200},
        {"Accept: */*, image/png;q=0.1", "application/x-npy", 200},
        {"Accept: text/html, image/avif, image/*, */*;q=0.8", "image/png", 200},
        {"Accept: text/html;level=\"a,b;q=0\", application/json ; q=1", "application/json", 200},
        {"Accept: APPLICATION/JSON", "application/json", 200},
        /* equal qualities: what is named more exactly, then what is named first */
        {"Accept: application/json, text/plain, */*", "application/json", 200},
        {"Accept: */*, application/json", "application/json", 200},
        {"Accept: application/*, image/png", "image/png", 200},
        {"Accept: application/json, image/png", "application/json", 200},
        {"Accept: image/png, application/json", "image/png", 200},
        {"Accept: */*, application/*", "application/x-npy", 200},
        {"Accept: application/json;q=0.9, */*", "image/png", 200},
        {"Accept: application/json;q=0.9, image/*, */*;q=0.1", "image/png", 200},
        {"Accept: application/json;q=1.0, */*;q=1", "application/json", 200},
        {"Accept: image/png;q=0, application/json, */*", "application/json", 200},
        {"Accept: text/html, application/xhtml+xml, application/xml;q=0.9, image/avif, image/webp, "
         "*/*;q=0.8",
         "image/png", 200},
        {"Accept: nonsense", "image/png", 200},
        {"Accept: image/gif", "application/problem+json", 406},
        {"Accept: image/png;q=0", "application/problem+json", 406},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct answer answer;
        ask(NULL, SMALL, rows[i].accept, &answer);
        if (answer.status != rows[i].status) {
            print_message("%s\n", rows[i].accept);
        }
        assert_status(&answer, rows[i].status);
        assert_header(&answer, "Content-Type", rows[i].media);
        assert_header(&answer, "Vary", "Accept");
        answer_free(&answer);
    }
    /* the parameter wins */
    struct answer answer;
    ask(NULL, SMALL "&format=npy", "Accept: image/png", &answer);
    assert_header(&answer, "Content-Type", "application/x-npy");
    answer_free(&answer);
    ask(NULL, SMALL, "Accept: image/gif", &answer);
    assert_non_null(strstr(answer.body, "application/x-npy"));
    answer_free(&answer);
}

static void entity_tags(void **state) {
    (void)state;
    struct answer first, answer;
    char tag[64], other[64], header[200];
    session_get(session, SMALL, &first);
    assert_true(answer_header(&first, "ETag", tag, sizeof tag));
    double before = metric_get(session, "kiln_jobs_submitted_total");
    static const char *const patterns[] = {"If-None-Match: %s", "If-None-Match: W/%s",
                                           "If-None-Match: \"other\", %s", "If-None-Match: *"};
    for (size_t i = 0; i < 4; i++) {
        snprintf(header, sizeof header, i < 3 ? patterns[i] : "%s", i < 3 ? tag : patterns[3]);
        ask(i % 2 == 0 ? NULL : "HEAD", SMALL, header, &answer);
        assert_status(&answer, 304);
        assert_int_equal(answer.size, 0);
        assert_header(&answer, "ETag", tag);
        assert_header(&answer, "Cache-Control", "public, max-age=86400");
        answer_free(&answer);
    }
    /* equal parameters, written otherwise */
    snprintf(header, sizeof header, "If-None-Match: %s", tag);
    ask(NULL, "/v1/mandelbrot?height=16&width=24&xmin=-2.250&max_iter=400&format=png", header,
        &answer);
    assert_status(&answer, 304);
    answer_free(&answer);
    assert_true(metric_get(session, "kiln_jobs_submitted_total") == before);
    /* other parameters, other format, other method */
    static const char *const paths[] = {SMALL "&max_iter=401", SMALL "&format=npy"};
    for (size_t i = 0; i < 2; i++) {
        ask(NULL, paths[i], header, &answer);
        assert_status(&answer, 200);
        assert_true(answer_header(&answer, "ETag", other, sizeof other));
        assert_string_not_equal(tag, other);
        answer_free(&answer);
    }
    const struct request posted = {.path = "/v1/mandelbrot",
                                   .type = "application/json",
                                   .body = "{\"width\":24,\"height\":16}",
                                   .headers = {header}};
    const struct request plain = {.path = posted.path, .type = posted.type, .body = posted.body};
    session_ask(session, &plain, &answer);
    assert_status(&answer, 200);
    assert_header(&answer, "ETag", tag);
    assert_int_equal(answer.size, first.size);
    assert_memory_equal(answer.body, first.body, first.size);
    answer_free(&answer);
    answer_free(&first);
}

/* Bytes that do not depend on the device have one tag, with a device asked for and without; others
   have a tag of their own for each. */
static void entity_tags_of_devices(void **state) {
    (void)state;
    static const struct {
        const char *path, *body, *type;
        bool same;
    } rows[] = {
        {"/v1/mandelbrot?width=24&height=16&shade=true", NULL, NULL, true},
        {"/v1/mandelbrot?width=24&height=16&format=npy", NULL, NULL, true},
        {"/v1/laplacian?", "P2\n2 1\n255\n1 2\n", "application/octet-stream", true},
        {"/v1/jacobi?method=direct", "P2\n2 1\n255\n1 2\n", "application/octet-stream", false},
        {"/v1/lombscargle?format=npy&maximum_frequency=1", "{\"t\":[0,1,2.5,4],\"y\":[1,2,1,3]}",
         "application/json", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char tags[2][64];
        for (size_t named = 0; named < 2; named++) {
            char path[160];
            struct answer answer;
            const char *device = getenv("KILN_TEST_DEVICE");
            snprintf(path, sizeof path, "%s%s%s", rows[i].path, named ? "&device=" : "",
                     !named           ? ""
                     : device != NULL ? device
                                      : "cpu:0");
            const struct request request = {
                .path = path, .type = rows[i].type, .body = rows[i].body};
            session_ask(session, &request, &answer);
            assert_status(&answer, 200);
            assert_true(answer_header(&answer, "ETag", tags[named], sizeof tags[named]));
            assert_int_equal(tags[named][0], '"'); /* strong */
            answer_free(&answer);
        }
        assert_int_equal(strcmp(tags[0], tags[1]) == 0, rows[i].same);
    }
}

/* The input's bytes are part of the tag. */
static void entity_tags_of_inputs(void **state) {
    (void)state;
    static const char *const images[] = {"P2\n2 1\n255\n1 2\n", "P2\n2 1\n255\n1 3\n"};
    char tags[2][64];
    for (size_t i = 0; i < 2; i++) {
        const struct request request = {
            .path = "/v1/laplacian", .type = "application/octet-stream", .body = images[i]};
        struct answer answer;
        session_ask(session, &request, &answer);
        assert_status(&answer, 200);
        assert_true(answer_header(&answer, "ETag", tags[i], sizeof tags[i]));
        answer_free(&answer);
    }
    assert_string_not_equal(tags[0], tags[1]);
}

/* A POST whose result the client has is not performed: RFC 9110 keeps 304 for GET and HEAD. */
static void posts_of_what_the_client_has(void **state) {
    (void)state;
    static const size_t sizes[] = {2, 200000}; /* read on the loop, read by the loader */
    for (size_t i = 0; i < 2; i++) {
        struct request request = {.path = "/v1/laplacian?format=npy",
                                  .type = "image/x-portable-graymap"};
        char *picture = calloc(1, sizes[i] + 64), tag[64], header[160];
        size_t head = (size_t)sprintf(picture, "P5\n%zu 1\n255\n", sizes[i]);
        request.body = picture;
        request.size = head + sizes[i];
        struct answer answer;
        session_ask(session, &request, &answer);
        assert_status(&answer, 200);
        assert_true(answer_header(&answer, "ETag", tag, sizeof tag));
        answer_free(&answer);
        double before = metric_get(session, "kiln_jobs_submitted_total");
        static const char *const patterns[] = {"If-None-Match: %s", "If-None-Match: \"a\", W/%s",
                                               "If-None-Match: *"};
        for (size_t row = 0; row < 3; row++) {
            snprintf(header, sizeof header, row < 2 ? patterns[row] : "%s",
                     row < 2 ? tag : patterns[2]);
            request.headers[0] = header;
            session_ask(session, &request, &answer);
            assert_status(&answer, 412);
            assert_header(&answer, "Content-Type", "application/problem+json");
            assert_header(&answer, "ETag", tag);
            assert_non_null(strstr(answer.body, "/problems/precondition-failed"));
            answer_free(&answer);
        }
        assert_true(metric_get(session, "kiln_jobs_submitted_total") == before);
        picture[head] ^= 1; /* another input */
        snprintf(header, sizeof header, "If-None-Match: %s", tag);
        session_ask(session, &request, &answer);
        assert_status(&answer, 200);
        answer_free(&answer);
        picture[0] = 'X'; /* what is wrong with the request comes first */
        request.headers[0] = "If-None-Match: *";
        session_ask(session, &request, &answer);
        assert_true(answer.status >= 400 && answer.status != 412);
        answer_free(&answer);
        free(picture);
    }
}

static void methods(void **state) {
    (void)state;
    struct answer get, head, options;
    char length[32], found[64];
    session_get(session, SMALL "&format=npy", &get);
    snprintf(length, sizeof length, "%zu", get.size);
    ask("HEAD", SMALL "&format=npy", NULL, &head);
    assert_status(&head, 200);
    assert_int_equal(head.size, 0);
    assert_header(&head, "Content-Length", length);
    assert_true(answer_header(&get, "ETag", found, sizeof found));
    assert_header(&head, "ETag", found);
    ask("OPTIONS", SMALL, NULL, &options);
    assert_status(&options, 204);
    assert_header(&options, "Allow", "GET, HEAD, POST, OPTIONS");
    answer_free(&get);
    answer_free(&head);
    answer_free(&options);
    ask("HEAD", "/healthz", NULL, &head);
    assert_status(&head, 200);
    assert_int_equal(head.size, 0);
    answer_free(&head);
}

/* One connection carries many requests, good and bad. */
static void keep_alive(void **state) {
    (void)state;
    struct session *one = session_create(&daemon_);
    static const struct {
        const char *path;
        int status;
    } rows[] = {{SMALL, 200},        {"/nothing", 404}, {"/v1/mandelbrot?width=0", 422},
                {"/v1/jacobi", 405}, {"/healthz", 200}, {SMALL, 200}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct answer answer;
        session_get(one, rows[i].path, &answer);
        assert_status(&answer, rows[i].status);
        assert_int_equal(answer.connects, i == 0 ? 1 : 0);
        answer_free(&answer);
    }
    const struct request request = {
        .path = "/v1/mandelbrot", .type = "application/json", .body = "{\"width\":8,\"height\":8}"};
    for (int i = 0; i < 3; i++) {
        struct answer answer;
        session_ask(one, &request, &answer);
        assert_status(&answer, 200);
        assert_int_equal(answer.connects, 0);
        answer_free(&answer);
    }
    session_destroy(one);
}

/* Three requests in one packet are answered in order. */
static void pipelining(void **state) {
    (void)state;
    static const char bytes[] =
        "GET /v1/mandelbrot?width=4&height=4&format=raw HTTP/1.1\r\nHost: x\r\n\r\n"
        "GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n"
        "GET /readyz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    char out[8192];
    bool closed;
    int fd = raw_open(&daemon_);
    size_t size = raw_exchange(fd, bytes, sizeof bytes - 1, out, sizeof out, 10, &closed);
    assert_true(closed);
    const char *not_found = memmem(out, size, "HTTP/1.1 404 ", 13);
    const char *ready = memmem(out, size, "{\"status\":\"ready\"", 17);
    assert_int_equal(strncmp(out, "HTTP/1.1 200 ", 13), 0);
    assert_non_null(not_found);
    assert_non_null(ready);
    assert_true(not_found < ready);
    close(fd);
}

/* A body in chunks, with an extension and a trailer. */
static void chunks(void **state) {
    (void)state;
    static const char bytes[] =
        "POST /v1/mandelbrot HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        "9\r\n{\"width\":\r\n1;a=b\r\n4\r\nc\r\n,\"height\":4}\r\n0\r\nX-After: 1\r\n\r\n";
    char out[8192];
    bool closed;
    int fd = raw_open(&daemon_);
    raw_exchange(fd, bytes, sizeof bytes - 1, out, sizeof out, 10, &closed);
    assert_int_equal(strncmp(out, "HTTP/1.1 200 ", 13), 0);
    close(fd);
}

static void pages(void **state) {
    (void)state;
    static const struct {
        const char *path, *media, *says;
    } rows[] = {
        {"/", "text/html; charset=utf-8", "curl 'http://127.0.0.1"},
        {"/problems", "text/html; charset=utf-8", "/problems/invalid-fields"},
        {"/problems/invalid-fields", "text/html; charset=utf-8", "422"},
        {"/healthz", "application/json", "\"ok\""},
        {"/readyz", "application/json", "\"ready\""},
        {"/openapi.yaml", "application/yaml", "openapi: 3.1.0"},
        {"/v1/devices", "application/json", "\"devices\""},
        {"/v1/jobs", "application/json", "\"total\":"},
        {"/v1/jobs/types", "application/json", "\"lombscargle\""},
        {"/metrics", "text/plain; version=0.0.4; charset=utf-8", "kiln_requests_total"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct answer answer;
        session_get(session, rows[i].path, &answer);
        assert_status(&answer, 200);
        assert_header(&answer, "Content-Type", rows[i].media);
        if (strstr(answer.body, rows[i].says) == NULL) {
            fail_msg("\"%s\" is not in %s", rows[i].says, rows[i].path);
        }
        if (strcmp(rows[i].media, "application/json") == 0) {
            cJSON *document = cJSON_ParseWithLengthOpts(answer.body, answer.size + 1, NULL, 1);
            assert_non_null(document);
            cJSON_Delete(document);
        }
        answer_free(&answer);
    }
    /* what a client says about itself does not become markup */
    struct answer answer;
    ask(NULL, "/", "Host: <script>", &answer);
    assert_null(strstr(answer.body, "<script>"));
    answer_free(&answer);
}

/* Every line is a comment or "name{labels} number"; counters count. */
static void metrics(void **state) {
    (void)state;
    static const char name[] =
        "kiln_requests_total{route=\"/v1/mandelbrot\",method=\"GET\",status=\"200\"}";
    struct answer answer;
    session_get(session, SMALL, &answer);
    answer_free(&answer);
    double before = metric_get(session, name);
    double jobs = metric_get(session, "kiln_jobs_completed_total");
    session_get(session, SMALL, &answer);
    answer_free(&answer);
    /* a request is counted when its last byte has left, so maybe a moment after we have it */
    double end = now_s() + 10;
    while (metric_get(session, name) < before + 1 && now_s() < end) {
        sleep_s(0.01);
    }
    assert_true(metric_get(session, name) == before + 1);
    assert_true(metric_get(session, "kiln_jobs_completed_total") >= jobs + 1);
    session_get(session, "/metrics", &answer);
    for (char *save = NULL, *line = strtok_r(answer.body, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        char *end_of_number, *space = strrchr(line, ' ');
        if (line[0] == '#') {
            continue;
        }
        assert_non_null(space);
        strtod(space + 1, &end_of_number);
        assert_true(end_of_number > space + 1 && *end_of_number == '\0');
        assert_int_equal(strncmp(line, "kiln_", 5) != 0 && strncmp(line, "process_", 8) != 0, 0);
    }
    answer_free(&answer);
}

/* Clients that crawl are cut; those that behave are served meanwhile. */
static void crawlers(void **state) {
    (void)state;
    static const char *const heads[] = {
        "GET /he",
        "GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        "POST /v1/mandelbrot HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        "Content-Length: 1000\r\n\r\n{",
    };
    int fds[3];
    bool open[3];
    double end = now_s() + 60;
    for (size_t i = 0; i < 3; i++) {
        char out[16];
        fds[i] = raw_open(&daemon_);
        raw_exchange(fds[i], heads[i], strlen(heads[i]), out, sizeof out, 0, &open[i]);
        open[i] = true;
    }
    while ((open[0] || open[1] || open[2]) && now_s() < end) {
        struct answer answer;
        for (size_t i = 0; i < 3; i++) {
            char out[4096];
            bool closed = false;
            if (open[i]) {
                raw_exchange(fds[i], " ", 1, out, sizeof out, 0.01, &closed);
            }
            open[i] = open[i] && !closed;
        }
        session_get(session, SMALL, &answer);
        assert_status(&answer, 200);
        answer_free(&answer);
        sleep_s(0.1);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_false(open[i]);
        close(fds[i]);
    }
    assert_true(metric_get(session, "kiln_connections_cut_total") >= 1);
}

/* A flag wins over the environment, that over the file, that over the default. */
static void option_sources(void **state) {
    (void)state;
    static const struct {
        const char *environment, *flag, *limit;
    } rows[] = {{NULL, NULL, "2000"}, {"3000", NULL, "3000"}, {"3000", "4K", "4096"}};
    char path[] = "/tmp/kiln-config-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_true(write(fd, "# limits\n  max-body = 2000 \n\nqueue=7\n", 37) == 37);
    close(fd);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const flags[] = {"--config", path, rows[i].flag != NULL ? "--max-body" : NULL,
                                     rows[i].flag, NULL};
        char *large = calloc(1, 5000);
        struct daemon other;
        struct answer answer;
        unsetenv("KILN_MAX_BODY");
        if (rows[i].environment != NULL) {
            setenv("KILN_MAX_BODY", rows[i].environment, 1);
        }
        daemon_start(&other, flags);
        unsetenv("KILN_MAX_BODY");
        struct session *asking = session_create(&other);
        const struct request request = {
            .path = "/v1/laplacian", .type = "image/png", .body = large, .size = 5000};
        session_ask(asking, &request, &answer);
        assert_status(&answer, 413);
        assert_non_null(strstr(answer.body, rows[i].limit));
        answer_free(&answer);
        session_destroy(asking);
        assert_int_equal(daemon_stop(&other), 0);
        free(large);
    }
    unlink(path);
}

/* Exit code of a daemon with this variable in its environment, and no other. */
static int code_with(const char *name, const char *value, const char *const *arguments) {
    setenv(name, value, 1);
    int code = daemon_run(arguments);
    unsetenv(name);
    return code;
}

/* A line, a name and a value that is not what its writer meant stops the start. */
static void mistakes_in_options_are_refused(void **state) {
    (void)state;
    static const char *const none[] = {"healthcheck", "--listen", "127.0.0.1:1", NULL};
    assert_int_equal(code_with("KILN_MAX_BDY", "3", none), 2);
    assert_int_equal(code_with("KILN_LOGLEVEL", "debug", none), 2);
    assert_int_equal(code_with("KILN_QUEU", "3", none), 2);
    assert_int_equal(code_with("KILN_max_body", "3000", none), 2);
    assert_int_equal(code_with("KILN_MAX_BODY", "3000", none), 1); /* it runs and finds nobody */
    assert_int_equal(code_with("KILN_SERVICE_HOST", "10.0.0.1", none), 1);
    assert_int_equal(code_with("KILN_PORT", "tcp://10.0.0.1:80", none), 1);
    assert_int_equal(code_with("KILN_PORT_8080_TCP", "tcp://10.0.0.1:80", none), 1);
    assert_int_equal(code_with("KILN_OUR_OWN_NAME", "x", none), 1);
    assert_int_equal(code_with("KILNS_QUEU", "x", none), 1);
    char path[] = "/tmp/kiln-config-XXXXXX", line[4096];
    const char *const config[] = {"healthcheck", "--listen", "127.0.0.1:1", "--config", path, NULL};
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    static const struct {
        size_t blanks; /* between a comment's beginning and what looks like an option */
        const char *end;
        size_t size;
        int code;
    } rows[] = {{10, "\n", 1, 1},    {10, "", 0, 1},     {1077, "\n", 1, 1}, {1078, "\n", 1, 2},
                {1087, "\n", 1, 2},  {2000, "\n", 1, 2}, {3000, "", 0, 2},   {5, "\0\n", 2, 2},
                {0, "\n\n\n", 3, 1}, {10, "\r\n", 2, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static const char option[] = "queue = 5";
        size_t size = 0;
        line[size++] = '#';
        memset(line + size, ' ', rows[i].blanks);
        size += rows[i].blanks;
        memcpy(line + size, option, sizeof option - 1);
        size += sizeof option - 1;
        memcpy(line + size, rows[i].end, rows[i].size);
        assert_int_equal(pwrite(fd, line, size + rows[i].size, 0), size + rows[i].size);
        assert_int_equal(ftruncate(fd, (off_t)(size + rows[i].size)), 0);
        int code = daemon_run(config);
        if (code != rows[i].code) {
            fail_msg("row %zu: %d", i, code);
        }
    }
    close(fd);
    unlink(path);
}

static void roles(void **state) {
    (void)state;
    char listen[64], port_file[96];
    snprintf(listen, sizeof listen, "127.0.0.1:%d", daemon_.port);
    snprintf(port_file, sizeof port_file, "%s/port", daemon_.folder);
    const struct {
        const char *arguments[6];
        int code;
    } rows[] = {
        {{"--version"}, 0},
        {{"--help"}, 0},
        {{"probe"}, 0},
        {{"healthcheck", "--listen", listen}, 0},
        {{"healthcheck", "--listen=127.0.0.1:0", "--port-file", port_file}, 0},
        {{"healthcheck", "--listen", "127.0.0.1:1"}, 1},
        {{"--no-such-flag", "1"}, 2},
        {{"--queue", "many"}, 2},
        {{"--queue"}, 2},
        {{"--http-threads", "65"}, 2},
        {{"--log-level", "loud"}, 2},
        {{"--log-format", "xml"}, 2},
        {{"--config", "/no/such/file"}, 2},
        {{"worker"}, 2},
        {{"--listen", "nowhere"}, 1},
        {{"--listen", listen}, 1},
        {{"--device", "abacus:0", "--listen", "127.0.0.1:0"}, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int code = daemon_run(rows[i].arguments);
        if (code != rows[i].code) {
            fail_msg("kilnd %s %s: exit code %d instead of %d", rows[i].arguments[0],
                     rows[i].arguments[1] != NULL ? rows[i].arguments[1] : "", code, rows[i].code);
        }
    }
}

/* Every line of the log is an object with four strings, whatever clients send, and no secret. */
static void log_json(void **state) {
    static const char *const flags[] = {"--log-format", "json", "--log-level", "debug", NULL};
    static const char *const names[] = {"time", "level", "role", "message"};
    char path[96], line[8192];
    struct daemon other;
    struct answer answer;
    int lines = 0, workers = 0;
    (void)state;
    daemon_start(&other, flags);
    struct session *asking = session_create(&other);
    const struct request request = {.path = "/no\"such\\thing?\x01\xff%s",
                                    .headers = {"Authorization: Bearer hush-hush"}};
    session_ask(asking, &request, &answer);
    answer_free(&answer);
    session_destroy(asking);
    snprintf(path, sizeof path, "%s/log", other.folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "kilnd listening", 15) == 0) {
            continue; /* standard output */
        }
        cJSON *object = cJSON_Parse(line);
        assert_non_null(object);
        for (size_t i = 0; i < 4; i++) {
            assert_non_null(
                cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, names[i])));
        }
        cJSON_Delete(object);
        assert_null(strstr(line, "hush-hush"));
        workers += strstr(line, "\"role\":\"cpu:0\"") != NULL;
        lines++;
    }
    fclose(file);
    assert_int_equal(daemon_stop(&other), 0);
    assert_true(lines > 3);
    assert_true(workers > 0 || getenv("KILN_TEST_DEVICE") != NULL);
}

/* A service manager hears that the daemon listens, and that it stops. */
static void notifications(void **state) {
    static const char *const wanted[] = {"READY=1\nSTATUS=http://127.0.0.1:",
                                         "STOPPING=1\nSTATUS="};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 20};
    struct daemon other;
    (void)state;
    snprintf(address.sun_path, sizeof address.sun_path, "/tmp/kiln-notify-%d", (int)getpid());
    unlink(address.sun_path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    daemon_start(&other, NULL);
    unsetenv("NOTIFY_SOCKET");
    for (size_t i = 0; i < 2; i++) {
        char said[256] = "";
        assert_true(recv(fd, said, sizeof said - 1, 0) > 0);
        assert_memory_equal(said, wanted[i], strlen(wanted[i]));
        if (i == 0) {
            daemon_signal(&other, SIGTERM);
        }
    }
    assert_int_equal(daemon_wait(&other), 0);
    close(fd);
    unlink(address.sun_path);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(negotiation),
        cmocka_unit_test(entity_tags),
        cmocka_unit_test(entity_tags_of_inputs),
        cmocka_unit_test(posts_of_what_the_client_has),
        cmocka_unit_test(entity_tags_of_devices),
        cmocka_unit_test(methods),
        cmocka_unit_test(keep_alive),
        cmocka_unit_test(pipelining),
        cmocka_unit_test(chunks),
        cmocka_unit_test(pages),
        cmocka_unit_test(metrics),
        cmocka_unit_test(crawlers),
        cmocka_unit_test(option_sources),
        cmocka_unit_test(mistakes_in_options_are_refused),
        cmocka_unit_test(roles),
        cmocka_unit_test(log_json),
        cmocka_unit_test(notifications),
    };
    return cmocka_run_group_tests_name("api.http", tests, setup, teardown);
}
