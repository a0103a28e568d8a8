/*
 * blobs.c: the binary input of a job: an image that stays encoded, or a table that
 * table.c makes into doubles.
 */
#include "compute/submission/private.h"

#include "compute/codecs/base64.h"
#include "compute/codecs/signature.h"

#include <stdio.h>
#include <string.h>

/* Notes the image at `offset` of a block that holds it; only its header is read here. */
static enum kiln_status image_take(struct reading *reading, const char *name, const char *bytes,
                                   uint64_t offset, size_t size, enum format format) {
    struct submission *submission = reading->submission;
    struct input *input = &submission->job->input;
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
                             "The image is not one of those that can be read here (PNG, PGM, "
                             "PPM, PAM, NPY): %s",
                             why);
    } else if (status != KILN_OK) {
        return reading_fault(reading, status, "The image cannot be read: %s", why);
    }
    input->kind = INPUT_IMAGE;
    input->format = input->image.format;
    input->offset = offset;
    input->size = size;
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
static bool input_repeated(struct reading *reading, const char *name) {
    if (reading->input_seen) {
        complaints_add(reading->submission->complaints, name, "is duplicated");
        return true;
    }
    reading->input_seen = true;
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

enum kiln_status reading_input(struct reading *reading, char *bytes, size_t size,
                               enum format format) {
    struct submission *submission = reading->submission;
    const char *blob = reading_blob(reading);
    if (reading->type->input == INPUT_SERIES) {
        format = format != FORMAT_NONE ? format : series_recognise(bytes, size);
        return format == FORMAT_JSON             ? reading_json(reading, bytes, size)
               : input_repeated(reading, "body") ? KILN_OK
                                                 : table_note(reading, bytes, size, format);
    }
    if (input_repeated(reading, blob)) {
        return KILN_OK;
    }
    if (form_find(&reading->form, blob) != NULL) {
        form_mark(&reading->form, blob);
    }
    const char *base = arena_at(submission->arena, submission->body.offset);
    reading->input_in_body = true;
    return image_take(reading, blob, bytes, (uint64_t)(bytes - base), size, format);
}

enum kiln_status reading_base64(struct reading *reading, const char *name, const char *text,
                                size_t size) {
    struct submission *submission = reading->submission;
    struct arena *arena = submission->arena;
    size_t decoded = 0;
    if (input_repeated(reading, name)) {
        return KILN_OK;
    }
    form_mark(&reading->form, name);
    enum kiln_status status = reading_take(reading, size / 4 * 3 + 3, &submission->job->body);
    if (status != KILN_OK) {
        return reading_fault(reading, status, "There is no room for \"%s\" now.", name);
    }
    char *bytes = arena_at(arena, submission->job->body.offset);
    status = base64_decode(text, size, (uint8_t *)bytes, size / 4 * 3 + 3, &decoded);
    if (status != KILN_OK) {
        complaints_add(submission->complaints, name, "must be a base64 text");
        arena_give(arena, &submission->job->body);
        return KILN_OK;
    }
    return image_take(reading, name, bytes, 0, decoded, FORMAT_NONE);
}
