/*
 * healthcheck.c: one tiny HTTP request over a plain socket.
 */
#include "server/healthcheck.h"

#include "server/http/connections/tls.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define TIMEOUT_S  5
#define ANSWER_MAX 8192

static bool port_read(const char *path, char *port, size_t size) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    bool good = fgets(port, (int)size, file) != NULL;
    fclose(file);
    port[strcspn(port, "\n")] = '\0';
    return good;
}

/* The address to connect to: any-address listeners are reached by the loopback. */
static bool address_find(const struct options *options, char *host, size_t host_size, char *port,
                         size_t port_size) {
    const char *colon = strrchr(options->listen, ':');
    if (colon == NULL) {
        return false;
    }
    snprintf(host, host_size, "%.*s", (int)(colon - options->listen), options->listen);
    snprintf(port, port_size, "%s", colon + 1);
    size_t size = strlen(host);
    if (size >= 2 && host[0] == '[' && host[size - 1] == ']') {
        memmove(host, host + 1, size - 2);
        host[size - 2] = '\0';
    }
    if (host[0] == '\0' || strcmp(host, "0.0.0.0") == 0) {
        snprintf(host, host_size, "127.0.0.1");
    } else if (strcmp(host, "::") == 0) {
        snprintf(host, host_size, "::1");
    }
    return strcmp(port, "0") != 0 || port_read(options->port_file, port, port_size);
}

static int connection_open(const char *host, const char *port) {
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    const struct timeval timeout = {TIMEOUT_S, 0};
    struct addrinfo *addresses = NULL;
    int fd = -1;
    if (getaddrinfo(host, port, &hints, &addresses) != 0) {
        return -1;
    }
    for (const struct addrinfo *row = addresses; row != NULL && fd < 0; row = row->ai_next) {
        fd = socket(row->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            continue;
        }
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);
        if (connect(fd, row->ai_addr, row->ai_addrlen) != 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(addresses);
    return fd;
}

/* Sends the request and reads to the end of the connection; false on errors. */
static bool answer_read(int fd, bool secure, char *answer, size_t capacity) {
    /* a name that every daemon answers to, whatever it listens on */
    static const char request[] =
        "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    const size_t size = sizeof request - 1;
    size_t used = 0;
    if (secure) {
        return tls_ask(fd, request, size, answer, capacity);
    }
    if (send(fd, request, size, MSG_NOSIGNAL) != (ssize_t)size) {
        return false;
    }
    while (used + 1 < capacity) {
        ssize_t got = recv(fd, answer + used, capacity - 1 - used, 0);
        if (got < 0) {
            return false;
        }
        if (got == 0) {
            break;
        }
        used += (size_t)got;
    }
    answer[used] = '\0';
    return used > 0;
}

int healthcheck_run(const struct options *options) {
    char host[OPTION_TEXT_MAX], port[OPTION_TEXT_MAX], answer[ANSWER_MAX];
    if (!address_find(options, host, sizeof host, port, sizeof port)) {
        fprintf(stderr, "kilnd healthcheck: no port (--listen, --port-file)\n");
        return EXIT_FAILURE;
    }
    int fd = connection_open(host, port);
    if (fd < 0) {
        fprintf(stderr, "kilnd healthcheck: %s port %s: %s\n", host, port, strerror(errno));
        return EXIT_FAILURE;
    }
    bool read = answer_read(fd, options->tls_cert[0] != '\0', answer, sizeof answer);
    close(fd);
    if (!read || strncmp(answer, "HTTP/1.1 200 ", 13) != 0) {
        const char *body = read ? strstr(answer, "\r\n\r\n") : NULL;
        fprintf(stderr, "kilnd healthcheck: not ready: %s\n",
                body != NULL ? body + 4 : "no answer");
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
