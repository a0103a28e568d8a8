/*
 * latency.c: what a hot call costs beyond its job.
 *
 * Sends the same request many times over one keep-alive connection and prints percentiles, in
 * microseconds, of the wall time of a call, of its job (upload + kernel + download + encode as told
 * by Server-Timing) and of the difference, the overhead: HTTP, queue, processes, wake-ups. One
 * thread, blocking socket, no library, so that the client adds as little as it can.
 *
 *   latency HOST PORT PATH [CALLS]
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WARM_CALLS 200
#define HEAD_MAX   8192

/** One answer as seen by the client. */
struct answer {
    double wall_us, job_us;
    int status;
};

static double now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int socket_open(const char *host, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
        connect(fd, (struct sockaddr *)&address, sizeof address) != 0) {
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

/** Value of a header in a NUL-terminated head, or NULL. */
static const char *head_value(const char *head, const char *name) {
    size_t length = strlen(name);
    for (const char *line = strstr(head, "\r\n"); line != NULL; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, length) == 0 && line[2 + length] == ':') {
            return line + 3 + length;
        }
    }
    return NULL;
}

/** Milliseconds of one phase of a Server-Timing value; 0 where it is missing. */
static double timing_phase(const char *value, const char *name) {
    size_t length = strlen(name);
    const char *end = value != NULL ? strstr(value, "\r\n") : NULL;
    for (const char *at = value; at != NULL && at < end; at++) {
        if (strncmp(at, name, length) == 0 && strncmp(at + length, ";dur=", 5) == 0) {
            return strtod(at + length + 5, NULL);
        }
    }
    return 0;
}

static double timing_job_us(const char *head) {
    static const char *const phases[] = {"upload", "kernel", "download", "encode"};
    const char *value = head_value(head, "Server-Timing");
    double sum = 0;
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++) {
        sum += timing_phase(value, phases[i]);
    }
    return sum * 1e3;
}

/** Reads `size` bytes and drops them. */
static bool body_skip(int fd, size_t size) {
    char drop[65536];
    while (size > 0) {
        ssize_t got = recv(fd, drop, size < sizeof drop ? size : sizeof drop, 0);
        if (got <= 0) {
            return false;
        }
        size -= (size_t)got;
    }
    return true;
}

static bool call(int fd, const char *request, struct answer *answer) {
    char head[HEAD_MAX + 1];
    size_t have = 0;
    char *end = NULL;
    double start = now_us();
    if (send(fd, request, strlen(request), MSG_NOSIGNAL) != (ssize_t)strlen(request)) {
        return false;
    }
    while (end == NULL) {
        ssize_t got = recv(fd, head + have, HEAD_MAX - have, 0);
        if (got <= 0) {
            return false;
        }
        have += (size_t)got;
        head[have] = 0;
        end = strstr(head, "\r\n\r\n");
    }
    const char *length = head_value(head, "Content-Length");
    size_t body = length != NULL ? strtoull(length, NULL, 10) : 0;
    size_t with_head = have - (size_t)(end + 4 - head);
    if (with_head > body || !body_skip(fd, body - with_head)) {
        return false;
    }
    answer->wall_us = now_us() - start;
    end[2] = 0;
    answer->job_us = timing_job_us(head);
    answer->status = atoi(head + 9);
    return true;
}

static int double_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void percentiles_print(const char *name, double *values, size_t count) {
    qsort(values, count, sizeof *values, double_compare);
    printf("| %s | %.1f | %.1f | %.1f | %.1f |\n", name, values[count / 2], values[count * 9 / 10],
           values[count * 99 / 100], values[count - 1]);
}

static bool calls_run(int fd, const char *request, size_t calls, double *columns[3]) {
    for (size_t i = 0; i < calls + WARM_CALLS; i++) {
        struct answer answer;
        if (!call(fd, request, &answer) || answer.status != 200) {
            fprintf(stderr, "latency: call %zu failed\n", i);
            return false;
        }
        if (i < WARM_CALLS) {
            continue;
        }
        columns[0][i - WARM_CALLS] = answer.wall_us;
        columns[1][i - WARM_CALLS] = answer.job_us;
        columns[2][i - WARM_CALLS] = answer.wall_us - answer.job_us;
    }
    return true;
}

int main(int argc, char **argv) {
    static const char *const names[] = {"call", "job", "overhead"};
    size_t calls = argc > 4 ? strtoull(argv[4], NULL, 10) : 5000;
    char request[2048];
    double *columns[3] = {NULL, NULL, NULL};
    int fd = -1, code = 1;
    if (argc < 4 || calls == 0 || calls > 10000000) {
        fprintf(stderr, "usage: latency HOST PORT PATH [CALLS]\n");
        return 2;
    }
    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s:%s\r\n\r\n", argv[3], argv[1],
             argv[2]);
    for (int i = 0; i < 3; i++) {
        if ((columns[i] = calloc(calls, sizeof **columns)) == NULL) {
            goto out;
        }
    }
    fd = socket_open(argv[1], atoi(argv[2]));
    if (fd < 0) {
        fprintf(stderr, "latency: %s:%s: %s\n", argv[1], argv[2], strerror(errno));
        goto out;
    }
    if (!calls_run(fd, request, calls, columns)) {
        goto out;
    }
    printf(
        "GET %s, %zu calls, microseconds\n\n|  | p50 | p90 | p99 | max |\n|---|---|---|---|---|\n",
        argv[3], calls);
    for (int i = 0; i < 3; i++) {
        percentiles_print(names[i], columns[i], calls);
    }
    code = 0;
out:
    for (int i = 0; i < 3; i++) {
        free(columns[i]);
    }
    if (fd >= 0) {
        close(fd);
    }
    return code;
}
