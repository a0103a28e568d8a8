/*
 * lib_daemon.c: starting and stopping kilnd, requests by libcurl and by hand.
 */
#include "tests/api/lib_daemon.h"

#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READY_TIMEOUT_S 120.0
#define ARGUMENTS_MAX   40

double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void sleep_s(double seconds) {
    struct timespec time = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&time, NULL);
}

static const char *program(void) {
    const char *path = getenv("KILND");
    if (path == NULL) {
        fail_msg("KILND does not say where the program is");
    }
    return path;
}

void daemon_tie(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Starts the program with standard output and error in `log`. */
static pid_t spawn(const char *const *arguments, const char *log) {
    const char *path = program();
    pid_t pid = fork();
    if (pid == 0) {
        daemon_tie();
        int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
        execv(path, (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

static int exit_code(pid_t pid) {
    int status;
    while (waitpid(pid, &status, 0) < 0) {
        assert_int_equal(errno, EINTR);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void daemon_spawn(struct daemon *daemon, const char *const *arguments) {
    const char *all[ARGUMENTS_MAX] = {"kilnd"};
    for (int i = 0; arguments[i] != NULL; i++) {
        assert_true(i + 2 < ARGUMENTS_MAX);
        all[i + 1] = arguments[i];
    }
    memset(daemon, 0, sizeof *daemon);
    daemon->pid = spawn(all, "/dev/null");
}

int daemon_run(const char *const *arguments) {
    struct daemon daemon;
    daemon_spawn(&daemon, arguments);
    return exit_code(daemon.pid);
}

static void log_show(const struct daemon *daemon) {
    char path[96], line[512];
    snprintf(path, sizeof path, "%s/log", daemon->folder);
    FILE *file = fopen(path, "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        print_message("    %s", line);
    }
    if (file != NULL) {
        fclose(file);
    }
}

static bool ended(const struct daemon *daemon) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)daemon->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
}

bool daemon_alive(const struct daemon *daemon) {
    return !ended(daemon);
}

static bool port_read(struct daemon *daemon, const char *path) {
    FILE *file = fopen(path, "r");
    bool found = file != NULL && fscanf(file, "%d", &daemon->port) == 1;
    if (file != NULL) {
        fclose(file);
    }
    return found;
}

bool daemon_ready(struct daemon *daemon, const char *port_file) {
    struct answer answer;
    if (!port_read(daemon, port_file)) {
        return false;
    }
    snprintf(daemon->url, sizeof daemon->url, "http%s://127.0.0.1:%d",
             daemon->trust[0] != '\0' ? "s" : "", daemon->port);
    struct session *session = session_create(daemon);
    session_get(session, "/readyz", &answer);
    bool ready = answer.status == 200;
    answer_free(&answer);
    session_destroy(session);
    return ready;
}

static void ready_wait(struct daemon *daemon, const char *port_file) {
    double end = now_s() + READY_TIMEOUT_S;
    while (!daemon_ready(daemon, port_file)) {
        if (ended(daemon) || now_s() > end) {
            log_show(daemon);
            fail_msg("the daemon does not listen, or does not become ready");
        }
        sleep_s(0.01);
    }
}

void daemon_start(struct daemon *daemon, const char *const *flags) {
    const char *device = getenv("KILN_TEST_DEVICE");
    char port_file[96], log[96];
    memset(daemon, 0, sizeof *daemon);
    snprintf(daemon->folder, sizeof daemon->folder, "/tmp/kiln-test-XXXXXX");
    assert_non_null(mkdtemp(daemon->folder));
    snprintf(port_file, sizeof port_file, "%s/port", daemon->folder);
    snprintf(log, sizeof log, "%s/log", daemon->folder);
    const char *arguments[ARGUMENTS_MAX] = {"kilnd", "--listen", "127.0.0.1:0", "--port-file",
                                            port_file, "--device", device != NULL ? device : "cpu",
                                            /* tests count on it that every request runs its job,
                                               and name hosts as they like */
                                            "--cache-bytes", "0", "--hosts", "*"};
    for (int i = 0; flags != NULL && flags[i] != NULL; i++) {
        assert_true(i + 12 < ARGUMENTS_MAX);
        arguments[11 + i] = flags[i];
    }
    for (int i = 0; flags != NULL && flags[i] != NULL; i++) {
        if (strcmp(flags[i], "--tls-cert") == 0) {
            snprintf(daemon->trust, sizeof daemon->trust, "%s", flags[i + 1]);
        }
    }
    daemon->pid = spawn(arguments, log);
    ready_wait(daemon, port_file);
}

void daemon_signal(const struct daemon *daemon, int number) {
    assert_int_equal(kill(daemon->pid, number), 0);
}

int daemon_wait(struct daemon *daemon) {
    int code = exit_code(daemon->pid);
    static const char *const files[] = {"port", "log", "config"};
    if (code != 0 && daemon->folder[0] != '\0') {
        log_show(daemon);
    }
    for (size_t i = 0; daemon->folder[0] != '\0' && i < sizeof files / sizeof files[0]; i++) {
        char path[96];
        snprintf(path, sizeof path, "%s/%s", daemon->folder, files[i]);
        unlink(path);
    }
    rmdir(daemon->folder);
    daemon->pid = 0;
    return code;
}

int daemon_stop(struct daemon *daemon) {
    daemon_signal(daemon, SIGTERM);
    return daemon_wait(daemon);
}

struct session {
    CURL *curl;
    char url[64];
    char trust[96];
    char header[160];
    long tls_max;
};

struct session *session_create(const struct daemon *daemon) {
    struct session *session = calloc(1, sizeof *session);
    assert_non_null(session);
    session->curl = curl_easy_init();
    assert_non_null(session->curl);
    memcpy(session->url, daemon->url, sizeof session->url);
    memcpy(session->trust, daemon->trust, sizeof session->trust);
    return session;
}

void session_header(struct session *session, const char *line) {
    snprintf(session->header, sizeof session->header, "%s", line != NULL ? line : "");
}

void session_tls_max(struct session *session, long version) {
    session->tls_max = version;
}

void session_destroy(struct session *session) {
    curl_easy_cleanup(session->curl);
    free(session);
}

struct growing {
    char *bytes;
    size_t size;
};

static size_t collect(char *bytes, size_t one, size_t size, void *context) {
    struct growing *growing = context;
    char *larger = realloc(growing->bytes, growing->size + size + 1);
    (void)one;
    if (larger == NULL) {
        return 0;
    }
    memcpy(larger + growing->size, bytes, size);
    growing->size += size;
    larger[growing->size] = '\0';
    growing->bytes = larger;
    return size;
}

struct source {
    const char *bytes;
    size_t left;
};

static size_t supply(char *out, size_t one, size_t capacity, void *context) {
    struct source *source = context;
    size_t size = one * capacity < source->left ? one * capacity : source->left;
    memcpy(out, source->bytes, size);
    source->bytes += size;
    source->left -= size;
    return size;
}

static struct curl_slist *header_lines(const struct request *request) {
    char line[256];
    /* without the last two, curl would add headers of its own */
    struct curl_slist *list = curl_slist_append(NULL, "Expect:");
    if (request->body != NULL) {
        snprintf(line, sizeof line,
                 request->type != NULL ? "Content-Type: %s" : "Content-Type:", request->type);
        list = curl_slist_append(list, line);
    }
    if (request->chunked) {
        list = curl_slist_append(list, "Transfer-Encoding: chunked");
    }
    for (size_t i = 0; i < 4 && request->headers[i] != NULL; i++) {
        list = curl_slist_append(list, request->headers[i]);
    }
    return list;
}

static void request_prepare(CURL *curl, const struct request *request, struct source *source) {
    size_t size = request->size;
    if (request->body != NULL && size == 0) {
        size = strlen(request->body);
    }
    *source = (struct source){request->body, size};
    if (request->body != NULL) {
        curl_easy_setopt(curl, CURLOPT_POST, 1L);
        if (request->chunked) {
            curl_easy_setopt(curl, CURLOPT_READFUNCTION, supply);
            curl_easy_setopt(curl, CURLOPT_READDATA, source);
        } else {
            curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
            curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
        }
    }
    if (request->method != NULL && strcmp(request->method, "HEAD") == 0) {
        curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    } else if (request->method != NULL) {
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    }
}

void session_ask(struct session *session, const struct request *request, struct answer *answer) {
    CURL *curl = session->curl;
    struct growing body = {NULL, 0}, headers = {NULL, 0};
    struct source source;
    char url[4096];
    long status = 0, connects = 0;
    curl_easy_reset(curl); /* keeps the connection */
    struct curl_slist *lines = header_lines(request);
    if (session->header[0] != '\0') {
        lines = curl_slist_append(lines, session->header);
    }
    if (session->trust[0] != '\0') {
        curl_easy_setopt(curl, CURLOPT_CAINFO, session->trust);
        curl_easy_setopt(curl, CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1 | session->tls_max);
    }
    snprintf(url, sizeof url, "%s%s", session->url, request->path);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 240L);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, collect);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &body);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, collect);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, &headers);
    request_prepare(curl, request, &source);
    CURLcode code = curl_easy_perform(curl);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(curl, CURLINFO_NUM_CONNECTS, &connects);
    curl_slist_free_all(lines);
    *answer = (struct answer){.status = code == CURLE_OK ? (int)status : 0,
                              .body = body.bytes != NULL ? body.bytes : calloc(1, 1),
                              .size = body.size,
                              .headers = headers.bytes != NULL ? headers.bytes : calloc(1, 1),
                              .connects = (int)connects};
}

