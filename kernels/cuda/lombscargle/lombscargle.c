/*
 * lombscargle.c: launcher of `lombscargle` (kernels/lombscargle.h). Thread: the stream's.
 *
 * lombscargle_plan.h tells how a job is cut; all its launches use the same memory, which the
 * stream's order allows.
 */
#include "kernels/lombscargle.h"
#include "kernels/cuda/device/stream.h"
#include "kernels/cuda/lombscargle/lombscargle_grid.h"
#include "kernels/cuda/lombscargle/lombscargle_nufft.h"
#include "kernels/cuda/lombscargle/lombscargle_plan.h"
#include "kernels/lombscargle_power.h"

enum {
    GRID_FP64,
    GRID_FP32,
    LIST_FP64,
    LIST_FP32,
    TENSOR_FP64,
    TENSOR_FP32,
    TABLES,
    FINISH,
    SOLVE,
    WEAK,
    SEARCH,
    JOIN,
    NUFFT,
    FUNCTIONS = NUFFT + LOMBSCARGLE_NUFFT_KERNELS
};

/* Of a method's sums in double; in float it is the next. */
static const int sums_functions[] = {
    [LOMBSCARGLE_GRID] = GRID_FP64,
    [LOMBSCARGLE_LIST] = LIST_FP64,
    [LOMBSCARGLE_TENSOR] = TENSOR_FP64,
};

extern const unsigned char kiln_image_lombscargle[];

#define TENSOR(symbol)                                                                             \
    {                                                                                              \
        .name = symbol, .warps = LOMBSCARGLE_MULTIPLIERS + LOMBSCARGLE_FEEDERS,                    \
        .shared_per_warp = LOMBSCARGLE_SHARED_PER_WARP                                             \
    }

static const struct function_row functions[FUNCTIONS] = {
    [GRID_FP64] = {.name = "lombscargle_fp64", .warps = LOMBSCARGLE_WARPS},
    [GRID_FP32] = {.name = "lombscargle_fp32", .warps = LOMBSCARGLE_WARPS},
    [LIST_FP64] = {.name = "lombscargle_list_fp64", .warps = LOMBSCARGLE_WARPS},
    [LIST_FP32] = {.name = "lombscargle_list_fp32", .warps = LOMBSCARGLE_WARPS},
    [TENSOR_FP64] = TENSOR("lombscargle_tensor_fp64"),
    [TENSOR_FP32] = TENSOR("lombscargle_tensor_fp32"),
    [TABLES] = {.name = "lombscargle_tables", .warps = LOMBSCARGLE_WARPS},
    [FINISH] = {.name = "lombscargle_finish", .warps = LOMBSCARGLE_WARPS},
    [SOLVE] = {.name = "lombscargle_solve", .warps = LOMBSCARGLE_SOLVE_WARPS},
    [WEAK] = {.name = "lombscargle_weak",
              .warps = LOMBSCARGLE_WEAK_WARPS,
              .shared_per_warp = LOMBSCARGLE_WEAK_SHARED},
    [SEARCH] = {.name = "lombscargle_search", .warps = LOMBSCARGLE_PEAK_WARPS},
    [JOIN] = {.name = "lombscargle_join", .warps = LOMBSCARGLE_PEAK_WARPS},
    [NUFFT] = LOMBSCARGLE_NUFFT_FUNCTIONS,
};

/* A job on its way. */
struct work {
    struct stream *stream;
    struct lombscargle_plan plan;
    struct lombscargle_needs needs;
    struct lombscargle_grid grid;
    int sums; /* function */
    bool transformed;
    struct lombscargle_transform transform;
};

#define WEAK_LOOK  (4 * 32 * LOMBSCARGLE_WEAK_WARPS) /* words that a block looks at */
#define WEAK_LOOKS 64

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

/* Tensor cores pay where doubles are half as fast as floats without them: not on desktop devices.
   A block must fit as well, which it does from compute capability 9.0 on. */
static bool tensor_device(const struct stream *stream) {
    const struct function *rows = stream->device->functions[KERNEL_LOMBSCARGLE];
    const int warps = LOMBSCARGLE_MULTIPLIERS + LOMBSCARGLE_FEEDERS;
    int ratio = 0;
    CUresult result = driver.cuDeviceGetAttribute(
        &ratio, CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, stream->device->handle);
    return result == CUDA_SUCCESS && ratio <= 2 && rows[TENSOR_FP64].resident[warps] > 0 &&
           rows[TENSOR_FP32].resident[warps] > 0;
}

