/*
 * jacobi.c: launcher of `jacobi` (kernels/jacobi.h): chooses tiles and starts the one cooperative
 * launch of a run. Thread: the stream's.
 *
 * The choice minimises an estimate of the time a sweep takes, from the cells that a multiprocessor
 * computes, frames included, and what an exchange costs. Its constants are cycles, measured or from
 * instruction counts; they need not be exact, only rank the candidates.
 */
#include "kernels/jacobi.h"
#include "kernels/cuda/jacobi_grid.h"
#include "kernels/cuda/stream.h"

#include <math.h>

#define WARPS        16
#define DEPTH_ALONE  JACOBI_CHECK /* sweeps a pass where tiles have no neighbours */
#define HALO_ALONE_X 4
#define HALO_ALONE_Y 1
#define BARRIER      3000.0 /* cycles: grid barrier, and a tile's way to the cache and back */
#define BYTES_CYCLE  16.0   /* a multiprocessor's share of the memory */

/* Elements, rows a thread, and issue cycles of a cell of a warp. */
static const struct variant {
    int size, rows;
    double cell;
} variants[] = {{4, 4, 7.5}, {4, 8, 7.0}, {8, 2, 15.0}, {8, 4, 14.0}};

extern const unsigned char kiln_image_jacobi[];

#define SHARED(type) (2 * 2 * JACOBI_COLUMNS * (int)sizeof(type)) /* two buffers, two rows */

static const struct function_row functions[] = {
    {.name = "jacobi_fp32_4", .warps = WARPS, .shared_per_warp = SHARED(float)},
    {.name = "jacobi_fp32_8", .warps = WARPS, .shared_per_warp = SHARED(float)},
    {.name = "jacobi_fp64_2", .warps = WARPS, .shared_per_warp = SHARED(double)},
    {.name = "jacobi_fp64_4", .warps = WARPS, .shared_per_warp = SHARED(double)},
};

/* A way to run. */
struct layout {
    int function, warps;
    int halo_x, halo_y, depth;
    uint64_t tiles_x, tiles_y, tiles, blocks;
    double cost; /* cycles a sweep, estimated */
};

/* Fills in tiles and cost; false where the tile has no cells of its own. */
static bool layout_fill(const struct stream *stream, const struct jacobi_args *args, int depth,
                        struct layout *layout) {
    const struct variant *variant = &variants[layout->function];
    int rows = layout->warps * variant->rows;
    bool alone_x = args->width <= JACOBI_COLUMNS - 2 * HALO_ALONE_X;
    bool alone_y = args->height <= rows - 2 * HALO_ALONE_Y;
    layout->halo_x = alone_x ? HALO_ALONE_X : depth;
    layout->halo_y = alone_y ? HALO_ALONE_Y : depth;
    layout->depth = alone_x && alone_y ? DEPTH_ALONE : depth;
    int own_x = JACOBI_COLUMNS - 2 * layout->halo_x, own_y = rows - 2 * layout->halo_y;
    if (own_x < 1 || own_y < 1) {
        return false;
    }
    layout->tiles_x = ((uint64_t)args->width + (uint64_t)own_x - 1) / (uint64_t)own_x;
    layout->tiles_y = ((uint64_t)args->height + (uint64_t)own_y - 1) / (uint64_t)own_y;
    layout->tiles = layout->tiles_x * layout->tiles_y;
    if (layout->tiles > UINT32_MAX / 2 / (uint64_t)args->planes) {
        return false;
    }
    layout->tiles *= (uint64_t)args->planes;
    uint64_t resident = stream_resident(stream, KERNEL_JACOBI, layout->function, layout->warps);
    layout->blocks = layout->tiles < resident ? layout->tiles : resident;
    double processors = stream->device->multiprocessors;
    double together = ceil((double)layout->blocks / processors);
    double waves = ceil((double)layout->tiles / (double)layout->blocks);
    double cells = (double)(rows * JACOBI_COLUMNS);
    /* A sweep issues at the multiprocessor's four schedulers, and at least takes one warp's chain.
     */
    double issue = variant->cell * ceil(together * layout->warps / 4.0) * variant->rows * 4.0;
    double chain = 60.0 + variant->cell * variant->rows * 4.0;
    double sweep = issue > chain ? issue : chain;
    double move =
        layout->tiles > layout->blocks ? together * cells * 3.0 * variant->size / BYTES_CYCLE : 0.0;
    double length = fmax(1.0, fmin(layout->depth, (double)args->iterations));
    layout->cost = (waves * (length * sweep + move) + BARRIER) / length;
    return true;
}

