/*
 * private.h: what the readers of a submission share: submission.c (media types, names with texts),
 * object.c (JSON), blobs.c (pictures and tables as bytes), table.c (tables to arrays).
 */
#ifndef KILN_COMPUTE_SUBMISSION_PRIVATE_H
#define KILN_COMPUTE_SUBMISSION_PRIVATE_H

#include "compute/codecs/json.h"
#include "compute/submission/input_arrays.h"
#include "compute/submission/submission.h"

/** A table that was sent: it is read when all fields are known, because they say how. */
struct sent_table {
    const char *bytes; /* in the body block; NULL: there is none */
    size_t size;
    enum format format;
};

/** A submission being read. */
struct reading {
    struct submission *submission;
    const struct job_type *type;
    struct form form;
    struct series series;
    struct sent_table table;
    char missing[128]; /* the first missing sample of the table, for a message; "" for none */
    bool format_seen, device_seen;
    bool input_seen[INPUTS_MAX];
    const char *blobs[INPUTS_MAX]; /* where the bytes of each lie; NULL: none */
    int pairs;                     /* read so far, of query and body */
};

/** Notes what is wrong (printf format); returns `status`. */
enum kiln_status reading_fault(struct reading *reading, enum kiln_status status, const char *format,
                               ...) __attribute__((format(printf, 3, 4)));
/** A block of the holder's share. The log is told where there is no room. */
enum kiln_status reading_take(struct reading *reading, uint64_t size, struct block *block);
/** Counts a name with its value, found in `what`; KILN_MALFORMED, noted, for one too many. */
enum kiln_status reading_count(struct reading *reading, const char *what);
/** Sets a field from text; `size` bytes followed by a NUL. */
enum kiln_status reading_set_text(struct reading *reading, const char *name, char *text,
                                  size_t size);
/** Complaint for a name that the address itself fixes; true if it is one. */
bool reading_reserved(struct reading *reading, const char *name);
/** Sets `format` or `device`; false if `name` is neither. `text` NULL: not a text. */
bool reading_set_common(struct reading *reading, const char *name, const char *text);
/** Reads a JSON object's members; base64 texts are decoded where they lie. */
enum kiln_status reading_json(struct reading *reading, char *text, size_t size);
/** Takes `size` bytes of the body as the input of the BLOB field `name`, or as the first where
    there is no such field (NULL: no name); FORMAT_NONE: recognise them. */
enum kiln_status reading_input(struct reading *reading, const char *name, char *bytes, size_t size,
                               enum format format);
/** Reads the table, if one was sent, and makes the job's arrays what its check expects: one number
    that stands for all becomes as many, missing samples are refused or left out. */
enum kiln_status reading_table(struct reading *reading);
/** Takes a base64 text as the input of the BLOB field `name`, decoding it where it lies;
    NULL: what was sent is no text. */
enum kiln_status reading_base64(struct reading *reading, const char *name, char *text, size_t size);
/** Settles where the pictures lie: in the body's block, which becomes the job's, or in a new one.
 */
enum kiln_status reading_blobs(struct reading *reading);
/** Notes how an array was read. */
enum kiln_status reading_array(struct reading *reading, const char *name, enum kiln_status status,
                               struct array_ref array, const char *why);
/** Most numbers that any array may have on this daemon. */
uint64_t reading_numbers_max(const struct reading *reading);
/** Name of the kind's first BLOB field, or "body". */
const char *reading_blob(const struct reading *reading);

#endif
