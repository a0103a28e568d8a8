/*
 * mandelbrot_simd.c: the inner loops of `mandelbrot` for one instruction set and element type.
 *
 * A thread holds N = CHAINS × LANES orbits at a time (several independent vectors, because one step
 * is a chain of dependent operations). A sample goes through up to three stages:
 *
 *   1. sift: N neighbouring samples make their first SIFT steps, tested at each one. Those inside
 *      the main cardioid or the period-2 disc are known at once. What is left goes to a queue.
 *   2. stride: lanes filled from the queue make `stride` steps between tests. A lane that is beyond
 *      the radius then, that has come back to a state it was in before (Brent's method: equal bits
 *      mean a cycle, so it never escapes), or that has done all its steps leaves, and the queue
 *      fills its place, so that lanes never idle for a slow neighbour.
 *   3. replay: orbits beyond the radius wait, as they were before the last stride, until N are
 *      together, and repeat the stride tested at each step: that gives the exact count and z.
 *
 * All results are those of the literal loop, bit by bit.
 */
#include "kernels/cpu/mandelbrot/mandelbrot_simd.h"
#include "kernels/cpu/device/simd.h"
#include "kernels/mandelbrot_smooth.h"

#include <math.h>
#include <stdbool.h>

#define CHAINS    4
#define N         (CHAINS * LANES)
#define LANE_BITS ((UINT32_C(1) << LANES) - 1)
#define ALL       (N == 64 ? ~UINT64_C(0) : (UINT64_C(1) << (N % 64)) - 1)
#define SIFT      32
/* Looks at the cancel flag come this many lane-steps apart: well below a millisecond. */
#define CANCEL_STEPS 8192

/* How far inside the period-1 and period-2 boundaries (by |multiplier|) a constant must lie to be
   called interior without stepping: far more than what rounding can do to an orbit there. */
#define INTERIOR_MARGIN ((real)(sizeof(real) == 8 ? 0x1p-22 : 0x1p-8))

/* Orbits to be stepped with a test at each step. */
struct pixel_batch {
    _Alignas(64) real x[N], y[N], cx[N], cy[N];
    _Alignas(64) real steps[N];     /* out: steps made when it escaped */
    _Alignas(64) real magnitude[N]; /* out: |z|² there */
    _Alignas(64) float fraction[N]; /* out: of the last step, for the continuous value */
    int64_t base[N];                /* steps made before */
    size_t sample[N];
    int count;
};

/* Orbits that survived the sift; all have made SIFT steps. At most N + (N-1) at a time. */
struct pixel_queue {
    real x[2 * N], y[2 * N], cx[2 * N], cy[2 * N];
    size_t sample[2 * N];
    int count;
};

/* The lanes of stage 2. */
struct lane_field {
    _Alignas(64) real x[2][N], y[2][N]; /* now at [turn], before the last stride at [!turn] */
    _Alignas(64) real cx[N], cy[N];
    _Alignas(64) real saved_x[N], saved_y[N];
    _Alignas(64) lane age[N], due[N]; /* strides made; age at which to save next */
    size_t sample[N];
    uint64_t active;
    int turn;
    lane last_age; /* strides after which an orbit has made max_iter steps */
};

struct lane_thread {
    struct mandelbrot_job *job;
    real limit;       /* radius² */
    float inverse;    /* 1 / log2 radius² */
    size_t next, end; /* samples claimed */
    struct pixel_batch sift, replay;
    struct pixel_queue queue;
    struct lane_field field;
};

#if defined(SIMD_REAL_f64)
#define FRACTION mandelbrot_fraction_f64
#else
#define FRACTION mandelbrot_fraction_f32
#endif

/* How much of its last step each orbit did not need; those that have not left get any number. */
static void fractions_fill(const struct lane_thread *thread, struct pixel_batch *batch) {
    const float inverse = thread->inverse;
    for (int i = 0; i < N; i++)
        batch->fraction[i] = FRACTION(batch->magnitude[i], inverse);
}

static void result_write(const struct lane_thread *thread, size_t sample, int64_t count,
                         float fraction) {
    const struct mandelbrot_args *args = &thread->job->args;
    bool inside = count < 0 || count > args->max_iter;
    if (args->count)
        args->count[sample] = inside ? -1 : (int32_t)count;
    if (args->smooth)
        args->smooth[sample] = inside             ? -1.0f
                               : args->continuous ? mandelbrot_smooth((int32_t)count, fraction)
                                                  : (float)count;
}

