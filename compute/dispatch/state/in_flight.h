/*
 * in_flight.h: what one worker has: packets in its slots, jobs in its places.
 *
 * A packet takes a slot, of which there are as many as the worker has threads; each of its commands
 * takes a place, which holds the job and its control block until the answer is in or the worker's
 * end is certain. A slot is free again when the last of its packet's jobs has ended.
 *
 * Threads: under the queue's lock.
 */
#ifndef KILN_COMPUTE_DISPATCH_STATE_IN_FLIGHT_H
#define KILN_COMPUTE_DISPATCH_STATE_IN_FLIGHT_H

#include "compute/jobs/job.h"

#define SLOTS_MAX  64  /* of one worker */
#define PLACES_MAX 128 /* for commands of one worker: groups put several into a slot */

/* How far a job is; JOB_FREE is nowhere: not taken yet, or ended. */
enum job_state { JOB_FREE, JOB_QUEUED, JOB_RUNNING, JOB_EXPIRING, JOB_CANCELLING, JOB_FAULTED };

/** One command that the worker has. */
struct place {
    struct job *job;
    uint32_t generation;     /* how many jobs have been here, this one included */
    int slot;                /* of the packet that it went in */
    int before;              /* worker of the job's last run, -1: none */
    struct block orphans[2]; /* of a job that was completed although its worker may still write */
};

struct in_flight {
    struct place place[PLACES_MAX];
    int left[SLOTS_MAX];      /* jobs left of each packet that a slot works on; 0: a free slot */
    int slots, busy;          /* slots; those with a packet */
    int running;              /* jobs, the canary included */
    int gather;               /* jobs that may share a packet */
    bool exclusive;           /* runs a suspect: nothing beside it */
    uint64_t memory_used;     /* of the device, by the jobs that run, as planned */
    uint64_t active_ns;       /* time with jobs on it, up to */
    uint64_t active_since_ns; /* when it has had some, where it has */
    struct control *control;  /* PLACES_MAX of them, in the arena; NULL: no worker yet */
};

/** Room for one more packet? */
bool in_flight_room(const struct in_flight *flight);
/** A free slot, where there is room. */
int in_flight_slot(const struct in_flight *flight);
/** The first free place from `from` on; PLACES_MAX if there is none. */
int in_flight_free(const struct in_flight *flight, int from);
/** Puts the jobs of one packet into their places and its slot; they are RUNNING from now on. */
void in_flight_put(struct in_flight *flight, int slot, struct job *const *jobs, const int *places,
                   int count);
/** Takes the job out of its place and returns it. */
struct job *in_flight_clear(struct in_flight *flight, int place);
/** Asks the running job in this place to stop. */
void in_flight_cancel(struct in_flight *flight, int place, enum job_state state);
/** Whether the job with this id is in this place, in this generation: what an answer claims. */
bool in_flight_holds(const struct in_flight *flight, uint32_t place, uint32_t generation,
                     const struct job_id *id);
/** Summed time with jobs, up to `now`. */
uint64_t in_flight_active(const struct in_flight *flight, uint64_t now);

#endif
