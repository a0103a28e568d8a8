/*
 * packet.c: commands on their way to a worker.
 */
#include "compute/dispatch/state/packet.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define PACKETS_MAX 256 /* on their way at a time; untouched ones are no memory */

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
    };
    memcpy(command->params, job->params, sizeof command->params);
    memcpy(command->inputs, job->inputs, job_type_inputs(job->type) * sizeof *job->inputs);
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

enum kiln_status packets_init(struct packets *packets) {
    *packets = (struct packets){.all = calloc(PACKETS_MAX, sizeof *packets->all)};
    if (packets->all == NULL) {
        return KILN_NO_MEMORY;
    }
    packets->last = &packets->first;
    return KILN_OK;
}

void packets_finish(struct packets *packets) {
    free(packets->all);
}

static struct packet *spare_take(struct packets *packets) {
    if (packets->spare == NULL) {
        packets->spare = atomic_exchange(&packets->sent, NULL);
    }
    struct packet *packet = packets->spare;
    if (packet != NULL) {
        packets->spare = packet->next;
        packet->next = NULL;
        return packet;
    }
    return packets->used < PACKETS_MAX ? &packets->all[packets->used++] : NULL;
}

enum kiln_status packets_put(struct packets *packets, struct supervisor *supervisor,
                             struct job *const *jobs, int count) {
    struct in_flight *flight = &supervisor->flight;
    int places[GROUP_MAX], place = -1, slot = in_flight_slot(flight);
    struct packet *packet = spare_take(packets);
    assert(count >= 1 && count <= GROUP_MAX);
    if (packet == NULL) {
        return KILN_BUSY;
    }
    for (int i = 0; i < count; i++) {
        places[i] = place = in_flight_free(flight, place + 1);
        assert(place < PLACES_MAX);
        command_make(supervisor, jobs[i], place, &packet->commands[i]);
        flight->place[place].before = jobs[i]->worker;
        jobs[i]->worker = supervisor->index;
    }
    in_flight_put(flight, slot, jobs, places, count);
    packet->target = (struct packet_target){supervisor, supervisor->process,
                                            .socket = supervisor->job_fd, .slot = slot};
    packet->count = (size_t)count;
    atomic_fetch_add(&supervisor->sending, 1);
    *packets->last = packet;
    packets->last = &packet->next;
    return KILN_OK;
}

struct packet *packets_take(struct packets *packets) {
    struct packet *first = packets->first;
    packets->first = NULL;
    packets->last = &packets->first;
    return first;
}

int packet_send(struct packets *packets, struct packet *packet) {
    ssize_t size =
        send(packet->target.socket, packet->commands,
             commands_pack(packet->commands, packet->count), MSG_DONTWAIT | MSG_NOSIGNAL);
    int error = size < 0 ? errno : 0;
    atomic_fetch_sub(&packet->target.supervisor->sending, 1);
    packet->next = atomic_load(&packets->sent);
    while (!atomic_compare_exchange_weak(&packets->sent, &packet->next, packet)) {
    }
    return error;
}