static enum kiln_status run(struct work *work, int function, uint64_t x, uint64_t y) {
    if (x > INT32_MAX || y > UINT16_MAX) {
        return KILN_JOB_TOO_LARGE;
    }
    struct shape shape = {
        .grid_x = (unsigned)x, .grid_y = (unsigned)y, .warps = (unsigned)functions[function].warps};
    return stream_launch(work->stream, KERNEL_LOMBSCARGLE, function, &shape, &work->grid,
                         "lombscargle");
}

/* Tables for `elements` elements of t. */
static enum kiln_status tables_run(struct work *work, uint64_t element, uint64_t elements) {
    struct lombscargle_grid *grid = &work->grid;
    const uint64_t places = LOMBSCARGLE_OFFSETS + LOMBSCARGLE_LINES / 4; /* most of a harmonic */
    const int fp32 = grid->fp32;
    const uint64_t lead = element % work->plan.pack;
    if (work->plan.method != LOMBSCARGLE_TENSOR) {
        return KILN_OK;
    }
    uint64_t entries = lombscargle_entries(&work->plan, elements + lead);
    grid->element = (int64_t)(element - lead);
    grid->elements = (int64_t)(elements + lead);
    grid->entries = (int64_t)entries;
    grid->rows = (char *)grid->columns +
                 2 * work->plan.terms * entries * LOMBSCARGLE_PITCH(fp32) * LOMBSCARGLE_BYTES(fp32);
    return run(work, TABLES, divide_up(entries * places, 32 * LOMBSCARGLE_WARPS),
               2 * work->plan.terms);
}

/* Sums of a range of frequencies over all samples, span by span. */
static enum kiln_status sums_run(struct work *work, const struct lombscargle_group *group) {
    struct lombscargle_grid *grid = &work->grid;
    enum kiln_status status = KILN_OK;
    grid->from = 0;
    grid->to = (int64_t)group->span;
    lombscargle_slices_set(&work->plan, group, work->needs.partial, grid);
    uint64_t blocks = lombscargle_blocks(&work->plan, grid);
    for (uint64_t at = 0; status == KILN_OK && at < group->longest; at += group->span) {
        if (stream_cancelled(work->stream)) {
            return KILN_CANCELLED;
        }
        uint64_t left = group->longest - at, span = left < group->span ? left : group->span;
        grid->from = (int64_t)at;
        grid->to = (int64_t)(at + span);
        grid->add = at > 0;
        if (group->span < group->longest) {
            status = tables_run(work, group->element + at, span);
        }
        if (status == KILN_OK) {
            status = run(work, work->sums, blocks, group->count * (uint64_t)grid->slices);
        }
    }
    return status;
}

/* Blocks enough to look at all words at once, as far as the device holds them together. */
static enum kiln_status weak_run(struct work *work) {
    uint64_t looks = divide_up((uint64_t)work->grid.words, WEAK_LOOK);
    return run(work, WEAK, looks < WEAK_LOOKS ? looks : WEAK_LOOKS, LOMBSCARGLE_WEAK_TURNS);
}

/* Sums of a range and its power. */
static enum kiln_status range_run(struct work *work, const struct lombscargle_group *group) {
    struct lombscargle_grid *grid = &work->grid;
    const struct lombscargle_curve *curve = &work->plan.curves[group->first];
    enum kiln_status status = work->transformed
                                  ? lombscargle_transform_run(&work->transform, grid, curve)
                                  : sums_run(work, group);
    if (status != KILN_OK) {
        return status;
    }
    double part = (double)(grid->first + grid->count) / (double)grid->nf;
    double done = ((double)group->first + (double)group->count * part) / (double)work->plan.series;
    grid->done = (uint32_t)(done * CONTROL_FULL);
    int finish = grid->nterms > 1 ? SOLVE : FINISH;
    uint64_t threads = 32 * (uint64_t)functions[finish].warps;
    uint64_t words = divide_up((uint64_t)grid->count, LOMBSCARGLE_WEAK_BINS);
    grid->words = (int64_t)(words * group->count);
    status = run(work, finish, divide_up((uint64_t)grid->count, threads), group->count);
    return status == KILN_OK ? weak_run(work) : status;
}