/* One step of all chains: kernels/mandelbrot.h fixes the order. */
#define STEP(x, y, cx, cy)                                                                         \
    do {                                                                                           \
        vec t_ = v_fnma_exact(y, y, cx);                                                           \
        vec u_ = (x) + (x);                                                                        \
        (y) = v_fma_exact(u_, y, cy);                                                              \
        (x) = v_fma_exact(x, x, t_);                                                               \
    } while (0)

#define EACH_CHAIN _Pragma("GCC unroll 4") for (int k = 0; k < CHAINS; k++)

/* Up to `steps` tested steps of the lanes in `active`; returns those that did not escape. x and y
   receive the final state of these. */
static uint64_t batch_run(struct pixel_batch *batch, uint64_t active, int steps, real limit) {
    vec x[CHAINS], y[CHAINS], cx[CHAINS], cy[CHAINS], n[CHAINS], size[CHAINS];
    mask alive[CHAINS];
    const vec bound = v_set(limit);
    EACH_CHAIN {
        x[k] = v_load(batch->x + k * LANES);
        y[k] = v_load(batch->y + k * LANES);
        cx[k] = v_load(batch->cx + k * LANES);
        cy[k] = v_load(batch->cy + k * LANES);
        n[k] = v_set(0);
        size[k] = v_set(4);
        alive[k] = m_from_bits((uint32_t)(active >> (k * LANES)));
    }
    for (int step = 0; step < steps; step++) {
        EACH_CHAIN {
            STEP(x[k], y[k], cx[k], cy[k]);
            vec m = v_fma_exact(x[k], x[k], y[k] * y[k]);
            n[k] = v_select(alive[k], n[k] + (real)1, n[k]);
            size[k] = v_select(alive[k], m, size[k]);
            alive[k] = m_and_not(alive[k], m_over(m, bound));
        }
        if ((step & 3) == 3) {
            mask any = alive[0];
            for (int k = 1; k < CHAINS; k++)
                any |= alive[k];
            if (!m_any(any))
                break;
        }
    }
    uint64_t left = 0;
    EACH_CHAIN {
        v_store(batch->x + k * LANES, x[k]);
        v_store(batch->y + k * LANES, y[k]);
        v_store(batch->steps + k * LANES, n[k]);
        v_store(batch->magnitude + k * LANES, size[k]);
        left |= (uint64_t)m_bits(alive[k]) << (k * LANES);
    }
    return left;
}

/* Lanes whose constant lies inside the cardioid (|1 - sqrt(1-4c)| < 1) or the disc |c+1| < 1/4, by
   a margin. */
static uint64_t batch_interior(const struct pixel_batch *batch) {
    const real edge = (1 - INTERIOR_MARGIN) * (1 - INTERIOR_MARGIN);
    uint64_t inside = 0;
    for (int k = 0; k < CHAINS; k++) {
        vec cx = v_load(batch->cx + k * LANES), cy = v_load(batch->cy + k * LANES);
        vec a = (real)1 - (real)4 * cx, b = (real)4 * cy;
        vec r = v_sqrt(a * a + b * b);
        vec w = v_sqrt((r + a) * (real)0.5);
        vec cardioid = (real)1 + r - (real)2 * w;
        vec disc = (real)16 * ((cx + (real)1) * (cx + (real)1) + cy * cy);
        uint32_t bits = m_bits(m_over(v_set(edge), cardioid)) | m_bits(m_over(v_set(edge), disc));
        inside |= (uint64_t)bits << (k * LANES);
    }
    return inside;
}

/* Fills constants of the next samples; a batch may run over the end of a row. */
static void sift_fill(struct lane_thread *thread, struct pixel_batch *batch) {
    const struct mandelbrot_view *view = &thread->job->view;
    size_t width = (size_t)thread->job->args.width;
    int i = 0;
    while (i < N && thread->next < thread->end) {
        size_t row = thread->next / width, column = thread->next % width;
        real cy = (real)fma((double)row, view->dy, view->y0);
        size_t run = width - column;
        if (run > thread->end - thread->next)
            run = thread->end - thread->next;
        if (run > (size_t)(N - i))
            run = (size_t)(N - i);
        int first = (int)column;
        for (int k = 0; k < (int)run; k++) {
            batch->cx[i + k] = (real)fma((double)(first + k), view->dx, view->x0);
            batch->cy[i + k] = cy;
        }
        i += (int)run;
        thread->next += run;
    }
    batch->count = i;
    for (; i < N; i++)
        batch->cx[i] = batch->cy[i] = 0;
    memset(batch->x, 0, sizeof batch->x);
    memset(batch->y, 0, sizeof batch->y);
}

