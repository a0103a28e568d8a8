/*
 * ledger_run.c: jobs on their way from the store through the executor back into the store.
 *
 * Each is a row of `running` with its stage; the stage's command is sent by kept_step and answered
 * in kept_answered. What cannot be sent or fails for now is tried again after LEDGER_PAUSE. Ends of
 * records come from any thread and are only noted there.
 */
#include "compute/core/log.h"
#include "compute/core/text.h"
#include "compute/core/timing.h"
#include "server/jobs/ledger_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Whose share of the arena inputs and results of kept jobs are: one for all of them, so that they
   leave room for those who wait at their connection. */
static const struct holder kept_holder = {{0x6b657074, 3}, "kept jobs"};

bool ledger_queue(struct ledger *ledger, const struct job_id *id) {
    if (ledger->queue_count == ledger->queue_room) {
        size_t room = ledger->queue_room > 0 ? 2 * ledger->queue_room : 256;
        struct job_id *queue = malloc(room * sizeof *queue);
        if (queue == NULL) {
            return false;
        }
        for (size_t i = 0; i < ledger->queue_count; i++) {
            queue[i] = ledger->queue[(ledger->queue_first + i) % ledger->queue_room];
        }
        free(ledger->queue);
        ledger->queue = queue;
        ledger->queue_room = room;
        ledger->queue_first = 0;
    }
    ledger->queue[(ledger->queue_first + ledger->queue_count++) % ledger->queue_room] = *id;
    return true;
}

static struct kept *kept_find(struct ledger *ledger, const struct job_id *id) {
    for (size_t i = 0; i < LEDGER_RUNNING; i++) {
        if (job_id_equal(&ledger->running[i].id, id)) {
            return &ledger->running[i];
        }
    }
    return NULL;
}

bool ledger_has(struct ledger *ledger, const struct job_id *id) {
    pthread_mutex_lock(&ledger->lock);
    bool has = kept_find(ledger, id) != NULL;
    pthread_mutex_unlock(&ledger->lock);
    return has;
}

static void kept_name(struct kept *kept, const struct job_id *id) {
    struct ledger *ledger = kept->ledger;
    pthread_mutex_lock(&ledger->lock);
    kept->id = *id;
    pthread_mutex_unlock(&ledger->lock);
}

/* Its place is free again; watchers look what became of it. */
static void kept_drop(struct kept *kept) {
    struct ledger *ledger = kept->ledger;
    struct job_id id = kept->id;
    job_record_destroy(kept->record);
    arena_give(ledger->options.arena, &kept->input);
    arena_give(ledger->options.arena, &kept->copy);
    free(kept->texts);
    kept->record = NULL;
    kept->texts = NULL;
    kept->stage = KEPT_OVER;
    kept->again_ns = 0;
    kept_name(kept, &(struct job_id){{0}});
    ledger_changed(ledger, &id);
}

static void kept_pause(struct kept *kept) {
    kept->again_ns = clock_ns() + LEDGER_PAUSE;
}

static void kept_step(struct kept *kept);

static void kept_go(struct kept *kept, enum kept_stage stage) {
    kept->stage = stage;
    kept_step(kept);
}

/* ---- ends ---- */

static void problem_print(struct text *text, enum kiln_status status, const char *detail) {
    const struct status_row *row = status_row(status);
    text_format(text, "{\"type\":\"/problems/%s\",\"title\":", row->slug);
    text_json_string(text, row->title, strlen(row->title));
    text_format(text, ",\"status\":%d", row->http);
    if (detail[0] != '\0') {
        text_string(text, ",\"detail\":");
        text_json_string(text, detail, strlen(detail));
    }
    text_string(text, "}");
}

static void kept_fail(struct kept *kept, enum kiln_status status, const char *detail) {
    struct text text;
    text_init(&text, kept->outcome, sizeof kept->outcome);
    problem_print(&text, status, detail);
    kept->state = status == KILN_REVOKED ? STORE_CANCELLED : STORE_FAILED;
    kept_go(kept, KEPT_FINISH);
}

