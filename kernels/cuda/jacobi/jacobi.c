/*
 * jacobi.c: launcher of `jacobi` (kernels/jacobi.h): chooses tiles and starts the one cooperative
 * launch of a run. Thread: the stream's.
 *
 * The choice minimises an estimate of the time a sweep takes, from the cells that a multiprocessor
 * computes, frames included, and what an exchange costs. Its constants are cycles, measured or from
 * instruction counts; they need not be exact, only rank the candidates.
 */
#include "kernels/jacobi.h"
#include "kernels/cuda/device/stream.h"
#include "kernels/cuda/jacobi/jacobi_grid.h"

#include <math.h>

#define DEPTH_ALONE  JACOBI_CHECK /* sweeps a pass where tiles have no neighbours */
#define HALO_ALONE_X 4
#define HALO_ALONE_Y 1
#define EXCHANGE     1950.0 /* cycles: frames by tagged words */
#define BATCH        650.0 /* cycles: 16 bytes of words a cell column that are asked for together */
#define BARRIER      3000.0 /* cycles: grid barrier, and a tile's way to the cache and back */
#define BYTES_CYCLE  16.0   /* a multiprocessor's share of the memory */
#define CHAIN        118.0  /* cycles a sweep takes besides issuing */
#define LANES_MAX    32

/* How blocks share the work (jacobi.cu). */
enum way { RESIDENT, STREAMED, MARCHING };

/* Element size, rows a thread or sweeps a warp, issue cycles of a cell of a warp, and the way. */
static const struct variant {
    int size, rows, warps;
    double cell;
    enum way way;
} variants[] = {
    {4, 4, 8, 7.6, RESIDENT},   {4, 6, 8, 6.6, RESIDENT},  {4, 8, 8, 6.5, RESIDENT},
    {4, 8, 12, 5.6, MARCHING},  {8, 2, 8, 15.0, RESIDENT}, {8, 4, 8, 13.0, RESIDENT},
    {8, 4, 16, 14.0, STREAMED},
};
#define VARIANTS ((int)(sizeof variants / sizeof *variants))

extern const unsigned char kiln_image_jacobi[];

/* Rows of X and B on their way, of a warp. */
#define RING(size)    ((JACOBI_AHEAD + 1) * 4 * 32 * JACOBI_ACROSS * (size))
#define BORDERS(size) (2 * 2 * 32 * JACOBI_ACROSS * (size)) /* two buffers, two rows */

static const struct function_row functions[] = {
    {"jacobi_fp32_4", 8, BORDERS(4)},         {"jacobi_fp32_6", 8, BORDERS(4)},
    {"jacobi_fp32_8", 8, BORDERS(4)},         {"jacobi_fp32_marching", 12, RING(4)},
    {"jacobi_fp64_2", 8, BORDERS(8)},         {"jacobi_fp64_4", 8, BORDERS(8)},
    {"jacobi_fp64_streamed", 16, BORDERS(8)},
};

/* A way to run. */
struct layout {
    int function, warps, lanes;
    int halo_x, halo_y, depth, part;
    uint64_t tiles_x, tiles_y, tiles, blocks;
    double cost; /* cycles a sweep, estimated */
};

/* Cycles of a sweep of one wave of tiles. */
static double sweep_cost(const struct variant *variant, const struct layout *layout,
                         double together) {
    double issue =
        ceil(together * layout->warps / 4.0) * variant->rows * variant->cell * JACOBI_ACROSS;
    /* Shuffles and rows through shared memory, which all warps share. */
    double moved = together * layout->warps * variant->size / 4.0 * (2.0 * variant->rows + 16.0);
    double chain = 60.0 + variant->rows * variant->cell * JACOBI_ACROSS;
    return variant->way == STREAMED ? fmax(issue, chain) : fmax(issue, moved) + CHAIN;
}

