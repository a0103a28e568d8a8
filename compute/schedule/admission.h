/*
 * admission.h: whether a job may wait, and when its client shall come back if not.
 *
 * All limits are in seconds of work, as estimated: of one job, of all that waits, of a key's share
 * of that, of a key's quota, and of the time until an answer is due. What waits is divided by the
 * drain, which is measured, to become time.
 *
 * Times are seconds from any fixed start. Threads: none of its own; the caller's lock.
 */
#ifndef KILN_COMPUTE_SCHEDULE_ADMISSION_H
#define KILN_COMPUTE_SCHEDULE_ADMISSION_H

#include "compute/schedule/booking.h"

/** Seconds of estimated work that are finished a second. Measured where slots are busy, so that an
    idle daemon does not look slow. All zero, and `slots`: as many as there are slots. */
struct drain {
    double slots; /* that are ready; may change */
    double estimated, used;
};

/** A job that was estimated at one time has ended and used another, of one slot. */
void drain_add(struct drain *drain, double estimated, double used);
/** Above 0, also without slots. */
double drain_rate(const struct drain *drain);

/** What is likely left of a run: a tenth at least of what it was to take, or has taken. */
double run_left(double estimate, double elapsed);

/** Device-seconds that a key may use: `seconds` in each `window`, all at once if it likes. A bucket
    that fills again steadily. */
struct quota {
    double seconds, window; /* 0: no quota */
    double spent, at;       /* as of `at` */
};

/** What may be spent at `now`; below 0 after jobs that used more than they claimed. */
double quota_left(const struct quota *quota, double now);
/** Spends; less than 0 gives back: call it with the estimate, and with what was used above it. */
void quota_spend(struct quota *quota, double now, double seconds);
/** Seconds until so much may be spent; INFINITY: never. */
double quota_wait(const struct quota *quota, double now, double seconds);

enum admission {
    ADMISSION_YES,
    ADMISSION_EXPENSIVE, /* the job is longer than any may be: coming back does not help */
    ADMISSION_QUOTA,     /* the key has used its device-seconds */
    ADMISSION_SHARE,     /* the key has its share of what may wait */
    ADMISSION_BACKLOG,   /* too much waits */
    ADMISSION_LATE       /* it would be answered too late */
};

/** Of the daemon. */
struct admission_limits {
    double job;     /* seconds of one job */
    double backlog; /* seconds of all that waits or runs */
};

/** A job that asks, and how things stand. */
struct admission_request {
    double now, estimate;
    uint64_t client;     /* key or address */
    uint64_t mark;       /* which request it is, as a digest; 0: not known */
    struct quota *quota; /* of the key, or NULL */
    double waiting;      /* seconds of all that waits or is left of what runs */
    double own;          /* of the client's that waits */
    double ahead;        /* of what would run before it */
    double latest;       /* seconds from now by which it is to have ended; INFINITY: whenever */
    double part;         /* of the drain that the client gets while others wait, 0 < part ≤ 1 */
};

struct admission_answer {
    enum admission verdict;
    double wait;    /* seconds until it starts, likely */
    unsigned retry; /* refused: for Retry-After; 0: no use */
};

/** Decides. A job that is let in has been taken from its quota; one that is refused for want of
   room has booked a time, and is let in if it comes back then. */
struct admission_answer admission_ask(const struct admission_limits *limits,
                                      const struct drain *drain, struct bookings *bookings,
                                      const struct admission_request *request);

#endif
