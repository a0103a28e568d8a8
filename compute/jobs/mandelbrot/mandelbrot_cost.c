/*
 * mandelbrot_cost.c: what a picture costs in steps.
 *
 * From its size alone that is not known: of two pictures with as many pixels and iterations, one
 * may take hundreds of times as long. A close look iterates POINTS² constants spread over the view:
 *     - those well inside the main cardioid or the period-2 disc, which the kernels know at once,
 *       cost nothing;
 *     - the others make FEW steps, and of those that stayed so long at most MANY go on to
 *       LOOK_STEPS, for as many as they stand for;
 *     - of these, some are seen to run into a cycle: the kernels find that out too, before long;
 *     - what is left costs max_iter steps, or some thousands until it escapes.
 * Some 50 µs, whatever the request.
 *
 * Threads: reentrant.
 */
#include "compute/jobs/mandelbrot/mandelbrot.h"
#include "compute/jobs/result.h"

#include <math.h>

#define POINTS     16 /* along each side */
#define FEW        64
#define MANY       64
#define LOOK_STEPS 1024
#define STRIDE     16    /* steps between two looks at whether all have gone; divides the others */
#define NEAR       1e-12 /* squared distance to where it was before: will be a cycle */

enum { FP32, FP64, LOOKED }; /* LOOKED: added to either */

const struct work_variant mandelbrot_variants[] = {
    /* job; sample, step at most (looked: until escape), encoded byte, and looked: steps of points
       that run into a cycle (up to LOOK_STEPS), and of those that stay */
    [FP32] = {"fp32", {1e-4, 3e-9, 4e-12, 3e-9, 1e-12, 1e-12}},
    [FP64] = {"fp64", {1e-4, 6e-9, 1e-11, 3e-9, 1e-12, 1e-12}},
    [FP32 + LOOKED] = {"fp32-looked", {1e-4, 4e-9, 1e-10, 3e-9, 4e-11, 3e-11}},
    [FP64 + LOOKED] = {"fp64-looked", {1e-4, 5e-9, 2.5e-10, 3e-9, 7e-11, 8e-11}},
    {NULL},
};

/* A row of orbits. */
struct orbits {
    double cx[POINTS], cy[POINTS], x[POINTS], y[POINTS];
    double counts[POINTS];  /* steps that each stayed within the radius */
    double nearest[POINTS]; /* squared distance to where it was halfway */
};

/* Of the points looked at, as shares of all. */
struct look {
    double escaped; /* mean steps of a point that escaped, times their share */
    double cycling, left;
};

/* Well inside, as far as the kernels' test goes in this precision: by the multipliers
   1 - sqrt(1 - 4c) and 4(c + 1). */
static bool is_interior(double x, double y, bool fp64) {
    double edge = 1 - (fp64 ? 0x1p-22 : 0x1p-8), a = 1 - 4 * x, b = -4 * y;
    double r = sqrt(a * a + b * b);
    double cardioid = 1 + r - 2 * sqrt(0.5 * (r + a));
    return cardioid < edge * edge || 16 * ((x + 1) * (x + 1) + y * y) < edge * edge;
}

/* Steps `from` … `to`, as long as any stays. */
static void orbits_step(struct orbits *orbits, int from, int to, double radius) {
    bool any = true;
    for (int step = from; step < to && any; step += STRIDE) {
        for (int i = 0; i < STRIDE; i++) {
            for (int k = 0; k < POINTS; k++) {
                double x = orbits->x[k], y = orbits->y[k];
                double u = x * x - y * y + orbits->cx[k];
                y = 2 * x * y + orbits->cy[k];
                orbits->x[k] = u;
                orbits->y[k] = y;
                /* false for the NaN of one that has long gone */
                orbits->counts[k] += u * u + y * y <= radius * radius ? 1.0 : 0.0;
            }
        }
        any = false;
        for (int k = 0; k < POINTS; k++) {
            any = any || orbits->counts[k] >= step + STRIDE;
        }
    }
}

/* The same, from halfway on, with the distance to where they are now. */
static void orbits_return(struct orbits *orbits, int steps) {
    double x0[POINTS], y0[POINTS];
    for (int k = 0; k < POINTS; k++) {
        x0[k] = orbits->x[k];
        y0[k] = orbits->y[k];
        orbits->nearest[k] = 4;
    }
    for (int i = 0; i < steps; i++) {
        for (int k = 0; k < POINTS; k++) {
            double x = orbits->x[k], y = orbits->y[k];
            double u = x * x - y * y + orbits->cx[k];
            y = 2 * x * y + orbits->cy[k];
            orbits->x[k] = u;
            orbits->y[k] = y;
            double dx = u - x0[k], dy = y - y0[k], d = dx * dx + dy * dy;
            orbits->nearest[k] = d < orbits->nearest[k] ? d : orbits->nearest[k];
            orbits->counts[k] += u * u + y * y <= 4 ? 1.0 : 0.0;
        }
    }
}

