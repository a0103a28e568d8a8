/*
 * command.h: the packets between the front and a worker.
 *
 * Two SOCK_SEQPACKET pairs per worker. On the job socket the front sends one `struct command`, or
 * up to GROUP_MAX of them in one packet for jobs that are alike (job.h), and any idle slot thread
 * of the worker takes it (packets are delivered to one receiver each) and sends back as many
 * `struct answer` in one packet. On the control socket the worker's main thread sends a packet that
 * starts with `struct notice`, followed by `size` bytes of JSON text (the device's description):
 * once when it is ready, then about every second as a heartbeat. End of file on either socket
 * means the other side is gone. Both processes are the same binary, so layout is shared.
 */
#ifndef KILN_COMPUTE_WORKER_COMMAND_H
#define KILN_COMPUTE_WORKER_COMMAND_H

#include "compute/jobs/job.h"

#define COMMAND_MAGIC 0x6b696c6eu

struct command {
    uint32_t magic;
    int32_t type; /* index in job_types */
    struct job_id id;
    uint32_t place, generation;      /* echoed in the answer: where the front looks for the job */
    int32_t format;                  /* enum format */
    int32_t attempt;                 /* 0, or 1 after a worker died with it */
    uint64_t submitted_ns;           /* clock_ns at submission */
    uint64_t started_ns;             /* clock_ns when sent: queue = started - submitted */
    uint64_t data_offset, data_size; /* input block in the arena; size 0: none */
    uint64_t result_offset, result_size; /* result block in the arena */
    uint64_t control_offset;             /* arena offset of the slot's struct control */
    struct trace trace;                  /* as in the job, for the worker's log */
    _Alignas(16) uint8_t params[JOB_PARAMS_MAX];
    struct input inputs[INPUTS_MAX]; /* only as many as the kind has are sent */
};

/** Puts commands of one kind close together, without the inputs that it has not; returns the
    packet's bytes. */
size_t commands_pack(struct command *commands, size_t count);
/** A packet of `size` bytes into commands again, at most GROUP_MAX; returns how many, 0 where it is
    none. The inputs that were not sent are undefined. */
size_t commands_unpack(struct command *commands, size_t size);

struct answer {
    uint32_t magic;
    int32_t
        status; /* enum kiln_status; KILN_DEVICE_FAULT: replace this worker, run the job again */
    struct job_id id;
    uint32_t place, generation; /* of the command */
    uint64_t result_size;
    struct timing timing; /* device phases are those of the whole group */
    struct remarks remarks;
    uint32_t gathered; /* jobs that ran together, itself included */
    char detail[JOB_DETAIL_MAX];
};

enum notice_kind { NOTICE_READY = 1, NOTICE_ALIVE, NOTICE_FAILED };

#define NOTICE_TEXT_MAX 32768

struct notice {
    uint32_t magic;
    int32_t kind; /* FAILED: the text says why the device cannot be used, and the worker exits */
    uint32_t slots;
    uint32_t gather;  /* jobs in one packet that are worth it here, at least 1 */
    uint32_t kernels; /* that the backend has (KERNEL_BIT) */
    uint32_t size;    /* bytes of text that follow */
};

#endif
