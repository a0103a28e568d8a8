/*
 * submission.c: who reads which media type; names and texts into fields.
 */
#include "compute/submission/private.h"

#include "compute/codecs/format.h"
#include "compute/codecs/pairs.h"
#include "compute/core/cancel.h"
#include "compute/core/shortage.h"
#include "compute/submission/multipart.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define FORM_MEDIA      "application/x-www-form-urlencoded"
#define JSON_MEDIA      "application/json"
#define MULTIPART_MEDIA "multipart/form-data"
#define ANY_MEDIA       "application/octet-stream"

/* Other media types of tables of text; of results there is text/csv alone. */
static const char *const tables[] = {"text/plain", "text/tab-separated-values"};

static bool media_equal(const char *media, const char *name) {
    size_t size = strcspn(media, "; \t");
    return strlen(name) == size && strncasecmp(media, name, size) == 0;
}

static enum format format_of_body(const char *media) {
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (media_equal(media, tables[i])) {
            return FORMAT_CSV;
        }
    }
    return format_by_media(media);
}

enum kiln_status reading_fault(struct reading *reading, enum kiln_status status, const char *format,
                               ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reading->submission->detail, sizeof reading->submission->detail, format, arguments);
    va_end(arguments);
    return status;
}

enum kiln_status reading_take(struct reading *reading, uint64_t size, struct block *block) {
    struct submission *submission = reading->submission;
    enum kiln_status status =
        arena_take_for(submission->arena, submission->holder, size, NULL, block);
    if (status == KILN_NO_MEMORY) {
        shortage_log(submission->arena, submission->holder, size);
    }
    return status;
}

uint64_t reading_numbers_max(const struct reading *reading) {
    const struct limits *limits = reading->submission->limits;
    return limits->max_samples > limits->max_frequencies ? limits->max_samples
                                                         : limits->max_frequencies;
}

bool reading_reserved(struct reading *reading, const char *name) {
    const struct job_path *path = reading->submission->path;
    bool fixed = path != NULL && path->format != FORMAT_NONE && strcmp(name, "format") == 0;
    for (const char *const *row = path != NULL ? path->reserved : NULL;
         !fixed && row != NULL && *row != NULL; row++) {
        fixed = strcmp(*row, name) == 0;
    }
    if (fixed) {
        complaints_add(reading->submission->complaints, name, "is fixed by the address");
    }
    return fixed;
}

static void device_set(struct reading *reading, const char *text) {
    struct submission *submission = reading->submission;
    struct job *job = submission->job;
    if (strlen(text) >= sizeof job->device ||
        (submission->device_known != NULL &&
         !submission->device_known(text, submission->context))) {
        complaints_add(submission->complaints, "device",
                       "is not a device of this daemon (GET /v1/devices lists them)");
    } else {
        snprintf(job->device, sizeof job->device, "%s", text);
    }
}

bool reading_set_common(struct reading *reading, const char *name, const char *text) {
    bool format = strcmp(name, "format") == 0;
    bool *seen = format ? &reading->format_seen : &reading->device_seen;
    struct complaints *complaints = reading->submission->complaints;
    if (!format && strcmp(name, "device") != 0) {
        return false;
    }
    if (*seen) {
        complaints_add(complaints, name, "is duplicated");
    } else if (text == NULL || *text == '\0' || strlen(text) >= FORMAT_TEXT_MAX) {
        complaints_add(complaints, name, "must be a short name");
    } else if (format) {
        snprintf(reading->submission->format, FORMAT_TEXT_MAX, "%s", text);
    } else {
        device_set(reading, text);
    }
    *seen = true;
    return true;
}

enum kiln_status reading_array(struct reading *reading, const char *name, enum kiln_status status,
                               struct array_ref array, const char *why) {
    if (status == KILN_MALFORMED || status == KILN_INVALID) {
        complaints_add(reading->submission->complaints, name, "%s", why);
        form_mark(&reading->form, name);
        return KILN_OK;
    }
    if (status != KILN_OK) {
        return reading_fault(reading, status, "There is no room for the numbers of \"%s\".", name);
    }
    form_set_array(&reading->form, name, array);
    return KILN_OK;
}

