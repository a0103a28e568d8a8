/*
 * packet.c: commands on their way to a worker.
 */
#include "compute/dispatch/state/packet.h"

#include "compute/worker/command.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

static void command_fill(struct command *command, const struct supervisor *supervisor,
                         const struct job *job, int place) {
    *command = (struct command){
        .magic = COMMAND_MAGIC,
        .type = job_type_index(job->type),
        .id = job->id,
        .place = (uint32_t)place,
        .generation = supervisor->flight.place[place].generation,
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
        .input = job->input,
    };
    memcpy(command->params, job->params, sizeof command->params);
}

static void command_make(struct supervisor *supervisor, struct job *job, int place,
                         struct command *command) {
    struct control *control = &supervisor->flight.control[place];
    job->started_ns = clock_ns();
    supervisor->flight.place[place].generation++;
    atomic_store(&control->cancel, 0);
    atomic_store(&control->progress, 0);
    command_fill(command, supervisor, job, place);
}

enum kiln_status packet_send(struct supervisor *supervisor, struct job *const *jobs, int count) {
    struct in_flight *flight = &supervisor->flight;
    struct command commands[GROUP_MAX];
    int places[GROUP_MAX], place = -1;
    assert(count >= 1 && count <= GROUP_MAX);
    for (int i = 0; i < count; i++) {
        places[i] = place = in_flight_free(flight, place + 1);
        command_make(supervisor, jobs[i], place, &commands[i]);
    }
    if (send(supervisor->job_fd, commands, (size_t)count * sizeof *commands,
             MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        if (errno == EAGAIN || errno == ENOBUFS || errno == EINTR) {
            return KILN_BUSY;
        }
        supervisor_kill(supervisor, "its socket is closed");
        return KILN_NO_DEVICE;
    }
    for (int i = 0; i < count; i++) {
        jobs[i]->worker = supervisor->index;
    }
    in_flight_put(flight, in_flight_slot(flight), jobs, places, count);
    return KILN_OK;
}
