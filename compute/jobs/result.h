/*
 * result.h: what the kinds of jobs share when they write their results.
 *
 * Threads: a worker's slot thread. Ownership: everything written goes to the task's result block.
 * Errors: a function that fails leaves one sentence in task->detail.
 */
#ifndef KILN_COMPUTE_JOBS_RESULT_H
#define KILN_COMPUTE_JOBS_RESULT_H

#include "compute/jobs/job.h"

/** Room for a JSON result without arrays. */
#define RESULT_JSON_MAX 16384
/** Bytes of canonical parameters that a picture carries. */
#define CANONICAL_MAX 2048
/** Room for a number of an array: "-2.2250738585072014e-308" and a separator. */
#define RESULT_NUMBER_MAX 25u

/** Puts the stream's error text, or a sentence of our own, into task->detail where that is empty;
    returns `status`. */
enum kiln_status result_error(struct task *task, enum kiln_status status);

/** The same for an address that upload, reserve, host or result did not give. */
enum kiln_status result_no_memory(struct task *task);

/** Pinned host scratch for an array; NULL where memory ran out or the size overflows. */
void *result_scratch(struct task *task, uint64_t count, size_t element);

/** Starts a JSON result in the result block: {"job":…,"device":…,"parameters":{…}. */
void result_json_open(struct task *task, const struct field *fields, struct text *text);

/** Ends the stream's last phase, so that its times are known, and writes `"timing":{…}` in
    milliseconds; total runs from submission to now. The worker's own finish adds nothing then. */
void result_timing(struct task *task, struct text *text);

/** Writes `,"timing":{…}}` and records the size. KILN_INTERNAL if the text did not fit. */
enum kiln_status result_json_close(struct task *task, struct text *text);

/** Writes a NumPy header into the result block and returns the address of the data behind it
    (64-byte aligned, `bytes` of room), or NULL where they do not fit. Sets task->size. With
    FORMAT_RAW there is no header. */
void *result_array(struct task *task, const char *dtype, const uint64_t *shape, uint32_t dimensions,
                   uint64_t bytes);

/** How hard a PNG is compressed: what png_write does, or png_write_small. */
enum result_compression { COMPRESSION_FAST, COMPRESSION_SMALL };

extern const char *const result_compressions[];

/** Row of the field `compression`, an int32_t at `at` of the parameters. */
#define RESULT_COMPRESSION(at)                                                                     \
    {                                                                                              \
        .name = "compression", .type = FIELD_ENUM, .offset = (at), .preset = "fast",               \
        .choices = result_compressions, .unit = "",                                                \
        .help = "Of a PNG result: fast, or small, which takes some ten times as long to write "    \
                "fewer bytes of the same pixels."                                                  \
    }

/** Resets what a format has no use for, so that equal results have equal names. */
void result_compression_settle(int32_t *compression, enum format format);

/** Steps of encoding `samples` of `bytes` each (work.h), in bytes of a PNG written fast. */
double result_steps(enum format format, int32_t compression, double samples, double bytes);

/** Encodes a picture as the task's format, PNG or PGM; a PNG carries the canonical parameters. */
enum kiln_status result_picture(struct task *task, const struct field *fields,
                                const struct picture *picture, int32_t compression);

/** Can the device itself encode such a picture, with result_png, into the same bytes? Its pixels
   are not looked at. */
bool result_png_offered(const struct task *task, const struct picture *picture,
                        int32_t compression);

/** The same PNGs of indices that are on the device: `pixels` is a device address, where the
   pictures of up to GROUP_MAX tasks lie one below the other, each as `picture` describes it. Opens
   the phase ENCODE behind the kernels, encodes there, waits, and writes the rest of the files. A
   failure is told in the first task. */
enum kiln_status result_pngs(struct task *tasks, size_t count, const struct field *fields,
                             const struct picture *picture);

/** Writes numbers with commas between, each the shortest decimal that reads back as the same
    double (NaN and infinities as null); large arrays are shared out over the task's pool. `text`
    lies in the result block. */
void result_numbers(struct task *task, struct text *text, const double *values, uint64_t count);

#endif
