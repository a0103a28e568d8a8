/*
 * npy_image.c: NPY arrays of h×w or h×w×c as images (codec.h). Thread: any.
 */
#include "compute/codecs/codec.h"
#include "compute/codecs/npy.h"

static enum kiln_status header_read(const struct source *source, struct npy *npy,
                                    struct image_info *info) {
    enum kiln_status status =
        npy_parse(source->bytes, source->size, true, npy, source->why, source->why_size);
    if (status != KILN_OK) {
        return status;
    }
    if (npy->dimensions < 2 || npy->dimensions > 3) {
        return source_broken(source, "NPY: an image has the shape (h, w) or (h, w, c)");
    }
    uint64_t channels = npy->dimensions == 3 ? npy->shape[2] : 1;
    if (channels < 1 || channels > 4) {
        return source_broken(source, "NPY: an image has 1 to 4 channels");
    }
    if (npy->count == 0 || npy->shape[0] > UINT32_MAX || npy->shape[1] > UINT32_MAX) {
        return source_broken(source, "NPY: the image's sides must be from 1 to 2^32 - 1");
    }
    *info = (struct image_info){.format = FORMAT_NPY,
                                .width = (uint32_t)npy->shape[1],
                                .height = (uint32_t)npy->shape[0],
                                .channels = (uint32_t)channels,
                                .depth = npy->kind == 'f' ? 0 : npy->item * 8};
    return KILN_OK;
}

enum kiln_status npy_probe(const struct source *source, struct image_info *info) {
    struct npy npy;
    return header_read(source, &npy, info);
}

static enum kiln_status row_store(const struct sink *sink, uint32_t row, const void *context) {
    const struct npy *npy = context;
    samples_reader *read = samples_reader_find(npy->kind, npy->item, npy->swapped);
    size_t height = sink->height, width = sink->width, channels = sink->channels;
    enum kiln_status status = KILN_OK;
    for (uint32_t c = 0; c < channels && status == KILN_OK; c++) {
        size_t first = npy->fortran ? row + c * height * width : row * width * channels + c;
        size_t step = npy->fortran ? height : channels;
        status =
            sink_samples(sink, row, c, 0, sink->width, read,
                         sink->source->bytes + npy->data + first * npy->item, step * npy->item);
    }
    return status;
}

enum kiln_status npy_decode(const struct source *source, const struct image_info *info,
                            const struct sink *sink) {
    struct npy npy;
    struct image_info now;
    enum kiln_status status = header_read(source, &npy, &now);
    if (status != KILN_OK) {
        return status;
    }
    if (!image_info_equal(&now, info)) {
        return source_broken(source, "NPY: the header has changed");
    }
    return sink_rows(sink, row_store, &npy);
}
