/*
 * command.c: packing and unpacking of commands and answers (command.h). Reentrant.
 */
#include "compute/store/command.h"

#include "compute/store/record.h"

#include <string.h>

#define MAGIC INT64_C(0x6b73746f72653031) /* "kstore01" */

/* ---- parts ---- */

static bool place_pack(struct pack *pack, const struct store_bytes *bytes,
                       const struct store_arena *arena) {
    const uint8_t *data = bytes->data;
    bool inside = bytes->size == 0 || (data >= arena->base && bytes->size <= arena->size &&
                                       (size_t)(data - arena->base) <= arena->size - bytes->size);
    pack_number(pack, bytes->size > 0 && inside ? data - arena->base : 0);
    pack_number(pack, (int64_t)bytes->size);
    return inside;
}

static void place_unpack(struct unpack *unpack, const struct store_arena *arena,
                         struct store_bytes *bytes) {
    int64_t most = (int64_t)arena->size;
    int64_t offset = unpack_range(unpack, 0, most);
    int64_t size = unpack_range(unpack, 0, most - offset);
    *bytes = (struct store_bytes){arena->base + offset, (size_t)size};
}

/* A text that may be NULL. */
static void choice_pack(struct pack *pack, const char *text) {
    pack_number(pack, text != NULL);
    pack_text(pack, text != NULL ? text : "");
}

static const char *choice_unpack(struct unpack *unpack) {
    bool there = unpack_range(unpack, 0, 1) == 1;
    const char *text = unpack_text(unpack, STORE_NAME_MAX);
    return there ? text : NULL;
}

static void id_pack(struct pack *pack, const struct job_id *id) {
    pack_bytes(pack, id->bytes, JOB_ID_SIZE);
}

static void id_unpack(struct unpack *unpack, struct job_id *id) {
    unpack_bytes(unpack, id->bytes, JOB_ID_SIZE);
}

/* ---- commands ---- */

static bool accept_pack(struct pack *pack, const struct store_command *command,
                        const struct store_arena *arena) {
    const struct store_accept *accept = &command->accept;
    pack_number(pack, (int64_t)accept->count);
    pack_text(pack, accept->owner);
    pack_text(pack, accept->key);
    pack_bytes(pack, accept->fingerprint, STORE_HASH);
    id_pack(pack, &accept->batch);
    return accept->count == 1 ? store_lines_pack(pack, accept, arena)
                              : place_pack(pack, &command->lines, arena);
}

static void accept_unpack(struct unpack *unpack, const struct store_arena *arena,
                          struct store_command *command) {
    struct store_accept *accept = &command->accept;
    accept->count = (size_t)unpack_range(unpack, 1, STORE_BATCH_MAX);
    accept->owner = unpack_text(unpack, STORE_NAME_MAX);
    accept->key = unpack_text(unpack, STORE_NAME_MAX);
    unpack_bytes(unpack, accept->fingerprint, STORE_HASH);
    id_unpack(unpack, &accept->batch);
    accept->jobs = &command->job;
    accept->inputs = &command->input;
    if (accept->count == 1) {
        record_unpack(unpack, &command->job);
        place_unpack(unpack, arena, &command->input);
    } else {
        place_unpack(unpack, arena, &command->lines);
        unpack->bad = unpack->bad || command->lines.size > STORE_LINES_MAX;
    }
}

static bool change_pack(struct pack *pack, const struct store_change *change,
                        const struct store_arena *arena) {
    pack_number(pack, change->verb);
    id_pack(pack, &change->id);
    pack_number(pack, change->attempt);
    pack_number(pack, change->state);
    pack_number(pack, change->losses);
    pack_real(pack, change->seconds);
    pack_text(pack, change->outcome);
    pack_text(pack, change->node);
    return place_pack(pack, &change->result, arena);
}

static void change_unpack(struct unpack *unpack, const struct store_arena *arena,
                          struct store_change *change) {
    change->verb = (enum store_verb)unpack_range(unpack, STORE_START, STORE_FETCHED);
    id_unpack(unpack, &change->id);
    change->attempt = unpack_range(unpack, 0, INT64_MAX - 1);
    change->state = unpack_range(unpack, 0, STORE_STATES - 1);
    change->losses = unpack_range(unpack, 0, 1);
    change->seconds = unpack_real(unpack);
    change->outcome = unpack_text(unpack, STORE_OUTCOME_MAX);
    change->node = unpack_text(unpack, STORE_NAME_MAX);
    place_unpack(unpack, arena, &change->result);
}

