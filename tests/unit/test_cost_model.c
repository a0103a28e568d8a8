/*
 * test_cost_model.c: seconds learned from noisy times: exact laws are found, stalls do not hurt,
 * changes are followed, what was never seen keeps its belief; and what the kinds say of requests.
 */
#include "compute/schedule/cost_model.h"
#include "tests/unit/job_rig.h"

#include <math.h>
#include <stdio.h>

static const struct work_variant first[] = {
    {"one", {1e-3, 1e-6, 1e-6, 1e-6, 1e-6, 1e-6}},
    {"two", {1e-3, 2e-6, 1e-6, 1e-6, 1e-6, 1e-6}},
    {NULL},
};
static const struct work_variant second[] = {
    {"only", {1e-3, 5e-6, 1e-6, 1e-6, 1e-6, 1e-6}},
    {NULL},
};
static const struct work_variant *const kinds[] = {first, second};

static uint64_t seed;

static double uniform(void) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(seed >> 11) * 0x1p-53;
}

static double normal(void) {
    return sqrt(-2 * log(uniform() + 1e-300)) * cos(6.283185307179586 * uniform());
}

static struct work one_way(int variant, double a, double b) {
    return (struct work){.ways = 1, .way[0] = {.variant = variant, .steps = {a, b}}};
}

/* The law that times follow here: 0.2 ms, 3 µs and 0.4 µs a step, far from the table. */
static double law(const struct work *work) {
    return 2e-4 + 3e-6 * work->way[0].steps[0] + 4e-7 * work->way[0].steps[1];
}

/* Learns `count` jobs of sizes over five decades; answers the mean |log(predicted / law)| of the
   last hundred. */
static double learn(struct cost_model *model, int count, double slower, double noise,
                    double stalls) {
    double wrong = 0;
    for (int i = 0; i < count; i++) {
        struct work work = one_way(0, pow(10, 5 * uniform()), pow(10, 5 * uniform()));
        double true_seconds = slower * law(&work);
        struct cost cost = cost_estimate(model, 0, 0, &work);
        wrong += i >= count - 100 ? fabs(log(cost.seconds / true_seconds)) / 100 : 0;
        double seconds = true_seconds * exp(noise * normal());
        cost_learn(model, 0, 0, &work.way[0], uniform() < stalls ? seconds + 60 : seconds);
    }
    return wrong;
}

static void finds_the_law(void **state) {
    (void)state;
    for (seed = 1; seed < 20; seed++) {
        struct cost_model *model = cost_model_create(kinds, 2, 1);
        struct cost_row row;
        assert_false(cost_row_read(model, 0, 0, 0, &row));
        assert_true(learn(model, 300, 1, 0, 0) < 0.05);
        assert_true(cost_row_read(model, 0, 0, 0, &row));
        assert_int_equal(row.count, 300);
        assert_float_equal(row.seconds[1], 3e-6, 3e-7);
        assert_float_equal(row.seconds[2], 4e-7, 1e-7);
        cost_model_destroy(model);
    }
}

/* The bounds are those of a busy machine: factor e^0.4, and a stall in twenty jobs. */
static void noise_and_stalls(void **state) {
    (void)state;
    double worst = 0, mean = 0;
    for (seed = 1; seed < 20; seed++) {
        struct cost_model *model = cost_model_create(kinds, 2, 1);
        double wrong = learn(model, 500, 1, 0.4, 0.05);
        worst = fmax(worst, wrong);
        mean += wrong / 19;
        cost_model_destroy(model);
    }
    assert_true(mean < 0.3 && worst < 0.6);
}

/* All times become ten times as long, or short: followed within some tens of jobs. */
static void follows_changes(void **state) {
    (void)state;
    for (seed = 1; seed < 10; seed++) {
        struct cost_model *model = cost_model_create(kinds, 2, 1);
        learn(model, 300, 1, 0.2, 0);
        assert_true(learn(model, 250, 10, 0.2, 0) < 0.3);
        assert_true(learn(model, 250, 0.1, 0.2, 0) < 0.3);
        cost_model_destroy(model);
    }
}

/* One sort of steps becomes ten times as dear, the other as cheap. */
static void follows_shapes(void **state) {
    (void)state;
    for (seed = 1; seed < 10; seed++) {
        struct cost_model *model = cost_model_create(kinds, 2, 1);
        double wrong = 0;
        learn(model, 600, 1, 0.1, 0);
        for (int i = 0; i < 200; i++) {
            struct work work = one_way(0, pow(10, 5 * uniform()), pow(10, 5 * uniform()));
            double seconds = 2e-4 + 3e-7 * work.way[0].steps[0] + 4e-6 * work.way[0].steps[1];
            wrong +=
                i >= 150 ? fabs(log(cost_estimate(model, 0, 0, &work).seconds / seconds)) / 50 : 0;
            cost_learn(model, 0, 0, &work.way[0], seconds * exp(0.1 * normal()));
        }
        assert_true(wrong < 0.3);
        cost_model_destroy(model);
    }
}