enum kiln_status reading_set_text(struct reading *reading, const char *name, char *text,
                                  size_t size) {
    const struct field *field = form_find(&reading->form, name);
    if (strlen(text) != size) {
        complaints_add(reading->submission->complaints, name, "holds a NUL byte");
        return KILN_OK;
    }
    if (reading_reserved(reading, name) || reading_set_common(reading, name, text)) {
        return KILN_OK;
    }
    if (field != NULL && field->type == FIELD_ARRAY && !form_has(&reading->form, name)) {
        char why[96];
        struct array_ref array = {0};
        bool gaps = (field->flags & FIELD_GAPS) != 0;
        enum kiln_status status = series_text(&reading->series, text, reading_numbers_max(reading),
                                              gaps, &array, why, sizeof why);
        return reading_array(reading, name, status, array, why);
    }
    if (field != NULL && field->type == FIELD_BLOB) {
        return reading_base64(reading, name, text, size);
    }
    form_set_text(&reading->form, name, text);
    return KILN_OK;
}

enum kiln_status reading_count(struct reading *reading, const char *what) {
    if (reading->pairs++ < SUBMISSION_PAIRS_MAX) {
        return KILN_OK;
    }
    return reading_fault(reading, KILN_MALFORMED,
                         "The request has more than %d fields; the last ones are in its %s. A job "
                         "has a few dozen (GET /v1/jobs/types), and each is given once.",
                         SUBMISSION_PAIRS_MAX, what);
}

/* Names and values of a query, or of a form in the body. */
static enum kiln_status pairs_read(struct reading *reading, char *text, char *end,
                                   const char *what) {
    char *name, *value;
    bool broken;
    enum kiln_status status = KILN_OK;
    while (status == KILN_OK && pair_next(&text, end, &name, &value, &broken)) {
        if (broken) {
            return reading_fault(reading, KILN_MALFORMED,
                                 "The %s has a broken escape or a control character.", what);
        }
        status = reading_count(reading, what);
        if (status == KILN_OK) {
            status = cancel_point((size_t)(text - name))
                         ? KILN_CANCELLED
                         : reading_set_text(reading, name, value, strlen(value));
        }
    }
    return status;
}

/* `curl --data-binary @file` and `curl -d '{…}'` call everything a form. A form starts with a name
   and '='; what does not is looked at. */
static bool looks_like_form(const char *bytes, size_t size) {
    size_t length = 0;
    while (length < size && (bytes[length] == '_' ||
                             ((bytes[length] | 0x20) >= 'a' && (bytes[length] | 0x20) <= 'z') ||
                             (bytes[length] >= '0' && bytes[length] <= '9'))) {
        length++;
    }
    return length > 0 && length < size && bytes[length] == '=';
}

static bool looks_like_image(const char *bytes, size_t size) {
    struct image_info info;
    char why[96];
    return image_probe(bytes, size, FORMAT_NONE, UINT64_MAX, &info, why, sizeof why) !=
           KILN_MEDIA_TYPE;
}

static enum kiln_status read_form(struct reading *reading, char *bytes, size_t size,
                                  const char *media) {
    (void)media;
    size_t blank = 0;
    while (blank < size && strchr(" \t\r\n", bytes[blank]) != NULL && bytes[blank] != '\0') {
        blank++;
    }
    if (blank < size && bytes[blank] == '{') {
        return reading_json(reading, bytes, size);
    }
    if (reading->type->input == INPUT_IMAGE && looks_like_image(bytes, size)) {
        return reading_input(reading, NULL, bytes, size, FORMAT_NONE);
    }
    if (reading->type->input == INPUT_SERIES && !looks_like_form(bytes, size)) {
        return reading_input(reading, NULL, bytes, size, FORMAT_NONE);
    }
    return pairs_read(reading, bytes, bytes + size, "form");
}

