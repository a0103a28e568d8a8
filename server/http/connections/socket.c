/*
 * socket.c: --listen, or what was passed on, and who could reach it.
 */
#include "server/http/connections/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* "host:port", "[address]:port", ":port"; host "" for all addresses. */
static bool address_split(const char *text, char *host, size_t host_size, const char **port) {
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon[1] == '\0') {
        return false;
    }
    bool bracketed = text[0] == '[' && colon > text + 1 && colon[-1] == ']';
    size_t size = (size_t)(colon - text) - (bracketed ? 2 : 0);
    if (size >= host_size) {
        return false;
    }
    memcpy(host, text + (bracketed ? 1 : 0), size);
    host[size] = '\0';
    *port = colon + 1;
    return true;
}

static int socket_bind(const struct addrinfo *address) {
    const int yes = 1;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, address->ai_addr, address->ai_addrlen) != 0 || listen(fd, SOMAXCONN) != 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return -1;
    }
    return fd;
}

/* Whether only this machine reaches it. */
static bool is_local(const struct sockaddr *address) {
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (address->sa_family == AF_INET) {
        memcpy(&v4, address, sizeof v4);
        return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family == AF_INET6) {
        memcpy(&v6, address, sizeof v6);
        return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr) && v6.sin6_addr.s6_addr[12] == 127);
    }
    return address->sa_family == AF_UNIX;
}

static bool is_guarded(const struct options *options) {
    return options->keys[0] != '\0' || options->allow_open;
}

/* The first of the addresses that can be bound; -1 with errno. EPERM: others could reach it, and
   nobody has said that they may. */
static int connection_limit_bind(const struct addrinfo *addresses, const struct options *options) {
    int fd = -1;
    for (const struct addrinfo *row = addresses; row != NULL && fd < 0; row = row->ai_next) {
        if (!is_guarded(options) && !is_local(row->ai_addr)) {
            errno = EPERM;
            return -1;
        }
        fd = socket_bind(row);
    }
    return fd;
}

#define OPEN_REFUSED                                                                               \
    "other machines could use this daemon without a key. Give it --keys FILE (`kilnd key new` "    \
    "makes keys), or --allow-open to serve everybody"

/* The addresses of --listen, for freeaddrinfo(); NULL with `why`. */
static struct addrinfo *connection_limit_find(const char *text, char *why, size_t why_size) {
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *addresses = NULL;
    char host[OPTION_TEXT_MAX];
    const char *port;
    if (!address_split(text, host, sizeof host, &port)) {
        snprintf(why, why_size, "--listen %.100s: expected ADDRESS:PORT", text);
        return NULL;
    }
    int error = getaddrinfo(host[0] != '\0' ? host : NULL, port, &hints, &addresses);
    if (error != 0) {
        snprintf(why, why_size, "--listen %.100s: %s", text, gai_strerror(error));
        return NULL;
    }
    return addresses;
}

bool socket_check(const struct options *options, char *why, size_t why_size) {
    struct addrinfo *addresses = connection_limit_find(options->listen, why, why_size);
    bool good = addresses != NULL && (is_guarded(options) || is_local(addresses->ai_addr));
    if (addresses != NULL && !good) {
        snprintf(why, why_size, "--listen %.100s: " OPEN_REFUSED, options->listen);
    }
    if (addresses != NULL) {
        freeaddrinfo(addresses);
    }
    return good;
}

static int socket_listen(const struct options *options, char *why, size_t why_size) {
    const char *text = options->listen;
    struct addrinfo *addresses = connection_limit_find(text, why, why_size);
    if (addresses == NULL) {
        return -1;
    }
    int fd = connection_limit_bind(addresses, options);
    if (fd < 0 && errno == EPERM) {
        snprintf(why, why_size, "--listen %.100s: " OPEN_REFUSED, text);
    } else if (fd < 0) {
        snprintf(why, why_size, "--listen %.100s: %s", text, strerror(errno));
    }
    freeaddrinfo(addresses);
    return fd;
}

int socket_open(const struct options *options, int passed, char *why, size_t why_size) {
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof address;
    if (passed < 0) {
        return socket_listen(options, why, why_size);
    }
    if (getsockname(passed, (struct sockaddr *)&address, &size) != 0 ||
        (!is_guarded(options) && !is_local((struct sockaddr *)&address))) {
        snprintf(why, why_size, "the socket that was passed: " OPEN_REFUSED);
        close(passed);
        return -1;
    }
    return passed;
}

int socket_place(int fd, bool secure, char place[SOCKET_PLACE_MAX]) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } address;
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN] = "";
    const char *scheme = secure ? "https" : "http";
    int port = 0;
    place[0] = '\0';
    memset(&address, 0, sizeof address);
    if (getsockname(fd, &address.any, &size) != 0) {
        return 0;
    }
    if (address.any.sa_family == AF_INET6) {
        port = ntohs(address.v6.sin6_port);
        inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof host);
        snprintf(place, SOCKET_PLACE_MAX, "%s://[%s]:%d", scheme, host, port);
    } else if (address.any.sa_family == AF_INET) {
        port = ntohs(address.v4.sin_port);
        inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof host);
        snprintf(place, SOCKET_PLACE_MAX, "%s://%s:%d", scheme, host, port);
    } else {
        const char *path = address.local.sun_path; /* an abstract name begins with a NUL */
        bool abstract = path[0] == '\0';
        snprintf(place, SOCKET_PLACE_MAX, "unix:%s%.*s", abstract ? "@" : "",
                 (int)(sizeof address.local.sun_path - abstract), path + abstract);
    }
    return port;
}
