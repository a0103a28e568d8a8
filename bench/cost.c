/*
 * cost.c: how well seconds are known before a job runs.
 *
 * Runs random requests of every kind on the CPU backend, each predicted before and learned from
 * after it, by several models side by side:
 *   steps     seconds in proportion to the plan's cost, a ratio of sums of the last jobs of a kind
 *   decades   a smallest time, and such a ratio for each variant and decade of cost
 *   plain     compute/schedule/cost_model.h, without looking at the request closely
 *   looked    the same with a close look
 * Prints a row a kind and model: the factor that predictions are off by at the median and at nine
 * in ten, measured over predicted in all, and the share of jobs below the upper estimate. The
 * first WARM jobs of a kind are told of separately.
 *
 *   bench_cost [REQUESTS [SEED [processor]]]     of each kind (400, 1)
 *
 * `processor`: seconds of all threads in place of the clock's, for machines that do other work too.
 */
#include "compute/core/timing.h"
#include "compute/jobs/job.h"
#include "compute/schedule/cost_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARM     20
#define KINDS    4
#define DATA_MAX ((size_t)64 << 20)

enum model { STEPS, DECADES, PLAIN, LOOKED, MODELS };
static const char *const model_names[] = {"steps", "decades", "plain", "looked"};

static uint64_t seed = 1;
static bool processor_time;

static double uniform(double low, double high) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return low + (high - low) * ((double)(seed >> 11) * 0x1p-53);
}

/* As many decades as there are between the two, evenly. */
static double spread(double low, double high) {
    return exp(uniform(log(low), log(high)));
}

static int choose(int count) {
    return (int)uniform(0, count);
}

struct request {
    const struct job_type *type;
    char query[512];
    enum format format;
    _Alignas(16) uint8_t params[JOB_PARAMS_MAX];
    struct input input;
    uint8_t *data;
    struct plan plan;
    double seconds;
};

/* ---- random requests ---- */

static void mandelbrot_ask(struct request *request) {
    static const double places[][2] = {{-0.75, 0},       {-0.7436, 0.1318}, {-1.25, 0.02},
                                       {0.285, 0.01},    {-0.1, 0.9},       {-1.7687, 0.0017},
                                       {-0.1592, 1.033}, {0.3, 0.6},        {-2, 0}};
    static const enum format formats[] = {FORMAT_PNG, FORMAT_PNG, FORMAT_NPY, FORMAT_JSON};
    double width = floor(spread(64, 2000)), height = floor(spread(64, 1500));
    double most = spread(100, 50000), size = spread(1e-9, 3);
    const double *place = places[choose(9)];
    request->format = formats[choose(4)];
    while (width * height * most > 2e10) {
        most /= 2;
    }
    snprintf(request->query, sizeof request->query,
             "width=%.0f&height=%.0f&max_iter=%.0f&xmin=%.17g&xmax=%.17g&ymin=%.17g&ymax=%.17g"
             "&shade=%s&supersample=%d&compression=%s",
             width, height, floor(most), place[0] - size / 2, place[0] + size / 2,
             place[1] - size * height / width / 2, place[1] + size * height / width / 2,
             choose(4) ? "false" : "true", width * height * most < 1e9 && !choose(5) ? 2 : 1,
             choose(10) ? "fast" : "small");
}

static void picture_give(struct request *request, uint32_t most) {
    uint32_t width = (uint32_t)spread(32, most), height = (uint32_t)spread(32, most);
    uint32_t channels = choose(3) ? 1 : 3;
    uint8_t *pixels = malloc((size_t)width * height * channels);
    char why[128];
    for (size_t i = 0; i < (size_t)width * height * channels; i++) {
        double x = (double)(i / channels % width), y = (double)(i / channels / width);
        pixels[i] = (uint8_t)(128 + 60 * sin(x / 17) + 50 * cos(y / 23) + uniform(0, 10));
    }
    const struct picture picture = {
        .width = width, .height = height, .channels = channels, .depth = 8, .pixels = pixels};
    const struct image_text none = {0};
    uint64_t size = 0;
    enum kiln_status status = choose(2)
                                  ? png_write(&picture, &none, NULL, request->data, DATA_MAX, &size)
                                  : pgm_write(&picture, request->data, DATA_MAX, &size);
    free(pixels);
    request->input = (struct input){.kind = INPUT_IMAGE, .size = size};
    if (status != KILN_OK || image_probe(request->data, size, FORMAT_NONE, 1u << 26,
                                         &request->input.image, why, sizeof why) != KILN_OK) {
        abort();
    }
    request->input.format = request->input.image.format;
}

