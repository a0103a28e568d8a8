/*
 * connections.c: records of connections, the reaper, lingering closes.
 *
 * One thread waits in poll() on a wake-up descriptor and on the lingering sockets, at most a second
 * at a time, and walks the records once a second. A record is removed under the lock before its
 * descriptor is closed, so whatever the reaper sees in the list is open. Sockets that linger are
 * the reaper's own once it has taken them over: it reads and closes them without the lock, which
 * every connection takes that opens or closes.
 */
#include "server/http/connections/connections.h"

#include "compute/core/log.h"
#include "compute/core/timing.h"
#include "server/http/wire/intake.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* TCP_CLOSE_WAIT of the kernel, whose header has the long tcp_info but not this name. */
#define STATE_CLOSE_WAIT 8

#define LINGERS_MAX     CLIENT_LINGERS
#define LINGER_NS       UINT64_C(5000000000)
#define LINGER_QUIET_NS UINT64_C(1000000000)
#define SECOND_NS       UINT64_C(1000000000)

struct client {
    struct client *next, *previous;
    int fd;
    struct address address;
    _Atomic int phase;
    _Atomic uint64_t since_ns; /* when the phase began */
    _Atomic bool linger;
    _Atomic uint64_t held; /* bytes; see client_holds */
    char name[ADDRESS_TEXT_MAX];
    uint64_t window_ns, window_bytes; /* reaper's: start of the window it measures */
    uint64_t requests;                /* begun so far; its loop's, like the wire */
    struct wire wire;
};

struct leaving {
    int fd;
    uint64_t until_ns, quiet_ns;
};

struct connections {
    pthread_mutex_t lock;
    struct client *first;
    uint64_t open, cut;
    struct leaving lingers[LINGERS_MAX]; /* the reaper's alone */
    size_t linger_count;
    struct leaving arriving[LINGERS_MAX]; /* to be taken over by the reaper */
    size_t arriving_count, leaving;       /* in this list; in both */
    size_t linger_most;                   /* of both, at most */
    uint64_t timeout_ns, transfer_ns;
    int wake;
    bool stop;
    pthread_t thread;
};

/* Bytes that the peer has sent us and has acknowledged, as the kernel counts them. `*left` tells
   that it has ended its side and that nothing it sent is still unread: no request can come any
   more. The library's edge-triggered loops miss an end that arrives together with data. */
static uint64_t bytes_moved(int fd, bool *left) {
    struct tcp_info info;
    socklen_t size = sizeof info;
    int unread = 0;
    memset(&info, 0, sizeof info);
    *left = false;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) {
        /* a socket of the local host: nobody counts its bytes, so it is taken for a fast one */
        struct pollfd ended = {.fd = fd, .events = POLLRDHUP};
        *left = poll(&ended, 1, 0) == 1 && ioctl(fd, FIONREAD, &unread) == 0 && unread == 0;
        return clock_ns();
    }
    if (info.tcpi_state == STATE_CLOSE_WAIT && ioctl(fd, FIONREAD, &unread) == 0) {
        *left = unread == 0;
    }
    return info.tcpi_bytes_received + info.tcpi_bytes_acked;
}

/* Bytes a second that a client has to move. */
static uint64_t rate_wanted(const struct connections *connections, const struct client *client) {
    double held = (double)atomic_load_explicit(&client->held, memory_order_relaxed);
    double rate = held * (double)SECOND_NS / (double)connections->transfer_ns;
    return rate > CLIENT_RATE ? (uint64_t)rate : CLIENT_RATE;
}

/* True if fewer bytes than that were moved in a window of a whole timeout. */
static bool window_crawls(const struct connections *connections, struct client *client,
                          uint64_t bytes, uint64_t now) {
    uint64_t timeout_ns = connections->timeout_ns;
    if (client->window_ns < atomic_load(&client->since_ns)) {
        client->window_ns = now;
        client->window_bytes = bytes;
    }
    if (now - client->window_ns < timeout_ns) {
        return false;
    }
    uint64_t least = (now - client->window_ns) / SECOND_NS * rate_wanted(connections, client);
    bool crawls = bytes - client->window_bytes < least;
    client->window_ns = now;
    client->window_bytes = bytes;
    return crawls;
}

/* True if the connection has crawled for a whole timeout, or can bring nothing any more. In the
   waiting phase the library ends silence; what is left is a request line that comes byte by byte.
 */