static void filter_pack(struct pack *pack, const struct store_filter *filter) {
    choice_pack(pack, filter->owner);
    choice_pack(pack, filter->type);
    choice_pack(pack, filter->label);
    pack_number(pack, filter->states);
    id_pack(pack, &filter->batch);
    id_pack(pack, &filter->after);
    pack_number(pack, filter->oldest_first);
    pack_number(pack, filter->short_rows);
    pack_number(pack, filter->limit);
}

static void filter_unpack(struct unpack *unpack, struct store_filter *filter) {
    filter->owner = choice_unpack(unpack);
    filter->type = choice_unpack(unpack);
    filter->label = choice_unpack(unpack);
    filter->states = (uint32_t)unpack_range(unpack, 0, (1 << STORE_STATES) - 1);
    id_unpack(unpack, &filter->batch);
    id_unpack(unpack, &filter->after);
    filter->oldest_first = unpack_range(unpack, 0, 1) == 1;
    filter->short_rows = unpack_range(unpack, 0, 1) == 1;
    filter->limit = unpack_range(unpack, 1, STORE_PAGE_MAX);
}

static void calibration_unpack(struct unpack *unpack, struct store_calibration *row) {
    row->type = unpack_text(unpack, STORE_NAME_MAX);
    row->variant = unpack_text(unpack, STORE_NAME_MAX);
    row->device = unpack_text(unpack, STORE_NAME_MAX);
    row->a = unpack_real(unpack);
    row->b = unpack_real(unpack);
    row->n = unpack_real(unpack);
}

void store_calibration_pack(struct pack *pack, const struct store_calibration *row) {
    pack_text(pack, row->type);
    pack_text(pack, row->variant);
    pack_text(pack, row->device);
    pack_real(pack, row->a);
    pack_real(pack, row->b);
    pack_real(pack, row->n);
}

static void delivery_unpack(struct unpack *unpack, struct store_delivery *delivery) {
    delivery->seq = unpack_range(unpack, 0, INT64_MAX);
    id_unpack(unpack, &delivery->job);
    delivery->endpoint = unpack_text(unpack, STORE_HOOK_MAX);
    delivery->due = unpack_range(unpack, 0, INT64_MAX);
    delivery->tries = unpack_range(unpack, 0, INT64_MAX);
    delivery->status = unpack_range(unpack, 0, INT64_MAX);
}

void store_delivery_pack(struct pack *pack, const struct store_delivery *delivery) {
    pack_number(pack, delivery->seq);
    id_pack(pack, &delivery->job);
    pack_text(pack, delivery->endpoint);
    pack_number(pack, delivery->due);
    pack_number(pack, delivery->tries);
    pack_number(pack, delivery->status);
}

bool store_command_pack(struct pack *pack, const struct store_command *command,
                        const struct store_arena *arena) {
    bool inside = true;
    pack_number(pack, MAGIC);
    pack_number(pack, (int64_t)command->ticket);
    pack_number(pack, command->task);
    if (command->task == TASK_ACCEPT) {
        inside = accept_pack(pack, command, arena);
    } else if (command->task == TASK_CHANGE) {
        inside = change_pack(pack, &command->change, arena);
    } else if (command->task == TASK_CALIBRATE) {
        store_calibration_pack(pack, &command->calibration);
    } else if (command->task == TASK_DELIVERED) {
        store_delivery_pack(pack, &command->delivery);
    } else if (command->task == TASK_GET || command->task == TASK_OPEN) {
        id_pack(pack, &command->id);
        pack_number(pack, command->of_input);
    } else if (command->task == TASK_LIST) {
        filter_pack(pack, &command->filter);
    } else if (command->task == TASK_EVENTS) {
        pack_number(pack, command->events.after);
        id_pack(pack, &command->events.job);
        choice_pack(pack, command->events.owner);
        pack_number(pack, command->events.limit);
    } else if (command->task == TASK_DELIVERIES) {
        pack_number(pack, command->now);
        pack_number(pack, command->limit);
    }
    return inside && !pack->full;
}

