/*
 * listener.c: configuration of libmicrohttpd, and its call-backs into exchanges.
 *
 * The library's own decoding of addresses is switched off (url.c), its messages go to the debug
 * log, and an exchange begins with the request line, so that time and target are known before the
 * headers.
 */
#include "server/listener.h"

#include "compute/log.h"
#include "kernels/cpu/pool.h"
#include "server/activation.h"
#include "server/addresses.h"
#include "server/exchange.h"
#include "server/journal.h"
#include "server/loop.h"
#include "server/metrics.h"
#include "server/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct listener {
    int port;
    char place[160];
    struct tls tls;
    size_t count;
    struct loop *loops[];
};

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

static int socket_open(const struct addrinfo *address) {
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
static int addresses_bind(const struct addrinfo *addresses, const struct options *options) {
    int fd = -1;
    for (const struct addrinfo *row = addresses; row != NULL && fd < 0; row = row->ai_next) {
        if (!is_guarded(options) && !is_local(row->ai_addr)) {
            errno = EPERM;
            return -1;
        }
        fd = socket_open(row);
    }
    return fd;
}

#define OPEN_REFUSED                                                                               \
    "other machines could use this daemon without a key. Give it --keys FILE (`kilnd key new` "    \
    "makes keys), or --allow-open to serve everybody"

static int socket_listen(const struct options *options, char *why, size_t why_size) {
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    const char *text = options->listen;
    struct addrinfo *addresses = NULL;
    char host[OPTION_TEXT_MAX];
    const char *port;
    if (!address_split(text, host, sizeof host, &port)) {
        snprintf(why, why_size, "--listen %.100s: expected ADDRESS:PORT", text);
        return -1;
    }
    int error = getaddrinfo(host[0] != '\0' ? host : NULL, port, &hints, &addresses);
    if (error != 0) {
        snprintf(why, why_size, "--listen %.100s: %s", text, gai_strerror(error));
        return -1;
    }
    int fd = addresses_bind(addresses, options);
    if (fd < 0 && errno == EPERM) {
        snprintf(why, why_size, "--listen %.100s: " OPEN_REFUSED, text);
    } else if (fd < 0) {
        snprintf(why, why_size, "--listen %.100s: %s", text, strerror(errno));
    }
    freeaddrinfo(addresses);
    return fd;
}

/* The socket that was passed, or one that is opened here. -1 with `why`. */
static int socket_get(const struct options *options, char *why, size_t why_size) {
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof address;
    int fd = activation_socket();
    if (fd < 0) {
        return socket_listen(options, why, why_size);
    }
    if (getsockname(fd, (struct sockaddr *)&address, &size) != 0 ||
        (!is_guarded(options) && !is_local((struct sockaddr *)&address))) {
        snprintf(why, why_size, "the socket that was passed: " OPEN_REFUSED);
        close(fd);
        return -1;
    }
    return fd;
}

/* Where it listens, from the socket itself. */
static void place_find(struct listener *listener, int fd, bool secure) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un local;
    } address;
    socklen_t size = sizeof address;
    char host[INET6_ADDRSTRLEN] = "";
    const char *scheme = secure ? "https" : "http";
    memset(&address, 0, sizeof address);
    if (getsockname(fd, &address.any, &size) != 0) {
        return;
    }
    if (address.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof host);
        listener->port = ntohs(address.v6.sin6_port);
        snprintf(listener->place, sizeof listener->place, "%s://[%s]:%d", scheme, host,
                 listener->port);
    } else if (address.any.sa_family == AF_INET) {
        inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof host);
        listener->port = ntohs(address.v4.sin_port);
        snprintf(listener->place, sizeof listener->place, "%s://%s:%d", scheme, host,
                 listener->port);
    } else {
        const char *path = address.local.sun_path; /* an abstract name begins with a NUL */
        bool abstract = path[0] == '\0';
        snprintf(listener->place, sizeof listener->place, "unix:%s%.*s", abstract ? "@" : "",
                 (int)(sizeof address.local.sun_path - abstract), path + abstract);
    }
}

