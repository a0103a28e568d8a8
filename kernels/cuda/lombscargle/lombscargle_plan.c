/*
 * lombscargle_plan.c: groups, ranges, spans and slices (lombscargle_plan.h). Thread: the stream's.
 */
#include "kernels/cuda/lombscargle/lombscargle_plan.h"

#include <stddef.h>

#define PARTIAL_BYTES ((uint64_t)256 << 20)
#define TABLE_BYTES   ((uint64_t)256 << 20)
#define POWER_BYTES   ((uint64_t)1 << 30) /* of a group whose power nobody asked for */
#define PAIRS_MAX     0x1p36              /* pairs of samples and frequencies in a launch */
#define PAIRS_POLL    0x1p32              /* from here on kernels look at the stop word */
#define GRID_Y_MAX    65535               /* curves × slices */
#define CURVES_MAX    8192                /* of a group */
#define SLICES_MAX    64
#define SLICE_MIN     96   /* samples: less is not worth a slice */
#define TENSOR_MIN    2048 /* frequencies: for fewer too many are computed in vain */
/* Costs of the tensor kernels in units of one stage: of a block's beginning and end, and how many
   bytes of sums go through memory at a time. */
#define BLOCK_STAGES 2
#define STAGE_BYTES  1e7

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

void lombscargle_plan_make(struct lombscargle_plan *plan, const struct lombscargle_args *args,
                           const struct lombscargle_curve *curves, uint64_t series, bool tensor) {
    uint64_t terms = args->nterms > 0 ? (uint64_t)args->nterms : 1;
    bool listed = args->frequency != NULL || terms > 1;
    *plan = (struct lombscargle_plan){
        .args = args,
        .curves = curves,
        .series = series,
        .terms = terms,
        .pack = LOMBSCARGLE_PACK(args->fp32),
        .stage = LOMBSCARGLE_STAGE(args->fp32),
        .method = listed ? LOMBSCARGLE_LIST : LOMBSCARGLE_GRID,
    };
    if (tensor && args->frequency == NULL && args->nf >= TENSOR_MIN) {
        plan->method = LOMBSCARGLE_TENSOR;
        for (uint64_t h = 1; h <= 2 * terms; h++) {
            uint64_t elements = LOMBSCARGLE_PITCH(args->fp32) + LOMBSCARGLE_TILE_ROWS(h, terms);
            plan->table += elements * LOMBSCARGLE_BYTES(args->fp32);
        }
    }
    double pairs = 0;
    for (uint64_t i = 0; i < series; i++) {
        pairs += (double)curves[i].n * (double)args->nf * (double)terms;
    }
    plan->poll = pairs > PAIRS_POLL;
}

bool lombscargle_single(const struct lombscargle_plan *plan) {
    return plan->method == LOMBSCARGLE_TENSOR && plan->args->fp32;
}

/* Of a frequency, of one curve and slice. */
static uint64_t sums_bytes(const struct lombscargle_plan *plan) {
    return 6 * plan->terms * (lombscargle_single(plan) ? sizeof(float) : sizeof(double));
}

uint64_t lombscargle_entries(const struct lombscargle_plan *plan, uint64_t elements) {
    return divide_up(elements, plan->pack) + plan->stage;
}

/* A group as it would be with the next curve. */
static struct lombscargle_group group_with(const struct lombscargle_plan *plan,
                                           const struct lombscargle_group *group) {
    const struct lombscargle_curve *curve = &plan->curves[group->first + group->count];
    struct lombscargle_group with = *group;
    uint64_t t = (uint64_t)curve->t, n = (uint64_t)curve->n, end = group->element + group->elements;
    with.element = group->count > 0 ? smaller(group->element, t) : t;
    with.elements = (group->count > 0 ? larger(end, t + n) : t + n) - with.element;
    with.longest = larger(group->longest, n);
    with.count++;
    return with;
}

static bool group_fits(const struct lombscargle_plan *plan, const struct lombscargle_group *group) {
    uint64_t nf = (uint64_t)plan->args->nf;
    bool power = plan->args->power != NULL || group->count <= POWER_BYTES / sizeof(double) / nf;
    return power && group->count <= CURVES_MAX &&
           group->count <= PARTIAL_BYTES / sums_bytes(plan) / nf &&
           (plan->table == 0 || group->elements <= TABLE_BYTES / plan->table * plan->pack) &&
           (double)group->count * (double)group->longest * (double)nf <= PAIRS_MAX;
}

