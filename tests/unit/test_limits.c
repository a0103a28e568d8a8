/*
 * test_limits.c: the default limits fit together. Whatever is within one option and is promised by
 * it is within the others too: the body that brings it, and the arena that holds it with its
 * result, a small part of which is left to others.
 */
#include "job_rig.h"

#include "compute/jobs/lombscargle/lombscargle.h"
#include "server/core/options.h"

#include <inttypes.h>
#include <stdio.h>

#define PART 16 /* of the arena that no job is to need */

static struct options defaults;

static int setup(void **state) {
    bool help = false;
    char why[OPTION_WHY_MAX], *arguments[] = {"kilnd"};
    (void)state;
    clearenv(); /* KILN_MAX_BODY and the like */
    return options_read(&defaults, 1, arguments, 1, &help, why, sizeof why) ? rig_open(NULL) : -1;
}

/* Bytes that lie in the arena at one time. */
static void expect_room(const char *what, uint64_t bytes) {
    uint64_t most = defaults.arena - defaults.arena / PART;
    print_message("%-48s %6.1f of %6.1f MB\n", what, (double)bytes * 1e-6, (double)most * 1e-6);
    assert_true(bytes > 0 && bytes <= most);
}

static void expect_body(const char *what, uint64_t bytes) {
    print_message("%-48s %6.1f of %6.1f MB\n", what, (double)bytes * 1e-6,
                  (double)defaults.max_body * 1e-6);
    assert_true(bytes <= defaults.max_body);
}

static uint64_t side(void) {
    uint64_t length = 1;
    while ((length + 1) * (length + 1) <= defaults.max_pixels)
        length++;
    return length;
}

/* The bound of a result, by the kind's own plan. */
static uint64_t result_of(const char *kind, enum format format, const char *query,
                          const struct input *input) {
    struct rig rig;
    rig_init(&rig, job_type_find(kind), format, query);
    rig.limits =
        (struct limits){defaults.max_body,    defaults.max_pixels,      defaults.max_iterations,
                        defaults.max_samples, defaults.max_frequencies, defaults.arena};
    if (input != NULL)
        rig.input = *input;
    rig_check(&rig);
    if (rig.complaints.count > 0)
        fail_msg("%s: %s", rig.complaints.rows[0].field, rig.complaints.rows[0].reason);
    assert_int_equal(rig.type->plan(rig.params, &rig.input, format, &rig.plan), KILN_OK);
    return rig.plan.result_bytes;
}

static void pictures(void **state) {
    (void)state;
    char query[64];
    snprintf(query, sizeof query, "width=%" PRIu64 "&height=%" PRIu64, side(), side());
    expect_room("mandelbrot, PNG", result_of("mandelbrot", FORMAT_PNG, query, NULL));
    expect_room("mandelbrot, NPY", result_of("mandelbrot", FORMAT_NPY, query, NULL));

    /* four bytes a sample: float32, and the int32 of a Laplacian */
    struct input input = {.kind = INPUT_IMAGE, .format = FORMAT_NPY};
    input.size = side() * side() * 4 + NPY_WRITE_MAX;
    input.image = (struct image_info){
        .format = FORMAT_NPY, .width = (uint32_t)side(), .height = (uint32_t)side(), .channels = 1};
    expect_body("picture as float32 NPY", input.size);
    static const enum format formats[] = {FORMAT_NPY, FORMAT_PNG, FORMAT_PGM};
    static const char *const names[] = {"NPY", "PNG", "PGM"};
    for (size_t i = 0; i < 3; i++) {
        char what[64];
        snprintf(what, sizeof what, "float32 NPY and its Laplacian, %s", names[i]);
        expect_room(what, input.size + result_of("laplacian", formats[i], "", &input));
        snprintf(what, sizeof what, "float32 NPY and jacobi of it, fp64, %s", names[i]);
        expect_room(what,
                    input.size + result_of("jacobi", formats[i], "precision=fp64&bits=16", &input));
    }
}

static void light_curves(void **state) {
    (void)state;
    static struct lombscargle_params params;
    struct complaints complaints = {0};
    struct form form;
    form_init(&form, lombscargle_fields, &params, &complaints);
    uint64_t body = defaults.max_samples * 3 * sizeof(double), nf = defaults.max_frequencies;
    expect_body("light curve with uncertainties as NPY", body + NPY_WRITE_MAX);
    expect_room("the same and what is read of it", 2 * body + NPY_WRITE_MAX);
    params.t.count = params.y.count = params.dy.count = defaults.max_samples;
    static const enum format formats[] = {FORMAT_JSON, FORMAT_NPY, FORMAT_PNG};
    static const char *const names[] = {"JSON", "NPY", "PNG"};
    for (size_t i = 0; i < 3; i++) {
        char what[64];
        snprintf(what, sizeof what, "the largest curve and grid, %s", names[i]);
        expect_room(what, body + lombscargle_result_bound(&params, nf, formats[i]));
    }
    /* two columns of text, for a curve of a tenth of that */
    expect_room("the largest grid, CSV",
                body / 10 + lombscargle_result_bound(&params, nf, FORMAT_CSV));
    params.frequency.count = nf;
    expect_room("the longest list of frequencies, JSON",
                body / 10 + nf * sizeof(double) +
                    lombscargle_result_bound(&params, nf, FORMAT_JSON));
    /* as JSON text: as many digits as a typical one has */
    expect_body("the longest list of frequencies as JSON", nf * 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures),
        cmocka_unit_test(light_curves),
    };
    return cmocka_run_group_tests_name("limits", tests, setup, rig_close);
}