bool store_command_unpack(const uint8_t *packet, size_t size, const struct store_arena *arena,
                          struct store_command *command) {
    struct unpack unpack = {.data = packet, .size = size};
    memset(command, 0, sizeof *command);
    unpack.bad = unpack_number(&unpack) != MAGIC;
    command->ticket = (uint64_t)unpack_number(&unpack);
    command->task = (enum store_task)unpack_range(&unpack, TASK_ACCEPT, TASK_COUNT - 1);
    if (command->task == TASK_ACCEPT) {
        accept_unpack(&unpack, arena, command);
    } else if (command->task == TASK_CHANGE) {
        change_unpack(&unpack, arena, &command->change);
    } else if (command->task == TASK_CALIBRATE) {
        calibration_unpack(&unpack, &command->calibration);
    } else if (command->task == TASK_DELIVERED) {
        delivery_unpack(&unpack, &command->delivery);
    } else if (command->task == TASK_GET || command->task == TASK_OPEN) {
        id_unpack(&unpack, &command->id);
        command->of_input = unpack_range(&unpack, 0, 1) == 1;
    } else if (command->task == TASK_LIST) {
        filter_unpack(&unpack, &command->filter);
    } else if (command->task == TASK_EVENTS) {
        command->events.after = unpack_range(&unpack, 0, INT64_MAX);
        id_unpack(&unpack, &command->events.job);
        command->events.owner = choice_unpack(&unpack);
        command->events.limit = unpack_range(&unpack, 1, STORE_PAGE_MAX);
    } else if (command->task == TASK_DELIVERIES) {
        command->now = unpack_range(&unpack, 0, INT64_MAX);
        command->limit = unpack_range(&unpack, 1, STORE_PAGE_MAX);
    }
    return unpack_done(&unpack);
}

bool store_lines_pack(struct pack *pack, const struct store_accept *accept,
                      const struct store_arena *arena) {
    static const struct store_bytes none;
    bool inside = true;
    for (size_t i = 0; i < accept->count && inside && !pack->full; i++) {
        record_pack(pack, &accept->jobs[i]);
        inside = place_pack(pack, accept->inputs != NULL ? &accept->inputs[i] : &none, arena);
    }
    return inside && !pack->full;
}

bool store_lines_unpack(const uint8_t *lines, size_t size, const struct store_arena *arena,
                        const struct store_accept *accept, struct store_job *jobs,
                        struct store_bytes *inputs) {
    struct unpack unpack = {.data = lines, .size = size};
    for (size_t i = 0; i < accept->count && !unpack.bad; i++) {
        record_unpack(&unpack, &jobs[i]);
        place_unpack(&unpack, arena, &inputs[i]);
    }
    return unpack_done(&unpack);
}

/* ---- answers ---- */

static void changed_pack(struct pack *pack, const struct store_changed *changed) {
    pack_number(pack, changed->state);
    pack_number(pack, changed->revision);
    pack_number(pack, changed->attempt);
    pack_number(pack, changed->cancel);
    pack_number(pack, changed->event);
    pack_bytes(pack, changed->result, STORE_HASH);
    pack_number(pack, changed->repeated);
}

static void changed_unpack(struct unpack *unpack, struct store_changed *changed) {
    changed->state = unpack_range(unpack, 0, STORE_STATES - 1);
    changed->revision = unpack_number(unpack);
    changed->attempt = unpack_number(unpack);
    changed->cancel = unpack_range(unpack, 0, 1);
    changed->event = unpack_number(unpack);
    unpack_bytes(unpack, changed->result, STORE_HASH);
    changed->repeated = unpack_range(unpack, 0, 1) == 1;
}

static void content_pack(struct pack *pack, const struct store_content *content) {
    bool inside = content->fd < 0 && content->data != NULL;
    pack_number(pack, (int64_t)content->size);
    pack_number(pack, inside);
    if (inside) {
        pack_bytes(pack, content->data, (size_t)content->size);
    }
}

static void content_unpack(struct unpack *unpack, struct store_content *content) {
    content->fd = -1;
    content->size = (uint64_t)unpack_range(unpack, 0, INT64_MAX);
    if (unpack_range(unpack, 0, 1) == 0) {
        return;
    }
    content->data = unpack->data + unpack->at;
    if (unpack->bad || content->size > unpack->size - unpack->at) {
        unpack->bad = true;
        content->size = 0;
    }
    unpack->at += content->size;
}