static void layout_cost(const struct stream *stream, const struct jacobi_args *args,
                        const struct variant *variant, struct layout *layout) {
    double processors = stream->device->multiprocessors;
    double together = ceil((double)layout->blocks / processors);
    double waves = ceil((double)layout->tiles / (double)layout->blocks);
    double length = fmax(1.0, fmin(layout->depth, (double)args->iterations));
    double sweep = sweep_cost(variant, layout, together);
    double cells = layout->warps * 32.0 * JACOBI_ACROSS * variant->rows;
    double move = together * cells * 3.0 * variant->size / BYTES_CYCLE;
    double batches = ceil(variant->rows * variant->size / 16.0);
    layout->cost = variant->way == STREAMED ? (waves * (length * sweep + move) + BARRIER) / length
                                            : sweep + (EXCHANGE + BATCH * batches) / length;
}

/* Fills in tiles and cost; false where that cannot run. */
static bool layout_tiles(const struct stream *stream, const struct jacobi_args *args, int depth,
                         struct layout *layout) {
    const struct variant *variant = &variants[layout->function];
    int columns = layout->lanes * JACOBI_ACROSS;
    int rows = layout->warps * (LANES_MAX / layout->lanes) * variant->rows;
    bool alone_x = args->width <= columns - 2 * HALO_ALONE_X;
    bool alone_y = args->height <= rows - 2 * HALO_ALONE_Y;
    layout->halo_x = alone_x ? HALO_ALONE_X : depth;
    layout->halo_y = alone_y ? HALO_ALONE_Y : depth;
    layout->depth = alone_x && alone_y ? DEPTH_ALONE : depth;
    if (variant->way == RESIDENT && args->iterations > layout->depth) {
        /* Passes of one length. */
        int64_t passes = (args->iterations + layout->depth - 1) / layout->depth;
        layout->depth = (int)((args->iterations + passes - 1) / passes);
    }
    int own_x = columns - 2 * layout->halo_x, own_y = rows - 2 * layout->halo_y;
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
    if (stream->device->functions[KERNEL_JACOBI][layout->function].resident[layout->warps] == 0 ||
        (variant->way == RESIDENT && layout->tiles > resident)) {
        return false;
    }
    layout->blocks = layout->tiles < resident ? layout->tiles : resident;
    layout_cost(stream, args, variant, layout);
    return true;
}

/* Cycles of a row of a warp's levels. */
static double row_cost(const struct variant *variant) {
    return variant->rows * variant->cell * JACOBI_ACROSS;
}

/* A warp marches down a part of a strip; as many parts as keep all warps busy equally long. */
static bool layout_march(const struct stream *stream, const struct jacobi_args *args,
                         struct layout *layout) {
    const struct variant *variant = &variants[layout->function];
    int levels = variant->rows, alone = LANES_MAX * JACOBI_ACROSS - 2 * HALO_ALONE_X;
    uint64_t resident = stream_resident(stream, KERNEL_JACOBI, layout->function, variant->warps);
    uint64_t warps = resident * (uint64_t)variant->warps, height = (uint64_t)args->height;
    layout->depth = levels;
    layout->halo_x = args->width <= alone ? HALO_ALONE_X : levels;
    uint64_t own = (uint64_t)(LANES_MAX * JACOBI_ACROSS - 2 * layout->halo_x);
    layout->tiles_x = ((uint64_t)args->width + own - 1) / own;
    uint64_t strips = layout->tiles_x * (uint64_t)args->planes;
    struct layout best = {.cost = INFINITY};
    bool fits = layout->warps == variant->warps &&
                stream->device->functions[KERNEL_JACOBI][layout->function].resident[layout->warps];
    for (uint64_t waves = 1; fits && waves <= 4; waves++) {
        uint64_t parts = waves * warps / strips;
        parts = parts < 1 ? 1 : parts > height ? height : parts;
        layout->part = (int)((height + parts - 1) / parts);
        layout->tiles_y = (height + (uint64_t)layout->part - 1) / (uint64_t)layout->part;
        layout->tiles = strips * layout->tiles_y;
        double rounds = ceil((double)layout->tiles / (double)warps);
        double busy =
            rounds * (2.0 * levels + layout->part) * row_cost(variant) * variant->warps / 4.0;
        double length = fmax(1.0, fmin(levels, (double)args->iterations));
        layout->cost = (busy + BARRIER) / length;
        if (layout->tiles <= UINT32_MAX / 2 && layout->cost < best.cost) {
            best = *layout;
        }
    }
    *layout = best;
    uint64_t blocks = (best.tiles + (uint64_t)variant->warps - 1) / (uint64_t)variant->warps;
    layout->blocks = blocks < resident ? blocks : resident;
    return best.cost < INFINITY;
}