/* Before anything was measured the table counts; then other rows tell how fast the device is, each
   device for itself. */
static void beliefs(void **state) {
    (void)state;
    struct cost_model *model = cost_model_create(kinds, 2, 2);
    struct work work = one_way(0, 1000, 0), other = one_way(1, 1000, 0);
    assert_float_equal(cost_estimate(model, 0, 0, &work).seconds, 2e-3, 1e-9);
    assert_true(cost_estimate(model, 0, 0, &work).high > 4 * 2e-3);
    for (int i = 0; i < 20; i++) {
        cost_learn(model, 0, 1, &work.way[0], 2e-5); /* a hundred times as fast */
    }
    assert_float_equal(cost_estimate(model, 0, 1, &work).seconds, 2e-5, 1e-6);
    assert_float_equal(cost_estimate(model, 0, 1, &other).seconds, 3e-5, 1e-6);
    assert_float_equal(cost_estimate(model, 1, 1, &work).seconds, 6e-5, 1e-6);
    assert_float_equal(cost_estimate(model, 0, 0, &other).seconds, 3e-3, 1e-9);
    /* steps that no job had: as much faster */
    struct work unseen = one_way(0, 0, 1e6);
    double seconds = cost_estimate(model, 0, 1, &unseen).seconds;
    assert_true(seconds > 0.5e-2 && seconds < 2e-2);
    assert_true(cost_estimate(model, 0, 1, &work).high < 2 * 2e-5);
    cost_model_destroy(model);
}

/* Of two ways the faster one counts, whatever the table said. */
static void faster_way(void **state) {
    (void)state;
    struct cost_model *model = cost_model_create(kinds, 2, 1);
    struct work work = {.ways = 2, .way = {{0, {1000}}, {1, {1000}}}};
    assert_int_equal(cost_estimate(model, 0, 0, &work).way, 0);
    for (int i = 0; i < 10; i++) {
        cost_learn(model, 0, 0, &work.way[0], 1);
        cost_learn(model, 0, 0, &work.way[1], 0.1);
    }
    assert_int_equal(cost_estimate(model, 0, 0, &work).way, 1);
    assert_float_equal(cost_estimate(model, 0, 0, &work).seconds, 0.1, 0.02);
    cost_model_destroy(model);
}

/* Rows go out and come back, also into another process's model; what cannot be is refused. */
static void kept(void **state) {
    (void)state;
    seed = 5;
    struct cost_model *model = cost_model_create(kinds, 2, 1);
    struct cost_model *next = cost_model_create(kinds, 2, 1);
    struct work work = one_way(0, 500, 7000);
    struct cost_row row, again;
    learn(model, 200, 1, 0.1, 0);
    assert_true(cost_row_read(model, 0, 0, 0, &row));
    assert_true(cost_row_write(next, 0, 0, 0, &row));
    assert_true(cost_row_read(next, 0, 0, 0, &again));
    assert_memory_equal(&row, &again, sizeof row);
    assert_true(cost_estimate(next, 0, 0, &work).seconds ==
                cost_estimate(model, 0, 0, &work).seconds);
    assert_true(learn(next, 200, 1, 0.1, 0) < 0.1); /* it goes on from there */
    const struct cost_row broken[] = {
        {.seconds = {NAN}, .spread = 0.1, .count = 1},
        {.seconds = {-1, 1}, .spread = 0.1, .count = 1},
        {.seconds = {1}, .spread = INFINITY, .count = 1},
        {.seconds = {1}, .spread = 0.1, .count = 0},
        {.seconds = {0}, .spread = 0.1, .count = 9},
        {.seconds = {INFINITY}, .spread = 0.1, .count = 9},
    };
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        assert_false(cost_row_write(model, 0, 0, 0, &broken[i]));
    }
    assert_true(cost_row_read(model, 0, 0, 0, &again));
    assert_memory_equal(&row, &again, sizeof row);
    cost_model_destroy(model);
    cost_model_destroy(next);
}

/* Times that cannot be change nothing; extreme ones leave numbers that can be. */
static void odd_times(void **state) {
    (void)state;
    struct cost_model *model = cost_model_create(kinds, 2, 1);
    struct work work = one_way(0, 1e15, 1e15), small = one_way(0, 0, 0);
    struct cost_row row;
    cost_learn(model, 0, 0, &work.way[0], NAN);
    cost_learn(model, 0, 0, &work.way[0], 0);
    cost_learn(model, 0, 0, &work.way[0], -1);
    cost_learn(model, 0, 0, &work.way[0], INFINITY);
    assert_false(cost_row_read(model, 0, 0, 0, &row));
    seed = 3;
    for (int i = 0; i < 2000; i++) {
        cost_learn(model, 0, 0, uniform() < 0.5 ? &work.way[0] : &small.way[0],
                   pow(10, 16 * uniform() - 8));
        struct cost cost = cost_estimate(model, 0, 0, &work);
        assert_true(cost.seconds > 0 && cost.seconds <= 1e9 && cost.high >= cost.seconds);
    }
    cost_model_destroy(model);
}