static void jacobi_ask(struct request *request) {
    static const char *const methods[] = {"sweeps", "exact", "direct"};
    static const enum format formats[] = {FORMAT_PNG, FORMAT_PGM, FORMAT_NPY, FORMAT_JSON};
    const char *method = methods[choose(3)];
    picture_give(request, strcmp(method, "sweeps") ? 2000 : 700);
    request->format = formats[choose(4)];
    snprintf(request->query, sizeof request->query, "method=%s&iterations=%.0f&precision=%s",
             method, floor(spread(1, 20000)), choose(2) ? "fp32" : "fp64");
    if (!strcmp(method, "direct")) {
        snprintf(request->query, sizeof request->query, "method=direct&precision=%s",
                 choose(2) ? "fp32" : "fp64");
    }
}

static void laplacian_ask(struct request *request) {
    static const enum format formats[] = {FORMAT_PNG, FORMAT_PGM, FORMAT_NPY};
    picture_give(request, 3000);
    request->format = formats[choose(3)];
    snprintf(request->query, sizeof request->query, "compression=%s",
             choose(10) ? "fast" : "small");
}

static void lombscargle_ask(struct request *request) {
    static const char *const methods[] = {"auto", "auto", "direct", "nufft"};
    static const enum format formats[] = {FORMAT_JSON, FORMAT_NPY, FORMAT_CSV, FORMAT_PNG};
    const char *method = methods[choose(4)];
    size_t n = (size_t)spread(20, 20000);
    double nf = floor(spread(100, 1e6)), span = 1000, terms = choose(4) ? 1 : 2 + choose(3);
    double *t = (double *)(void *)request->data, *y = t + n, *dy = y + n;
    while (strcmp(method, "nufft") && (double)n * nf * terms > 3e9) {
        nf = floor(nf / 2);
    }
    for (size_t i = 0; i < n; i++) {
        t[i] = span * ((double)i + uniform(0, 1)) / (double)n;
        y[i] = sin(t[i]) + uniform(-1, 1);
        dy[i] = uniform(0.1, 0.4);
    }
    request->input = (struct input){.kind = INPUT_SERIES, .size = 3 * n * sizeof *t};
    request->format = formats[choose(4)];
    bool peaks = request->format == FORMAT_JSON && choose(2);
    snprintf(request->query, sizeof request->query,
             "f0=0.001&df=%.9g&nf=%.0f&method=%s&nterms=%.0f&precision=%s%s%s",
             spread(0.05, 1) / span, nf, method, terms, choose(4) ? "fp64" : "fp32",
             peaks ? "&fields=peaks" : "",
             peaks && terms == 1 && n * nf < 1e6 && choose(2)
                 ? "&false_alarm=bootstrap&bootstrap_samples=50"
                 : "");
}

static void (*const asks[KINDS])(struct request *) = {mandelbrot_ask, jacobi_ask, laplacian_ask,
                                                      lombscargle_ask};

/* Fields, check and plan as a request has them. False: this one is refused. */
static bool request_make(struct request *request, int kind) {
    static const struct limits limits = {1u << 30, 1u << 28, 1u << 30,
                                         1u << 24, 1u << 24, 1u << 30};
    struct complaints complaints = {0};
    struct form form;
    request->type = job_types[kind];
    asks[kind](request);
    memset(request->params, 0, sizeof request->params);
    form_init(&form, request->type->fields, request->params, &complaints);
    char copy[512], *rest = copy, *pair;
    snprintf(copy, sizeof copy, "%s", request->query);
    while ((pair = strsep(&rest, "&")) != NULL) {
        char *equals = strchr(pair, '=');
        *equals = '\0';
        form_set_text(&form, pair, equals + 1);
    }
    if (request->type->input == INPUT_SERIES) {
        static const char *const names[] = {"t", "y", "dy"};
        uint64_t bytes = request->input.size / 3;
        for (uint64_t i = 0; i < 3; i++) {
            form_set_array(&form, names[i],
                           (struct array_ref){.offset = i * bytes, .count = bytes / 8});
        }
    }
    form_finish(&form);
    request->type->check(request->params, &request->input, request->data, request->format, &limits,
                         &complaints);
    return complaints.count == 0 && request->type->plan(request->params, &request->input,
                                                        request->format, &request->plan) == KILN_OK;
}