static void succeeded_print(const struct job_record *record, struct text *text) {
    const struct timing *timing = &record->job.timing;
    const char *device = record->result != NULL ? record->result->device : record->job.device_name;
    text_string(text, "{\"device\":");
    text_json_string(text, device, strlen(device));
    if (record->reused == REUSED_OFF || record->reused == REUSED_MISS ||
        record->reused == REUSED_REFUSED) {
        text_format(text,
                    ",\"timing\":{\"queue_ms\":%.4f,\"upload_ms\":%.4f,\"kernel_ms\":%.4f,"
                    "\"download_ms\":%.4f,\"encode_ms\":%.4f,\"total_ms\":%.4f}",
                    timing->queue, timing->upload, timing->kernel, timing->download, timing->encode,
                    timing->total);
    }
    text_string(text, "}");
}

/* The executor's deadline counts from when it got the job. It is meant for the run, so one that has
   waited for more than a tenth of it gets another; by itself in the queue, none does. */
static bool late(const struct job_record *record) {
    double ran =
        record->job.started_ns > 0 ? (double)(clock_ns() - record->job.started_ns) * 1e-9 : 0;
    return ran < 0.9 * record->jobs->options.deadline_s;
}

/* Whether asking again later may go better, without anything being wrong with the job. */
static bool passing(const struct job_record *record, enum kiln_status status) {
    return status == KILN_BUSY || status == KILN_NO_MEMORY || status == KILN_NO_DEVICE ||
           (status == KILN_DEADLINE && late(record));
}

/* What came of its record. */
static void kept_ended(struct kept *kept) {
    struct job_record *record = kept->record;
    bool ran = record->outcome == RECORD_JOB;
    enum kiln_status status = ran ? record->job.status : record->fault;
    if (kept->cancelled) {
        kept_fail(kept, KILN_REVOKED, "");
    } else if (ran && status == KILN_OK) {
        struct text text;
        text_init(&text, kept->outcome, sizeof kept->outcome);
        succeeded_print(record, &text);
        kept->state = STORE_SUCCEEDED;
        kept_go(kept, KEPT_FINISH);
    } else if (status == KILN_DRAINING) {
        kept_drop(kept); /* the store has it as running: the next life runs it again */
    } else if (passing(record, status)) {
        job_record_destroy(record);
        kept->record = NULL;
        kept->stage = KEPT_LOAD;
        kept_pause(kept);
    } else {
        kept_fail(kept, status, ran ? record->job.detail : record->detail);
    }
}

/* On whatever thread. */
static void record_ended(struct job_record *record) {
    struct kept *kept = record->context;
    struct ledger *ledger = kept->ledger;
    pthread_mutex_lock(&ledger->lock);
    kept->ended = ledger->ended;
    ledger->ended = kept;
    pthread_mutex_unlock(&ledger->lock);
    ledger_wake(ledger);
}

/* ---- running ---- */

static bool record_make(struct kept *kept, struct ledger_order_room *room) {
    struct ledger *ledger = kept->ledger;
    struct job_order order = {
        .type = job_type_find(kept->job.type),
        .body = kept->input,
        .body_size = (uint64_t)kept->job.input_bytes,
        .find = true,
        .keep = true,
        .age_ns = UINT64_MAX,
        .holder = kept_holder,
        .id = kept->id,
        .trace = kept->job.trace,
        .watch_fd = -1,
        .ended = record_ended,
        .context = kept,
    };
    if (order.type == NULL || !ledger_order_read(kept->job.params, &order, room)) {
        kept_fail(kept, KILN_UNSUPPORTED, "This version of the daemon cannot read the job.");
        return false;
    }
    kept->record = job_record_create(ledger->options.jobs, &order);
    if (kept->record == NULL) {
        kept_pause(kept);
        return false;
    }
    kept->input = (struct block){0, 0};
    return true;
}

static void kept_run(struct kept *kept) {
    struct jobs *jobs = kept->ledger->options.jobs;
    struct ledger_order_room *room = malloc(sizeof *room);
    kept->stage = KEPT_RUN;
    if (room == NULL) {
        kept_pause(kept);
        return;
    }
    bool made = kept->cancelled || record_make(kept, room);
    free(room);
    if (!made) {
        return;
    }
    if (kept->cancelled) {
        kept_fail(kept, KILN_REVOKED, "");
    } else if (job_record_begin(kept->record)) {
        kept_ended(kept);
    } else if (jobs_enter(jobs)) {
        job_record_run(kept->record);
        jobs_leave(jobs);
    } else {
        kept_drop(kept); /* the daemon ends */
    }
}

