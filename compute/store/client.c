/*
 * client.c: commands in flight, in the order in which they were submitted (client.h).
 *
 * One list has them all; those from `unsent` on have not been sent to this process yet. After its
 * death all are unsent again. A ticket is a place in the table and how often it was used.
 */
#include "compute/store/client.h"

#include "compute/core/log.h"
#include "compute/store/record.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SERVE_MOST 256 /* answers before the loop gets its turn */

struct flight {
    uint64_t ticket;
    uint8_t *packet; /* NULL: free */
    size_t size;
    int sends;
    enum store_task task;
    struct store_call call;
    struct flight *next, *previous; /* in flight, or the free ones by next */
};

struct store_client {
    pthread_mutex_t lock;
    struct store_arena arena;
    int socket;
    bool ready;
    struct store_stats stats;
    struct flight *flights;
    size_t capacity, count;
    struct flight *first, *last, *unsent, *free;
    uint8_t packet[STORE_PACKET_MAX]; /* serve's own */
};

enum kiln_status store_client_create(const struct store_arena *arena, size_t in_flight,
                                     struct store_client **out) {
    struct store_client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        return KILN_NO_MEMORY;
    }
    client->flights = calloc(in_flight, sizeof *client->flights);
    if (client->flights == NULL) {
        free(client);
        return KILN_NO_MEMORY;
    }
    pthread_mutex_init(&client->lock, NULL);
    client->arena = *arena;
    client->socket = -1;
    client->capacity = in_flight;
    for (size_t i = in_flight; i > 0; i--) {
        client->flights[i - 1].ticket = i; /* 0 is the store's own */
        client->flights[i - 1].next = client->free;
        client->free = &client->flights[i - 1];
    }
    *out = client;
    return KILN_OK;
}

/* ---- the list, under the lock ---- */

static void flight_append(struct store_client *client, struct flight *flight) {
    flight->next = NULL;
    flight->previous = client->last;
    if (client->last != NULL) {
        client->last->next = flight;
    } else {
        client->first = flight;
    }
    client->last = flight;
    client->unsent = client->unsent != NULL ? client->unsent : flight;
    client->count++;
}

static struct store_call flight_remove(struct store_client *client, struct flight *flight) {
    struct store_call call = flight->call;
    if (client->unsent == flight) {
        client->unsent = flight->next;
    }
    if (flight->previous != NULL) {
        flight->previous->next = flight->next;
    } else {
        client->first = flight->next;
    }
    if (flight->next != NULL) {
        flight->next->previous = flight->previous;
    } else {
        client->last = flight->previous;
    }
    free(flight->packet);
    flight->packet = NULL;
    flight->ticket += client->capacity;
    flight->next = client->free;
    client->free = flight;
    client->count--;
    return call;
}

static struct flight *flight_find(struct store_client *client, uint64_t ticket) {
    struct flight *flight = &client->flights[(ticket - 1) % client->capacity];
    return ticket > 0 && flight->packet != NULL && flight->ticket == ticket ? flight : NULL;
}

static void disconnect(struct store_client *client) {
    close(client->socket);
    client->socket = -1;
    client->ready = false;
    client->unsent = client->first;
}

/* A process that has not opened its store yet gets nothing: should it die, nobody is to blame. */
static void flush(struct store_client *client) {
    while (client->socket >= 0 && client->ready && client->unsent != NULL) {
        struct flight *flight = client->unsent;
        ssize_t sent =
            send(client->socket, flight->packet, flight->size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) {
            continue;
        }
        if (sent < 0) {
            return; /* no room now, or its end, which receiving will tell */
        }
        flight->sends++;
        client->unsent = flight->next;
    }
}

/* ---- submitting ---- */

enum kiln_status store_client_submit(struct store_client *client,
                                     const struct store_command *command, struct store_call call) {
    uint8_t bytes[STORE_PACKET_MAX];
    struct pack pack = {.data = bytes, .capacity = sizeof bytes};
    struct store_command numbered = *command;
    enum kiln_status status = KILN_OK;
    pthread_mutex_lock(&client->lock);
    struct flight *flight = client->free;
    if (client->socket < 0) {
        status = KILN_STORE;
    } else if (flight == NULL) {
        status = KILN_BUSY;
    } else {
        numbered.ticket = flight->ticket;
        status = store_command_pack(&pack, &numbered, &client->arena) ? KILN_OK : KILN_INVALID;
    }
    uint8_t *packet = status == KILN_OK ? malloc(pack.size) : NULL;
    if (status == KILN_OK && packet == NULL) {
        status = KILN_NO_MEMORY;
    }
    if (status == KILN_OK) {
        memcpy(packet, bytes, pack.size);
        client->free = flight->next;
        flight->packet = packet;
        flight->size = pack.size;
        flight->sends = 0;
        flight->task = command->task;
        flight->call = call;
        flight_append(client, flight);
        flush(client);
    }
    pthread_mutex_unlock(&client->lock);
    return status;
}