static enum kiln_status peaks_run(struct work *work, const struct lombscargle_group *group) {
    struct lombscargle_grid *grid = &work->grid;
    uint64_t segments = divide_up((uint64_t)grid->nf, LOMBSCARGLE_SEGMENT);
    grid->segments = (int32_t)segments;
    enum kiln_status status = run(work, SEARCH, segments, group->count);
    return status == KILN_OK ? run(work, JOIN, 1, group->count) : status;
}

static enum kiln_status group_run(struct work *work, const struct lombscargle_group *group,
                                  double *scratch) {
    const struct lombscargle_args *args = work->plan.args;
    struct lombscargle_grid *grid = &work->grid;
    uint64_t nf = (uint64_t)args->nf;
    enum kiln_status status = KILN_OK;
    grid->curves = args->series > 0 ? args->device_curves + group->first : NULL;
    grid->power = args->power != NULL ? args->power + group->first * nf : scratch;
    grid->peak_count = args->peak_count;
    grid->peaks =
        args->peaks != NULL ? args->peaks + group->first * (uint64_t)args->peak_count : NULL;
    if (group->span == group->longest && !work->transformed) {
        status = tables_run(work, group->element, group->elements);
    }
    for (uint64_t first = 0; status == KILN_OK && first < nf; first += group->range) {
        grid->first = (int64_t)first;
        grid->count = (int64_t)(nf - first < group->range ? nf - first : group->range);
        status = range_run(work, group);
    }
    return status == KILN_OK && args->peaks != NULL ? peaks_run(work, group) : status;
}

/* The next `size` bytes behind `base`, or NULL if there is none. */
static void *part_lay(uint8_t *base, uint64_t *at, uint64_t size) {
    void *part = base != NULL ? base + *at : NULL;
    *at += divide_up(size, STREAM_MEMORY_ALIGN) * STREAM_MEMORY_ALIGN;
    return part;
}

/* Bytes of all that launches use; `base` becomes that. */
static uint64_t memory_lay(struct work *work, uint8_t *base, double **power) {
    struct lombscargle_grid *grid = &work->grid;
    uint64_t at = 0, before;
    grid->stopped = part_lay(base, &at, sizeof *grid->stopped);
    grid->columns = part_lay(base, &at, work->needs.tables);
    grid->partial = part_lay(base, &at, work->needs.partial);
    grid->found = part_lay(base, &at, work->needs.found);
    grid->weak = part_lay(base, &at, work->needs.weak);
    *power = part_lay(base, &at, work->needs.power);
    before = at;
    if (work->transformed) {
        at += lombscargle_transform_lay(&work->transform, base != NULL ? base + before : NULL);
    }
    return at;
}

/* One piece: a later launch of the same job finds it where this one leaves it. */
static enum kiln_status memory_take(struct work *work, double **power) {
    uint8_t *base = stream_reserve(work->stream, (size_t)memory_lay(work, NULL, power));
    if (base == NULL) {
        return work->stream->fault != KILN_OK ? work->stream->fault : KILN_NO_MEMORY;
    }
    memory_lay(work, base, power);
    return work->transformed ? lombscargle_transform_begin(&work->transform) : KILN_OK;
}

/* Transforms take one curve at a time. */
static struct lombscargle_group group_make(const struct work *work, uint64_t first) {
    const struct lombscargle_plan *plan = &work->plan;
    uint64_t n = (uint64_t)plan->curves[first].n;
    if (!work->transformed) {
        return lombscargle_group_make(plan, first);
    }
    return (struct lombscargle_group){
        .first = first, .count = 1, .longest = n, .span = n, .range = work->transform.range};
}

static enum kiln_status groups_run(struct work *work) {
    const struct lombscargle_plan *plan = &work->plan;
    struct lombscargle_group group;
    double *power;
    for (uint64_t at = 0; at < plan->series; at += group.count) {
        group = group_make(work, at);
        lombscargle_needs_raise(plan, &group, &work->needs);
    }
    enum kiln_status status = memory_take(work, &power);
    for (uint64_t at = 0; status == KILN_OK && at < plan->series; at += group.count) {
        group = group_make(work, at);
        status = group_run(work, &group, power);
    }
    return status;
}