static enum kiln_status read_json(struct reading *reading, char *bytes, size_t size,
                                  const char *media) {
    (void)media;
    return reading_json(reading, bytes, size);
}

static enum kiln_status read_input(struct reading *reading, char *bytes, size_t size,
                                   const char *media) {
    return reading_input(reading, NULL, bytes, size, format_of_body(media));
}

static enum kiln_status read_any(struct reading *reading, char *bytes, size_t size,
                                 const char *media) {
    (void)media;
    return reading_input(reading, NULL, bytes, size, FORMAT_NONE);
}

static bool type_accepts(const struct job_type *type, enum format format) {
    for (const enum format *row = type->accepts; row != NULL && *row != FORMAT_NONE; row++) {
        if (*row == format) {
            return true;
        }
    }
    return false;
}

/* A part is the input if it is the BLOB field's, or a file (whatever its name, so that
   `-F file=@sunspots.csv` works); a JSON part holds fields. */
static enum kiln_status part_read(struct reading *reading, struct part *part) {
    const struct field *field = form_find(&reading->form, part->name);
    bool blob = field != NULL && field->type == FIELD_BLOB;
    enum format format = format_of_body(part->media);
    if (part->file && format == FORMAT_JSON && !blob) {
        return reading_json(reading, part->data, part->size);
    }
    if (reading->type->input != INPUT_NONE && (part->file || blob)) {
        return reading_input(reading, part->name, part->data, part->size,
                             type_accepts(reading->type, format) ? format : FORMAT_NONE);
    }
    enum kiln_status status = reading_count(reading, "parts");
    return status == KILN_OK ? reading_set_text(reading, part->name, part->data, part->size)
                             : status;
}

static enum kiln_status read_multipart(struct reading *reading, char *bytes, size_t size,
                                       const char *media) {
    struct multipart multipart;
    struct part part;
    char why[128];
    bool found = true;
    enum kiln_status status = multipart_open(&multipart, media, bytes, size, why, sizeof why);
    while (status == KILN_OK) {
        status = multipart_next(&multipart, &part, &found, why, sizeof why);
        if (status != KILN_OK || !found) {
            break;
        }
        status = cancel_point(part.size) ? KILN_CANCELLED : part_read(reading, &part);
        if (status != KILN_OK) {
            return status;
        }
    }
    return status == KILN_OK ? KILN_OK : reading_fault(reading, status, "%s", why);
}

struct reader {
    const char *media;
    bool input; /* only for kinds that take a binary input */
    enum kiln_status (*read)(struct reading *reading, char *bytes, size_t size, const char *media);
};

static const struct reader readers[] = {
    {JSON_MEDIA, false, read_json},
    {FORM_MEDIA, false, read_form},
    {MULTIPART_MEDIA, false, read_multipart},
    {ANY_MEDIA, true, read_any},
};

static const struct reader *reader_find(const struct job_type *type, const char *media) {
    static const struct reader input = {"", true, read_input};
    for (size_t i = 0; media != NULL && i < sizeof readers / sizeof readers[0]; i++) {
        if (media_equal(media, readers[i].media) &&
            (!readers[i].input || type->input != INPUT_NONE)) {
            return &readers[i];
        }
    }
    return media != NULL && type_accepts(type, format_of_body(media)) ? &input : NULL;
}

bool submission_media_known(const struct job_type *type, const char *media) {
    return reader_find(type, media) != NULL;
}

bool submission_media_binary(const struct job_type *type, const char *media) {
    const struct reader *reader = reader_find(type, media);
    return reader != NULL && reader->input;
}