static void queue_put(struct pixel_queue *queue, const struct pixel_batch *batch, int i,
                      size_t sample) {
    int at = queue->count++;
    queue->x[at] = batch->x[i];
    queue->y[at] = batch->y[i];
    queue->cx[at] = batch->cx[i];
    queue->cy[at] = batch->cy[i];
    queue->sample[at] = sample;
}

/* Stage 1 on the next samples claimed. */
static void sift(struct lane_thread *thread) {
    struct pixel_batch *batch = &thread->sift;
    const struct mandelbrot_args *args = &thread->job->args;
    size_t first = thread->next;
    sift_fill(thread, batch);
    uint64_t filled = batch->count == 64 ? ~UINT64_C(0) : (UINT64_C(1) << batch->count) - 1;
    uint64_t outside = filled & ~batch_interior(batch);
    uint64_t left = outside;
    int steps = args->max_iter < SIFT ? (int)args->max_iter : SIFT;
    if (outside)
        left = batch_run(batch, outside, steps, thread->limit);
    if (args->smooth && args->continuous && (outside & ~left))
        fractions_fill(thread, batch);
    uint64_t escaped = outside & ~left;
    for (int i = 0; i < batch->count; i++) {
        bool out = escaped >> i & 1;
        result_write(thread, first + (size_t)i, out ? (int64_t)batch->steps[i] : -1,
                     batch->fraction[i]);
    }
    if (args->max_iter <= SIFT)
        return;
    for (; left; left &= left - 1) {
        int i = __builtin_ctzll(left);
        queue_put(&thread->queue, batch, i, first + (size_t)i);
    }
}

/* Stage 3. */
static void replay(struct lane_thread *thread) {
    struct pixel_batch *batch = &thread->replay;
    if (batch->count == 0)
        return;
    uint64_t filled = batch->count == 64 ? ~UINT64_C(0) : (UINT64_C(1) << batch->count) - 1;
    uint64_t left = batch_run(batch, filled, thread->job->stride, thread->limit);
    if (thread->job->args.smooth && thread->job->args.continuous)
        fractions_fill(thread, batch);
    for (int i = 0; i < batch->count; i++) {
        /* One that does not escape here is not a number: such a constant never escapes. */
        bool out = !(left >> i & 1);
        result_write(thread, batch->sample[i], out ? batch->base[i] + (int64_t)batch->steps[i] : -1,
                     batch->fraction[i]);
    }
    batch->count = 0;
}

/* What one stride found. */
struct events {
    uint64_t escaped; /* beyond the radius now */
    uint64_t inside;  /* in a cycle, or done with all steps */
};

/* Stage 2: one stride of all lanes. */
static struct events field_run(struct lane_field *field, int stride, real limit) {
    const real *from_x = field->x[field->turn], *from_y = field->y[field->turn];
    field->turn = !field->turn;
    real *to_x = field->x[field->turn], *to_y = field->y[field->turn];
    vec x[CHAINS], y[CHAINS], cx[CHAINS], cy[CHAINS];
    EACH_CHAIN {
        x[k] = v_load(from_x + k * LANES);
        y[k] = v_load(from_y + k * LANES);
        cx[k] = v_load(field->cx + k * LANES);
        cy[k] = v_load(field->cy + k * LANES);
    }
    for (int step = 0; step < stride; step++) {
        EACH_CHAIN STEP(x[k], y[k], cx[k], cy[k]);
    }
    struct events events = {0, 0};
    const vec bound = v_set(limit);
    const lanes last = i_set(field->last_age);
    EACH_CHAIN {
        int at = k * LANES;
        v_store(to_x + at, x[k]);
        v_store(to_y + at, y[k]);
        /* Not "over": infinity less infinity is no number, and beyond the radius all the same. */
        uint32_t within = m_bits(m_within(v_fma_exact(x[k], x[k], y[k] * y[k]), bound));
        vec saved_x = v_load(field->saved_x + at), saved_y = v_load(field->saved_y + at);
        lanes age = i_load(field->age + at) + 1, due = i_load(field->due + at);
        mask cycle = m_and(m_equal(x[k], saved_x), m_equal(y[k], saved_y));
        mask save = m_equal_lanes(age, due);
        v_store(field->saved_x + at, v_select(save, x[k], saved_x));
        v_store(field->saved_y + at, v_select(save, y[k], saved_y));
        i_store(field->age + at, age);
        i_store(field->due + at, i_select(save, due + due, due));
        uint32_t done = m_bits(cycle) | m_bits(m_equal_lanes(age, last));
        events.escaped |= (uint64_t)(~within & LANE_BITS) << at;
        events.inside |= (uint64_t)done << at;
    }
    events.escaped &= field->active;
    events.inside &= field->active & ~events.escaped;
    return events;
}

