/*
 * body_input.c: the binary input of a job: an image that stays encoded, or a table that
 * body_table.c makes into doubles.
 */
#include "server/api/body.h"

#include "compute/codecs/base64.h"
#include "compute/codecs/signature.h"

#include <stdio.h>
#include <string.h>

/* Notes the image at `offset` of a block that holds it; only its header is read here. */
static enum kiln_status image_take(struct reading *reading, const char *name, const char *bytes,
                                   uint64_t offset, size_t size, enum format format) {
    struct http_request *request = reading->request;
    struct input *input = &request->job.input;
    char why[128];
    enum kiln_status status = image_probe(bytes, size, format, request->service->limits.max_pixels,
                                          &input->image, why, sizeof why);
    if (status == KILN_INVALID) {
        /* a picture of them takes a byte a sample or more, beside the input */
        uint64_t samples = (uint64_t)input->image.width * input->image.height;
        bool vast = size + samples * input->image.channels > request->service->limits.arena;
        complaints_add(&request->complaints, name, "%s%s", why,
                       vast ? "; so large a result needs a larger --arena too" : "");
    } else if (status == KILN_MEDIA_TYPE) {
        return request_fault(request, status,
                             "The image is not one of those that can be read here (PNG, PGM, "
                             "PPM, PAM, NPY): %s",
                             why);
    } else if (status != KILN_OK) {
        return request_fault(request, status, "The image cannot be read: %s", why);
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
        complaints_add(&reading->request->complaints, name, "is duplicated");
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
        return request_fault(reading->request, KILN_MEDIA_TYPE, "The body is %s.", known);
    }
    reading->table = (struct sent_table){bytes, size, format};
    return KILN_OK;
}

enum kiln_status reading_input(struct reading *reading, char *bytes, size_t size,
                               enum format format) {
    struct http_request *request = reading->request;
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
    const char *base = arena_at(request->service->arena, request->body.offset);
    reading->input_in_body = true;
    return image_take(reading, blob, bytes, (uint64_t)(bytes - base), size, format);
}

enum kiln_status reading_base64(struct reading *reading, const char *name, const char *text,
                                size_t size) {
    struct http_request *request = reading->request;
    struct arena *arena = request->service->arena;
    size_t decoded = 0;
    if (input_repeated(reading, name)) {
        return KILN_OK;
    }
    form_mark(&reading->form, name);
    enum kiln_status status = request_take(request, size / 4 * 3 + 3, NULL, &request->job.body);
    if (status != KILN_OK) {
        return request_fault(request, status, "There is no room for \"%s\" now.", name);
    }
    char *bytes = arena_at(arena, request->job.body.offset);
    status = base64_decode(text, size, (uint8_t *)bytes, size / 4 * 3 + 3, &decoded);
    if (status != KILN_OK) {
        complaints_add(&request->complaints, name, "must be a base64 text");
        arena_give(arena, &request->job.body);
        return KILN_OK;
    }
    return image_take(reading, name, bytes, 0, decoded, FORMAT_NONE);
}
