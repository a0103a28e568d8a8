/*
 * process.c: one thread that takes whatever waits, commits it together, answers, and does what time
 * brings.
 *
 * Group commit needs no timer: while a group is being synced the next one gathers in the socket. A
 * group has GROUP_COMMANDS commands and GROUP_BYTES bytes at most. Where the disk is full, the
 * group is made again after room was made, and then one by one, so that what must finish can and
 * what is new is refused.
 *
 * The front is the process that an intruder would reach first: every packet is judged, and after
 * one that makes no sense this process ends.
 */
#include "compute/store/process.h"

#include "compute/core/log.h"
#include "compute/core/timing.h"
#include "compute/store/record.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define GROUP_COMMANDS 512
#define GROUP_BYTES    ((size_t)4 << 20)
#define TICK_MS        1000
#define WHY_MAX        320

struct server {
    struct store *store;
    const struct store_engine *engine;
    const struct store_arena *arena;
    int socket;
    uint64_t ticked_ns;
    bool more; /* the last tick left something to do */
    bool over; /* the front is gone */
    uint8_t *bytes;
    struct store_command *commands;
    struct store_answer *answers;
    size_t count;
    uint8_t packet[STORE_PACKET_MAX], rows[STORE_PACKET_MAX - 1024];
};

/* ---- changes ---- */

/* A batch's lines lie in shared memory: they are read from a copy. */
static enum kiln_status batch_accept(struct server *server, struct store_command *command,
                                     struct store_answer *answer) {
    struct store_accept accept = command->accept;
    size_t size = command->lines.size;
    uint8_t *lines = malloc(size + 1);
    struct store_job *jobs = calloc(accept.count, sizeof *jobs);
    struct store_bytes *inputs = calloc(accept.count, sizeof *inputs);
    enum kiln_status status = KILN_NO_MEMORY;
    if (lines != NULL && jobs != NULL && inputs != NULL) {
        memcpy(lines, command->lines.data, size);
        accept.jobs = jobs;
        accept.inputs = inputs;
        status = store_lines_unpack(lines, size, server->arena, &accept, jobs, inputs)
                     ? server->engine->accept(server->store, &accept, &answer->accepted)
                     : KILN_INVALID;
    }
    free(inputs);
    free(jobs);
    free(lines);
    return status;
}

static enum kiln_status change_do(struct server *server, struct store_command *command,
                                  struct store_answer *answer) {
    const struct store_engine *engine = server->engine;
    if (command->task == TASK_ACCEPT && command->accept.count > 1) {
        return batch_accept(server, command, answer);
    }
    if (command->task == TASK_ACCEPT) {
        return engine->accept(server->store, &command->accept, &answer->accepted);
    }
    if (command->task == TASK_CHANGE) {
        return engine->change(server->store, &command->change, &answer->changed);
    }
    return command->task == TASK_CALIBRATE ? engine->calibrate(server->store, &command->calibration)
                                           : engine->delivered(server->store, &command->delivery);
}

static bool is_change(const struct store_command *command) {
    return command->task < TASK_GET;
}

static bool is_lazy(const struct store_command *command) {
    return command->task == TASK_CHANGE &&
           (command->change.verb == STORE_START || command->change.verb == STORE_FETCHED);
}

/* Makes the changes among commands `from` to `to` in one transaction. */
static enum kiln_status group_try(struct server *server, size_t from, size_t to) {
    bool lazy = true;
    for (size_t i = from; i < to; i++) {
        lazy = lazy && (!is_change(&server->commands[i]) || is_lazy(&server->commands[i]));
    }
    enum kiln_status status = server->engine->begin(server->store, lazy);
    for (size_t i = from; i < to && status == KILN_OK; i++) {
        if (is_change(&server->commands[i])) {
            server->answers[i].status =
                change_do(server, &server->commands[i], &server->answers[i]);
        }
    }
    return status == KILN_OK ? server->engine->commit(server->store) : status;
}