static struct client *connection_client(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

/* A connection that this thread has counted and that has no record yet: the library asks the policy
   and tells of the start one after the other on the loop's thread, and where it fails in between,
   it tells nothing; then the next connection gives the count back. */
static _Thread_local struct {
    bool held;
    struct address address;
} counted;

/* The library's own limits hold for one loop; these for all of them. */
static enum MHD_Result connection_policy(void *context, const struct sockaddr *socket,
                                         socklen_t size) {
    struct service *service = context;
    struct address address = address_of(size >= sizeof(struct sockaddr_in) ? socket : NULL);
    if (counted.held) {
        counted.held = false;
        addresses_give(service->addresses, counted.address);
    }
    if (!addresses_take(service->addresses, address)) {
        return MHD_NO;
    }
    counted.held = true;
    counted.address = address;
    return MHD_YES;
}

static struct client *connection_open(struct service *service, int fd) {
    struct client *client = client_opened(service->clients, fd, counted.address);
    counted.held = counted.held && client == NULL; /* the record gives it back */
    return client;
}

static void connection_close(struct service *service, struct client *client) {
    if (client != NULL) {
        addresses_give(service->addresses, client_address(client));
        client_closed(service->clients, client);
    }
}

static void connection_notify(void *context, struct MHD_Connection *connection,
                              void **socket_context, enum MHD_ConnectionNotificationCode code) {
    struct service *service = context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        connection_close(service, *socket_context);
        *socket_context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    *socket_context = info != NULL ? connection_open(service, info->connect_fd) : NULL;
}

static void *request_line(void *context, const char *target, struct MHD_Connection *connection) {
    return exchange_create(context, connection_client(connection), connection, target);
}

static enum MHD_Result request_handle(void *context, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *data, size_t *size, void **request) {
    struct exchange *exchange = *request;
    (void)context;
    (void)connection;
    (void)url;
    if (exchange == NULL) {
        return MHD_NO;
    }
    if (exchange->stage == STAGE_HEAD) {
        return exchange_begin(exchange, method, version);
    }
    return *size > 0 ? exchange_feed(exchange, data, size) : exchange_continue(exchange);
}

static void request_end(void *context, struct MHD_Connection *connection, void **request,
                        enum MHD_RequestTerminationCode code) {
    struct exchange *exchange = *request;
    (void)context;
    (void)connection;
    if (exchange == NULL) {
        return;
    }
    double seconds = (double)(clock_ns() - exchange->started_ns) / 1e9;
    int http = code == MHD_REQUEST_TERMINATED_COMPLETED_OK ? exchange->http : 0;
    metrics_request(exchange->match.route, exchange->method, http, seconds);
    journal_write(exchange, http == 0, seconds);
    exchange_destroy(exchange);
    *request = NULL;
}

static void library_log(void *context, const char *format, va_list arguments) {
    char line[512];
    (void)context;
    int size = vsnprintf(line, sizeof line, format, arguments);
    while (size > 0 && size < (int)sizeof line && line[size - 1] == '\n') {
        line[--size] = '\0';
    }
    log_debug("http: %s", line);
}

static size_t unescape_nothing(void *context, struct MHD_Connection *connection, char *text) {
    (void)context;
    (void)connection;
    return strlen(text);
}

/* A daemon without a thread. It owns a duplicate of `fd`. Connections are limited by the policy,
   which comes first: the library's own limit would leave clients waiting for ever. */
static struct MHD_Daemon *daemon_start(struct service *service, const struct tls *tls, int fd) {
    const struct options *options = service->options;
    unsigned int flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_ERROR_LOG;
    static char priorities[] = TLS_PRIORITIES; /* the array's pointers are not const */
    struct MHD_OptionItem secure[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, tls->certificate},
                                      {MHD_OPTION_HTTPS_MEM_KEY, 0, tls->key},
                                      {MHD_OPTION_HTTPS_PRIORITIES, 0, priorities},
                                      {MHD_OPTION_END, 0, NULL}};
    if (tls->key == NULL) {
        secure[0].option = MHD_OPTION_END;
    } else {
        flags |= MHD_USE_TLS;
    }
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    struct MHD_Daemon *daemon =
        own < 0 ? NULL
                : MHD_start_daemon(
                      flags, 0, connection_policy, service, request_handle, service,
                      /* first, so that it holds for the other options' messages */
                      MHD_OPTION_EXTERNAL_LOGGER, library_log, NULL, MHD_OPTION_LISTEN_SOCKET, own,
                      MHD_OPTION_CONNECTION_LIMIT, (unsigned int)options->connections + 1,
                      MHD_OPTION_ARRAY, secure, MHD_OPTION_CONNECTION_TIMEOUT,
                      (unsigned int)options->idle_timeout, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                      (size_t)32768, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION,
                      connection_notify, service, MHD_OPTION_NOTIFY_COMPLETED, request_end, service,
                      MHD_OPTION_URI_LOG_CALLBACK, request_line, service,
                      MHD_OPTION_UNESCAPE_CALLBACK, unescape_nothing, NULL, MHD_OPTION_END);
    if (daemon == NULL && own >= 0) {
        close(own);
    }
    return daemon;
}

/* A loop takes a good fifth of what one GPU does of small pictures. */
static size_t loops_wanted(const struct options *options) {
    size_t suit = (size_t)pool_processors() / 4;
    suit = suit < 1 ? 1 : suit > 4 ? 4 : suit;
    return options->http_threads > 0 ? options->http_threads : suit;
}

/* False if a loop could not be started; those that were are in the listener. */
static bool loops_start(struct listener *listener, struct service *service, int fd) {
    while (listener->count < loops_wanted(service->options)) {
        struct MHD_Daemon *daemon = daemon_start(service, &listener->tls, fd);
        struct loop *loop =
            daemon != NULL ? loop_create(service, daemon, listener->count == 0) : NULL;
        if (loop == NULL) {
            return false;
        }
        listener->loops[listener->count++] = loop;
    }
    return true;
}

bool listener_create(struct service *service, struct listener **out, char *why, size_t why_size) {
    const struct options *options = service->options;
    int fd = socket_get(options, why, why_size);
    if (fd < 0) {
        return false;
    }
    struct listener *listener =
        calloc(1, sizeof *listener + loops_wanted(options) * sizeof(struct loop *));
    snprintf(why, why_size, "the HTTP library could not start (see the debug log)");
    bool good = listener != NULL &&
                tls_load(&listener->tls, options->tls_cert, options->tls_key, why, why_size);
    if (good) {
        place_find(listener, fd, options->tls_cert[0] != '\0');
        good = loops_start(listener, service, fd);
    }
    close(fd);
    *out = listener;
    return good;
}

int listener_port(const struct listener *listener) {
    return listener->port;
}

const char *listener_place(const struct listener *listener) {
    return listener->place;
}

bool listener_turns(struct listener *listener) {
    bool all = true;
    for (size_t i = 0; i < listener->count; i++) {
        all = loop_turns(listener->loops[i]) && all;
    }
    return all;
}

void listener_quiesce(struct listener *listener) {
    for (size_t i = 0; i < listener->count; i++) {
        loop_quiesce(listener->loops[i]);
    }
}

void listener_destroy(struct listener *listener) {
    for (size_t i = 0; listener != NULL && i < listener->count; i++) {
        loop_destroy(listener->loops[i]);
    }
    if (listener != NULL) {
        tls_finish(&listener->tls);
    }
    free(listener);
}
