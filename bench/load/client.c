/*
 * client.c: an event loop over connections, with edge-triggered epoll.
 *
 * A connection is registered once. An edge arrives when bytes do, and an answer's length is known,
 * so one request costs a send, an epoll_wait and a receive. Connections that have nothing to do
 * stand on a stack. In open loop a timer wakes the thread for the next request that is due; every
 * 50 ms it looks for requests that took too long and connections to be tried again.
 */
#include "bench/load/client.h"
#include "bench/load/link.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define TICK_NS     UINT64_C(50000000)
#define RETRY_NS    UINT64_C(100000000)
#define EVENTS_MAX  64
#define INPUT_BYTES (256 << 10)

/* Data of epoll events that are no connection. */
#define EVENT_POKE  UINT64_MAX
#define EVENT_TIMER (UINT64_MAX - 1)

struct load_client {
    struct common *common;
    pthread_t thread;
    bool started;
    int epoll, poke, timer;
    struct link *links;
    size_t count;
    uint32_t *idle; /* stack of connections */
    size_t idle_count, busy;
    char *outputs; /* room for a request of each connection */
    char *input;
    struct dice dice;
    struct tally *tally;
    unsigned window;
    double due, interval; /* open loop, nanoseconds on the clock */
    bool behind;          /* what was due at the end and not sent is counted */
    uint64_t tick;
};

static void outcome_count(struct load_client *client) {
    atomic_fetch_add_explicit(&client->common->outcomes, 1, memory_order_relaxed);
}

static void fault_count(struct load_client *client, const struct link *link, enum fault fault) {
    client->tally->faults[fault]++;
    client->tally->item_faults[link->item]++;
    client->busy--;
    outcome_count(client);
}

static void connection_open(struct load_client *client, size_t index) {
    struct link *link = &client->links[index];
    struct epoll_event event = {EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, {.u64 = index}};
    link->fd = target_connect(client->common->load.target);
    link->state = link->fd >= 0 ? LINK_CONNECTING : LINK_CLOSED;
    if (link->fd < 0 || epoll_ctl(client->epoll, EPOLL_CTL_ADD, link->fd, &event) != 0) {
        client->tally->faults[FAULT_CONNECT]++;
        link_close(link);
        link->retry = load_clock_ns() + RETRY_NS;
    }
}

/* Closes a connection and opens another one in its place. */
static void connection_renew(struct load_client *client, size_t index) {
    link_close(&client->links[index]);
    client->tally->reconnects++;
    connection_open(client, index);
}

static void idle_push(struct load_client *client, size_t index) {
    client->links[index].state = LINK_IDLE;
    client->idle[client->idle_count++] = (uint32_t)index;
}

static void idle_remove(struct load_client *client, size_t index) {
    for (size_t i = 0; i < client->idle_count; i++) {
        if (client->idle[i] == index) {
            client->idle[i] = client->idle[--client->idle_count];
            return;
        }
    }
}

static void broken(struct load_client *client, size_t index, enum fault fault) {
    fault_count(client, &client->links[index], fault);
    connection_renew(client, index);
}

static void answer_count(struct load_client *client, struct link *link, uint64_t now) {
    const struct item *item = &client->common->load.scenario->items[link->item];
    int status = link->answer.status;
    char timing[1024];
    bool right = item->expect != 0 ? status == item->expect : status >= 200 && status < 300;
    client->tally->bytes += link->answer.head_size + link->answer.body;
    client->tally->statuses[status < STATUSES_MAX ? status : 0]++;
    if (!right) {
        fault_count(client, link, FAULT_STATUS);
        return;
    }
    bool timed = answer_header(&link->answer, "Server-Timing", timing, sizeof timing);
    tally_answer(client->tally, link->item, now - link->due, now - link->sent,
                 timed ? timing : NULL);
    client->busy--;
    outcome_count(client);
}

static void answer_end(struct load_client *client, size_t index) {
    struct link *link = &client->links[index];
    bool reusable = !link->answer.closing && link_is_sent(link);
    answer_count(client, link, load_clock_ns());
    if (reusable) {
        idle_push(client, index);
    } else {
        connection_renew(client, index);
    }
}

static void link_read(struct load_client *client, size_t index) {
    switch (link_receive(&client->links[index], client->input, INPUT_BYTES)) {
    case LINK_ANSWERED:
        answer_end(client, index);
        break;
    case LINK_LOST:
        broken(client, index, FAULT_CLOSED);
        break;
    case LINK_CONFUSED:
        broken(client, index, FAULT_MALFORMED);
        break;
    default:
        break;
    }
}

