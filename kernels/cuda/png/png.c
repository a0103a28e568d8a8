/*
 * png.c: launcher of `png` (kernels/png.h). Thread: the stream's.
 */
#include "kernels/png.h"

#include "kernels/cuda/device/stream.h"
#include "kernels/cuda/png/png_grid.h"

#include <stdio.h>
#include <string.h>

enum { PNG_PIECES, PNG_GATHER };

extern const unsigned char kiln_image_png[];

static const struct function_row functions[] = {
    [PNG_PIECES] = {.name = "png_pieces",
                    .warps = PNG_WARPS,
                    .shared_per_warp = PNG_SHARED / PNG_WARPS},
    [PNG_GATHER] = {.name = "png_gather", .warps = PNG_GATHER_WARPS},
};

static enum kiln_status launch(struct stream *stream, const void *pointer) {
    const struct png_args *args = pointer;
    uint64_t width = (uint64_t)args->width, height = (uint64_t)args->height;
    uint64_t pieces = png_pieces(width, height), all = pieces * (uint64_t)args->pictures;
    if (width > PNG_WIDTH_MAX || pieces > INT32_MAX) {
        snprintf(stream->error, sizeof stream->error, "rows of more than %d pixels", PNG_WIDTH_MAX);
        return KILN_UNSUPPORTED;
    }
    struct png_grid grid = {
        .indices = args->indices,
        .width = args->width,
        .height = args->height,
        .strip_rows = (int64_t)png_strip_rows(width, height),
        .strip_pieces = (int32_t)png_strip_pieces(width),
        .pieces = (int32_t)pieces,
        .slots = stream_reserve(stream, all * PNG_PITCH),
        .piece = stream_reserve(stream, all * sizeof(struct png_piece)),
    };
    memcpy(grid.target, args->target, (size_t)args->pictures * sizeof *grid.target);
    if (grid.slots == NULL || grid.piece == NULL) {
        return KILN_NO_MEMORY;
    }
    struct shape shape = {
        .grid_x = (unsigned)pieces,
        .grid_y = (unsigned)args->pictures,
        .warps = PNG_WARPS,
    };
    enum kiln_status status =
        stream_launch(stream, KERNEL_PNG, PNG_PIECES, &shape, &grid, "png pieces");
    shape.warps = PNG_GATHER_WARPS;
    return status == KILN_OK
               ? stream_launch(stream, KERNEL_PNG, PNG_GATHER, &shape, &grid, "png gather")
               : status;
}

const struct kernel_row png_row = {
    .image = kiln_image_png,
    .functions = functions,
    .count = sizeof functions / sizeof functions[0],
    .launch = launch,
};