/* ---- the loop's thread ---- */

static void answer_failed(enum store_task task, struct store_call call) {
    struct store_answer answer = {
        .task = task, .status = KILN_STORE, .content.fd = -1, .job = record_empty};
    call.done(call.context, &answer);
}

/* Answers those that have been sent so often; all for 0. */
static void give_up(struct store_client *client, int sends) {
    for (;;) {
        pthread_mutex_lock(&client->lock);
        struct flight *flight = client->first;
        while (flight != NULL && flight->sends < sends) {
            flight = flight->next;
        }
        enum store_task task = flight != NULL ? flight->task : TASK_READY;
        struct store_call call = {0};
        if (flight != NULL) {
            call = flight_remove(client, flight);
        }
        pthread_mutex_unlock(&client->lock);
        if (flight == NULL) {
            return;
        }
        answer_failed(task, call);
    }
}

void store_client_fail(struct store_client *client) {
    give_up(client, 0);
}

void store_client_destroy(struct store_client *client) {
    if (client == NULL) {
        return;
    }
    pthread_mutex_lock(&client->lock);
    if (client->socket >= 0) { /* first: then a call-back cannot submit any more */
        disconnect(client);
    }
    pthread_mutex_unlock(&client->lock);
    store_client_fail(client);
    pthread_mutex_destroy(&client->lock);
    free(client->flights);
    free(client);
}

void store_client_connect(struct store_client *client, int socket) {
    give_up(client, STORE_SENDS_MAX);
    pthread_mutex_lock(&client->lock);
    if (client->socket >= 0) {
        disconnect(client);
    }
    client->socket = socket;
    client->unsent = client->first;
    pthread_mutex_unlock(&client->lock);
}

int store_client_fd(struct store_client *client, short *events) {
    pthread_mutex_lock(&client->lock);
    int socket = client->socket;
    *events = (short)(POLLIN | (client->ready && client->unsent != NULL ? POLLOUT : 0));
    pthread_mutex_unlock(&client->lock);
    return socket;
}

bool store_client_ready(struct store_client *client, struct store_stats *stats) {
    pthread_mutex_lock(&client->lock);
    bool ready = client->ready;
    *stats = client->stats;
    pthread_mutex_unlock(&client->lock);
    return ready;
}

size_t store_client_in_flight(struct store_client *client) {
    pthread_mutex_lock(&client->lock);
    size_t count = client->count;
    pthread_mutex_unlock(&client->lock);
    return count;
}

/* A packet and what came with it. Like recv(), with -1 and EAGAIN where there is none. */
static ssize_t packet_take(struct store_client *client, int *fd) {
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {client->packet, sizeof client->packet};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t size;
    do {
        size = recvmsg(client->socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (size < 0 && errno == EINTR);
    struct cmsghdr *head = size > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    *fd = -1;
    if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
        memcpy(fd, CMSG_DATA(head), sizeof *fd);
    }
    return size;
}

/* Brings an answer home. False: it makes no sense. */
static bool answer_take(struct store_client *client, size_t size, int fd) {
    struct store_answer answer;
    struct store_call call = {0};
    bool sound = store_answer_unpack(client->packet, size, &answer);
    pthread_mutex_lock(&client->lock);
    if (sound && answer.task == TASK_READY) {
        client->ready = true;
        client->stats = answer.stats;
    } else if (sound) {
        struct flight *flight = flight_find(client, answer.ticket);
        sound = flight != NULL && flight->task == answer.task;
        if (sound) {
            call = flight_remove(client, flight);
        }
    }
    pthread_mutex_unlock(&client->lock);
    answer.content.fd = call.done != NULL ? fd : -1;
    if (fd >= 0 && call.done == NULL) {
        close(fd);
    }
    if (call.done != NULL) {
        call.done(call.context, &answer);
    }
    return sound;
}

void store_client_serve(struct store_client *client) {
    bool alive = client->socket >= 0;
    for (int i = 0; i < SERVE_MOST && alive; i++) {
        int fd;
        ssize_t size = packet_take(client, &fd);
        if (size < 0 && errno == EAGAIN) {
            break;
        }
        alive = size > 0 && answer_take(client, (size_t)size, fd);
        if (size > 0 && !alive) {
            log_error("the store has answered something that makes no sense");
        }
    }
    pthread_mutex_lock(&client->lock);
    if (!alive && client->socket >= 0) {
        disconnect(client);
    }
    flush(client);
    pthread_mutex_unlock(&client->lock);
}