struct lombscargle_group lombscargle_group_make(const struct lombscargle_plan *plan,
                                                uint64_t first) {
    struct lombscargle_group group = {.first = first};
    while (first + group.count < plan->series) {
        struct lombscargle_group with = group_with(plan, &group);
        if (group.count > 0 && !group_fits(plan, &with)) {
            break;
        }
        group = with;
    }
    const uint64_t grain = LOMBSCARGLE_TILE(2, 1), nf = (uint64_t)plan->args->nf;
    group.span = group.longest;
    if (plan->table > 0 && group.elements > TABLE_BYTES / plan->table * plan->pack) {
        uint64_t stages = TABLE_BYTES / plan->table / plan->stage; /* it is one curve */
        group.span = stages * plan->stage * plan->pack;
    }
    double pairs = PAIRS_MAX / (double)group.span / (double)group.count;
    group.range = PARTIAL_BYTES / sums_bytes(plan) / group.count;
    group.range = pairs < (double)group.range ? (uint64_t)pairs : group.range;
    group.range = smaller(larger(group.range / grain * grain, grain), nf);
    return group;
}

uint64_t lombscargle_blocks(const struct lombscargle_plan *plan,
                            const struct lombscargle_grid *grid) {
    const uint64_t threads = 32 * LOMBSCARGLE_WARPS, count = (uint64_t)grid->count;
    switch (plan->method) {
    case LOMBSCARGLE_TENSOR:
        return (uint64_t)(grid->tiles + grid->wide_tiles) * plan->terms;
    case LOMBSCARGLE_LIST:
        return divide_up(count, threads) * 2 * plan->terms;
    case LOMBSCARGLE_GRID:
        break;
    }
    return divide_up(count, threads * LOMBSCARGLE_COUNT);
}

/* Slices such that the busiest multiprocessor has least to do; more cost memory traffic. */
static uint64_t tensor_slices(const struct lombscargle_plan *plan, uint64_t blocks, uint64_t bytes,
                              uint64_t samples, uint64_t most) {
    uint64_t best = 1;
    double least = 0;
    for (uint64_t slices = 1; slices <= most; slices++) {
        uint64_t stages = divide_up(divide_up(samples, slices), plan->stage * plan->pack);
        uint64_t turns = divide_up(blocks * slices, plan->multiprocessors);
        double traffic = 2.0 * (double)slices * (double)bytes / STAGE_BYTES;
        double cost = (double)(turns * (stages + BLOCK_STAGES)) + traffic;
        if (slices == 1 || cost < least) {
            best = slices;
            least = cost;
        }
    }
    return best;
}

void lombscargle_slices_set(const struct lombscargle_plan *plan,
                            const struct lombscargle_group *group, uint64_t bytes,
                            struct lombscargle_grid *grid) {
    uint64_t count = (uint64_t)grid->count, samples = (uint64_t)(grid->to - grid->from);
    uint64_t one = sums_bytes(plan) * count * group->count, wanted = 1;
    uint64_t most = smaller(smaller(divide_up(samples, SLICE_MIN), SLICES_MAX),
                            smaller(GRID_Y_MAX / group->count, bytes / one));
    grid->tiles = (int64_t)divide_up(count, LOMBSCARGLE_TILE(1, plan->terms));
    grid->wide_tiles = (int64_t)divide_up(count, LOMBSCARGLE_TILE(plan->terms + 1, plan->terms));
    uint64_t blocks = lombscargle_blocks(plan, grid) * group->count;
    if (plan->method == LOMBSCARGLE_TENSOR) {
        wanted = tensor_slices(plan, blocks, one, samples, most);
    } else if (blocks < plan->resident) {
        wanted = smaller(plan->resident / blocks, larger(most, 1));
    }
    uint64_t stage = plan->stage * plan->pack;
    uint64_t slice = divide_up(divide_up(samples, wanted), stage) * stage;
    grid->slice = (int64_t)slice;
    grid->slices = (int32_t)divide_up(samples, slice);
}

void lombscargle_needs_raise(const struct lombscargle_plan *plan,
                             const struct lombscargle_group *group,
                             struct lombscargle_needs *needs) {
    const struct lombscargle_args *args = plan->args;
    uint64_t nf = (uint64_t)args->nf, segments = divide_up(nf, LOMBSCARGLE_SEGMENT);
    struct lombscargle_grid grid = {.count = (int64_t)group->range, .to = (int64_t)group->span};
    lombscargle_slices_set(plan, group, PARTIAL_BYTES, &grid);
    uint64_t partial = sums_bytes(plan) * group->range * group->count * (uint64_t)grid.slices;
    needs->partial = larger(needs->partial, partial);
    uint64_t words = divide_up(group->range, LOMBSCARGLE_WEAK_BINS);
    needs->weak = larger(needs->weak, words * group->count * sizeof(uint32_t));
    uint64_t elements = (group->count > 1 ? group->elements : group->span) + plan->pack - 1;
    needs->tables = larger(needs->tables, plan->table * lombscargle_entries(plan, elements));
    if (args->power == NULL) {
        needs->power = larger(needs->power, group->count * nf * sizeof(double));
    }
    if (args->peaks != NULL) {
        needs->found = larger(needs->found, segments * group->count * (uint64_t)args->peak_count *
                                                sizeof(struct lombscargle_found));
    }
}