/* ---- what kinds say ---- */

static void kinds_estimate(void **state) {
    (void)state;
    for (size_t i = 0; job_types[i] != NULL; i++) {
        const struct job_type *type = job_types[i];
        struct rig rig;
        struct work work;
        _Alignas(16) static uint8_t data[65536];
        rig_init(&rig, type, type->canary_format, type->canary_query);
        if (type->canary_input != NULL) {
            rig.data = data;
            assert_true(type->canary_input(data, sizeof data, &rig.input, rig.params) > 0);
        }
        rig_check(&rig);
        assert_int_equal(type->plan(rig.params, &rig.input, rig.format, &rig.plan), KILN_OK);
        for (int closely = 0; closely < 2; closely++) {
            memset(&work, 0xff, sizeof work);
            type->estimate(rig.params, &rig.input, rig.data, rig.format, closely, &work);
            assert_in_range(work.ways, 1, WORK_WAYS);
            for (int way = 0; way < work.ways; way++) {
                double sum = 0;
                assert_in_range(work.way[way].variant, 0, WORK_VARIANTS - 1);
                for (int k = 0; k < WORK_STEPS; k++) {
                    assert_true(work.way[way].steps[k] >= 0 && isfinite(work.way[way].steps[k]));
                    sum += work.way[way].steps[k];
                }
                assert_true(sum > 0);
            }
        }
    }
}

static struct work_way look(const char *query) {
    const struct job_type *type = job_type_find("mandelbrot");
    struct rig rig;
    struct work work;
    rig_init(&rig, type, FORMAT_NPY, query);
    rig_check(&rig);
    assert_int_equal(rig.complaints.count, 0);
    type->estimate(rig.params, &rig.input, NULL, rig.format, true, &work);
    return work.way[0];
}

/* Steps of a picture whose pixels were all counted, against the look at a few. */
static void look_tells_steps(void **state) {
    (void)state;
    /* outside: gone within a few steps */
    struct work_way far = look("xmin=2&xmax=3&ymin=2&ymax=3&width=100&height=100&max_iter=100000");
    assert_true(far.steps[1] < 5e4 && far.steps[3] == 0 && far.steps[4] == 0);
    /* inside the cardioid: known at once */
    struct work_way in =
        look("xmin=-0.1&xmax=0.1&ymin=-0.1&ymax=0.1&width=100&height=100&max_iter=100000");
    assert_true(in.steps[1] == 0 && in.steps[3] == 0 && in.steps[4] == 0);
    /* inside a period-3 disc: into a cycle */
    struct work_way cycle =
        look("xmin=-0.14&xmax=-0.11&ymin=0.74&ymax=0.76&width=100&height=100&max_iter=100000");
    assert_true(cycle.steps[3] > 0.9 * 1e4 * 1000 && cycle.steps[4] < 0.1 * 1e4 * 100000);
    /* the usual view: steps until escape as counted in full */
    struct work_way usual = look("width=1000&height=1000&max_iter=400");
    double full = 0;
    for (int j = 0; j < 300; j++) {
        for (int i = 0; i < 300; i++) {
            double cx = -2.25 + (i + 0.5) / 100, cy = -1.25 + (j + 0.5) / 120, x = 0, y = 0;
            int n = 0;
            while (n < 400 && x * x + y * y <= 1024.0 * 1024) {
                double u = x * x - y * y + cx;
                y = 2 * x * y + cy;
                x = u;
                n++;
            }
            full += n < 400 ? n : 0;
        }
    }
    assert_true(fabs(log(usual.steps[1] / 1e6 / (full / 9e4))) < 0.5);
    /* one step, two pixels */
    struct work_way least = look("width=2&height=1&max_iter=1");
    assert_true(least.steps[0] == 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_law),
        cmocka_unit_test(noise_and_stalls),
        cmocka_unit_test(follows_changes),
        cmocka_unit_test(follows_shapes),
        cmocka_unit_test(beliefs),
        cmocka_unit_test(faster_way),
        cmocka_unit_test(kept),
        cmocka_unit_test(odd_times),
        cmocka_unit_test(kinds_estimate),
        cmocka_unit_test(look_tells_steps),
    };
    return cmocka_run_group_tests(tests, rig_open, rig_close);
}