static void link_write(struct load_client *client, size_t index) {
    if (!link_send(&client->links[index])) {
        broken(client, index, FAULT_CLOSED);
    }
}

static void request_issue(struct load_client *client, uint64_t due, uint64_t now) {
    const struct load *load = &client->common->load;
    size_t index = client->idle[--client->idle_count];
    struct link *link = &client->links[index];
    uint64_t number = atomic_fetch_add_explicit(load->number, 1, memory_order_relaxed);
    bool rest;
    link->item = scenario_pick(load->scenario, &client->dice);
    const struct item *item = &load->scenario->items[link->item];
    link->out_size = item_render(item, number, &client->dice, link->out, &rest);
    link->rest = item->body;
    link->rest_size = rest ? item->body_size : 0;
    link->done = 0;
    link->state = LINK_BUSY;
    answer_begin(&link->answer, item->bodyless);
    client->busy++;
    link->sent = load->rate > 0 ? load_clock_ns() : now;
    link->due = load->rate > 0 ? due : link->sent;
    link_write(client, index);
}

/* Takes one of the `count` requests; true where there is no count. */
static bool budget_take(struct load_client *client) {
    return client->common->load.count == 0 || atomic_fetch_sub(&client->common->budget, 1) > 0;
}

static void schedule_advance(struct load_client *client) {
    double step = client->interval;
    if (client->common->load.poisson) {
        step *= -log(1 - dice_fraction(&client->dice));
    }
    client->due += step;
}

static void requests_issue(struct load_client *client) {
    /* Each idle connection once: what fails at once must not keep the thread here. */
    for (size_t left = client->idle_count; left > 0 && client->idle_count > 0; left--) {
        uint64_t now = load_clock_ns();
        if ((client->interval > 0 && client->due > (double)now) || !budget_take(client)) {
            return;
        }
        request_issue(client, (uint64_t)client->due, now);
        if (client->interval > 0) {
            schedule_advance(client);
        }
    }
}

/* What was due before the end of the last window but found no connection. */
static void unsent_count(struct load_client *client) {
    double end = (double)atomic_load(&client->common->end_ns);
    client->behind = true;
    while (client->interval > 0 && client->due < end) {
        if (!budget_take(client)) {
            return;
        }
        client->tally->faults[FAULT_UNSENT]++;
        outcome_count(client);
        schedule_advance(client);
    }
}

static void tally_hand(struct load_client *client) {
    struct common *common = client->common;
    pthread_mutex_lock(&common->lock);
    tally_merge(common->sum, client->tally);
    pthread_mutex_unlock(&common->lock);
    tally_reset(client->tally);
    client->window = atomic_load(&common->window);
    atomic_fetch_add(&common->handed, 1);
}

/* Overdue requests, and connections that are to be tried again. */
static void links_check(struct load_client *client, uint64_t now) {
    for (size_t i = 0; i < client->count; i++) {
        struct link *link = &client->links[i];
        if (link->state == LINK_BUSY && now > link->sent &&
            now - link->sent > client->common->load.timeout_ns) {
            broken(client, i, FAULT_TIMEOUT);
        } else if (link->state == LINK_CLOSED && now >= link->retry) {
            connection_open(client, i);
        }
    }
    client->tick = now + TICK_NS;
}

static void event_handle(struct load_client *client, const struct epoll_event *event) {
    size_t index = (size_t)event->data.u64;
    struct link *link;
    if (event->data.u64 == EVENT_TIMER) {
        return;
    }
    if (event->data.u64 == EVENT_POKE) {
        uint64_t value;
        (void)!read(client->poke, &value, sizeof value);
        return;
    }
    link = &client->links[index];
    if (link->state == LINK_CONNECTING) {
        if (link_connected(link)) {
            idle_push(client, index);
        } else if (link->state == LINK_CLOSED) {
            client->tally->faults[FAULT_CONNECT]++;
            link->retry = load_clock_ns() + RETRY_NS;
        }
        return;
    }
    if (link->state == LINK_IDLE) {
        if (event->events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
            idle_remove(client, index);
            connection_renew(client, index);
        }
        return;
    }
    if (link->state == LINK_BUSY && !link_is_sent(link)) {
        link_write(client, index);
    }
    if (link->state == LINK_BUSY) {
        link_read(client, index);
    }
}

