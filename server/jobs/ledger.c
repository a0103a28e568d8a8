/*
 * ledger.c: the thread of the ledger, its store's process, and the calls of others.
 *
 * A call is a short chain of commands; each answer sends the next one (on the ledger's thread) or
 * ends the call. Those that wait for a change hang in one list: whenever the ledger has written a
 * change of their job they look again.
 */
#include "compute/core/log.h"
#include "compute/core/timing.h"
#include "compute/store/record.h"
#include "server/jobs/ledger_private.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define IN_FLIGHT 4096 /* commands */
#define MS        UINT64_C(1000000)
#define SECOND    UINT64_C(1000000000)
#define AWAY_NS   (5 * SECOND) /* without a process: nobody waits for longer */
#define STOP_NS   (5 * SECOND) /* for what has ended to be written */

void ledger_wake(struct ledger *ledger) {
    uint64_t one = 1;
    ssize_t written = write(ledger->wake, &one, sizeof one);
    (void)written; /* full means that a wake-up is on its way already */
}

void *store_job_copy(const struct store_job *job, struct store_job *copy) {
    size_t size = 1;
    for (size_t i = 0; i < record_count; i++) {
        if (record_fields[i].kind == RECORD_TEXT) {
            size += strlen(*(const char *const *)((const char *)job + record_fields[i].offset)) + 1;
        }
    }
    char *texts = malloc(size), *at = texts;
    *copy = texts != NULL ? *job : record_empty;
    for (size_t i = 0; i < record_count && texts != NULL; i++) {
        if (record_fields[i].kind == RECORD_TEXT) {
            const char **place = (const char **)((char *)copy + record_fields[i].offset);
            size_t length = strlen(*place) + 1;
            memcpy(at, *place, length);
            *place = at;
            at += length;
        }
    }
    return texts;
}

/* ---- calls ---- */

static void call_end(struct ledger_call *call, enum kiln_status status) {
    call->status = status;
    call->done(call);
}

static void call_send(struct ledger_call *call, const struct store_command *command,
                      void (*done)(void *context, struct store_answer *answer)) {
    struct ledger *ledger = call->ledger;
    enum kiln_status status =
        atomic_load(&ledger->ready)
            ? store_client_submit(ledger->client, command,
                                  (struct store_call){.done = done, .context = call})
            : KILN_STORE;
    if (status != KILN_OK) {
        call_end(call, status);
    } else {
        ledger_wake(ledger); /* the socket may have had no room */
    }
}

static void on_look(void *context, struct store_answer *answer);

static void call_look(struct ledger_call *call) {
    const struct store_command command = {.task = TASK_GET, .id = call->id};
    call_send(call, &command, on_look);
}

static void on_content(void *context, struct store_answer *answer) {
    struct ledger_call *call = context;
    call->content = answer->content;
    if (answer->status == KILN_OK && answer->content.fd < 0) {
        size_t size = (size_t)answer->content.size;
        call->bytes = answer->content.data != NULL ? malloc(size + 1) : NULL;
        if (call->bytes == NULL) {
            call_end(call, size > 0 ? KILN_NO_MEMORY : KILN_STORE); /* no room for a descriptor */
            return;
        }
        memcpy(call->bytes, answer->content.data, size);
        call->content.data = call->bytes;
    }
    call_end(call, answer->status);
}

static void on_drop(void *context, struct store_answer *answer) {
    struct ledger_call *call = context;
    bool was_over = call->job.state >= STORE_SUCCEEDED;
    if (answer->status == KILN_OK && answer->changed.state == STORE_RUNNING) {
        ledger_revoke(call->ledger, &call->id);
    } else if (answer->status == KILN_OK) {
        ledger_changed(call->ledger, &call->id);
    }
    /* between the look and the change it has ended: then its result goes instead */
    if (answer->status == KILN_PRECONDITION && !was_over) {
        call_look(call);
        return;
    }
    call_end(call, answer->status == KILN_PRECONDITION ? KILN_OK : answer->status);
}