void session_get(struct session *session, const char *path, struct answer *answer) {
    const struct request request = {.path = path};
    session_ask(session, &request, answer);
}

void answer_free(struct answer *answer) {
    free(answer->body);
    free(answer->headers);
    memset(answer, 0, sizeof *answer);
}

bool answer_header(const struct answer *answer, const char *name, char *out, size_t size) {
    size_t length = strlen(name);
    for (const char *line = answer->headers; *line != '\0';) {
        size_t end = strcspn(line, "\r\n");
        if (end > length && line[length] == ':' && strncasecmp(line, name, length) == 0) {
            const char *value = line + length + 1;
            value += strspn(value, " ");
            snprintf(out, size, "%.*s", (int)(line + end - value), value);
            return true;
        }
        line += end + strspn(line + end, "\r\n");
    }
    return false;
}

void assert_header(const struct answer *answer, const char *name, const char *value) {
    char found[512];
    if (!answer_header(answer, name, found, sizeof found)) {
        fail_msg("there is no header %s in:\n%s", name, answer->headers);
    }
    assert_string_equal(found, value);
}

void assert_status(const struct answer *answer, int status) {
    if (answer->status != status) {
        fail_msg("status %d instead of %d:\n%s%.600s", answer->status, status, answer->headers,
                 answer->body);
    }
}

