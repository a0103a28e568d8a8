/*
 * task.c: from commands to answers: one job by itself, or a group of them.
 *
 * A command comes from the front, which has validated it; it is checked here again, against the
 * arena's size and the kind's table, so that a wrong number ends in an answer and not in a wild
 * write. Nothing is allocated.
 *
 * A group is what came in one packet. If its kind can, all of it runs between one begin and one
 * finish. Where that fails for any reason but a device fault, each job runs by itself, so that one
 * job's failure is never another's.
 *
 * Threads: a slot's, with its stream.
 */
#include "compute/worker/private.h"

#include <stdio.h>
#include <string.h>

/* Does [offset, offset + size) lie in a space of `total` bytes? */
static bool lies_within(uint64_t offset, uint64_t size, uint64_t total) {
    return offset <= total && size <= total - offset;
}

static bool has_format(const struct job_type *type, enum format format) {
    for (const enum format *known = type->formats; *known != FORMAT_NONE; known++) {
        if (*known == format) {
            return true;
        }
    }
    return false;
}

/* Each input is of the kind's sort, in the block; one that is not there is the kind's to notice. */
static bool inputs_check(const struct job_type *type, const struct command *command) {
    size_t count = job_type_inputs(type);
    for (size_t i = 0; i < count; i++) {
        const struct input *input = &command->inputs[i];
        bool absent = i > 0 && input->kind == INPUT_NONE;
        if ((input->kind != (int32_t)type->input && !absent) ||
            !lies_within(input->offset, input->size, command->data_size)) {
            return false;
        }
    }
    return true;
}

/* The kind of a command whose numbers are all sound, or NULL. */
static const struct job_type *command_check(const struct worker *worker,
                                            const struct command *command) {
    uint64_t total = worker->options->arena_size;
    const struct job_type *type = job_type_at(command->type);
    bool sound = type != NULL && command->magic == COMMAND_MAGIC &&
                 has_format(type, (enum format)command->format) &&
                 command->data_offset % ARENA_PAGE == 0 &&
                 command->result_offset % ARENA_PAGE == 0 &&
                 lies_within(command->data_offset, command->data_size, total) &&
                 lies_within(command->result_offset, command->result_size, total) &&
                 command->result_size > 0 && inputs_check(type, command) &&
                 command->control_offset % _Alignof(struct control) == 0 &&
                 lies_within(command->control_offset, sizeof(struct control), total);
    return sound ? type : NULL;
}

enum kiln_status task_run(struct task *task, const struct job_type *type, struct control *control) {
    const struct backend *backend = task->backend;
    enum kiln_status status = backend->begin(task->stream, control);
    if (status == KILN_OK) {
        status = type->run(task);
        enum kiln_status end = backend->finish(task->stream, task->timing);
        /* A sticky error is the device's last word, whatever the job made of it. */
        status = status == KILN_OK || end == KILN_DEVICE_FAULT ? end : status;
    }
    if ((unsigned)status >= KILN_STATUS_COUNT) {
        status = KILN_INTERNAL;
    }
    if (status == KILN_OK && task->size > task->capacity) {
        status = KILN_INTERNAL;
        snprintf(task->detail, sizeof task->detail, "the result outgrew its declared bound");
    }
    if (status != KILN_OK && task->detail[0] == '\0') {
        const char *error = backend->error(task->stream);
        snprintf(task->detail, sizeof task->detail, "%s",
                 error != NULL && *error ? error : status_row(status)->title);
    }
    return status;
}

/* What a sound command asks for. */
static void task_make(const struct worker *worker, struct stream *stream,
                      const struct command *command, struct answer *answer, struct task *task) {
    *task = (struct task){
        .backend = worker->backend,
        .stream = stream,
        .pool = worker->pool,
        .params = command->params,
        .input = command->inputs,
        .data = command->data_size ? worker->arena + command->data_offset : NULL,
        .format = (enum format)command->format,
        .result = worker->arena + command->result_offset,
        .capacity = command->result_size,
        .device_name = worker->options->device,
        .id = command->id,
        .timing = &answer->timing,
        .started_ns = command->submitted_ns,
    };
}

