/*
 * booking.h: times at which refused clients will be accepted.
 *
 * A refusal books: the seconds of work that were refused take their place in a calendar of what the
 * daemon will have finished by when, and Retry-After is the time at which that place is reached.
 * Who comes back then finds its seconds held free: newcomers leave them alone for BOOKING_GRACE.
 * Nothing that a client would have to send back is needed: it is known by its key or address, and
 * which of its requests has come back by a digest of that (the mark). Another request of the same
 * client may take the place once its owner is late.
 *
 * What protects clients from each other:
 *     - a client takes at most half of what is free of any second of the calendar, so whoever comes
 *       later finds room in that second, however many places others have booked;
 *     - a client that does not come back, time and again, still gets a time, but no place in the
 *       calendar and nothing held;
 *     - a client has at most as many bookings as are left for others;
    - memory is what was asked for at create. A full table forgets nobody's booking: who comes
 *       then gets a time without a promise.
 *
 * Times are seconds from any fixed start, never going back. Threads: none of its own; the caller's
 * lock. make and find take O(BOOKING_HORIZON) at worst, a few microseconds.
 */
#ifndef KILN_COMPUTE_SCHEDULE_BOOKING_H
#define KILN_COMPUTE_SCHEDULE_BOOKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BOOKING_HORIZON 3600 /* seconds, and the longest Retry-After */
#define BOOKING_GRACE   3.0  /* seconds after its time that a booking is held */

struct booking_counts {
    uint64_t made;   /* with a promise */
    uint64_t loose;  /* times told without one */
    uint64_t kept;   /* came back in time and were accepted */
    uint64_t broken; /* came back in time and were refused */
    uint64_t missed; /* did not come back in time */
};

struct bookings;

/** Room for `most` bookings and as many clients. NULL: no memory. */
struct bookings *bookings_create(size_t most);
void bookings_destroy(struct bookings *bookings);

/** A request: of whom, which (0: not known), and its seconds of work. */
struct booker {
    uint64_t client, mark;
    double seconds;
};

/** Books for a request that is refused at `now`. `rate`: seconds of work that the
    daemon (or the client's share of it) finishes a second; `behind`: how many more seconds of work
    wait than may. Returns the seconds after which to come back, a whole number from 1 to
    BOOKING_HORIZON, as Retry-After says it. */
unsigned booking_make(struct bookings *bookings, double now, const struct booker *booker,
                      double rate, double behind);

/** Whether this request has come back for a booking of about so much work, not too early and not
   too late. Then the caller tells whether it accepts it: */
bool booking_find(struct bookings *bookings, double now, const struct booker *booker);
/** Ends the booking that booking_find has just found. */
void booking_end(struct bookings *bookings, double now, const struct booker *booker, bool accepted);

/** Seconds of work that newcomers must leave free at `now`. */
double bookings_held(struct bookings *bookings, double now);

struct booking_counts bookings_count(struct bookings *bookings, double now);

#endif
