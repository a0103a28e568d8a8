/*
 * body_input.c: the binary input of a job: an image that stays encoded, or light curves that
 * become doubles.
 */
#include "server/body.h"

#include "compute/codecs/base64.h"

#include <stdio.h>
#include <string.h>

/* Notes the image at `offset` of a block that holds it; only its header is read here. */
static enum kiln_status image_take(struct reading *reading, const char *name, const char *bytes,
                                   uint64_t offset, size_t size, enum format format) {
    struct exchange *exchange = reading->exchange;
    struct input *input = &exchange->job.input;
    char why[128];
    enum kiln_status status = image_probe(bytes, size, format, exchange->service->limits.max_pixels,
                                          &input->image, why, sizeof why);
    if (status == KILN_INVALID) {
        /* a picture of them takes a byte a sample or more, beside the input */
        uint64_t samples = (uint64_t)input->image.width * input->image.height;
        bool vast = size + samples * input->image.channels > exchange->service->limits.arena;
        complaints_add(&exchange->complaints, name, "%s%s", why,
                       vast ? "; so large a result needs a larger --arena too" : "");
    } else if (status == KILN_MEDIA_TYPE) {
        return exchange_fault(exchange, status,
                              "The image is not one of those that can be read here (PNG, PGM, "
                              "PPM, PAM, NPY): %s",
                              why);
    } else if (status != KILN_OK) {
        return exchange_fault(exchange, status, "The image cannot be read: %s", why);
    }
    input->kind = INPUT_IMAGE;
    input->format = input->image.format;
    input->offset = offset;
    input->size = size;
    return KILN_OK;
}

/* Whether the field `layout`, where the kind has one, says that rows are series. */
static bool layout_is_batch(const struct reading *reading) {
    const struct field *field = form_find(&reading->form, "layout");
    int32_t layout = 0;
    if (field != NULL) {
        memcpy(&layout, (const char *)reading->form.params + field->offset, sizeof layout);
    }
    return layout != 0;
}

/* Columns become the fields t, y and dy. */
static enum kiln_status series_take(struct reading *reading, const char *bytes, size_t size,
                                    enum format format) {
    static const char *const names[] = {"t", "y", "dy"};
    static enum kiln_status (*const readers[])(struct series *, const void *, size_t, uint64_t,
                                               struct array_ref[3], int *, char *,
                                               size_t) = {series_csv, series_npy, series_npy_batch};
    int reader = format != FORMAT_NPY ? 0 : layout_is_batch(reading) ? 2 : 1;
    struct array_ref arrays[3] = {{0}, {0}, {0}};
    uint64_t most = reading_numbers_max(reading);
    char why[160] = "";
    int count = 0;
    enum kiln_status status =
        readers[reader](&reading->series, bytes, size, most, arrays, &count, why, sizeof why);
    if (status == KILN_MALFORMED) {
        return exchange_fault(reading->exchange, status, "The %s data cannot be read: %s",
                              format_row(format)->name, why);
    }
    if (status == KILN_INVALID) {
        complaints_add(&reading->exchange->complaints, names[0], "%s", why);
        return KILN_OK;
    }
    for (int i = 0; status == KILN_OK && i < count; i++) {
        form_set_array(&reading->form, names[i], arrays[i]);
    }
    return status == KILN_OK
               ? KILN_OK
               : exchange_fault(reading->exchange, status, "There is no room for the data now.");
}

static enum format series_recognise(const char *bytes, size_t size) {
    bool npy = size > 6 && memcmp(bytes, "\x93NUMPY", 6) == 0;
    return npy ? FORMAT_NPY : size > 0 && bytes[0] == '{' ? FORMAT_JSON : FORMAT_CSV;
}

/* True where the input was given already; the second one gets a complaint. */
static bool input_repeated(struct reading *reading, const char *name) {
    if (reading->input_seen) {
        complaints_add(&reading->exchange->complaints, name, "was given more than once");
        return true;
    }
    reading->input_seen = true;
    return false;
}

enum kiln_status reading_input(struct reading *reading, char *bytes, size_t size,
                               enum format format) {
    struct exchange *exchange = reading->exchange;
    const char *blob = reading_blob(reading);
    if (reading->type->input == INPUT_SERIES) {
        format = format != FORMAT_NONE ? format : series_recognise(bytes, size);
        return format == FORMAT_JSON             ? reading_json(reading, bytes, size)
               : input_repeated(reading, "body") ? KILN_OK
                                                 : series_take(reading, bytes, size, format);
    }
    if (input_repeated(reading, blob)) {
        return KILN_OK;
    }
    if (form_find(&reading->form, blob) != NULL) {
        form_mark(&reading->form, blob);
    }
    const char *base = arena_at(exchange->service->arena, exchange->body.offset);
    reading->input_in_body = true;
    return image_take(reading, blob, bytes, (uint64_t)(bytes - base), size, format);
}

enum kiln_status reading_base64(struct reading *reading, const char *name, const char *text,
                                size_t size) {
    struct exchange *exchange = reading->exchange;
    struct arena *arena = exchange->service->arena;
    size_t decoded = 0;
    if (input_repeated(reading, name)) {
        return KILN_OK;
    }
    form_mark(&reading->form, name);
    enum kiln_status status = exchange_take(exchange, size / 4 * 3 + 3, NULL, &exchange->job.body);
    if (status != KILN_OK) {
        return exchange_fault(exchange, status, "There is no room for \"%s\" now.", name);
    }
    char *bytes = arena_at(arena, exchange->job.body.offset);
    status = base64_decode(text, size, (uint8_t *)bytes, size / 4 * 3 + 3, &decoded);
    if (status != KILN_OK) {
        complaints_add(&exchange->complaints, name, "must be a base64 text");
        arena_give(arena, &exchange->job.body);
        return KILN_OK;
    }
    return image_take(reading, name, bytes, 0, decoded, FORMAT_NONE);
}
