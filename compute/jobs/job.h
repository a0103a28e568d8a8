/*
 * job.h: a kind of job (one constant table each) and one job on its way through the daemon.
 *
 * A kind has its parameters' table, its inputs and formats, a check and a plan that run in the
 * front, and a run that happens in a worker. A job is filled by the front, queued, executed and
 * handed back; its inputs and its result are blocks of the arena.
 *
 * Threads: kinds are constant. A job has one owner at a time: the handler that fills it, then the
 * dispatcher until `done` is called, then the handler again.
 */
#ifndef KILN_COMPUTE_JOBS_JOB_H
#define KILN_COMPUTE_JOBS_JOB_H

#include "compute/codecs/columns.h"
#include "compute/codecs/format.h"
#include "compute/codecs/image.h"
#include "compute/core/arena.h"
#include "compute/core/job_id.h"
#include "compute/core/status.h"
#include "compute/core/timing.h"
#include "compute/core/trace.h"
#include "compute/jobs/field.h"
#include "kernels/backend.h"

#define JOB_PARAMS_MAX 512
#define JOB_DETAIL_MAX 192
#define INPUTS_MAX     4 /* of a job */

/** Limits of this daemon, from its options; every job checks itself against them. */
struct limits {
    uint64_t max_body;        /* bytes of a request body */
    uint64_t max_pixels;      /* pixels (samples, with supersampling) of one picture */
    uint64_t max_iterations;  /* escape iterations or Jacobi sweeps */
    uint64_t max_samples;     /* points of a light curve */
    uint64_t max_frequencies; /* points of a periodogram */
    uint64_t arena;           /* bytes of all inputs and results, so of any one */
};

enum input_kind {
    INPUT_NONE,
    INPUT_IMAGE, /* encoded PNG, PGM/PPM/PAM or NPY bytes, decoded by the worker: one for each of
                    the kind's BLOB fields, in the table's order; a body by itself is the first */
    INPUT_SERIES /* arrays of doubles, parsed by the front: the kind's ARRAY fields, one input */
};

/** What becomes of samples of which a part is missing, and how the rows of an NPY array are meant:
    one for each role, or one for the first role and then one for each series. Choices of the
    kind's fields that table_shape names, in this order. */
enum missing { MISSING_REFUSE, MISSING_DROP };
enum layout { LAYOUT_CURVE, LAYOUT_BATCH };

/** How a table, or an NPY array, becomes the arrays of a kind (SERIES). A sample is one element of
    each role's array; samples are one series, or, where an array has rows, several. Every role's
    array has the values' shape; others than the values may have one row for all series, and one
    number for all samples where the field is FIELD_SCALAR. */
struct table_shape {
    const struct column_role *columns; /* roles, ended by field NULL; optional ones come last */
    size_t values;       /* the role whose rows are series of their own: the first or the second */
    const char *missing; /* ENUM field of enum missing; NULL: refused */
    const char *layout;  /* ENUM field of enum layout; NULL: one series */
};

/** What the front knows of one of a job's inputs, all of which lie in one block. Offsets are bytes
    from the block's start. An optional picture that was not sent has kind INPUT_NONE. */
struct input {
    int32_t kind;
    enum format format;      /* IMAGE: how the bytes are encoded */
    uint64_t offset, size;   /* IMAGE: the encoded bytes; SERIES: all arrays */
    struct image_info image; /* IMAGE: as the header claims */
};

/** What a job will need; computed in the front before anything is queued. */
struct plan {
    uint64_t result_bytes; /* upper bound of the encoded result */
    uint64_t device_bytes; /* device memory of its arrays and scratch, a good estimate */
    double cost; /* elementary steps (cell updates, iterations, pairs): for the queue and metrics */
    uint32_t kernels; /* KERNEL_BIT of each without which it cannot be run; what it would only use
                         if it were there does not count */
};

#define REMARK_CONVERGED 0.01 /* share of the slowest mode that goes without a note */