static void group_answer(struct server *server, size_t from, size_t to, enum kiln_status status) {
    for (size_t i = from; i < to; i++) {
        if (is_change(&server->commands[i])) {
            server->answers[i].status = status;
        }
    }
}

/* False: the store is lost, and every change is answered so. */
static bool changes_make(struct server *server) {
    size_t count = 0;
    for (size_t i = 0; i < server->count; i++) {
        count += is_change(&server->commands[i]);
    }
    enum kiln_status status = count > 0 ? group_try(server, 0, server->count) : KILN_OK;
    if (status == KILN_STORE_FULL) {
        server->engine->relieve(server->store);
        status = group_try(server, 0, server->count);
    }
    if (status == KILN_STORE_FULL) {
        status = KILN_OK;
        for (size_t i = 0; i < server->count && (status == KILN_OK || status == KILN_STORE_FULL);
             i++) {
            status = is_change(&server->commands[i]) ? group_try(server, i, i + 1) : KILN_OK;
            if (status == KILN_STORE_FULL) {
                server->answers[i].status = status;
            }
        }
        status = status == KILN_STORE_FULL ? KILN_OK : status;
    }
    if (status != KILN_OK) {
        group_answer(server, 0, server->count, KILN_STORE);
    }
    return status == KILN_OK;
}

/* ---- reads ---- */

struct rows {
    struct pack pack;
    int64_t count;
    bool cut;
};

/* Keeps a row that fits. */
static bool row_end(struct rows *rows, size_t before) {
    if (rows->pack.full) {
        rows->pack.size = before;
        rows->pack.full = false;
        rows->cut = true;
        return false;
    }
    rows->count++;
    return true;
}

static bool job_row(void *context, const struct store_job *job) {
    struct rows *rows = context;
    size_t before = rows->pack.size;
    record_pack(&rows->pack, job);
    return row_end(rows, before);
}

static bool event_row(void *context, const struct store_event *event) {
    struct rows *rows = context;
    size_t before = rows->pack.size;
    store_event_pack(&rows->pack, event);
    return row_end(rows, before);
}

static bool delivery_row(void *context, const struct store_delivery *delivery) {
    struct rows *rows = context;
    size_t before = rows->pack.size;
    store_delivery_pack(&rows->pack, delivery);
    return row_end(rows, before);
}

static bool calibration_row(void *context, const struct store_calibration *row) {
    struct rows *rows = context;
    size_t before = rows->pack.size;
    store_calibration_pack(&rows->pack, row);
    return rows->count < STORE_PAGE_MAX && row_end(rows, before);
}

static enum kiln_status read_do(struct server *server, const struct store_command *command,
                                struct store_answer *answer, struct rows *rows) {
    const struct store_engine *engine = server->engine;
    struct store *store = server->store;
    switch (command->task) {
    case TASK_GET:
        return engine->get(store, &command->id, &answer->job);
    case TASK_OPEN:
        return engine->open(store, &command->id, command->of_input, &answer->content);
    case TASK_LIST:
        return engine->list(store, &command->filter, job_row, rows, &answer->page);
    case TASK_EVENTS:
        return engine->events(store, &command->events, event_row, rows);
    case TASK_DELIVERIES:
        return engine->deliveries(store, command->now, command->limit, delivery_row, rows);
    case TASK_CALIBRATIONS:
        return engine->calibrations(store, calibration_row, rows);
    default:
        return engine->stats(store, &answer->stats);
    }
}

/* ---- packets ---- */