/* Milliseconds for epoll_wait; arms the timer for a request that is due sooner. */
static int wait_time(struct load_client *client, uint64_t now, bool running) {
    if (running && client->interval > 0 && client->idle_count > 0) {
        double left = client->due - (double)now - (double)client->common->load.spin_ns;
        if (left <= 0) {
            return 0;
        }
        if (left < (double)TICK_NS) {
            uint64_t ns = (uint64_t)left + 1;
            struct itimerspec timer = {{0, 0}, {0, (long)ns}};
            timerfd_settime(client->timer, 0, &timer, NULL);
        }
    }
    return client->tick > now ? (int)((client->tick - now) / 1000000) + 1 : 0;
}

static void *client_main(void *argument) {
    struct load_client *client = argument;
    struct epoll_event events[EVENTS_MAX];
    for (size_t i = 0; i < client->count; i++) {
        connection_open(client, i);
    }
    for (;;) {
        int stage = atomic_load(&client->common->stage);
        uint64_t now = load_clock_ns();
        if (now >= client->tick) {
            links_check(client, now);
        }
        if (stage == STAGE_RUN) {
            requests_issue(client);
        } else if (!client->behind) {
            unsent_count(client);
        }
        /* A draining client hands over once nothing is under way. */
        if (client->window != atomic_load(&client->common->window) &&
            (stage != STAGE_DRAIN || client->busy == 0)) {
            tally_hand(client);
        }
        if (stage == STAGE_STOP) {
            return NULL;
        }
        int count = epoll_wait(client->epoll, events, EVENTS_MAX,
                               wait_time(client, load_clock_ns(), stage == STAGE_RUN));
        for (int i = 0; i < count; i++) {
            event_handle(client, &events[i]);
        }
    }
}

static bool descriptors_open(struct load_client *client) {
    struct epoll_event poke = {EPOLLIN, {.u64 = EVENT_POKE}};
    struct epoll_event timer = {EPOLLIN | EPOLLET, {.u64 = EVENT_TIMER}};
    client->epoll = epoll_create1(EPOLL_CLOEXEC);
    client->poke = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    client->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    return client->epoll >= 0 && client->poke >= 0 && client->timer >= 0 &&
           epoll_ctl(client->epoll, EPOLL_CTL_ADD, client->poke, &poke) == 0 &&
           epoll_ctl(client->epoll, EPOLL_CTL_ADD, client->timer, &timer) == 0;
}

static void schedule_start(struct load_client *client, size_t index) {
    const struct load *load = &client->common->load;
    double now = (double)load_clock_ns();
    if (load->rate > 0) {
        client->interval = 1e9 / load->rate * (double)load->threads;
        client->due = now + 1e9 / load->rate * (double)index;
    }
}

struct load_client *client_create(struct common *common, size_t index, size_t connections,
                                  char *why, size_t why_size) {
    struct load_client *client = calloc(1, sizeof *client);
    size_t room = scenario_size_max(common->load.scenario);
    if (client == NULL) {
        goto failed;
    }
    client->epoll = client->poke = client->timer = -1;
    client->common = common;
    client->count = connections;
    client->links = calloc(connections, sizeof *client->links);
    client->idle = calloc(connections, sizeof *client->idle);
    client->outputs = calloc(connections, room);
    client->input = malloc(INPUT_BYTES);
    client->tally = tally_create();
    if (client->links == NULL || client->idle == NULL || client->outputs == NULL ||
        client->input == NULL || client->tally == NULL || !descriptors_open(client)) {
        goto failed;
    }
    for (size_t i = 0; i < connections; i++) {
        client->links[i].fd = -1;
        client->links[i].out = client->outputs + i * room;
    }
    client->dice.state = (common->load.seed + index + 1) * UINT64_C(0x9E3779B97F4A7C15) | 1;
    schedule_start(client, index);
    return client;
failed:
    snprintf(why, why_size, "a client thread: %s", strerror(errno));
    client_destroy(client);
    return NULL;
}

bool client_start(struct load_client *client) {
    client->started = pthread_create(&client->thread, NULL, client_main, client) == 0;
    return client->started;
}

void client_poke(struct load_client *client) {
    uint64_t one = 1;
    (void)!write(client->poke, &one, sizeof one);
}

void client_destroy(struct load_client *client) {
    if (client == NULL) {
        return;
    }
    if (client->started) {
        pthread_join(client->thread, NULL);
    }
    for (size_t i = 0; client->links != NULL && i < client->count; i++) {
        link_close(&client->links[i]);
    }
    int descriptors[] = {client->epoll, client->poke, client->timer};
    for (size_t i = 0; i < 3; i++) {
        if (descriptors[i] >= 0) {
            close(descriptors[i]);
        }
    }
    free(client->links);
    free(client->idle);
    free(client->outputs);
    free(client->input);
    free(client->tally);
    free(client);
}
