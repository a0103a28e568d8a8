/*
 * loop.c: waiting for the HTTP library and for what the loop drives at once.
 *
 * Both keep epoll sets of their own; this waits on the sets. The second is watched through a
 * duplicate, which stays valid when what is driven ends before the loop does.
 *
 * The library's own wake-up is not enough where another thread resumes a connection: it may be
 * taken by a run that has looked for resumed connections already. So loop_poke follows every
 * resumption.
 */
#include "server/http/connections/loop.h"

#include "compute/core/thread_pool.h"
#include "compute/core/timing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* How long a loop looks around before it sleeps: after the last event, and longer while a request
   is on its way whose job may end, or whose client may take more, any moment. */
#define LOOK_NS      UINT64_C(60000)
#define LOOK_BUSY_NS UINT64_C(1500000)
#define TIMEOUT_MS   1000

enum { EVENT_WAKE, EVENT_HTTP, EVENT_DRIVEN, EVENTS };

/* The loop of this thread. */
static _Thread_local struct loop *current;

struct loop {
    struct MHD_Daemon *daemon;
    struct loop_driven driven;
    const _Atomic uint64_t *active;
    struct pollfd events[EVENTS]; /* the descriptor of what is not driven is negative */
    bool looks;                   /* around, before it sleeps */
    bool quiet;                   /* quiesced */
    uint64_t active_ns;           /* when something happened last */
    _Atomic bool quiesce, stop;
    _Atomic uint64_t asked, answered; /* signs of life */
    bool started;
    pthread_t thread;
};

/* Milliseconds until the library or what is driven wants to be called anyway. */
static int timeout_find(struct loop *loop) {
    MHD_UNSIGNED_LONG_LONG http = 0;
    int timeout = TIMEOUT_MS;
    if (MHD_get_timeout(loop->daemon, &http) == MHD_YES && http < TIMEOUT_MS) {
        timeout = (int)http;
    }
    if (loop->events[EVENT_DRIVEN].fd < 0) {
        return timeout;
    }
    int turn = loop->driven.timeout(loop->driven.context);
    if (turn < 0) {
        loop->events[EVENT_DRIVEN].fd = ~loop->events[EVENT_DRIVEN].fd; /* poll skips it */
        return timeout;
    }
    return turn < timeout ? turn : timeout;
}

static bool looks_around(const struct loop *loop) {
    uint64_t since = clock_ns() - loop->active_ns;
    bool busy = atomic_load_explicit(loop->active, memory_order_relaxed) > 0;
    return loop->looks && since < (busy ? LOOK_BUSY_NS : LOOK_NS);
}

/* Another thread wants something. */
static void poke_take(struct loop *loop) {
    uint64_t count;
    ssize_t size = read(loop->events[EVENT_WAKE].fd, &count, sizeof count);
    (void)size;
    if (atomic_load(&loop->quiesce) && !loop->quiet) {
        int fd = MHD_quiesce_daemon(loop->daemon);
        loop->quiet = true;
        if (fd >= 0) {
            close(fd);
        }
    }
}

static void *loop_run(void *argument) {
    struct loop *loop = argument;
    struct pollfd *events = loop->events;
    current = loop;
    while (!atomic_load(&loop->stop)) {
        uint64_t asked = atomic_load_explicit(&loop->asked, memory_order_relaxed);
        bool alive = asked == atomic_load_explicit(&loop->answered, memory_order_relaxed);
        int timeout = alive ? timeout_find(loop) : 0;
        bool looking = looks_around(loop);
        int ready = poll(events, EVENTS, looking ? 0 : timeout);
        bool due = timeout == 0 || (ready == 0 && !looking);
        if (ready <= 0 && !due) {
            continue;
        }
        if (events[EVENT_WAKE].revents != 0) {
            poke_take(loop);
        }
        bool http = due || events[EVENT_WAKE].revents != 0 || events[EVENT_HTTP].revents != 0;
        if (events[EVENT_DRIVEN].fd >= 0 && (due || events[EVENT_DRIVEN].revents != 0)) {
            http = loop->driven.turn(loop->driven.context) || http;
        }
        if (http) {
            MHD_run(loop->daemon);
        }
        if (ready > 0) {
            loop->active_ns = clock_ns();
        }
        if (!alive) { /* asked before, and all that a turn does has been done since */
            atomic_store_explicit(&loop->answered, asked, memory_order_relaxed);
        }
    }
    return NULL;
}

static void wake(struct loop *loop) {
    uint64_t one = 1;
    ssize_t written = write(loop->events[EVENT_WAKE].fd, &one, sizeof one);
    (void)written; /* full means that a wake-up is on its way already */
}

struct loop *loop_current(void) {
    return current;
}

void loop_poke(struct loop *loop) {
    if (loop != current) {
        wake(loop);
    }
}

static bool events_open(struct loop *loop, bool drives) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(loop->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd *events = loop->events;
    for (int i = 0; i < EVENTS; i++) {
        events[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    }
    events[EVENT_WAKE].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    events[EVENT_HTTP].fd = info != NULL ? info->epoll_fd : -1;
    if (drives) {
        events[EVENT_DRIVEN].fd = fcntl(loop->driven.fd, F_DUPFD_CLOEXEC, 0);
    }
    return events[EVENT_WAKE].fd >= 0 && events[EVENT_HTTP].fd >= 0 &&
           (!drives || events[EVENT_DRIVEN].fd >= 0);
}

struct loop *loop_create(const struct loop_options *options) {
    struct loop *loop = calloc(1, sizeof *loop);
    bool drives = options->driven != NULL;
    if (loop == NULL) {
        MHD_stop_daemon(options->daemon);
        return NULL;
    }
    loop->daemon = options->daemon;
    loop->driven = drives ? *options->driven : (struct loop_driven){.fd = -1};
    loop->active = options->active;
    loop->looks = options->spins && thread_pool_spares();
    loop->started =
        events_open(loop, drives) && pthread_create(&loop->thread, NULL, loop_run, loop) == 0;
    if (!loop->started) {
        loop_destroy(loop);
        return NULL;
    }
    pthread_setname_np(loop->thread, drives ? "front" : "http");
    return loop;
}

bool loop_turns(struct loop *loop) {
    uint64_t asked = atomic_load(&loop->asked);
    bool turns = atomic_load(&loop->answered) == asked;
    if (turns) {
        atomic_store(&loop->asked, asked + 1);
    }
    wake(loop);
    return turns;
}

void loop_quiesce(struct loop *loop) {
    atomic_store(&loop->quiesce, true);
    wake(loop);
}

void loop_destroy(struct loop *loop) {
    if (loop == NULL) {
        return;
    }
    int *driven = &loop->events[EVENT_DRIVEN].fd;
    if (loop->started) {
        atomic_store(&loop->stop, true);
        wake(loop);
        pthread_join(loop->thread, NULL);
    }
    MHD_stop_daemon(loop->daemon);
    if (*driven != -1) {
        close(*driven < 0 ? ~*driven : *driven);
    }
    if (loop->events[EVENT_WAKE].fd >= 0) {
        close(loop->events[EVENT_WAKE].fd);
    }
    free(loop);
}