/* ---- commands ---- */

static bool input_take(struct kept *kept, const struct store_content *content) {
    struct arena *arena = kept->ledger->options.arena;
    uint64_t size = (uint64_t)kept->job.input_bytes, done = 0;
    arena_give(arena, &kept->input);
    if (content->size != size ||
        arena_take_for(arena, &kept_holder, size + 1, NULL, &kept->input) != KILN_OK) {
        return false;
    }
    uint8_t *bytes = arena_at(arena, kept->input.offset);
    if (content->fd < 0 && content->data != NULL) {
        memcpy(bytes, content->data, (size_t)size);
        return true;
    }
    while (content->fd >= 0 && done < size) {
        ssize_t got = pread(content->fd, bytes + done, (size_t)(size - done), (off_t)done);
        if (got <= 0) {
            return false;
        }
        done += (uint64_t)got;
    }
    return done == size;
}

static void load_answered(struct kept *kept, struct store_answer *answer) {
    bool mine = answer->status == KILN_OK &&
                (answer->job.state == STORE_QUEUED || answer->job.state == STORE_RUNNING);
    if (!mine) {
        kept_drop(kept);
        return;
    }
    free(kept->texts);
    kept->texts = store_job_copy(&answer->job, &kept->job);
    if (kept->texts == NULL) {
        kept_pause(kept);
    } else {
        kept->cancelled = kept->cancelled || kept->job.cancel != 0;
        kept_go(kept, kept->job.input_bytes > 0 ? KEPT_OPEN : KEPT_START);
    }
}

static void finish_answered(struct kept *kept, enum kiln_status status) {
    if (status == KILN_STORE_FULL) {
        kept_pause(kept);
        return;
    }
    if (status != KILN_OK && status != KILN_PRECONDITION) {
        log_warning("the end of a job could not be kept: %s", status_row(status)->title);
    }
    kept_drop(kept);
}

static void kept_answered(void *context, struct store_answer *answer) {
    struct kept *kept = context;
    enum kiln_status status = answer->status;
    kept->again_ns = 0;
    if (status == KILN_STORE) {
        kept_pause(kept);
    } else if (kept->stage == KEPT_LOAD) {
        load_answered(kept, answer);
    } else if (kept->stage == KEPT_OPEN && status == KILN_OK) {
        if (input_take(kept, &answer->content)) {
            kept_go(kept, KEPT_START);
        } else {
            kept_pause(kept);
        }
    } else if (kept->stage == KEPT_OPEN) {
        kept_fail(kept, KILN_INTERNAL, "The input of the job is not there any more.");
    } else if (kept->stage == KEPT_START && status == KILN_OK) {
        ledger_changed(kept->ledger, &kept->id);
        kept_run(kept);
    } else if (kept->stage == KEPT_FINISH) {
        finish_answered(kept, status);
    } else {
        kept_drop(kept);
    }
    if (answer->content.fd >= 0 && answer->task == TASK_OPEN) {
        close(answer->content.fd);
    }
}

/* The result where the store can read it. False: there is no room for a copy now. */
static bool result_place(struct kept *kept, struct store_bytes *result) {
    struct arena *arena = kept->ledger->options.arena;
    uint64_t size;
    const uint8_t *bytes = job_record_result(kept->record, &size);
    const uint8_t *base = arena_at(arena, 0);
    if (bytes < base || bytes >= base + arena_size(arena)) {
        arena_give(arena, &kept->copy);
        if (arena_take_for(arena, &kept_holder, size, NULL, &kept->copy) != KILN_OK) {
            return false;
        }
        bytes = memcpy(arena_at(arena, kept->copy.offset), bytes, (size_t)size);
    }
    *result = (struct store_bytes){bytes, (size_t)size};
    return true;
}