static void call_drop(struct ledger_call *call) {
    bool over = call->job.state >= STORE_SUCCEEDED;
    struct store_command command = {
        .task = TASK_CHANGE,
        .change = {
            .verb = over ? STORE_FORGET : STORE_CANCEL, .id = call->id, .outcome = "", .node = ""}};
    if (over && hash_empty(call->job.result)) {
        call_end(call, KILN_OK);
    } else {
        call_send(call, &command, on_drop);
    }
}

static bool call_waits(const struct ledger_call *call) {
    const struct store_job *job = &call->job;
    return job->state < STORE_SUCCEEDED && clock_ns() < call->until_ns &&
           (call->revision == 0 || call->revision == job->revision) &&
           !atomic_load(&call->ledger->stopping);
}

static void on_look(void *context, struct store_answer *answer) {
    struct ledger_call *call = context;
    struct ledger *ledger = call->ledger;
    enum kiln_status status = answer->status;
    if (status == KILN_OK || status == KILN_GONE) {
        free(call->texts);
        call->texts = store_job_copy(&answer->job, &call->job);
        bool others = call->owner != NULL && strcmp(call->owner, call->job.owner) != 0;
        status = call->texts == NULL ? KILN_NO_MEMORY : others ? KILN_NOT_FOUND : status;
    }
    if (status != KILN_OK) {
        call_end(call, status);
    } else if (call->ask == LEDGER_DROP) {
        call_drop(call);
    } else if (call_waits(call)) {
        call->next = ledger->waiting;
        ledger->waiting = call;
    } else if (call->ask == LEDGER_READ && call->job.state == STORE_SUCCEEDED) {
        const struct store_command command = {.task = TASK_OPEN, .id = call->id};
        call_send(call, &command, on_content);
    } else {
        call_end(call, KILN_OK);
    }
}

static void on_kept(void *context, struct store_answer *answer) {
    struct ledger_call *call = context;
    enum kiln_status status = answer->status;
    call->id = answer->accepted.id;
    call->repeated = answer->accepted.repeated;
    if (status == KILN_OK && !call->repeated && !ledger_queue(call->ledger, &call->id)) {
        status = KILN_NO_MEMORY; /* it is run after the next start */
    }
    if (status == KILN_OK) {
        call_look(call);
    } else {
        call_end(call, status);
    }
}

static void on_list(void *context, struct store_answer *answer) {
    struct ledger_call *call = context;
    call->rows = *answer;
    call->bytes = malloc(answer->rows.size + 1);
    if (call->bytes == NULL) {
        call_end(call, KILN_NO_MEMORY);
        return;
    }
    memcpy(call->bytes, answer->rows.data, answer->rows.size);
    call->rows.rows.data = call->bytes;
    call_end(call, answer->status);
}

void ledger_ask(struct ledger *ledger, struct ledger_call *call) {
    call->ledger = ledger;
    if (call->ask == LEDGER_KEEP && atomic_load(&ledger->once)) {
        const struct store_command command = {
            .task = TASK_ACCEPT,
            .job = call->offer,
            .input = call->input,
            .accept = {.count = 1, .owner = call->owner, .key = call->key},
        };
        struct store_command whole = command;
        whole.accept.jobs = &whole.job;
        whole.accept.inputs = &whole.input;
        memcpy(whole.accept.fingerprint, call->fingerprint, STORE_HASH);
        call_send(call, &whole, on_kept);
    } else if (call->ask == LEDGER_KEEP) {
        call_end(call, KILN_STORE);
    } else if (call->ask == LEDGER_LIST) {
        const struct store_command command = {.task = TASK_LIST, .filter = call->filter};
        call_send(call, &command, on_list);
    } else {
        call_look(call);
    }
}

void ledger_call_finish(struct ledger_call *call) {
    if (call->ask == LEDGER_READ && call->content.fd >= 0 && call->content.size > 0) {
        close(call->content.fd);
    }
    free(call->texts);
    free(call->bytes);
}