int raw_open(const struct daemon *daemon) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)daemon->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

size_t raw_exchange(int fd, const void *bytes, size_t size, char *out, size_t capacity,
                    double seconds, bool *closed) {
    double end = now_s() + seconds;
    size_t used = 0;
    *closed = false;
    for (size_t sent = 0; sent < size;) {
        ssize_t wrote = send(fd, (const char *)bytes + sent, size - sent, MSG_NOSIGNAL);
        if (wrote <= 0) {
            break; /* the other side has closed: what it said can still be read */
        }
        sent += (size_t)wrote;
    }
    while (used + 1 < capacity && now_s() < end) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        if (poll(&polled, 1, (int)((end - now_s()) * 1e3) + 1) <= 0) {
            break;
        }
        ssize_t got = recv(fd, out + used, capacity - 1 - used, 0);
        if (got <= 0) {
            *closed = true;
            break;
        }
        used += (size_t)got;
    }
    out[used] = '\0';
    return used;
}

double metric_get(struct session *session, const char *name) {
    struct answer answer;
    double value = -1;
    size_t size = strlen(name);
    session_get(session, "/metrics", &answer);
    assert_status(&answer, 200);
    for (const char *line = answer.body; line != NULL && *line != '\0';) {
        if (strncmp(line, name, size) == 0 && line[size] == ' ') {
            value = strtod(line + size + 1, NULL);
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    answer_free(&answer);
    return value;
}

pid_t worker_pid(struct session *session) {
    struct answer answer;
    pid_t pid = 0;
    session_get(session, "/v1/devices", &answer);
    assert_status(&answer, 200);
    cJSON *document = cJSON_Parse(answer.body);
    assert_non_null(document);
    const cJSON *device;
    cJSON_ArrayForEach(device, cJSON_GetObjectItemCaseSensitive(document, "devices")) {
        const char *state = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(device, "state"));
        if (pid == 0 && state != NULL && strcmp(state, "ready") == 0) {
            pid = (pid_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(device, "pid"));
        }
    }
    cJSON_Delete(document);
    answer_free(&answer);
    return pid;
}