static bool layout_choose(const struct stream *stream, const struct jacobi_args *args,
                          struct layout *best) {
    static const int depths[] = {4, 8, 12, 16, 24};
    int size = args->fp64 ? 8 : 4;
    *best = (struct layout){.cost = INFINITY};
    for (int f = 0; f < (int)(sizeof variants / sizeof *variants); f++) {
        for (int warps = 1; variants[f].size == size && warps <= WARPS; warps++) {
            for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
                struct layout layout = {.function = f, .warps = warps};
                if (layout_fill(stream, args, depths[d], &layout) && layout.cost < best->cost) {
                    *best = layout;
                }
            }
        }
    }
    return best->cost < INFINITY;
}

static bool aligned(const void *address) {
    return (uintptr_t)address % 16 == 0;
}

static struct jacobi_grid grid_make(const struct stream *stream, const struct jacobi_args *args,
                                    const struct layout *layout, struct jacobi_shared *shared,
                                    void *scratch) {
    int64_t passes = (args->iterations + layout->depth - 1) / layout->depth;
    struct jacobi_grid grid = {
        .width = args->width,
        .height = args->height,
        .tiles_x = (uint32_t)layout->tiles_x,
        .tiles_y = (uint32_t)layout->tiles_y,
        .tiles = (uint32_t)layout->tiles,
        .halo_x = layout->halo_x,
        .halo_y = layout->halo_y,
        .depth = layout->depth,
        /* The look crosses the bus: seldom where passes are short. */
        .poll = layout->tiles > 4 * layout->blocks ? 1 : 64,
        .vector =
            args->width % 4 == 0 && aligned(args->b) && aligned(args->start) && aligned(args->x),
        .iterations = args->iterations,
        .tolerance = args->tolerance,
        .b = args->b,
        .start = args->start,
        .x = args->x,
        .report = args->report,
        .shared = shared,
        .stop = stream_stop_flag(stream),
        .progress = stream_progress_word(stream),
    };
    int last = passes > 0 ? (int)((passes - 1) % 2) : 0;
    grid.targets[last] = args->x;
    grid.targets[1 - last] = scratch;
    return grid;
}

static enum kiln_status launch(struct stream *stream, const void *pointer) {
    const struct jacobi_args *args = pointer;
    struct layout layout = {0};
    if (!layout_choose(stream, args, &layout)) {
        return KILN_JOB_TOO_LARGE;
    }
    size_t cells = (size_t)args->planes * (size_t)args->height * (size_t)args->width;
    struct jacobi_shared *shared = stream_zeroed(stream, sizeof *shared);
    void *scratch =
        args->iterations > 1 ? stream_reserve(stream, cells * (args->fp64 ? 8 : 4)) : args->x;
    if (!shared || !scratch) {
        return stream->fault != KILN_OK ? stream->fault : KILN_NO_MEMORY;
    }
    struct jacobi_grid grid = grid_make(stream, args, &layout, shared, scratch);
    struct shape shape = {
        .grid_x = (unsigned)layout.blocks,
        .grid_y = 1,
        .warps = (unsigned)layout.warps,
        .cooperative = true,
    };
    return stream_launch(stream, KERNEL_JACOBI, layout.function, &shape, &grid, "jacobi");
}

const struct kernel_row jacobi_row = {
    .image = kiln_image_jacobi,
    .functions = functions,
    .count = 4,
    .launch = launch,
};
