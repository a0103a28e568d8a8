/*
 * work.h: what a job is in steps, from which the cost model makes seconds.
 *
 * A kind of job has variants, ways of computing whose steps take times of their own (precision,
 * method), and says of a request how many steps of each sort it will need. Seconds are
 *     a + b0 steps[0] + b1 steps[1] + …
 * with numbers a, b0, … ≥ 0 that are learned for each variant on each device. So steps are what
 * time is proportional to: cell updates, pairs, bytes to encode.
 *
 * Threads: tables are constant.
 */
#ifndef KILN_COMPUTE_SCHEDULE_WORK_H
#define KILN_COMPUTE_SCHEDULE_WORK_H

#define WORK_STEPS    5
#define WORK_VARIANTS 8 /* of a kind, at most */
#define WORK_WAYS     2

/** A variant of a kind; a table is ended by name NULL. */
struct work_variant {
    const char *name;
    /** What is believed before anything was measured: seconds of a job without steps, then of a
       step of each sort; all above 0. Measured on two cores of a server; what counts is their
       ratio, since a device's first jobs tell how fast it is. */
    double seconds[1 + WORK_STEPS];
};

/** One way to do a job. */
struct work_way {
    int variant; /* index into the kind's table */
    double steps[WORK_STEPS];
};

/** The ways that a job may go. Of several, the device takes the fastest. */
struct work {
    int ways; /* 1 … WORK_WAYS */
    struct work_way way[WORK_WAYS];
};

#endif