static double seconds_now(void) {
    struct timespec now;
    clock_gettime(processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static bool request_run(struct request *request, struct stream *stream, uint8_t *result) {
    struct timing timing = {0};
    struct task task = {
        .backend = &cpu_backend,
        .stream = stream,
        .params = request->params,
        .input = &request->input,
        .data = request->data,
        .format = request->format,
        .result = result,
        .capacity = request->plan.result_bytes,
        .device_name = "cpu:0",
        .timing = &timing,
        .started_ns = clock_ns(),
    };
    double start = seconds_now();
    if (cpu_backend.begin(stream, NULL) != KILN_OK) {
        return false;
    }
    enum kiln_status status = request->type->run(&task);
    cpu_backend.finish(stream, &timing);
    request->seconds = seconds_now() - start;
    cpu_backend.rest(stream, false);
    return status == KILN_OK;
}

/* ---- models ---- */

struct ratio {
    double cost, seconds, least;
};

static void ratio_add(struct ratio *ratio, double cost, double seconds) {
    const double keep = exp2(-1 / 32.0);
    ratio->cost = ratio->cost * keep + cost;
    ratio->seconds = ratio->seconds * keep + seconds;
    /* about the smallest decile */
    ratio->least = ratio->least == 0 || seconds < ratio->least ? seconds : ratio->least * 1.05;
}

struct record {
    double predicted[MODELS], high[MODELS], seconds;
};

struct models {
    struct ratio steps[KINDS], decades[KINDS][WORK_VARIANTS][24], variants[KINDS][WORK_VARIANTS];
    struct cost_model *cost[2];
};

static struct ratio *decade_of(struct models *models, int kind, const struct request *request,
                               const struct work_way *way) {
    int decade = (int)fmin(fmax(log10(request->plan.cost), 0), 23);
    return &models->decades[kind][way->variant][decade];
}

static void predict_and_learn(struct models *models, int kind, const struct request *request,
                              struct record *record) {
    double cost = request->plan.cost, seconds = request->seconds;
    struct ratio *steps = &models->steps[kind];
    record->seconds = seconds;
    record->predicted[STEPS] = steps->cost > 0 ? cost * steps->seconds / steps->cost : seconds;
    ratio_add(steps, cost, seconds);
    for (int look = 0; look < 2; look++) {
        struct work work;
        request->type->estimate(request->params, &request->input, request->data, request->format,
                                look, &work);
        struct cost found = cost_estimate(models->cost[look], kind, 0, &work);
        record->predicted[PLAIN + look] = found.seconds;
        record->high[PLAIN + look] = found.high;
        cost_learn(models->cost[look], kind, 0, &work.way[found.way], seconds);
        if (look == 0) {
            struct ratio *decade = decade_of(models, kind, request, &work.way[found.way]);
            record->predicted[DECADES] =
                decade->cost > 0
                    ? decade->least + fmax(cost * decade->seconds / decade->cost - decade->least, 0)
                    : record->predicted[STEPS];
            ratio_add(decade, cost, seconds);
        }
    }
}

static int by_value(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return one < other ? -1 : one > other;
}

static void report(const char *name, const struct record *records, size_t count) {
    double *factors = malloc(count * sizeof *factors);
    for (int model = 0; model < MODELS; model++) {
        double measured = 0, predicted = 0, below = 0;
        for (size_t i = 0; i < count; i++) {
            factors[i] = exp(fabs(log(records[i].seconds / records[i].predicted[model])));
            measured += records[i].seconds;
            predicted += records[i].predicted[model];
            below += records[i].seconds <= records[i].high[model];
        }
        qsort(factors, count, sizeof *factors, by_value);
        printf("| %s | %s | %.2f | %.2f | %.1f | %.2f | ", name, model_names[model],
               factors[count / 2], factors[count * 9 / 10], factors[count - 1],
               measured / predicted);
        printf(model >= PLAIN ? "%.0f %% |\n" : "– |\n", 100 * below / (double)count);
    }
    free(factors);
}

static void look_time(struct request *request) {
    struct work work;
    double most[2] = {0, 0}, sum[2] = {0, 0};
    for (int i = 0; i < 200; i++) {
        while (!request_make(request, 0)) {
        }
        for (int look = 0; look < 2; look++) {
            uint64_t start = clock_ns();
            request->type->estimate(request->params, &request->input, NULL, request->format, look,
                                    &work);
            double us = (double)(clock_ns() - start) * 1e-3;
            sum[look] += us / 200;
            most[look] = fmax(most[look], us);
        }
    }
    printf("\nan estimate of mandelbrot: %.2f µs (longest %.1f); looked: %.1f µs (longest %.1f)\n",
           sum[0], most[0], sum[1], most[1]);
}

/* What was learned: the numbers that the kinds' tables want. */
static void rows_print(const struct cost_model *model, int kind,
                       const struct work_variant *variants) {
    struct cost_row row;
    for (int variant = 0; variants[variant].name != NULL; variant++) {
        if (cost_row_read(model, kind, variant, 0, &row)) {
            printf("%s %s (%llu):", job_types[kind]->name, variants[variant].name,
                   (unsigned long long)row.count);
            for (int k = 0; k <= WORK_STEPS; k++) {
                printf(" %.2g", row.seconds[k]);
            }
            printf("\n");
        }
    }
}

int main(int argc, char **argv) {
    size_t requests = argc > 1 ? (size_t)atoi(argv[1]) : 400;
    seed = argc > 2 ? (uint64_t)atoi(argv[2]) * 0x9E3779B97F4A7C15u : 0x9E3779B97F4A7C15u;
    processor_time = argc > 3 && strcmp(argv[3], "processor") == 0;
    const struct device_options options = {.threads = 0};
    const struct work_variant *variants[KINDS];
    struct device *device;
    struct stream *stream;
    struct models *models = calloc(1, sizeof *models);
    struct record *records = calloc(KINDS * requests, sizeof *records);
    struct request request = {.data = malloc(DATA_MAX)};
    uint8_t *result = aligned_alloc(4096, 1u << 30);
    char why[256];
    for (int kind = 0; kind < KINDS; kind++) {
        variants[kind] = job_types[kind]->variants;
    }
    models->cost[0] = cost_model_create(variants, KINDS, 1);
    models->cost[1] = cost_model_create(variants, KINDS, 1);
    if (cpu_backend.open(0, &options, &device, why, sizeof why) != KILN_OK ||
        cpu_backend.stream_create(device, &stream) != KILN_OK) {
        fprintf(stderr, "bench_cost: %s\n", why);
        return 1;
    }
    double total = 0;
    for (size_t i = 0; i < KINDS * requests; i++) {
        int kind = (int)(i % KINDS);
        while (!request_make(&request, kind) || request.plan.result_bytes > 1u << 30) {
        }
        if (!request_run(&request, stream, result)) {
            fprintf(stderr, "bench_cost: %s?%s failed\n", request.type->name, request.query);
            return 1;
        }
        predict_and_learn(models, kind, &request, &records[(size_t)kind * requests + i / KINDS]);
        total += request.seconds;
        if (getenv("BENCH_COST_TRACE") != NULL) {
            struct work work;
            request.type->estimate(request.params, &request.input, request.data, request.format,
                                   true, &work);
            struct record *record = &records[(size_t)kind * requests + i / KINDS];
            printf("%s %d %.6f %.6f", request.type->name, work.way[0].variant, request.seconds,
                   record->predicted[LOOKED]);
            for (int k = 0; k < WORK_STEPS; k++) {
                printf(" %g", work.way[0].steps[k]);
            }
            printf(" %s %d\n", request.query, request.format);
        }
    }
    printf("%zu requests of each kind, %.0f s in all\n\n", requests, total);
    printf("| kind | model | off by, p50 | p90 | most | measured / predicted | below the upper "
           "estimate |\n|---|---|---|---|---|---|---|\n");
    for (int kind = 0; kind < KINDS; kind++) {
        report(job_types[kind]->name, records + (size_t)kind * requests + WARM, requests - WARM);
    }
    printf("\nThe first %d of each kind:\n\n", WARM);
    for (int kind = 0; kind < KINDS; kind++) {
        report(job_types[kind]->name, records + (size_t)kind * requests, WARM);
    }
    look_time(&request);
    for (int kind = 0; kind < KINDS; kind++) {
        rows_print(models->cost[1], kind, variants[kind]);
    }
    rows_print(models->cost[0], 0, variants[0]);
    return 0;
}