void ledger_changed(struct ledger *ledger, const struct job_id *id) {
    struct ledger_call **link = &ledger->waiting, *found = NULL;
    while (*link != NULL) {
        struct ledger_call *call = *link;
        if (job_id_equal(&call->id, id)) {
            *link = call->next;
            call->next = found;
            found = call;
        } else {
            link = &call->next;
        }
    }
    for (struct ledger_call *next; found != NULL; found = next) {
        next = found->next;
        call_look(found);
    }
}

/* Answers those whose time is up; all when the ledger stops. Returns when the next one's is. */
static uint64_t waiting_end(struct ledger *ledger, uint64_t now) {
    struct ledger_call **link = &ledger->waiting, *found = NULL;
    uint64_t due = UINT64_MAX;
    while (*link != NULL) {
        struct ledger_call *call = *link;
        if (call->until_ns <= now || atomic_load(&ledger->stopping)) {
            *link = call->next;
            call->next = found;
            found = call;
        } else {
            due = call->until_ns < due ? call->until_ns : due;
            link = &call->next;
        }
    }
    for (struct ledger_call *next; found != NULL; found = next) {
        next = found->next;
        call_end(found, KILN_OK);
    }
    return due;
}

/* ---- the process ---- */

int ledger_wants(struct ledger *ledger, int64_t *boot, int64_t *bytes, int64_t *jobs) {
    uint64_t want = atomic_load_explicit(&ledger->want_ns, memory_order_relaxed);
    if (want == UINT64_MAX) {
        return -1;
    }
    uint64_t now = clock_ns();
    *boot = ledger->boot;
    *bytes = ledger->options.bytes;
    *jobs = ledger->options.jobs_max;
    return want <= now ? 0 : (int)((want - now) / MS) + 1;
}

void ledger_connect(struct ledger *ledger, int socket) {
    atomic_store(&ledger->want_ns, socket >= 0 ? UINT64_MAX : clock_ns() + SECOND);
    if (socket >= 0) {
        int old = atomic_exchange(&ledger->handed, socket);
        if (old >= 0) {
            close(old);
        }
        ledger_wake(ledger);
    }
}

/* Takes a new process over, notices the end of one. */
static void process_tend(struct ledger *ledger) {
    int socket = atomic_exchange(&ledger->handed, -1);
    struct store_stats stats;
    short events;
    if (socket >= 0) {
        store_client_connect(ledger->client, socket);
        ledger->lost_ns = 0;
    }
    if (store_client_fd(ledger->client, &events) >= 0) {
        store_client_serve(ledger->client);
    }
    bool ready = store_client_ready(ledger->client, &stats);
    if (atomic_exchange(&ledger->ready, ready) && !ready) {
        log_warning("the store has ended: it is started again");
    }
    if (store_client_fd(ledger->client, &events) >= 0) {
        return;
    }
    uint64_t now = clock_ns();
    if (ledger->lost_ns == 0) {
        ledger->lost_ns = now;
        atomic_store(&ledger->want_ns, now + (ready ? 0 : 200 * MS));
    } else if (now - ledger->lost_ns > AWAY_NS) {
        store_client_fail(ledger->client);
    }
}

/* ---- jobs of an earlier life ---- */

static void on_queued(void *context, struct store_answer *answer) {
    struct ledger *ledger = context;
    struct store_job job;
    ledger->listing = false;
    while (answer->status == KILN_OK && store_answer_job(answer, &job)) {
        ledger_queue(ledger, &job.id);
    }
    if (answer->status == KILN_OK) {
        ledger->cursor = answer->page.next;
        ledger->listed = !answer->page.more;
        atomic_store(&ledger->once, ledger->listed);
    }
}

static void queued_list(struct ledger *ledger) {
    const struct store_command command = {.task = TASK_LIST,
                                          .filter = {.states = 1u << STORE_QUEUED,
                                                     .after = ledger->cursor,
                                                     .oldest_first = true,
                                                     .short_rows = true,
                                                     .limit = STORE_PAGE_MAX}};
    ledger->listing = store_client_submit(ledger->client, &command,
                                          (struct store_call){on_queued, ledger}) == KILN_OK;
}

/* ---- its thread ---- */

