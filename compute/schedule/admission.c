/*
 * admission.c: limits in seconds, tried from what no waiting will change to what passes soon.
 *
 * Who comes back at the time that it was given is measured by slightly wider limits (BOOKED): the
 * time was an estimate, and the few per cent that it may be wrong by shall not be the client's
 * loss. What may be booked is bounded by the drain, so that this cannot add up.
 *
 * Threads: the caller's lock.
 */
#include "compute/schedule/admission.h"

#include <math.h>

#define FORGET                                                                                     \
    30.0              /* busy seconds of all slots in which half of what was measured is forgotten \
                       */
#define SLOWEST   0.2 /* of the slots, as drain */
#define FASTEST   5.0
#define ODD       8.0  /* times its estimate that one job counts as at most */
#define LEFT      0.1  /* of a run that should have ended */
#define SHARE     2.0  /* of what is left free, that a key may fill */
#define HALF      0.5  /* of the backlog, that a key may fill with what it had booked */
#define BOOKED    1.15 /* times the limits, for who was told to come now */
#define DRAIN_NEW 1.0  /* seconds a slot that the first estimates count */

void drain_add(struct drain *drain, double estimated, double used) {
    used = fmin(fmax(used, estimated / ODD), estimated * ODD);
    double keep = exp2(-used / (FORGET * fmax(drain->slots, 1)));
    if (drain->used == 0) {
        drain->estimated = drain->used = DRAIN_NEW * fmax(drain->slots, 1);
    }
    drain->estimated = drain->estimated * keep + estimated;
    drain->used = drain->used * keep + used;
}

double drain_rate(const struct drain *drain) {
    double speed = drain->used > 0 ? drain->estimated / drain->used : 1;
    return fmax(drain->slots, 1) * fmin(fmax(speed, SLOWEST), FASTEST);
}

double run_left(double estimate, double elapsed) {
    return fmax(estimate - elapsed, LEFT * fmax(estimate, elapsed));
}

double quota_left(const struct quota *quota, double now) {
    if (quota->window <= 0) {
        return INFINITY;
    }
    double back = fmax(now - quota->at, 0) * quota->seconds / quota->window;
    return quota->seconds - fmax(quota->spent - back, 0);
}

void quota_spend(struct quota *quota, double now, double seconds) {
    if (quota->window > 0) {
        quota->spent = fmax(quota->seconds - quota_left(quota, now) + seconds, 0);
        quota->at = now;
    }
}

double quota_wait(const struct quota *quota, double now, double seconds) {
    if (quota->window <= 0) {
        return 0;
    }
    if (seconds > quota->seconds) {
        return INFINITY;
    }
    return fmax(seconds - quota_left(quota, now), 0) * quota->window / quota->seconds;
}

/* The first of the limits that wait for work to be done which does not hold; `over`: by how many
   seconds of work, besides the job's. `run`: seconds that it takes by the clock. */
static enum admission room_try(const struct admission_limits *limits,
                               const struct admission_request *request, double held, double rate,
                               double run, bool booked, double *over) {
    double wider = booked ? BOOKED : 1;
    double backlog = request->waiting + held + request->estimate - limits->backlog * wider;
    if (backlog > 0) {
        *over = backlog - request->estimate;
        return ADMISSION_BACKLOG;
    }
    /* What is free once it is in, times SHARE, is what the key may have. */
    double room = fmax(limits->backlog * wider - request->waiting - request->estimate, 0);
    double share = request->own + request->estimate - SHARE * room * wider;
    if (share > 0 && request->own > 0) {
        *over =
            share / (1 + SHARE) - request->estimate; /* each second done frees as much besides */
        return ADMISSION_SHARE;
    }
    double late = request->ahead / rate + run - request->latest * wider;
    if (late > 0) {
        *over = late * rate - request->estimate;
        return ADMISSION_LATE;
    }
    return ADMISSION_YES;
}

static struct admission_answer quota_refuse(const struct admission_request *request) {
    double wait = quota_wait(request->quota, request->now, request->estimate);
    return (struct admission_answer){
        .verdict = wait == INFINITY ? ADMISSION_EXPENSIVE : ADMISSION_QUOTA,
        .retry = wait == INFINITY ? 0 : (unsigned)ceil(fmin(fmax(wait, 1), BOOKING_HORIZON)),
    };
}

struct admission_answer admission_ask(const struct admission_limits *limits,
                                      const struct drain *drain, struct bookings *bookings,
                                      const struct admission_request *request) {
    const struct booker booker = {request->client, request->mark, request->estimate};
    double rate = drain_rate(drain), over = 0;
    double run = request->estimate * fmax(drain->slots, 1) / rate;
    if (request->estimate > fmin(limits->job, limits->backlog) || run > request->latest) {
        return (struct admission_answer){.verdict = ADMISSION_EXPENSIVE};
    }
    if (request->quota != NULL && quota_left(request->quota, request->now) < request->estimate) {
        return quota_refuse(request);
    }
    bool booked = booking_find(bookings, request->now, &booker);
    double held = booked ? 0 : bookings_held(bookings, request->now);
    enum admission verdict = room_try(limits, request, held, rate, run, booked, &over);
    if (booked) {
        booking_end(bookings, request->now, &booker, verdict == ADMISSION_YES);
    }
    if (verdict == ADMISSION_YES) {
        if (request->quota != NULL) {
            quota_spend(request->quota, request->now, request->estimate);
        }
        return (struct admission_answer){.verdict = verdict, .wait = request->ahead / rate};
    }
    double part = verdict == ADMISSION_BACKLOG ? 1 : request->part;
    return (struct admission_answer){
        .verdict = verdict,
        .wait = request->ahead / rate,
        .retry = booking_make(bookings, request->now, &booker, rate * part, over),
    };
}