static bool client_crawls(const struct connections *connections, struct client *client,
                          uint64_t now) {
    uint64_t since = atomic_load(&client->since_ns);
    int phase = atomic_load(&client->phase);
    bool left;
    if (phase == CLIENT_WORKING || since > now || now - since < SECOND_NS) {
        return false;
    }
    uint64_t bytes = bytes_moved(client->fd, &left);
    if (left && phase != CLIENT_SENDING) {
        return true;
    }
    if (phase == CLIENT_WAITING) {
        return now - since > connections->timeout_ns + SECOND_NS;
    }
    return now - since > connections->transfer_ns || window_crawls(connections, client, bytes, now);
}

static void crawlers_cut(struct connections *connections, uint64_t now) {
    for (struct client *client = connections->first; client != NULL; client = client->next) {
        if (client_crawls(connections, client, now)) {
            log_debug("connection %d is too slow: cut", client->fd);
            shutdown(client->fd, SHUT_RDWR);
            atomic_store(&client->since_ns, now);
            connections->cut++;
        }
    }
}

/* Throws away what has arrived; false once the socket is to be closed. */
static bool linger_drain(struct leaving *linger, uint64_t now) {
    char sink[65536];
    for (int i = 0; i < 16; i++) {
        ssize_t got = recv(linger->fd, sink, sizeof sink, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
            return false;
        }
        if (got < 0) {
            break;
        }
        linger->quiet_ns = now + LINGER_QUIET_NS;
    }
    return now < linger->until_ns && now < linger->quiet_ns;
}

/* Without the lock: 256 fast senders are 256 MiB to read. Returns how many have ended. */
static size_t lingers_drain(struct connections *connections, uint64_t now) {
    size_t before = connections->linger_count;
    for (size_t i = 0; i < connections->linger_count;) {
        if (linger_drain(&connections->lingers[i], now)) {
            i++;
            continue;
        }
        close(connections->lingers[i].fd);
        connections->lingers[i] = connections->lingers[--connections->linger_count];
    }
    return before - connections->linger_count;
}

static void lingers_take_locked(struct connections *connections, size_t ended) {
    connections->leaving -= ended;
    for (size_t i = 0; i < connections->arriving_count; i++) {
        connections->lingers[connections->linger_count++] = connections->arriving[i];
    }
    connections->arriving_count = 0;
}

static void *reaper_run(void *argument) {
    struct connections *connections = argument;
    uint64_t looked = clock_ns();
    pthread_mutex_lock(&connections->lock);
    while (!connections->stop) {
        struct pollfd polled[LINGERS_MAX + 1] = {{.fd = connections->wake, .events = POLLIN}};
        nfds_t count = 1;
        for (size_t i = 0; i < connections->linger_count; i++) {
            polled[count++] = (struct pollfd){.fd = connections->lingers[i].fd, .events = POLLIN};
        }
        pthread_mutex_unlock(&connections->lock);
        poll(polled, count, count > 1 ? 250 : 1000);
        uint64_t ignored;
        if (polled[0].revents != 0 && read(connections->wake, &ignored, sizeof ignored) < 0) {
            log_debug("reaper: %s", strerror(errno));
        }
        uint64_t now = clock_ns();
        size_t ended = lingers_drain(connections, now);
        pthread_mutex_lock(&connections->lock);
        lingers_take_locked(connections, ended);
        if (now - looked >= SECOND_NS) {
            crawlers_cut(connections, now);
            looked = now;
        }
    }
    pthread_mutex_unlock(&connections->lock);
    return NULL;
}

enum kiln_status connections_create(double idle_timeout_s, double transfer_timeout_s,
                                    size_t lingers, struct connections **out) {
    struct connections *connections = calloc(1, sizeof *connections);
    if (connections == NULL) {
        return KILN_NO_MEMORY;
    }
    connections->timeout_ns = (uint64_t)(idle_timeout_s * 1e9);
    connections->transfer_ns = (uint64_t)(transfer_timeout_s * 1e9);
    connections->linger_most = lingers < LINGERS_MAX ? lingers : LINGERS_MAX;
    connections->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&connections->lock, NULL);
    if (connections->wake < 0 ||
        pthread_create(&connections->thread, NULL, reaper_run, connections) != 0) {
        if (connections->wake >= 0) {
            close(connections->wake);
        }
        pthread_mutex_destroy(&connections->lock);
        free(connections);
        return KILN_NO_MEMORY;
    }
    *out = connections;
    return KILN_OK;
}

