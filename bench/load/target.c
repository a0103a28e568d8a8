/*
 * target.c: addresses, sockets, and one blocking exchange.
 */
#include "bench/load/target.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static bool unix_read(struct target *target, const char *path, char *why, size_t why_size) {
    struct sockaddr_un *address = (struct sockaddr_un *)&target->address;
    if (*path == '\0' || strlen(path) >= sizeof address->sun_path) {
        snprintf(why, why_size, "`unix:%s`: a socket's path has 1 to %zu bytes", path,
                 sizeof address->sun_path - 1);
        return false;
    }
    address->sun_family = AF_UNIX;
    memcpy(address->sun_path, path, strlen(path) + 1);
    target->address_size = sizeof *address;
    memcpy(target->host, "localhost", sizeof "localhost");
    return true;
}

static bool host_resolve(struct target *target, const char *host, const char *port, char *why,
                         size_t why_size) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0) {
        snprintf(why, why_size, "%s:%s: %s", host, port, gai_strerror(code));
        return false;
    }
    memcpy(&target->address, found->ai_addr, found->ai_addrlen);
    target->address_size = found->ai_addrlen;
    freeaddrinfo(found);
    return true;
}

bool target_read(struct target *target, const char *url, char *why, size_t why_size) {
    char host[200] = "", port[8] = "80";
    memset(target, 0, sizeof *target);
    if (strncmp(url, "unix:", 5) == 0) {
        return unix_read(target, url + 5, why, why_size);
    }
    if (strncmp(url, "http://", 7) != 0) {
        snprintf(why, why_size, "`%s`: an address is http://host:port or unix:/path; no TLS", url);
        return false;
    }
    const char *authority = url + 7, *path = authority + strcspn(authority, "/?#");
    bool six = *authority == '[';
    const char *close = six ? memchr(authority, ']', (size_t)(path - authority)) : NULL;
    const char *colon =
        close != NULL ? close + 1 : memchr(authority, ':', (size_t)(path - authority));
    const char *start = authority + six, *end = close != NULL   ? close
                                                : colon != NULL ? colon
                                                                : path;
    size_t digits = colon != NULL && *colon == ':' ? (size_t)(path - colon) - 1 : 0;
    size_t whole = (size_t)(path - authority), rest = strlen(path);
    if (end <= start || (size_t)(end - start) >= sizeof host || digits >= sizeof port ||
        (six && close == NULL) || whole >= sizeof target->host || rest >= sizeof target->prefix ||
        strpbrk(path, " ?#") != NULL) {
        snprintf(why, why_size, "`%s` is not an address such as http://127.0.0.1:8080", url);
        return false;
    }
    memcpy(host, start, (size_t)(end - start));
    if (digits > 0) {
        memcpy(port, colon + 1, digits);
        port[digits] = '\0';
    }
    memcpy(target->host, authority, whole);
    memcpy(target->prefix, path, rest);
    if (rest > 0 && path[rest - 1] == '/') {
        target->prefix[rest - 1] = '\0';
    }
    return host_resolve(target, host, port, why, why_size);
}

int target_connect(const struct target *target) {
    int one = 1;
    int fd = socket(target->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    if (target->address.ss_family != AF_UNIX) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    }
    if (connect(fd, (const struct sockaddr *)&target->address, target->address_size) != 0 &&
        errno != EINPROGRESS) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Waits until the socket is ready for `events`; false with errno at `end`. */
static bool socket_wait(int fd, short events, double end) {
    struct pollfd one = {fd, events, 0};
    double left = end - now_s();
    int error = 0;
    socklen_t size = sizeof error;
    if (left <= 0 || poll(&one, 1, (int)(left * 1e3) + 1) <= 0) {
        errno = ETIMEDOUT;
        return false;
    }
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    errno = error;
    return error == 0;
}

bool target_probe(const struct target *target, char *why, size_t why_size) {
    int fd = target_connect(target);
    bool fine = fd >= 0 && socket_wait(fd, POLLOUT, now_s() + 10);
    if (!fine) {
        snprintf(why, why_size, "%s: %s", target->host, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    return fine;
}

/* Keeps what belongs to the body of the bytes just read. */
struct target_keeper {
    char *body;
    size_t capacity, size;
};

static void body_keep(struct target_keeper *keeper, const char *bytes, size_t size) {
    if (keeper->body == NULL) {
        return;
    }
    size_t room = keeper->capacity - 1 - keeper->size, take = size < room ? size : room;
    memcpy(keeper->body + keeper->size, bytes, take);
    keeper->size += take;
    keeper->body[keeper->size] = '\0';
}

static bool request_send(int fd, const char *request, size_t size, double end) {
    while (size > 0) {
        ssize_t sent = send(fd, request, size, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) {
            return false;
        }
        if (sent < 0 && !socket_wait(fd, POLLOUT, end)) {
            return false;
        }
        request += sent > 0 ? sent : 0;
        size -= sent > 0 ? (size_t)sent : 0;
    }
    return true;
}

static bool answer_read(int fd, struct load_answer *answer, struct target_keeper *keeper,
                        double end) {
    char bytes[65536];
    while (answer->state != ANSWER_DONE) {
        if (!socket_wait(fd, POLLIN, end)) {
            return false;
        }
        ssize_t got = recv(fd, bytes, sizeof bytes, 0);
        if (got == 0 && answer_close(answer)) {
            break;
        }
        if (got <= 0) {
            errno = got == 0 ? ECONNRESET : errno;
            return false;
        }
        uint64_t before = answer->body;
        size_t used = answer_feed(answer, bytes, (size_t)got);
        if (answer->state == ANSWER_BROKEN || used != (size_t)got) {
            errno = EPROTO;
            return false;
        }
        /* Chunk sizes between body bytes are kept too: only texts with a length are asked for. */
        body_keep(keeper, bytes + used - (answer->body - before), answer->body - before);
    }
    return true;
}

bool target_ask(const struct target *target, const char *request, size_t size, double timeout_s,
                struct load_answer *answer, char *body, size_t capacity, char *why,
                size_t why_size) {
    struct target_keeper keeper = {body, capacity, 0};
    double end = now_s() + timeout_s;
    bool fine = false;
    int fd = target_connect(target);
    if (body != NULL) {
        body[0] = '\0';
    }
    answer_begin(answer, size > 5 && memcmp(request, "HEAD ", 5) == 0);
    if (fd >= 0 && socket_wait(fd, POLLOUT, end) && request_send(fd, request, size, end) &&
        answer_read(fd, answer, &keeper, end)) {
        fine = true;
    } else {
        snprintf(why, why_size, "%s: %s", target->host, strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    return fine;
}

bool target_get(const struct target *target, const char *path, struct load_answer *answer,
                char *body, size_t capacity, char *why, size_t why_size) {
    char request[1024];
    int size = snprintf(request, sizeof request, "GET %s%s HTTP/1.1\r\nHost: %s\r\n\r\n",
                        target->prefix, path, target->host);
    if (size < 0 || (size_t)size >= sizeof request) {
        snprintf(why, why_size, "the path is too long");
        return false;
    }
    return target_ask(target, request, (size_t)size, 30, answer, body, capacity, why, why_size);
}