/* Sends the command of its stage. */
static void kept_step(struct kept *kept) {
    struct ledger *ledger = kept->ledger;
    struct store_command command = {
        .task = TASK_CHANGE,
        .id = kept->id,
        .change = {.id = kept->id, .attempt = kept->job.attempt, .outcome = "", .node = ""}};
    bool good = true;
    kept->again_ns = 0;
    if (kept->stage == KEPT_RUN) {
        kept_run(kept);
        return;
    }
    if (kept->stage == KEPT_LOAD) {
        command.task = TASK_GET;
    } else if (kept->stage == KEPT_OPEN) {
        command.task = TASK_OPEN;
        command.of_input = true;
    } else if (kept->stage == KEPT_START) {
        command.change.verb = STORE_START;
    } else {
        command.change.verb = STORE_FINISH;
        command.change.state = kept->state;
        command.change.outcome = kept->outcome;
        if (kept->state == STORE_SUCCEEDED) {
            command.change.seconds = kept->record->job.timing.total * 1e-3;
            good = result_place(kept, &command.change.result);
        }
    }
    const struct store_call call = {kept_answered, kept};
    if (!good || store_client_submit(ledger->client, &command, call) != KILN_OK) {
        kept_pause(kept);
    }
}

/* ---- all of them ---- */

static struct kept *ended_take(struct ledger *ledger) {
    pthread_mutex_lock(&ledger->lock);
    struct kept *ended = ledger->ended;
    ledger->ended = NULL;
    pthread_mutex_unlock(&ledger->lock);
    return ended;
}

static void begin(struct ledger *ledger, struct kept *place) {
    struct job_id id = ledger->queue[ledger->queue_first];
    ledger->queue_first = (ledger->queue_first + 1) % ledger->queue_room;
    ledger->queue_count--;
    if (kept_find(ledger, &id) != NULL) {
        return;
    }
    memset(place, 0, offsetof(struct kept, outcome));
    place->ledger = ledger;
    kept_name(place, &id);
    kept_go(place, KEPT_LOAD);
}

void ledger_run(struct ledger *ledger) {
    bool begins = atomic_load(&ledger->ready) && !atomic_load(&ledger->stopping) &&
                  !atomic_load(ledger->options.draining);
    uint64_t now = clock_ns();
    for (struct kept *kept = ended_take(ledger), *next; kept != NULL; kept = next) {
        next = kept->ended;
        kept_ended(kept);
    }
    for (size_t i = 0; i < LEDGER_RUNNING; i++) {
        struct kept *kept = &ledger->running[i];
        bool free = job_id_empty(&kept->id);
        if (!free && kept->again_ns != 0 && kept->again_ns <= now) {
            kept_step(kept);
        } else if (free && begins && ledger->queue_count > 0) {
            begin(ledger, kept);
        }
    }
}

void ledger_revoke(struct ledger *ledger, const struct job_id *id) {
    struct kept *kept = kept_find(ledger, id);
    struct jobs *jobs = ledger->options.jobs;
    if (kept == NULL) {
        return;
    }
    kept->cancelled = true; /* ends so, whenever it does */
    if (jobs_enter(jobs)) {
        jobs_cancel(jobs, id);
        jobs_leave(jobs);
    }
}

bool ledger_settled(struct ledger *ledger) {
    bool settled = true;
    for (size_t i = 0; i < LEDGER_RUNNING; i++) {
        const struct kept *kept = &ledger->running[i];
        settled = settled && (job_id_empty(&kept->id) || kept->stage < KEPT_RUN);
    }
    return settled;
}

uint64_t ledger_run_due(struct ledger *ledger) {
    uint64_t due = UINT64_MAX;
    for (size_t i = 0; i < LEDGER_RUNNING; i++) {
        const struct kept *kept = &ledger->running[i];
        if (!job_id_empty(&kept->id) && kept->again_ns != 0 && kept->again_ns < due) {
            due = kept->again_ns;
        }
    }
    return due;
}

void ledger_run_finish(struct ledger *ledger) {
    for (size_t i = 0; i < LEDGER_RUNNING; i++) {
        if (!job_id_empty(&ledger->running[i].id)) {
            kept_drop(&ledger->running[i]);
        }
    }
}