/* Waits until the front takes it: it always does, or is gone. */
static void answer_send(struct server *server, const struct store_answer *answer,
                        const struct pack *rows) {
    struct pack pack = {.data = server->packet, .capacity = sizeof server->packet};
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    store_answer_pack(&pack, answer, rows);
    struct iovec part = {pack.data, pack.size};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (answer->content.fd >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.head), &answer->content.fd, sizeof(int));
    }
    ssize_t sent;
    do {
        sent = sendmsg(server->socket, &message, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    server->over = server->over || sent < 0;
    if (answer->content.fd >= 0) {
        close(answer->content.fd);
    }
}

static void read_answer(struct server *server, const struct store_command *command,
                        struct store_answer *answer) {
    struct rows rows = {.pack = {.data = server->rows, .capacity = sizeof server->rows}};
    answer->job = record_empty;
    answer->content.fd = -1;
    answer->status = read_do(server, command, answer, &rows);
    answer->count = rows.count;
    answer->page.more = answer->page.more || rows.cut ||
                        (command->task == TASK_EVENTS && rows.count == command->events.limit) ||
                        (command->task == TASK_DELIVERIES && rows.count == command->limit);
    answer_send(server, answer, &rows.pack);
}

/* Takes what waits, up to a group. False after a packet that makes no sense. */
static bool group_take(struct server *server) {
    size_t used = 0;
    server->count = 0;
    while (server->count < GROUP_COMMANDS && GROUP_BYTES - used >= STORE_PACKET_MAX) {
        ssize_t size =
            recv(server->socket, server->bytes + used, STORE_PACKET_MAX, MSG_DONTWAIT | MSG_TRUNC);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size <= 0) {
            server->over = size == 0 || errno != EAGAIN;
            return true;
        }
        struct store_command *command = &server->commands[server->count];
        if ((size_t)size > STORE_PACKET_MAX ||
            !store_command_unpack(server->bytes + used, (size_t)size, server->arena, command)) {
            log_error("a command makes no sense");
            return false;
        }
        memset(&server->answers[server->count], 0, sizeof *server->answers);
        server->answers[server->count].content.fd = -1;
        server->answers[server->count].ticket = command->ticket;
        server->answers[server->count].task = command->task;
        server->count++;
        used += (size_t)size;
    }
    return true;
}

/* False: this process has to end. */
static bool group_serve(struct server *server) {
    bool sound = group_take(server);
    bool kept = changes_make(server);
    for (size_t i = 0; i < server->count; i++) {
        if (is_change(&server->commands[i])) {
            answer_send(server, &server->answers[i], NULL);
        }
    }
    for (size_t i = 0; i < server->count && kept; i++) {
        if (!is_change(&server->commands[i])) {
            read_answer(server, &server->commands[i], &server->answers[i]);
        }
    }
    return sound && kept;
}

static bool tick(struct server *server) {
    server->ticked_ns = clock_ns();
    return server->engine->tick(server->store, &server->more) != KILN_STORE;
}

static int serve(struct server *server) {
    struct store_answer ready = {.task = TASK_READY, .content.fd = -1};
    ready.status = server->engine->stats(server->store, &ready.stats);
    answer_send(server, &ready, NULL);
    bool good = tick(server);
    while (good && !server->over) {
        struct pollfd readable = {.fd = server->socket, .events = POLLIN};
        int waiting = poll(&readable, 1, server->more ? 0 : TICK_MS);
        if (waiting > 0) {
            good = group_serve(server);
        }
        bool due = clock_ns() - server->ticked_ns >= TICK_MS * UINT64_C(1000000);
        if (good && (due || (waiting == 0 && server->more))) {
            good = tick(server);
        }
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int store_serve(const struct store_options *options, int socket, const struct store_arena *arena) {
    char why[WHY_MAX];
    int code = EXIT_FAILURE;
    struct server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        return code;
    }
    server->socket = socket;
    server->arena = arena;
    server->bytes = malloc(GROUP_BYTES);
    server->commands = calloc(GROUP_COMMANDS, sizeof *server->commands);
    server->answers = calloc(GROUP_COMMANDS, sizeof *server->answers);
    if (server->bytes == NULL || server->commands == NULL || server->answers == NULL) {
        log_error("there is not enough memory");
    } else if (store_open(options, &server->store, why, sizeof why) != KILN_OK) {
        log_error("%s", why);
    } else {
        server->engine = server->store->engine;
        code = serve(server);
    }
    store_close(server->store);
    free(server->answers);
    free(server->commands);
    free(server->bytes);
    free(server);
    return code;
}