static void sleep_until(struct ledger *ledger, uint64_t due) {
    short events = 0;
    int fd = store_client_fd(ledger->client, &events);
    struct pollfd polled[2] = {{.fd = ledger->wake, .events = POLLIN},
                               {.fd = fd, .events = events}};
    uint64_t now = clock_ns(), count;
    uint64_t left = due > now ? (due - now) / MS + 1 : 0;
    if (poll(polled, 2, (int)(left < 1000 ? left : 1000)) > 0 && polled[0].revents != 0) {
        ssize_t size = read(ledger->wake, &count, sizeof count);
        (void)size;
    }
}

static bool over(struct ledger *ledger) {
    return atomic_load(&ledger->stopping) &&
           (ledger_settled(ledger) || clock_ns() > ledger->stop_ns);
}

static void *ledger_thread(void *argument) {
    struct ledger *ledger = argument;
    while (!over(ledger)) {
        process_tend(ledger);
        if (atomic_load(&ledger->ready) && !ledger->listed && !ledger->listing) {
            queued_list(ledger);
        }
        ledger_run(ledger);
        uint64_t due = waiting_end(ledger, clock_ns());
        uint64_t run = ledger_run_due(ledger);
        sleep_until(ledger, due < run ? due : run);
    }
    store_client_fail(ledger->client);
    waiting_end(ledger, UINT64_MAX);
    ledger_run_finish(ledger);
    return NULL;
}

enum kiln_status ledger_create(const struct ledger_options *options, struct ledger **out) {
    struct ledger *ledger = aligned_alloc(_Alignof(struct ledger), sizeof *ledger);
    const struct store_arena arena = {arena_at(options->arena, 0), arena_size(options->arena)};
    *out = ledger;
    if (ledger == NULL) {
        return KILN_NO_MEMORY;
    }
    memset(ledger, 0, sizeof *ledger);
    ledger->options = *options;
    ledger->boot = (int64_t)job_ids_now();
    atomic_init(&ledger->handed, -1);
    pthread_mutex_init(&ledger->lock, NULL);
    ledger->lost_ns = clock_ns();
    ledger->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ledger->wake < 0 || !job_ids_init(&ledger->ids)) {
        return KILN_INTERNAL;
    }
    return store_client_create(&arena, IN_FLIGHT, &ledger->client);
}

enum kiln_status ledger_open(struct ledger *ledger) {
    ledger->started = pthread_create(&ledger->thread, NULL, ledger_thread, ledger) == 0;
    if (ledger->started) {
        pthread_setname_np(ledger->thread, "ledger");
    }
    return ledger->started ? KILN_OK : KILN_NO_MEMORY;
}

void ledger_stop(struct ledger *ledger) {
    if (ledger == NULL || !gate_close(&ledger->gate) || !ledger->started) {
        return;
    }
    ledger->stop_ns = clock_ns() + STOP_NS;
    atomic_store(&ledger->stopping, true);
    ledger_wake(ledger);
    pthread_join(ledger->thread, NULL);
    ledger->started = false;
}

void ledger_destroy(struct ledger *ledger) {
    if (ledger == NULL) {
        return;
    }
    ledger_stop(ledger);
    store_client_destroy(ledger->client);
    int handed = atomic_load(&ledger->handed);
    if (handed >= 0) {
        close(handed);
    }
    if (ledger->wake >= 0) {
        close(ledger->wake);
    }
    pthread_mutex_destroy(&ledger->lock);
    free(ledger->queue);
    free(ledger);
}

bool ledger_enter(struct ledger *ledger) {
    return gate_enter(&ledger->gate);
}

void ledger_leave(struct ledger *ledger) {
    gate_leave(&ledger->gate);
}

bool ledger_durable(const struct ledger *ledger) {
    return ledger->options.durable;
}

bool ledger_ready(struct ledger *ledger, bool *now) {
    *now = atomic_load(&ledger->ready);
    return atomic_load(&ledger->once);
}

struct job_id ledger_id(struct ledger *ledger) {
    pthread_mutex_lock(&ledger->lock);
    struct job_id id = job_ids_next(&ledger->ids, job_ids_now());
    pthread_mutex_unlock(&ledger->lock);
    return id;
}
