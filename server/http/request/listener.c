/*
 * listener.c: configuration of libmicrohttpd, and its call-backs into requests.
 *
 * The library's own decoding of addresses is switched off (url.c), its messages go to the debug
 * log, and a request begins with the request line, so that time and target are known before the
 * headers.
 */
#include "server/http/request/listener.h"

#include "compute/core/log.h"
#include "compute/core/thread_pool.h"
#include "server/http/connections/connection_limit.h"
#include "server/http/connections/socket.h"
#include "server/http/connections/tls.h"
#include "server/http/wire/intake.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of one connection. A head as large as head.h allows and an answer's head fit beside one another,
   so that the library never has to refuse anything for want of room. The library clears all of it
   for every request, and above 32 KiB maps it anew for every connection. */
#define CONNECTION_MEMORY 32768

struct listener {
    struct listener_options options;
    int port;
    char place[SOCKET_PLACE_MAX];
    struct tls tls;
    size_t count;
    struct loop *loops[];
};

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
    const struct listener *listener = context;
    struct connection_limit *limit = listener->options.service->connection_limit;
    struct address address = address_of(size >= sizeof(struct sockaddr_in) ? socket : NULL);
    if (counted.held) {
        counted.held = false;
        connection_limit_give(limit, counted.address);
    }
    if (!connection_limit_take(limit, address)) {
        return MHD_NO;
    }
    counted.held = true;
    counted.address = address;
    return MHD_YES;
}

static struct client *connection_open(struct service *service, int fd) {
    const struct client_terms terms = {service->limits.max_body,
                                       service->options->tls_cert[0] != '\0'};
    struct client *client = client_opened(service->connections, fd, counted.address, &terms);
    counted.held = counted.held && client == NULL; /* the record gives it back */
    return client;
}

static void connection_close(struct service *service, struct client *client) {
    if (client != NULL) {
        connection_limit_give(service->connection_limit, client_address(client));
        client_closed(service->connections, client);
    }
}

static void connection_notify(void *context, struct MHD_Connection *connection,
                              void **socket_context, enum MHD_ConnectionNotificationCode code) {
    const struct listener *listener = context;
    struct service *service = listener->options.service;
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
    const struct listener *listener = context;
    return request_create(listener->options.service, connection_client(connection), connection,
                          target);
}

static enum MHD_Result request_handle(void *context, struct MHD_Connection *connection,
                                      const char *url, const char *method, const char *version,
                                      const char *data, size_t *size, void **handle) {
    const struct listener *listener = context;
    const struct request_flow *flow = listener->options.flow;
    struct http_request *request = *handle;
    (void)connection;
    (void)url;
    if (request == NULL) {
        return MHD_NO;
    }
    if (request->stage == STAGE_HEAD) {
        request->stage = STAGE_BODY;
        return flow->begin(request, method, version);
    }
    return *size > 0 ? request_feed(request, data, size) : flow->proceed(request);
}

static void request_end(void *context, struct MHD_Connection *connection, void **handle,
                        enum MHD_RequestTerminationCode code) {
    const struct listener *listener = context;
    struct http_request *request = *handle;
    (void)connection;
    if (request == NULL) {
        return;
    }
    double seconds = (double)(clock_ns() - request->started_ns) / 1e9;
    listener->options.flow->end(request, code != MHD_REQUEST_TERMINATED_COMPLETED_OK, seconds);
    request_destroy(request);
    *handle = NULL;
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
static struct MHD_Daemon *daemon_start(struct listener *listener, int fd) {
    const struct options *options = listener->options.service->options;
    const struct tls *tls = &listener->tls;
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
        own < 0
            ? NULL
            : MHD_start_daemon(flags, 0, connection_policy, listener, request_handle, listener,
                               /* first, so that it holds for the other options' messages */
                               MHD_OPTION_EXTERNAL_LOGGER, library_log, NULL,
                               MHD_OPTION_LISTEN_SOCKET, own, MHD_OPTION_CONNECTION_LIMIT,
                               (unsigned int)options->connections + 1, MHD_OPTION_ARRAY, secure,
                               MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)options->idle_timeout,
                               MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
                               MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_NOTIFY_CONNECTION,
                               connection_notify, listener, MHD_OPTION_NOTIFY_COMPLETED,
                               request_end, listener, MHD_OPTION_URI_LOG_CALLBACK, request_line,
                               listener, MHD_OPTION_UNESCAPE_CALLBACK, unescape_nothing, NULL,
                               MHD_OPTION_END);
    if (daemon == NULL && own >= 0) {
        close(own);
    }
    return daemon;
}

/* A loop takes a good fifth of what one GPU does of small pictures. */
size_t listener_loops(const struct options *options) {
    size_t suit = (size_t)thread_pool_processors() / 4;
    suit = suit < 1 ? 1 : suit > 4 ? 4 : suit;
    return options->http_threads > 0 ? options->http_threads : suit;
}

/* False if a loop could not be started; those that were are in the listener. */
static bool loops_start(struct listener *listener, size_t count, int fd) {
    while (listener->count < count) {
        const struct loop_options options = {
            .daemon = daemon_start(listener, fd),
            .driven = listener->count == 0 ? &listener->options.driven : NULL,
            .spins = listener->options.spins,
            .active = &listener->options.service->active,
        };
        struct loop *loop = options.daemon != NULL ? loop_create(&options) : NULL;
        if (loop == NULL) {
            return false;
        }
        listener->loops[listener->count++] = loop;
    }
    return true;
}

bool listener_create(const struct listener_options *wanted, int fd, struct listener **out,
                     char *why, size_t why_size) {
    const struct options *options = wanted->service->options;
    if (!intake_create()) {
        snprintf(why, why_size, "no memory for the table of connections");
        close(fd);
        return false;
    }
    size_t loops = listener_loops(options);
    struct listener *listener = calloc(1, sizeof *listener + loops * sizeof(struct loop *));
    snprintf(why, why_size, "the HTTP library could not start (see the debug log)");
    bool good = listener != NULL &&
                tls_load(&listener->tls, options->tls_cert, options->tls_key, why, why_size);
    if (good) {
        listener->options = *wanted;
        listener->port = socket_place(fd, options->tls_cert[0] != '\0', listener->place);
        good = loops_start(listener, loops, fd);
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