static void answer_begin(const struct command *command, uint32_t gathered, struct answer *answer) {
    memset(answer, 0, sizeof *answer);
    answer->magic = COMMAND_MAGIC;
    answer->id = command->id;
    answer->place = command->place;
    answer->generation = command->generation;
    answer->gathered = gathered;
    answer->timing.queue = (double)(command->started_ns - command->submitted_ns) * 1e-6;
}

static void answer_end(const struct command *command, const struct task *task,
                       enum kiln_status status, struct answer *answer) {
    answer->status = status;
    answer->result_size = status == KILN_OK ? task->size : 0;
    answer->remarks = task->remarks;
    answer->timing.total = (double)(clock_ns() - command->submitted_ns) * 1e-6;
    memcpy(answer->detail, task->detail, sizeof answer->detail);
    answer->detail[sizeof answer->detail - 1] = '\0';
}

static void command_run(const struct worker *worker, struct stream *stream,
                        const struct command *command, struct answer *answer) {
    const struct job_type *type = command_check(worker, command);
    struct task task;
    answer_begin(command, 1, answer);
    if (type == NULL) {
        answer->status = KILN_INTERNAL;
        snprintf(answer->detail, sizeof answer->detail, "the worker got an unsound command");
        return;
    }
    task_make(worker, stream, command, answer, &task);
    struct control *control = (struct control *)(void *)(worker->arena + command->control_offset);
    answer_end(command, &task, task_run(&task, type, control), answer);
}

/* ---- groups ---- */

/* The kind that runs them together, or NULL. */
static const struct job_type *group_type(const struct worker *worker,
                                         const struct command *commands, size_t count) {
    const struct job_type *type = command_check(worker, &commands[0]);
    for (size_t i = 1; type != NULL && i < count; i++) {
        if (command_check(worker, &commands[i]) != type ||
            commands[i].format != commands[0].format) {
            type = NULL;
        }
    }
    return type != NULL && type->run_group != NULL ? type : NULL;
}

/* Does every result lie in its block? */
static bool sizes_sound(const struct task *tasks, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (tasks[i].size > tasks[i].capacity) {
            return false;
        }
    }
    return true;
}

/* True if all are answered; else nothing has come of it. */
static bool group_run(const struct worker *worker, struct stream *stream,
                      const struct command *commands, size_t count, struct answer *answers) {
    const struct job_type *type = group_type(worker, commands, count);
    struct task tasks[GROUP_MAX];
    struct timing shared = {0};
    if (type == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        answer_begin(&commands[i], (uint32_t)count, &answers[i]);
        task_make(worker, stream, &commands[i], &answers[i], &tasks[i]);
    }
    enum kiln_status status = worker->backend->begin(stream, NULL);
    if (status == KILN_OK) {
        status = type->run_group(tasks, count);
        enum kiln_status end = worker->backend->finish(stream, &shared);
        status = status == KILN_OK || end == KILN_DEVICE_FAULT ? end : status;
    }
    if (status != KILN_DEVICE_FAULT && (status != KILN_OK || !sizes_sound(tasks, count))) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (status != KILN_OK) {
            snprintf(tasks[i].detail, sizeof tasks[i].detail, "%s", worker->backend->error(stream));
        }
        timing_add(&answers[i].timing, &shared);
        answer_end(&commands[i], &tasks[i], status, &answers[i]);
    }
    return true;
}

size_t commands_run(const struct worker *worker, struct stream *stream,
                    const struct command *commands, size_t count, struct answer *answers) {
    size_t done = 0;
    if (count > 1 && group_run(worker, stream, commands, count, answers)) {
        return count;
    }
    do {
        command_run(worker, stream, &commands[done], &answers[done]);
    } while (answers[done++].status != KILN_DEVICE_FAULT && done < count);
    return done;
}