static void lane_fill(struct lane_field *field, int i, struct pixel_queue *queue) {
    int at = --queue->count;
    field->x[field->turn][i] = field->saved_x[i] = queue->x[at];
    field->y[field->turn][i] = field->saved_y[i] = queue->y[at];
    field->cx[i] = queue->cx[at];
    field->cy[i] = queue->cy[at];
    field->sample[i] = queue->sample[at];
    field->age[i] = 0;
    field->due[i] = 1;
    field->active |= UINT64_C(1) << i;
}

/* An empty lane rests at 0 with c = 0; its events are masked out. */
static void lane_clear(struct lane_field *field, int i) {
    field->x[field->turn][i] = field->y[field->turn][i] = 0;
    field->cx[i] = field->cy[i] = 0;
    field->active &= ~(UINT64_C(1) << i);
}

static void replay_put(struct lane_thread *thread, int i) {
    struct lane_field *field = &thread->field;
    struct pixel_batch *batch = &thread->replay;
    int at = batch->count++;
    batch->x[at] = field->x[!field->turn][i];
    batch->y[at] = field->y[!field->turn][i];
    batch->cx[at] = field->cx[i];
    batch->cy[at] = field->cy[i];
    batch->base[at] = SIFT + (int64_t)(field->age[i] - 1) * thread->job->stride;
    batch->sample[at] = field->sample[i];
    if (batch->count == N)
        replay(thread);
}

/* Takes finished orbits off their lanes. */
static void field_settle(struct lane_thread *thread, struct events events) {
    struct lane_field *field = &thread->field;
    uint64_t leaving = events.escaped | events.inside;
    for (; leaving; leaving &= leaving - 1) {
        int i = __builtin_ctzll(leaving);
        if (events.escaped >> i & 1)
            replay_put(thread, i);
        else
            result_write(thread, field->sample[i], -1, 0);
        if (thread->queue.count)
            lane_fill(field, i, &thread->queue);
        else
            lane_clear(field, i);
    }
}

static bool is_cancelled(const struct mandelbrot_job *job) {
    return job->control && atomic_load_explicit(&job->control->cancel, memory_order_relaxed) != 0;
}

/* Fills empty lanes, sifting more samples as needed; false when nothing is left to step. */
static bool field_fill(struct lane_thread *thread) {
    struct lane_field *field = &thread->field;
    struct mandelbrot_job *job = thread->job;
    for (;;) {
        for (uint64_t empty = ~field->active & ALL; empty && thread->queue.count;
             empty &= empty - 1)
            lane_fill(field, __builtin_ctzll(empty), &thread->queue);
        if (field->active == ALL && thread->queue.count >= N / 4)
            return true;
        if (thread->next == thread->end) {
            size_t claim =
                atomic_fetch_add_explicit(&job->claimed, MANDELBROT_CLAIM, memory_order_relaxed);
            if (claim >= job->samples)
                return field->active != 0;
            thread->next = claim;
            thread->end =
                job->samples - claim < MANDELBROT_CLAIM ? job->samples : claim + MANDELBROT_CLAIM;
            if (is_cancelled(job))
                return false;
            control_advance(job->control, claim, job->samples);
        }
        sift(thread);
    }
}

static void thread_init(struct lane_thread *thread, struct mandelbrot_job *job) {
    const struct mandelbrot_args *args = &job->args;
    memset(thread, 0, sizeof *thread);
    thread->job = job;
    thread->limit = (real)(args->escape_radius * args->escape_radius);
    thread->inverse = mandelbrot_inverse(args->escape_radius);
    int64_t last = (args->max_iter - SIFT + job->stride - 1) / job->stride;
    thread->field.last_age = (lane)last;
}

static void work(struct mandelbrot_job *job) {
    struct lane_thread thread;
    thread_init(&thread, job);
    int strides_left = CANCEL_STEPS / job->stride;
    while (field_fill(&thread)) {
        do {
            struct events events = field_run(&thread.field, job->stride, thread.limit);
            if (events.escaped | events.inside) {
                field_settle(&thread, events);
                break;
            }
        } while (--strides_left > 0);
        if (strides_left <= 0) {
            strides_left = CANCEL_STEPS / job->stride;
            if (is_cancelled(job))
                return;
        }
    }
    replay(&thread);
}

const struct mandelbrot_simd SIMD_NAME(mandelbrot) = {.work = work};
