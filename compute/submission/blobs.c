/*
 * blobs.c: inputs as bytes: pictures, which stay encoded, and tables, which table.c makes into
 * doubles.
 *
 * A kind of pictures has one for each of its BLOB fields. Bytes stay where they were sent: parts of
 * the body in the body's block; base64 texts are decoded where they lie. Only where one of them
 * came with the query do all move into a block of their own.
 */
#include "compute/submission/private.h"

#include "compute/codecs/base64.h"
#include "compute/codecs/signature.h"

#include <stdio.h>
#include <string.h>

/* Which input a BLOB field is: its number among them; a name that is none is the first. */
static size_t blob_index(const struct reading *reading, const char *name) {
    size_t index = 0;
    for (const struct field *field = reading->type->fields; field->name != NULL; field++) {
        if (field->type == FIELD_BLOB && name != NULL && strcmp(field->name, name) == 0) {
            return index;
        }
        index += field->type == FIELD_BLOB;
    }
    return 0;
}

const char *reading_blob(const struct reading *reading) {
    for (const struct field *field = reading->type->fields; field->name != NULL; field++) {
        if (field->type == FIELD_BLOB) {
            return field->name;
        }
    }
    return "body";
}

/* Notes an encoded image; only its header is read here. */
static enum kiln_status image_take(struct reading *reading, size_t index, const char *name,
                                   const char *bytes, size_t size, enum format format) {
    struct submission *submission = reading->submission;
    struct input *input = &submission->job->inputs[index];
    bool several = job_type_inputs(reading->type) > 1;
    char why[128];
    enum kiln_status status = image_probe(bytes, size, format, submission->limits->max_pixels,
                                          &input->image, why, sizeof why);
    if (status == KILN_INVALID) {
        /* a picture of them takes a byte a sample or more, beside the input */
        uint64_t samples = (uint64_t)input->image.width * input->image.height;
        bool vast = size + samples * input->image.channels > submission->limits->arena;
        complaints_add(submission->complaints, name, "%s%s", why,
                       vast ? "; so large a result needs a larger --arena too" : "");
    } else if (status == KILN_MEDIA_TYPE) {
        return reading_fault(reading, status,
                             "The image%s%s is not one of those that can be read here (PNG, PGM, "
                             "PPM, PAM, NPY): %s",
                             several ? " " : "", several ? name : "", why);
    } else if (status != KILN_OK) {
        return reading_fault(reading, status, "The image%s%s cannot be read: %s",
                             several ? " " : "", several ? name : "", why);
    }
    input->kind = INPUT_IMAGE;
    input->format = input->image.format;
    input->size = size;
    reading->blobs[index] = bytes;
    return KILN_OK;
}

static enum format series_recognise(const char *bytes, size_t size) {
    bool npy = size > 6 && memcmp(bytes, "\x93NUMPY", 6) == 0;
    size_t blank = 0;
    while (blank < size && (bytes[blank] == ' ' || bytes[blank] == '\n')) {
        blank++;
    }
    return npy ? FORMAT_NPY : blank < size && bytes[blank] == '{' ? FORMAT_JSON : FORMAT_CSV;
}

/* True where the input was given already; the second one gets a complaint. */
static bool input_repeated(struct reading *reading, size_t index, const char *name) {
    if (reading->input_seen[index]) {
        complaints_add(reading->submission->complaints, name, "is duplicated");
        return true;
    }
    reading->input_seen[index] = true;
    form_mark_quietly(&reading->form, name);
    return false;
}

/* What is no table, whatever it is called, is named; a table is read when all fields are known. */
static enum kiln_status table_note(struct reading *reading, const char *bytes, size_t size,
                                   enum format format) {
    const char *known = signature_of_bytes(bytes, size);
    if (known != NULL) {
        return reading_fault(reading, KILN_MEDIA_TYPE, "The body is %s.", known);
    }
    reading->table = (struct sent_table){bytes, size, format};
    return KILN_OK;
}

enum kiln_status reading_input(struct reading *reading, const char *name, char *bytes, size_t size,
                               enum format format) {
    if (reading->type->input == INPUT_SERIES) {
        format = format != FORMAT_NONE ? format : series_recognise(bytes, size);
        return format == FORMAT_JSON                ? reading_json(reading, bytes, size)
               : input_repeated(reading, 0, "body") ? KILN_OK
                                                    : table_note(reading, bytes, size, format);
    }
    size_t index = blob_index(reading, name);
    name = index > 0 ? name : reading_blob(reading);
    return input_repeated(reading, index, name)
               ? KILN_OK
               : image_take(reading, index, name, bytes, size, format);
}

enum kiln_status reading_base64(struct reading *reading, const char *name, char *text,
                                size_t size) {
    size_t decoded = 0, index = blob_index(reading, name);
    if (input_repeated(reading, index, name)) {
        return KILN_OK;
    }
    if (text == NULL || base64_decode(text, size, (uint8_t *)text, size, &decoded) != KILN_OK) {
        complaints_add(reading->submission->complaints, name, "must be a base64 text");
        return KILN_OK;
    }
    return image_take(reading, index, name, text, decoded, FORMAT_NONE);
}

/* Do all inputs lie in the body's block? `total` receives their bytes; 0: there is none. */
static bool blobs_in_body(const struct reading *reading, uint64_t *total) {
    const struct submission *submission = reading->submission;
    uintptr_t body = 0;
    bool inside = submission->body.size > 0;
    if (inside) {
        body = (uintptr_t)arena_at(submission->arena, submission->body.offset);
    }
    *total = 0;
    for (size_t i = 0; i < INPUTS_MAX; i++) {
        uintptr_t at = (uintptr_t)reading->blobs[i];
        if (reading->blobs[i] != NULL) {
            *total += submission->job->inputs[i].size;
            inside = inside && at >= body && at - body < submission->body.size;
        }
    }
    return inside;
}

enum kiln_status reading_blobs(struct reading *reading) {
    struct submission *submission = reading->submission;
    struct job *job = submission->job;
    uint64_t total, used = 0;
    bool inside = blobs_in_body(reading, &total);
    if (total == 0) {
        return KILN_OK;
    }
    if (inside) {
        job->body = submission->body;
        submission->body = (struct block){0, 0};
    } else {
        enum kiln_status status = reading_take(reading, total, &job->body);
        if (status != KILN_OK) {
            return reading_fault(reading, status, "There is no room for the input now.");
        }
    }
    char *block = arena_at(submission->arena, job->body.offset);
    for (size_t i = 0; i < INPUTS_MAX; i++) {
        struct input *input = &job->inputs[i];
        if (reading->blobs[i] == NULL) {
            continue;
        }
        if (!inside) {
            memcpy(block + used, reading->blobs[i], (size_t)input->size);
        }
        input->offset = inside ? (uint64_t)(reading->blobs[i] - block) : used;
        used += input->size;
    }
    return KILN_OK;
}
