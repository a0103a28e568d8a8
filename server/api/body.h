/*
 * body.h: query and body of a request into a job's parameters and input.
 *
 * One table says which media types there are and who reads each. Whatever the source, a name and
 * a text, or a name and a JSON value, end in the job's field table; the fields common to all jobs
 * (`format`, `device`) are taken out before.
 *
 * Threads: one owner (the listener's thread, or a loader's for large bodies). At a cancellation
 * point (compute/core/cancel.h) reading ends with any status: whoever asked for it knows why.
 */
#ifndef KILN_SERVER_API_BODY_H
#define KILN_SERVER_API_BODY_H

#include "compute/codecs/json.h"
#include "server/api/input_arrays.h"
#include "server/http/request.h"

#define FORMAT_TEXT_MAX   32
#define READING_PAIRS_MAX 256 /* names with values in query and body together */

/** A table that was sent: it is read when all fields are known, because they say how. */
struct sent_table {
    const char *bytes; /* in the request's body block; NULL: there is none */
    size_t size;
    enum format format;
};

/** A request being read. */
struct reading {
    struct http_request *request; /* its job, body and complaints are filled */
    const struct job_type *type;
    struct form form;
    struct series series;
    struct sent_table table;
    char missing[128]; /* the first missing sample of the table, for a message; "" for none */
    char format[FORMAT_TEXT_MAX]; /* the member `format`, "" if not given */
    bool format_seen, device_seen;
    bool input_seen;
    int pairs;          /* read so far, of query and body */
    bool input_in_body; /* the input lies in the request's body block */
};

/** True if this media type (parameters ignored; NULL for none) can be read for this kind. */
bool body_media_known(const struct job_type *type, const char *media);
/** True if a body of this type is the input itself, not fields. */
bool body_media_binary(const struct job_type *type, const char *media);
/** The media types that a kind takes, each once: calls `each` until it has seen all. */
void body_media_list(const struct job_type *type, void (*each)(const char *media, void *context),
                     void *context);

/** Fills the request's job from captures, query and body; complaints are collected. KILN_OK even
    with complaints; anything else is noted as the request's fault (400, 415, 503 …). The body
    block is given back, or has moved to the job. `format` receives the member `format` or "". */
enum kiln_status body_read(struct http_request *request, char format[FORMAT_TEXT_MAX]);

/* For the readers (body.c, body_json.c, body_input.c) */

/** Counts a name with its value, found in `what`; KILN_MALFORMED, noted, for one too many. */
enum kiln_status reading_count(struct reading *reading, const char *what);
/** Sets a field from text; `size` bytes followed by a NUL. */
enum kiln_status reading_set_text(struct reading *reading, const char *name, char *text,
                                  size_t size);
/** Complaint for a name that the address itself fixes; true if it is one. */
bool reading_reserved(struct reading *reading, const char *name);
/** Sets `format` or `device`; false if `name` is neither. `text` NULL: not a text. */
bool reading_set_common(struct reading *reading, const char *name, const char *text);
/** Reads a JSON object's members. */
enum kiln_status reading_json(struct reading *reading, const char *text, size_t size);
/** Takes `size` bytes of the body as the input; FORMAT_NONE: recognise them. */
enum kiln_status reading_input(struct reading *reading, char *bytes, size_t size,
                               enum format format);
/** Reads the table, if one was sent, and makes the job's arrays what its check expects: one number
    that stands for all becomes as many, missing samples are refused or left out. */
enum kiln_status reading_table(struct reading *reading);
/** Takes a base64 text as the input, into a block of its own. */
enum kiln_status reading_base64(struct reading *reading, const char *name, const char *text,
                                size_t size);
/** Notes how an array was read. */
enum kiln_status reading_array(struct reading *reading, const char *name, enum kiln_status status,
                               struct array_ref array, const char *why);
/** Most numbers that any array may have on this daemon. */
uint64_t reading_numbers_max(const struct reading *reading);
/** Name of the kind's BLOB field, or "body". */
const char *reading_blob(const struct reading *reading);

#endif