void submission_media_list(const struct job_type *type,
                           void (*each)(const char *media, void *context), void *context) {
    for (const enum format *row = type->accepts; row != NULL && *row != FORMAT_NONE; row++) {
        const char *media = format_row(*row)->media;
        if (strcmp(media, JSON_MEDIA) != 0 && strcmp(media, ANY_MEDIA) != 0) {
            each(media, context);
        }
        for (size_t i = 0; i < sizeof tables / sizeof tables[0] && *row == FORMAT_CSV; i++) {
            each(tables[i], context);
        }
    }
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        if (!readers[i].input || type->input != INPUT_NONE) {
            each(readers[i].media, context);
        }
    }
}

/* After the query: a path may depend on other fields (the depth of a tile on its samples). */
static enum kiln_status captures_read(struct reading *reading) {
    struct submission *submission = reading->submission;
    const struct job_path *path = submission->path;
    if (path == NULL) {
        return KILN_OK;
    }
    enum kiln_status status =
        path->bind(submission->captures, submission->job->params, submission->complaints);
    if (status != KILN_OK) {
        return reading_fault(reading, status, "There is no such place in %s.", path->pattern);
    }
    return KILN_OK;
}

static enum kiln_status sources_read(struct reading *reading) {
    struct submission *submission = reading->submission;
    enum kiln_status status = KILN_OK;
    if (submission->query != NULL) {
        status = pairs_read(reading, submission->query, submission->query_end, "query");
    }
    if (status == KILN_OK) {
        status = captures_read(reading);
    }
    if (status != KILN_OK || submission->body_size == 0) {
        return status;
    }
    const struct reader *reader = reader_find(reading->type, submission->media);
    if (reader == NULL) {
        return reading_fault(reading, KILN_MEDIA_TYPE, "%s does not take a body of this type.",
                             reading->type->name);
    }
    char *bytes = arena_at(submission->arena, submission->body.offset);
    bytes[submission->body_size] = '\0';
    return reader->read(reading, bytes, (size_t)submission->body_size, submission->media);
}

/* The block of the inputs is the job's from here on: that of the pictures, or of the arrays. */
static enum kiln_status blocks_settle(struct reading *reading, enum kiln_status status) {
    struct submission *submission = reading->submission;
    struct series *series = &reading->series;
    struct job *job = submission->job;
    if (status == KILN_OK) {
        status = reading_blobs(reading);
    }
    if (status == KILN_OK && series->used > 0 && job->body.size == 0) {
        arena_trim(submission->arena, &series->block, series->used);
        job->body = series->block;
        job->inputs[0] = (struct input){.kind = INPUT_SERIES, .size = series->used};
        series->block = (struct block){0, 0};
    }
    arena_give(submission->arena, &submission->body);
    arena_give(submission->arena, &series->block);
    return status;
}

/* What a client must give and has not. A picture that may come as a body has words of its own. */
static void inputs_finish(struct reading *reading) {
    const struct field *first = form_find(&reading->form, reading_blob(reading));
    form_finish(&reading->form);
    if (reading->type->input == INPUT_IMAGE && !reading->input_seen[0] &&
        (first == NULL || (first->flags & FIELD_OPTIONAL) != 0)) {
        complaints_add(reading->submission->complaints, reading_blob(reading),
                       "is missing: send an image as the body");
    }
}

enum kiln_status submission_read(struct submission *submission) {
    struct reading reading = {
        .submission = submission,
        .type = submission->type,
        .series = {.arena = submission->arena, .holder = submission->holder},
    };
    submission->detail[0] = submission->format[0] = '\0';
    form_init(&reading.form, reading.type->fields, submission->job->params, submission->complaints);
    memset(submission->job->inputs, 0, sizeof submission->job->inputs);
    enum kiln_status status = sources_read(&reading);
    if (status == KILN_OK && reading.type->table != NULL) {
        status = reading_table(&reading);
    }
    if (status == KILN_OK) {
        inputs_finish(&reading);
    }
    return blocks_settle(&reading, status);
}
