/*
 * laplacian.c: launcher of `laplacian` (kernels/laplacian.h). Thread: the stream's.
 */
#include "kernels/laplacian.h"
#include "kernels/cuda/device/stream.h"
#include "kernels/cuda/laplacian/laplacian_grid.h"

#define WARPS      8
#define GRID_X_MAX 65536
#define GRID_Y_MAX 65535 /* the hardware's */

enum { LAPLACIAN_INTEGER, LAPLACIAN_REAL };

extern const unsigned char kiln_image_laplacian[];

static const struct function_row functions[] = {
    [LAPLACIAN_INTEGER] = {.name = "laplacian_integer", .warps = WARPS},
    [LAPLACIAN_REAL] = {.name = "laplacian_real", .warps = WARPS},
};

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static enum kiln_status launch(struct stream *stream, const void *pointer) {
    const struct laplacian_args *args = pointer;
    int function = args->real ? LAPLACIAN_REAL : LAPLACIAN_INTEGER;
    struct laplacian_grid grid = {
        .width = args->width,
        .height = args->height,
        .rows = (int64_t)args->planes * args->height,
        .x = args->x,
        .b = args->b,
    };
    /* Stretches of rows: enough to fill the device four times over, one row at least each. */
    int64_t across = least((grid.width + 31) / 32, GRID_X_MAX);
    int64_t blocks = 4 * (int64_t)stream_resident(stream, KERNEL_LAPLACIAN, function, WARPS);
    int64_t down = least((blocks + across - 1) / across, (grid.rows + WARPS - 1) / WARPS);
    struct shape shape = {
        .grid_x = (unsigned)across,
        .grid_y = (unsigned)least(down, GRID_Y_MAX),
        .warps = WARPS,
    };
    return stream_launch(stream, KERNEL_LAPLACIAN, function, &shape, &grid, "laplacian");
}

const struct kernel_row laplacian_row = {
    .image = kiln_image_laplacian,
    .functions = functions,
    .count = 2,
    .launch = launch,
};