/** What a client should know of a result that does not tell itself. */
struct remarks {
    bool picture;  /* samples were rounded to a picture's; `clamped` counts those too small or
                      too large for it */
    bool iterated; /* the result is on its way to a limit; `left` is the share of the slowest
                      mode of the start that is still there, 0 … 1 */
    uint64_t clamped;
    double scale; /* of a picture that carries it; 0 for others */
    double left;
};

/** What a worker's run sees. Pointers are valid during the run only. */
struct task {
    const struct backend *backend;
    struct stream *stream;
    struct thread_pool *pool;    /* threads for the host's share, such as encoding; NULL: none */
    const void *params;          /* the kind's parameter struct */
    const struct input *input;   /* the kind's inputs; run looks again: bytes are shared memory */
    const uint8_t *data;         /* the input block, or NULL */
    enum format format;          /* one of the kind's formats */
    uint8_t *result;             /* result block, 4096-byte aligned */
    uint64_t capacity;           /* its bytes */
    uint64_t size;               /* out: bytes of the encoded result */
    const char *device_name;     /* "cpu:0", for JSON results */
    struct job_id id;            /* for JSON results; empty in warm-up */
    struct remarks remarks;      /* out */
    struct timing *timing;       /* queue is filled in; phases are added by stream finish */
    uint64_t started_ns;         /* when the job was submitted, for `total` in JSON results */
    char detail[JOB_DETAIL_MAX]; /* out: what went wrong, one sentence for the client */
};

/** An address of its own for a job, such as tiles: captures become parameters. */
struct job_path {
    const char *pattern; /* "/v1/mandelbrot/tiles/{z}/{x}/{y}": {name} captures one segment */
    enum format format;  /* fixed representation, or FORMAT_NONE to negotiate */
    /** Writes the captured texts into the parameters; complains or returns KILN_NOT_FOUND. */
    enum kiln_status (*bind)(const char *const *captures, void *params,
                             struct complaints *complaints);
    const char *const *reserved; /* NULL-terminated names of fields the path sets (422 if given) */
};

struct job;

struct job_type {
    const char *name;           /* route is /v1/<name> */
    const char *title;          /* one line */
    enum input_kind input;      /* what each of its inputs is */
    bool get;                   /* also answers GET (no input; cacheable) */
    const struct field *fields; /* ended by name NULL */
    size_t params_size;         /* ≤ JOB_PARAMS_MAX */
    const enum format *formats; /* ended by FORMAT_NONE; the first is the default */
    const enum format *accepts; /* formats of the input body, ended by FORMAT_NONE; NULL for none */
    const struct table_shape *table; /* SERIES: how a table becomes its arrays */
    const struct job_path *paths;    /* ended by pattern NULL, or NULL */
    int version;                     /* part of the ETag: raise it when results change */
    bool portable; /* results other than JSON have the same bytes from every device and backend */

    /** Cross-field checks and normalisation (may rewrite `auto` values). Complains of bad fields.
        `input` has as many rows as the kind has inputs; `data` is their block (SERIES: the arrays),
        or NULL. Also called where fields were complained of already, so that all is said at once:
        they hold what they would if they had not been given, and what depends on them is passed
       over (complaints_about). Front thread; bounded time. */
    void (*check)(void *params, const struct input *input, const uint8_t *data, enum format format,
                  const struct limits *limits, struct complaints *complaints);
    /** What the front tells in the header Kiln-Input beside a result that is not JSON: the columns
        that were used, say, as a dictionary of RFC 9651. NULL: nothing. */
    void (*describe_input)(const void *params, struct text *out);
    /** Only after a check without complaints. KILN_OK or KILN_JOB_TOO_LARGE on overflow. */
    enum kiln_status (*plan)(const void *params, const struct input *input, enum format format,
                             struct plan *plan);
    /** Worker slot thread. Uses backend->phase at each boundary, ends before finish (the worker
        calls begin and finish). Errors as in backend.h, and KILN_MALFORMED for input that turns
        out to be broken. */
    enum kiln_status (*run)(struct task *task);

    /** Writes the value of the answer's header Kiln-Precision for checked parameters; NULL: there
        is none. */
    void (*precision)(const void *params, char *text, size_t size);