/* Milliseconds that direct sums are expected to take, as measured on an H200 (bench/results): to
   begin with, for a frequency's power, and for pairs of samples and frequencies. */
static double direct_work(const struct lombscargle_plan *plan, int sums) {
    const double pairs[FUNCTIONS] = {
        [GRID_FP64] = 0.3e9,  [GRID_FP32] = 0.3e9,   [LIST_FP64] = 0.1e9,
        [LIST_FP32] = 0.15e9, [TENSOR_FP64] = 4.4e9, [TENSOR_FP32] = 10e9,
    }; /* a millisecond */
    double samples = 0, nf = (double)plan->args->nf;
    for (uint64_t i = 0; i < plan->series; i++) {
        samples += (double)plan->curves[i].n;
    }
    return 0.025 +
           nf * (30e-9 * (double)plan->series + samples * (double)plan->terms / pairs[sums]);
}

/* Whether the sums are made by transforms; then the plan has no tables and no slices. */
static bool transform_chosen(struct work *work) {
    struct lombscargle_plan *plan = &work->plan;
    const struct lombscargle_args *args = plan->args;
    bool faster = args->method == LOMBSCARGLE_METHOD_AUTO &&
                  work->transform.work < direct_work(plan, work->sums);
    if (work->transform.range == 0 || !(faster || args->method == LOMBSCARGLE_METHOD_NUFFT)) {
        return false;
    }
    plan->method = LOMBSCARGLE_LIST;
    plan->table = 0;
    plan->resident = 0;
    return true;
}

/* Below what bins are weak. Transforms are in double, and their errors larger than a sum's. */
static double least_of(bool fp32, bool transformed) {
    if (fp32) {
        return transformed ? LOMBSCARGLE_WEAK_FP64 : LOMBSCARGLE_WEAK_FP32;
    }
    return transformed ? LOMBSCARGLE_WEAK_NUFFT : LOMBSCARGLE_WEAK_FP64;
}

static enum kiln_status launch(struct stream *stream, const void *pointer) {
    const struct lombscargle_args *args = pointer;
    const struct lombscargle_curve single = {
        .n = args->n, .y_mean = args->y_mean, .yy = args->yy, .psd_factor = args->psd_factor};
    struct work work = {.stream = stream};
    struct lombscargle_plan *plan = &work.plan;
    lombscargle_plan_make(plan, args, args->series > 0 ? args->curves : &single,
                          args->series > 0 ? (uint64_t)args->series : 1, tensor_device(stream));
    lombscargle_transform_make(&work.transform, stream, NUFFT, args, plan->curves, plan->series);
    work.sums = sums_functions[plan->method] + (args->fp32 ? 1 : 0);
    plan->multiprocessors = (uint64_t)stream->device->multiprocessors;
    plan->resident =
        stream_resident(stream, KERNEL_LOMBSCARGLE, work.sums, functions[work.sums].warps);
    work.transformed = transform_chosen(&work);
    if (args->method_used != NULL) {
        *args->method_used =
            work.transformed ? LOMBSCARGLE_METHOD_NUFFT : LOMBSCARGLE_METHOD_DIRECT;
    }
    work.grid = (struct lombscargle_grid){
        .t = args->t,
        .y = args->y,
        .w = args->w,
        .frequency = args->frequency,
        .f0 = args->f0,
        .df = args->df,
        .one = single,
        .fit_mean = args->fit_mean,
        .normalization = args->normalization,
        .nterms = (int32_t)plan->terms,
        .fp32 = args->fp32 && !work.transformed, /* transforms are in double */
        .single = !work.transformed && lombscargle_single(plan),
        .nf = args->nf,
        .least = least_of(args->fp32, work.transformed),
        .slices = 1,
        .stop = plan->poll ? stream_stop_flag(stream) : NULL,
        .progress = stream_progress_word(stream),
    };
    /* The next launch of this stream may have the same memory: it comes after this one. */
    struct stream_memory_mark mark = stream_memory_mark(&stream->scratch);
    enum kiln_status status = groups_run(&work);
    stream_memory_release(&stream->scratch, mark);
    return status;
}

const struct kernel_row lombscargle_row = {
    .image = kiln_image_lombscargle,
    .functions = functions,
    .count = FUNCTIONS,
    .launch = launch,
};
