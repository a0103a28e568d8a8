/*
 * preparing.h: records whose bodies an offload's thread reads, or that wait for one.
 *
 * They are jobs to be: listed with the others, cancelled like them, and ended by what ends those:
 * the deadline, a client that has left, DELETE, and the daemon's end. A parser sees none of that;
 * it calls cancel_point (compute/core/cancel.h), which asks preparing_ask.
 *
 * Threads: any. Ownership: an entry is a part of its record, from preparing_enter to
 * preparing_leave.
 */
#ifndef KILN_SERVER_JOBS_PREPARING_H
#define KILN_SERVER_JOBS_PREPARING_H

#include "compute/core/cancel.h"
#include "compute/dispatch/dispatch.h"

#include <pthread.h>
#include <stdatomic.h>

/** One record that is being prepared. All but `id` is preparing.c's. */
struct preparation {
    struct job_id id; /* of the job that it becomes; empty: prepared where it was sent */
    uint64_t since_ns, until_ns;
    const struct job_type *type;
    char request_id[REQUEST_ID_MAX + 1];
    uint32_t owner; /* as in its job */
    int fd;         /* the client's socket, -1 for none */
    const _Atomic bool *draining;
    _Atomic bool revoked;
    struct cancel cancel;
    struct preparation *next, *previous;
};

struct preparing {
    pthread_mutex_t lock;
    struct preparation *first, **last; /* oldest first */
    size_t count;
};

void preparing_init(struct preparing *preparing);
void preparing_finish(struct preparing *preparing);

/** Lists the entry, whose facts are filled in. */
void preparing_enter(struct preparing *preparing, struct preparation *preparation);
/** Takes it out: nobody can cancel it by this list any more. */
void preparing_leave(struct preparing *preparing, struct preparation *preparation);

/** Takes it out and calls `move`, which lists it elsewhere, before anybody else looks: who looks
   here first and there then does not miss it. The entry may be gone after `move`, which must not
   come back to this list. False, and nothing done, for one that has been revoked. */
bool preparing_move(struct preparing *preparing, struct preparation *preparation,
                    void (*move)(void *context), void *context);

/** What there is to say against going on with a struct preparation: KILN_OK, KILN_DRAINING,
    KILN_REVOKED, KILN_DEADLINE or KILN_CANCELLED. For cancel_begin. */
enum kiln_status preparing_ask(void *preparation);

/** Copies up to `capacity` views of those that the filter lets through, oldest first; returns how
    many there are in all. */
size_t preparing_list(struct preparing *preparing, const struct job_filter *filter,
                      struct job_view *views, size_t capacity);
/** False if none has this id. */
bool preparing_job(struct preparing *preparing, const struct job_id *id, struct job_view *view);
/** Ends the one with this id as KILN_REVOKED at its next cancellation point; false for none. */
bool preparing_revoke(struct preparing *preparing, const struct job_id *id);

#endif