    /** May both run in one group: small jobs of one shape that differ only in what run_group takes
        for each? Asked with `other` == `one` too: is it small enough. NULL: never. In the front,
        under the dispatcher's lock: a few comparisons. */
    bool (*alike)(const struct job *one, const struct job *other);
    /** Runs up to GROUP_MAX alike tasks of one stream together, as run does one. Device phases are
        the group's. After any failure but KILN_DEVICE_FAULT each is run by itself. */
    enum kiln_status (*run_group)(struct task *tasks, size_t count);

    /** Warm-up and canary: parameters as a query, and each input made in `data` (64 KiB in all).
        Returns the input's size. NULL for kinds without input. */
    const char *canary_query;
    enum format canary_format;
    size_t (*canary_input)(uint8_t *data, size_t capacity, struct input *input, void *params);
};

/** All kinds, ended by NULL (registry.c). */
extern const struct job_type *const job_types[];
const struct job_type *job_type_find(const char *name);
/** The kind with this position in job_types, or NULL. */
const struct job_type *job_type_at(int32_t index);
/** Position in job_types, the number that travels in commands; -1 if unknown. */
int job_type_index(const struct job_type *type);
/** How many inputs a kind has: one for each BLOB field, one of SERIES; at most INPUTS_MAX. */
size_t job_type_inputs(const struct job_type *type);
/** Asserts that each table is complete; called once at start. */
void job_types_assert(void);

/** One job. Filled by the front, owned by the dispatcher between submit and done. */
struct job {
    const struct job_type *type;
    struct job_id id;     /* given by dispatch_submit where it is empty */
    enum format format;   /* of the result */
    char device[24];      /* wanted device ("cuda:0"), "" for any */
    struct holder holder; /* whose share of the arena its blocks are taken from */
    uint32_t owner;     /* who may cancel it (the submitter's number), 0 for nobody in particular */
    struct trace trace; /* of the request that brought it; empty for none */
    char request_id[REQUEST_ID_MAX + 1]; /* of that request; "" for none */
    _Alignas(16) uint8_t params[JOB_PARAMS_MAX];
    struct input inputs[INPUTS_MAX]; /* as many as the kind has */
    struct block body;               /* of all inputs; empty for none */
    struct block result; /* taken by the dispatcher; the owner gives it back after done */
    struct plan plan;
    int watch_fd; /* the client's socket, polled for hang-up; -1 for none. Not owned. */

    /* filled when done */
    enum kiln_status status;
    char detail[JOB_DETAIL_MAX];
    uint64_t result_size;
    struct timing timing;
    struct remarks remarks;
    char device_name[24]; /* that ran it */
    double joules;        /* estimate: its share of the device's power while it ran; 0: unknown */

    /** Called once, on the dispatcher's thread, or inside dispatch_submit when that fails at once.
     */
    void (*done)(struct job *job);
    /** Asked when the client at watch_fd has hung up: whether the job is to end. If not, it may
        name another client in watch_fd. NULL: it is to end. The dispatcher's thread, under its
        lock: must not call the dispatcher. */
    bool (*deserted)(struct job *job);
    /** Whether its result is also for another request, of this X-Request-Id and one of `owner`'s
        (0: of anybody's). The dispatcher's lock is held: must not call the dispatcher. NULL: for no
        other. */
    bool (*shared)(const struct job *job, const char *request_id, uint32_t owner);
    void *context;     /* the owner's */
    uint64_t since_ns; /* when its deadline began to run, clock_ns; 0: when it is submitted */

    /* the dispatcher's own */
    struct job *next, *previous;
    uint64_t number; /* in the order of submission */
    uint64_t submitted_ns, started_ns, deadline_ns;
    int attempt;
    int shortages;     /* runs that ended for want of device memory */
    uint64_t retry_ns; /* not sent before */
    int worker;        /* that runs it, or died with it */
    int suspect;       /* the first one that died with it, once attempt is 1 */
    int state;
    bool starved;        /* has waited for memory */
    uint64_t starved_at; /* arena_gives when there was none last */
    bool revoked;        /* dispatch_cancel has asked for its end */
};

#endif