static void reaper_wake(struct connections *connections) {
    const uint64_t one = 1;
    if (write(connections->wake, &one, sizeof one) < 0) {
        log_debug("reaper: %s", strerror(errno));
    }
}

void connections_destroy(struct connections *connections) {
    if (connections == NULL) {
        return;
    }
    pthread_mutex_lock(&connections->lock);
    connections->stop = true;
    pthread_mutex_unlock(&connections->lock);
    reaper_wake(connections);
    pthread_join(connections->thread, NULL);
    lingers_take_locked(connections, 0); /* nobody else is left */
    for (size_t i = 0; i < connections->linger_count; i++) {
        close(connections->lingers[i].fd);
    }
    close(connections->wake);
    pthread_mutex_destroy(&connections->lock);
    free(connections);
}

struct client *client_opened(struct connections *connections, int fd, struct address address,
                             const struct client_terms *terms) {
    struct client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        return NULL;
    }
    wire_init(&client->wire, terms->body_max);
    if (!intake_begin(fd, &client->wire, terms->tls)) {
        free(client);
        return NULL;
    }
    client->fd = fd;
    client->address = address;
    address_text(address, client->name, sizeof client->name);
    if (client->name[0] == '\0') {
        snprintf(client->name, sizeof client->name, "local");
    }
    client_phase_set(client, CLIENT_WAITING);
    pthread_mutex_lock(&connections->lock);
    client->next = connections->first;
    if (connections->first != NULL) {
        connections->first->previous = client;
    }
    connections->first = client;
    connections->open++;
    pthread_mutex_unlock(&connections->lock);
    return client;
}

/* The answer has been written; half-close so that the client sees its end, and keep reading. */
static void linger_start(struct connections *connections, int fd) {
    if (connections->leaving >= connections->linger_most) {
        return;
    }
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) {
        return;
    }
    uint64_t now = clock_ns();
    shutdown(copy, SHUT_WR);
    connections->leaving++;
    connections->arriving[connections->arriving_count++] = (struct leaving){
        .fd = copy, .until_ns = now + LINGER_NS, .quiet_ns = now + LINGER_QUIET_NS};
}

void client_closed(struct connections *connections, struct client *client) {
    if (client == NULL) {
        return;
    }
    bool lingers = atomic_load(&client->linger);
    intake_end(client->fd);
    wire_finish(&client->wire);
    pthread_mutex_lock(&connections->lock);
    if (client->previous != NULL) {
        client->previous->next = client->next;
    } else {
        connections->first = client->next;
    }
    if (client->next != NULL) {
        client->next->previous = client->previous;
    }
    connections->open--;
    if (lingers) {
        linger_start(connections, client->fd);
    }
    pthread_mutex_unlock(&connections->lock);
    if (lingers) {
        reaper_wake(connections);
    }
    free(client);
}

void client_phase_set(struct client *client, enum client_phase phase) {
    if (client != NULL) {
        if (phase == CLIENT_WAITING || phase == CLIENT_READING) {
            atomic_store_explicit(&client->held, 0, memory_order_relaxed);
        }
        atomic_store_explicit(&client->since_ns, clock_ns(), memory_order_relaxed);
        atomic_store_explicit(&client->phase, (int)phase, memory_order_relaxed);
    }
}

void client_linger(struct client *client) {
    if (client != NULL) {
        atomic_store(&client->linger, true);
    }
}

struct address client_address(const struct client *client) {
    return client->address;
}

const char *client_name(const struct client *client) {
    return client != NULL ? client->name : "";
}

void client_holds(struct client *client, uint64_t bytes) {
    if (client != NULL) {
        atomic_store_explicit(&client->held, bytes, memory_order_relaxed);
    }
}

int client_fd(const struct client *client) {
    return client != NULL ? client->fd : -1;
}

uint64_t client_request(struct client *client) {
    return client != NULL ? ++client->requests : 1;
}

bool client_passed(const struct client *client, uint64_t number, struct rejection *rejection) {
    *rejection = (struct rejection){KILN_OK, NULL};
    return client != NULL && wire_passed(&client->wire, number, rejection);
}

void connections_count(struct connections *connections, uint64_t *open, uint64_t *cut) {
    pthread_mutex_lock(&connections->lock);
    *open = connections->open;
    *cut = connections->cut;
    pthread_mutex_unlock(&connections->lock);
}