/* Those that stayed for FEW steps go on; each stands for `weight` points. */
static void orbits_go_on(struct orbits *orbits, int count, int most, double radius, double weight,
                         struct look *look) {
    orbits_step(orbits, FEW, most / 2, radius);
    orbits_return(orbits, most - most / 2);
    for (int k = 0; k < count; k++) {
        bool stays = orbits->counts[k] >= most - 1, cycles = orbits->nearest[k] < NEAR;
        look->cycling += stays && cycles ? weight : 0;
        look->left += stays && !cycles ? weight : 0;
        look->escaped += stays ? 0 : weight * orbits->counts[k];
    }
}

/* The constants of a row of the view. */
static int row_place(const struct mandelbrot_params *params, int row, struct orbits *orbits) {
    double dx = (params->xmax - params->xmin) / POINTS, dy = (params->ymax - params->ymin) / POINTS;
    /* each row begins elsewhere in its cells, so that columns do not line up with the set */
    double shift = fmod(0.5 + 0.618034 * row, 1);
    int count = 0;
    *orbits = (struct orbits){0};
    for (int i = 0; i < POINTS; i++) {
        double cx = params->xmin + (i + shift) * dx, cy = params->ymin + (row + 0.5) * dy;
        if (!is_interior(cx, cy, params->precision == MANDELBROT_FP64)) {
            orbits->cx[count] = cx;
            orbits->cy[count++] = cy;
        }
    }
    for (int i = count; i < POINTS; i++) {
        orbits->cx[i] = 1e3; /* leaves at once */
    }
    return count;
}

static struct look view_look(const struct mandelbrot_params *params) {
    struct look look = {0};
    struct orbits orbits, on[POINTS] = {0};
    int most = params->max_iter < LOOK_STEPS ? (int)params->max_iter : LOOK_STEPS, stayed = 0;
    most = (most + 2 * STRIDE - 1) / (2 * STRIDE) * (2 * STRIDE);
    int few = most < FEW ? most : FEW;
    for (int row = 0; row < POINTS; row++) {
        int count = row_place(params, row, &orbits);
        orbits_step(&orbits, 0, few, params->escape_radius);
        for (int i = 0; i < count; i++) {
            if (orbits.counts[i] < few) {
                look.escaped += orbits.counts[i];
                continue;
            }
            struct orbits *to = &on[stayed / POINTS];
            int at = stayed++ % POINTS;
            to->cx[at] = orbits.cx[i];
            to->cy[at] = orbits.cy[i];
            to->x[at] = orbits.x[i];
            to->y[at] = orbits.y[i];
            to->counts[at] = orbits.counts[i];
        }
    }
    int rows = (stayed + POINTS - 1) / POINTS, each = (rows * POINTS + MANY - 1) / MANY;
    for (int row = 0; row < rows && most > few; row += each) {
        int count = row == rows - 1 ? stayed - row * POINTS : POINTS;
        int next = row + each < rows ? row + each : rows;
        int end = next == rows ? stayed : next * POINTS;
        orbits_go_on(&on[row], count, most, params->escape_radius,
                     (double)(end - row * POINTS) / count, &look);
    }
    if (most <= few) {
        look.left = stayed;
    }
    look.left /= POINTS * POINTS;
    look.cycling /= POINTS * POINTS;
    look.escaped /= POINTS * POINTS;
    return look;
}

void mandelbrot_estimate(const void *raw, const struct input *input, const uint8_t *data,
                         enum format format, bool closely, struct work *work) {
    const struct mandelbrot_params *params = raw;
    int variant = params->precision == MANDELBROT_FP64 ? FP64 : FP32;
    double fine = (double)mandelbrot_oversampling(params, format);
    double pixels = (double)params->width * (double)params->height, samples = pixels * fine * fine;
    double iterations = (double)params->max_iter;
    double bytes = format == FORMAT_PNG ? (params->shade || fine > 1 ? 3 : 1) : 4;
    (void)input;
    (void)data;
    *work = (struct work){
        .ways = 1,
        .way[0] = {.variant = variant + (closely ? LOOKED : 0),
                   .steps = {samples, samples * iterations,
                             format == FORMAT_JSON
                                 ? 0
                                 : result_steps(format, params->compression, pixels, bytes)}}};
    if (closely) {
        struct look look = view_look(params);
        work->way[0].steps[1] = samples * look.escaped;
        work->way[0].steps[3] = samples * look.cycling * fmin(iterations, LOOK_STEPS);
        work->way[0].steps[4] = samples * look.left * iterations;
    }
}