bool store_answer_pack(struct pack *pack, const struct store_answer *answer,
                       const struct pack *rows) {
    pack_number(pack, MAGIC);
    pack_number(pack, (int64_t)answer->ticket);
    pack_number(pack, answer->task);
    pack_number(pack, answer->status);
    if (answer->task == TASK_ACCEPT) {
        id_pack(pack, &answer->accepted.id);
        pack_number(pack, answer->accepted.created);
        pack_number(pack, answer->accepted.event);
        pack_number(pack, answer->accepted.repeated);
    } else if (answer->task == TASK_CHANGE) {
        changed_pack(pack, &answer->changed);
    } else if (answer->task == TASK_GET) {
        record_pack(pack, &answer->job);
    } else if (answer->task == TASK_OPEN) {
        content_pack(pack, &answer->content);
    } else if (answer->task == TASK_STATS || answer->task == TASK_READY) {
        pack_bytes(pack, &answer->stats, sizeof answer->stats);
    } else if (rows != NULL) {
        id_pack(pack, &answer->page.next);
        pack_number(pack, answer->page.more);
        pack_number(pack, answer->count);
        pack_bytes(pack, rows->data, rows->size);
    }
    return !pack->full;
}

bool store_answer_unpack(const uint8_t *packet, size_t size, struct store_answer *answer) {
    struct unpack unpack = {.data = packet, .size = size};
    memset(answer, 0, sizeof *answer);
    answer->content.fd = -1;
    answer->job = record_empty;
    unpack.bad = unpack_number(&unpack) != MAGIC;
    answer->ticket = (uint64_t)unpack_number(&unpack);
    answer->task = (enum store_task)unpack_range(&unpack, TASK_READY, TASK_COUNT - 1);
    answer->status = (enum kiln_status)unpack_range(&unpack, 0, KILN_STATUS_COUNT - 1);
    if (answer->task == TASK_ACCEPT) {
        id_unpack(&unpack, &answer->accepted.id);
        answer->accepted.created = unpack_number(&unpack);
        answer->accepted.event = unpack_number(&unpack);
        answer->accepted.repeated = unpack_range(&unpack, 0, 1) == 1;
    } else if (answer->task == TASK_CHANGE) {
        changed_unpack(&unpack, &answer->changed);
    } else if (answer->task == TASK_GET) {
        record_unpack(&unpack, &answer->job);
    } else if (answer->task == TASK_OPEN) {
        content_unpack(&unpack, &answer->content);
    } else if (answer->task == TASK_STATS || answer->task == TASK_READY) {
        unpack_bytes(&unpack, &answer->stats, sizeof answer->stats);
    } else if (answer->task >= TASK_LIST) {
        id_unpack(&unpack, &answer->page.next);
        answer->page.more = unpack_range(&unpack, 0, 1) == 1;
        answer->count = unpack_range(&unpack, 0, STORE_PAGE_MAX);
        answer->rows = (struct unpack){.data = unpack.data, .size = unpack.size, .at = unpack.at};
        return !unpack.bad;
    }
    return unpack_done(&unpack);
}

/* ---- rows ---- */

void store_event_pack(struct pack *pack, const struct store_event *event) {
    pack_number(pack, event->seq);
    id_pack(pack, &event->job);
    pack_text(pack, event->owner);
    pack_number(pack, event->at);
    pack_number(pack, event->kind);
    pack_number(pack, event->attempt);
}

/* Whether there is another row to be read, and then, whether it was one. */
static bool row_next(struct store_answer *answer) {
    return answer->count > 0 && answer->count-- > 0 && !answer->rows.bad;
}

bool store_answer_job(struct store_answer *answer, struct store_job *job) {
    if (!row_next(answer)) {
        return false;
    }
    record_unpack(&answer->rows, job);
    return !answer->rows.bad;
}

bool store_answer_event(struct store_answer *answer, struct store_event *event) {
    if (!row_next(answer)) {
        return false;
    }
    event->seq = unpack_number(&answer->rows);
    id_unpack(&answer->rows, &event->job);
    event->owner = unpack_text(&answer->rows, STORE_NAME_MAX);
    event->at = unpack_number(&answer->rows);
    event->kind = unpack_range(&answer->rows, 0, STORE_EVENT_KINDS - 1);
    event->attempt = unpack_number(&answer->rows);
    return !answer->rows.bad;
}

bool store_answer_delivery(struct store_answer *answer, struct store_delivery *delivery) {
    if (!row_next(answer)) {
        return false;
    }
    delivery_unpack(&answer->rows, delivery);
    return !answer->rows.bad;
}

bool store_answer_calibration(struct store_answer *answer, struct store_calibration *row) {
    if (!row_next(answer)) {
        return false;
    }
    calibration_unpack(&answer->rows, row);
    return !answer->rows.bad;
}
