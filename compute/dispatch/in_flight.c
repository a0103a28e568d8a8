/*
 * in_flight.c: what a worker has to do: packets in its slots, jobs in its places.
 *
 * A packet takes a slot, of which there are as many as the worker has threads; each of its commands
 * takes a place, which holds the job and its control block until the answer is in or the worker's
 * end is certain. A slot is free again when the last of its packet's jobs has ended.
 *
 * Threads: under the dispatcher's lock.
 */
#include "compute/dispatch/private.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

struct control *place_control(const struct dispatch *dispatch, const struct supervisor *supervisor,
                              int place) {
    return (struct control *)arena_at(dispatch->arena, supervisor->control.offset) + place;
}

/* The first free place from `from` on. */
static int free_place(const struct supervisor *supervisor, int from) {
    while (from < PLACES_MAX && supervisor->place[from].job) {
        from++;
    }
    return from;
}

static int free_group(const struct supervisor *supervisor) {
    int group = 0;
    while (group < supervisor->slots && supervisor->group[group] > 0) {
        group++;
    }
    return group;
}

static void command_fill(struct command *command, const struct supervisor *supervisor,
                         const struct job *job, int place) {
    *command = (struct command){
        .magic = COMMAND_MAGIC,
        .type = job_type_index(job->type),
        .id = job->id,
        .format = (int32_t)job->format,
        .attempt = job->attempt,
        .submitted_ns = job->submitted_ns,
        .started_ns = job->started_ns,
        .data_offset = job->body.offset,
        .data_size = job->body.size,
        .result_offset = job->result.offset,
        .result_size = job->result.size,
        .control_offset = supervisor->control.offset + (uint64_t)place * sizeof(struct control),
        .trace = job->trace,
    };
    memcpy(command->params, job->params, sizeof command->params);
    memcpy(command->inputs, job->inputs, job_type_inputs(job->type) * sizeof *job->inputs);
}

/* Gives the job a result block and a place; false without memory. */
static bool command_make(struct dispatch *dispatch, struct supervisor *supervisor, struct job *job,
                         int place, struct command *command) {
    if (job->result.size == 0 && memory_take_result(dispatch, job) != KILN_OK) {
        return false;
    }
    job->started_ns = clock_ns();
    struct control *control = place_control(dispatch, supervisor, place);
    atomic_store(&control->cancel, 0);
    atomic_store(&control->progress, 0);
    command_fill(command, supervisor, job, place);
    return true;
}

static void job_place(struct dispatch *dispatch, struct supervisor *supervisor, struct job *job,
                      int place, int group) {
    supervisor->place[place].job = job;
    supervisor->place[place].group = group;
    if (supervisor->running++ == 0) {
        supervisor->active_since_ns = job->started_ns;
    }
    supervisor->memory_used += job->plan.device_bytes;
    job->state = JOB_RUNNING;
    job->worker = (int)(supervisor - dispatch->supervisors);
    dispatch->stats.running += !supervisor_canary(supervisor, job);
}

enum kiln_status places_send_locked(struct dispatch *dispatch, struct supervisor *supervisor,
                                    struct job *const *jobs, int *count) {
    struct command commands[GROUP_MAX];
    int places[GROUP_MAX], made = 0, group = free_group(supervisor);
    assert(group < supervisor->slots && *count <= GROUP_MAX);
    for (int place = free_place(supervisor, 0); made < *count && place < PLACES_MAX;
         place = free_place(supervisor, place + 1)) {
        if (!command_make(dispatch, supervisor, jobs[made], place, &commands[made])) {
            break;
        }
        places[made++] = place;
    }
    if (made == 0) {
        return KILN_NO_MEMORY;
    }
    if (send(supervisor->job_fd, commands, commands_pack(commands, (size_t)made),
             MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR) {
            return KILN_BUSY;
        }
        supervisor_kill_locked(supervisor, "its socket is closed");
        return KILN_NO_DEVICE;
    }
    for (int i = 0; i < made; i++) {
        job_place(dispatch, supervisor, jobs[i], places[i], group);
    }
    supervisor->group[group] = made;
    supervisor->busy++;
    supervisor->exclusive = jobs[0]->attempt > 0;
    *count = made;
    return KILN_OK;
}

void place_cancel_locked(struct dispatch *dispatch, struct supervisor *supervisor, int place,
                         enum job_state state) {
    atomic_store(&place_control(dispatch, supervisor, place)->cancel, 1);
    supervisor->place[place].job->state = state;
}

void place_clear_locked(struct dispatch *dispatch, struct supervisor *supervisor, int at) {
    struct place *place = &supervisor->place[at];
    dispatch->stats.running -= !supervisor_canary(supervisor, place->job);
    supervisor->memory_used -= place->job->plan.device_bytes;
    place->job = NULL;
    if (--supervisor->running == 0) {
        supervisor->active_ns += clock_ns() - supervisor->active_since_ns;
    }
    if (--supervisor->group[place->group] == 0) {
        supervisor->busy--;
        supervisor->exclusive = false;
    }
}

int place_find(const struct supervisor *supervisor, const struct job_id *id) {
    for (int i = 0; i < PLACES_MAX; i++) {
        if (supervisor->place[i].job && job_id_equal(&supervisor->place[i].job->id, id)) {
            return i;
        }
    }
    return -1;
}
