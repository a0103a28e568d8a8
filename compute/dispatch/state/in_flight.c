/*
 * in_flight.c: what one worker has.
 */
#include "compute/dispatch/state/in_flight.h"

#include <assert.h>

bool in_flight_room(const struct in_flight *flight) {
    return flight->busy < flight->slots && flight->running < PLACES_MAX && !flight->exclusive;
}

int in_flight_slot(const struct in_flight *flight) {
    int slot = 0;
    while (slot < flight->slots && flight->left[slot] > 0) {
        slot++;
    }
    assert(slot < flight->slots);
    return slot;
}

int in_flight_free(const struct in_flight *flight, int from) {
    while (from < PLACES_MAX && flight->place[from].job != NULL) {
        from++;
    }
    return from;
}

void in_flight_put(struct in_flight *flight, int slot, struct job *const *jobs, const int *places,
                   int count) {
    if (flight->running == 0) {
        flight->active_since_ns = jobs[0]->started_ns;
    }
    for (int i = 0; i < count; i++) {
        struct place *place = &flight->place[places[i]];
        place->job = jobs[i];
        place->slot = slot;
        flight->memory_used += jobs[i]->plan.device_bytes;
        jobs[i]->state = JOB_RUNNING;
    }
    flight->running += count;
    flight->left[slot] = count;
    flight->busy++;
    flight->exclusive = jobs[0]->attempt > 0;
}

struct job *in_flight_clear(struct in_flight *flight, int at) {
    struct place *place = &flight->place[at];
    struct job *job = place->job;
    flight->memory_used -= job->plan.device_bytes;
    place->job = NULL;
    if (--flight->running == 0) {
        flight->active_ns += clock_ns() - flight->active_since_ns;
    }
    if (--flight->left[place->slot] == 0) {
        flight->busy--;
        flight->exclusive = false;
    }
    return job;
}

void in_flight_cancel(struct in_flight *flight, int place, enum job_state state) {
    atomic_store(&flight->control[place].cancel, 1);
    flight->place[place].job->state = state;
}

bool in_flight_holds(const struct in_flight *flight, uint32_t place, uint32_t generation,
                     const struct job_id *id) {
    if (place >= PLACES_MAX) {
        return false;
    }
    const struct place *at = &flight->place[place];
    return at->job != NULL && at->generation == generation && job_id_equal(&at->job->id, id);
}

uint64_t in_flight_active(const struct in_flight *flight, uint64_t now) {
    return flight->active_ns + (flight->running > 0 ? now - flight->active_since_ns : 0);
}
