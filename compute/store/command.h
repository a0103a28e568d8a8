/*
 * command.h: the packets between the front and the process of the store.
 *
 * One SOCK_SEQPACKET pair. The front sends commands, the store answers each by its ticket: changes
 * in the order in which they came, once they are durable, and reads after them. Inputs, results and
 * the lines of a batch lie in the arena, and only their places travel; results that are read come
 * back inside the packet where they are small, else as a descriptor (SCM_RIGHTS). When the store is
 * open it sends an answer with ticket 0.
 *
 * Unpacking judges every byte: what makes no sense is refused as a whole.
 *
 * Threads: reentrant. Ownership: what is unpacked points into the packet.
 */
#ifndef KILN_COMPUTE_STORE_COMMAND_H
#define KILN_COMPUTE_STORE_COMMAND_H

#include "compute/store/pack.h"
#include "compute/store/store.h"

#define STORE_PACKET_MAX ((size_t)64 << 10)
#define STORE_LINES_MAX  ((size_t)64 << 20) /* bytes of a batch's lines, without inputs */

enum store_task {
    TASK_READY, /* answers only: the store is open */
    TASK_ACCEPT,
    TASK_CHANGE,
    TASK_CALIBRATE,
    TASK_DELIVERED,
    TASK_GET, /* from here on reads */
    TASK_OPEN,
    TASK_LIST,
    TASK_EVENTS,
    TASK_DELIVERIES,
    TASK_CALIBRATIONS,
    TASK_STATS,
    TASK_COUNT
};

/** Shared memory, as both sides have it mapped. */
struct store_arena {
    const uint8_t *base;
    size_t size;
};

struct store_command {
    uint64_t ticket;
    enum store_task task;
    /* ACCEPT of one job: `accept.jobs` and `.inputs` point to these. Of several: in `lines`. */
    struct store_accept accept;
    struct store_job job;
    struct store_bytes input;
    struct store_bytes lines; /* in the arena, from store_lines_pack */
    struct store_change change;
    struct store_calibration calibration;
    struct store_delivery delivery;
    struct store_filter filter;
    struct store_events_filter events;
    struct job_id id;   /* GET, OPEN */
    bool of_input;      /* OPEN */
    int64_t now, limit; /* DELIVERIES */
};

struct store_answer {
    uint64_t ticket;
    enum store_task task;
    enum kiln_status status;
    struct store_accepted accepted;
    struct store_changed changed;
    struct store_job job;         /* GET, also where its status is GONE */
    struct store_content content; /* OPEN; `fd` is the receiver's */
    struct store_stats stats;     /* READY, STATS */
    struct store_page page;       /* LIST; of other rows `more` */
    int64_t count;                /* rows */
    struct unpack rows;
};

/** False: it does not fit, or bytes lie outside of the arena. */
bool store_command_pack(struct pack *pack, const struct store_command *command,
                        const struct store_arena *arena);
bool store_command_unpack(const uint8_t *packet, size_t size, const struct store_arena *arena,
                          struct store_command *command);

/** Writes the jobs of a batch and the places of their inputs. */
bool store_lines_pack(struct pack *pack, const struct store_accept *accept,
                      const struct store_arena *arena);
/** Reads as many jobs and inputs as `accept->count` says. `lines` has to be private memory. */
bool store_lines_unpack(const uint8_t *lines, size_t size, const struct store_arena *arena,
                        const struct store_accept *accept, struct store_job *jobs,
                        struct store_bytes *inputs);

/** `rows` are packed ones (store_row_pack…), `content.data` goes along where `fd` is -1. */
bool store_answer_pack(struct pack *pack, const struct store_answer *answer,
                       const struct pack *rows);
bool store_answer_unpack(const uint8_t *packet, size_t size, struct store_answer *answer);

void store_event_pack(struct pack *pack, const struct store_event *event);
void store_delivery_pack(struct pack *pack, const struct store_delivery *delivery);
void store_calibration_pack(struct pack *pack, const struct store_calibration *row);
/** The next row of an answer; false at the end. */
bool store_answer_job(struct store_answer *answer, struct store_job *job);
bool store_answer_event(struct store_answer *answer, struct store_event *event);
bool store_answer_delivery(struct store_answer *answer, struct store_delivery *delivery);
bool store_answer_calibration(struct store_answer *answer, struct store_calibration *row);

#endif