static bool layout_fill(const struct stream *stream, const struct jacobi_args *args, int depth,
                        struct layout *layout) {
    return variants[layout->function].way == MARCHING ? layout_march(stream, args, layout)
                                                      : layout_tiles(stream, args, depth, layout);
}

static bool layout_choose(const struct stream *stream, const struct jacobi_args *args,
                          struct layout *best) {
    static const int depths[] = {4, 8, 12, 16, 20, 24};
    int size = args->fp64 ? 8 : 4;
    *best = (struct layout){.cost = INFINITY};
    for (int f = 0; f < VARIANTS; f++) {
        for (int warps = 1; variants[f].size == size && warps <= variants[f].warps; warps++) {
            for (int lanes = LANES_MAX / 2; lanes <= LANES_MAX; lanes *= 2) {
                if (variants[f].way != RESIDENT && lanes < LANES_MAX) {
                    continue;
                }
                for (size_t d = 0; d < sizeof depths / sizeof *depths; d++) {
                    struct layout layout = {.function = f, .warps = warps, .lanes = lanes};
                    if (layout_fill(stream, args, depths[d], &layout) && layout.cost < best->cost) {
                        *best = layout;
                    }
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
                                    const struct layout *layout, struct jacobi_shared *shared) {
    struct jacobi_grid grid = {
        .width = args->width,
        .height = args->height,
        .tiles_x = (uint32_t)layout->tiles_x,
        .tiles_y = (uint32_t)layout->tiles_y,
        .tiles = (uint32_t)layout->tiles,
        .lanes = layout->lanes,
        .halo_x = layout->halo_x,
        .halo_y = layout->halo_y,
        .depth = layout->depth,
        .part = layout->part,
        /* The look crosses the bus: seldom where passes are short. */
        .poll = layout->tiles > 4 * layout->blocks ? 1
                : layout->depth >= DEPTH_ALONE     ? 8
                                                   : 256,
        .vector = args->width % JACOBI_ACROSS == 0 && aligned(args->b) && aligned(args->start) &&
                  aligned(args->x),
        .iterations = args->iterations,
        .tolerance = args->tolerance,
        .b = args->b,
        .start = args->start,
        .x = args->x,
        .report = args->report,
        .shared = shared,
        .stop = stream_stop_flag(stream),
        .progress = stream_progress_word(stream),
        .pitch = ((int64_t)args->width + JACOBI_ACROSS - 1) / JACOBI_ACROSS * JACOBI_ACROSS,
    };
    return grid;
}

/* What blocks exchange cells by; false where memory ran out. */
static bool exchange_make(struct stream *stream, const struct jacobi_args *args,
                          const struct layout *layout, struct jacobi_grid *grid) {
    size_t size = args->fp64 ? 8 : 4, lines = (size_t)args->planes * (size_t)args->height;
    if (args->iterations <= layout->depth) {
        grid->targets[0] = args->x;
        return true;
    }
    if (variants[layout->function].way == RESIDENT) {
        /* Tags are not 0. */
        grid->mail = stream_zeroed(stream, 2 * 2 * lines * (size_t)grid->pitch * size);
        return grid->mail != NULL;
    }
    int last = (int)((args->iterations - 1) / layout->depth % 2);
    grid->targets[last] = args->x;
    grid->targets[1 - last] = stream_reserve(stream, lines * (size_t)args->width * size);
    return grid->targets[1 - last] != NULL;
}

static enum kiln_status launch(struct stream *stream, const void *pointer) {
    const struct jacobi_args *args = pointer;
    struct layout layout = {0};
    if (!layout_choose(stream, args, &layout)) {
        return KILN_JOB_TOO_LARGE;
    }
    struct jacobi_shared *shared = stream_zeroed(stream, sizeof *shared);
    struct jacobi_grid grid = grid_make(stream, args, &layout, shared);
    if (shared == NULL || !exchange_make(stream, args, &layout, &grid)) {
        return stream->fault != KILN_OK ? stream->fault : KILN_NO_MEMORY;
    }
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
    .count = VARIANTS,
    .launch = launch,
};
