/*
 * test_jobs.c: the front's side of the jobs: registry, checks, plans, canonical parameters, tiles.
 */
#include "compute/jobs/mandelbrot/mandelbrot.h"

#include "job_rig.h"

#include <stdio.h>

static const struct job_type *mandelbrot, *jacobi, *laplacian;

static const char image[] = "P5\n3 2\n255\nabcdef";

static int setup(void **state) {
    mandelbrot = job_type_find("mandelbrot");
    jacobi = job_type_find("jacobi");
    laplacian = job_type_find("laplacian");
    if (!mandelbrot || !jacobi || !laplacian)
        return -1;
    return rig_open(state);
}

static void registry(void **state) {
    (void)state;
    job_types_assert();
    assert_null(job_type_find("mandel"));
    assert_null(job_type_find(""));
    assert_int_equal(job_type_index(NULL), -1);
    for (int i = 0; job_types[i]; i++) {
        assert_int_equal(job_type_index(job_types[i]), i);
        assert_ptr_equal(job_type_find(job_types[i]->name), job_types[i]);
    }
}

/* A query that must bring exactly one complaint, about `field`, with `words` in it. */
static void refuse(const struct job_type *type, enum format format, const char *query,
                   const char *field, const char *words) {
    struct rig rig;
    rig_init(&rig, type, format, query);
    if (type->input == INPUT_IMAGE)
        rig_input(&rig, image, sizeof image - 1);
    rig_check(&rig);
    if (rig.complaints.count != 1)
        fail_msg("%s: %zu complaints", query, rig.complaints.count);
    assert_string_equal(rig.complaints.rows[0].field, field);
    if (!strstr(rig.complaints.rows[0].reason, words))
        fail_msg("%s: %s", query, rig.complaints.rows[0].reason);
}

static void mandelbrot_refused(void **state) {
    (void)state;
    static const struct {
        enum format format;
        const char *query, *field, *words;
    } rows[] = {
        {FORMAT_PNG, "width=0", "width", "from 1 to 65536"},
        {FORMAT_PNG, "height=65537", "height", "from 1 to 65536"},
        {FORMAT_PNG, "width=65536&height=65536", "width", "4294967296; this daemon allows 4194304"},
        {FORMAT_PNG, "supersample=2", "width", "supersample² is 7500000"},
        {FORMAT_NPY, "width=2049&height=2048", "width", "width × height is 4196352"},
        {FORMAT_PNG, "max_iter=1000001", "max_iter", "at most 1000000 on this daemon"},
        {FORMAT_PNG, "max_iter=2147483648", "max_iter", "from 1 to 2147483647"},
        {FORMAT_PNG, "xmin=1&xmax=1", "xmax", "greater than xmin"},
        {FORMAT_PNG, "ymin=2&ymax=1", "ymax", "greater than ymin"},
        {FORMAT_PNG, "xmin=-1e308&xmax=1e308", "xmax", "too far from xmin"},
        {FORMAT_PNG, "xmin=1&xmax=1.0000000000001&width=2048", "xmax", "at least 4.5e-13 here"},
        {FORMAT_PNG, "ymin=1e15&ymax=1000000000000010", "ymax", "at least 1.6e+02 here"},
        {FORMAT_PNG, "xmin=-0.75&xmax=-0.74999999999999999", "xmax",
         "at least 1.7e-13 here, so that double precision can tell 1500 samples apart; it is by 0"},
        {FORMAT_PNG, "xmin=0&xmax=0", "xmax", "greater than xmin by at least"},
        {FORMAT_PNG, "escape_radius=1.99", "escape_radius", "from 2 to 1099511627776"},
        {FORMAT_PNG, "escape_radius=2147483649&precision=fp32", "precision", "fp64 or auto can"},
        {FORMAT_PNG, "xmin=0.5&xmax=0.50001&precision=fp32", "precision", "cannot tell"},
        {FORMAT_PNG, "vmin=400", "vmin", "less than max_iter"},
        {FORMAT_PNG, "vmin=3&vmax=3", "vmin", "less than vmax"},
        {FORMAT_PNG, "vmax=0", "vmax", "above 0"},
        {FORMAT_PNG, "vmin=-1", "vmin", "from 0 to"},
        {FORMAT_PNG, "gamma=0", "gamma", "above 0 and at most 10"},
        {FORMAT_PNG, "supersample=9", "supersample", "from 1 to 8"},
        {FORMAT_PNG, "colormap=viridsi", "colormap", "did you mean viridis?"},
        {FORMAT_PNG, "precision=fp16", "precision", "auto, fp32, fp64"},
        {FORMAT_PNG, "altitude=91", "altitude", "from 0 to 90"},
        {FORMAT_PNG, "field=counts", "field", "smooth, count"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuse(mandelbrot, rows[i].format, rows[i].query, rows[i].field, rows[i].words);
    struct rig rig;
    rig_init(&rig, mandelbrot, FORMAT_PNG, "width=0&max_iter=9999999&xmin=5&colour=hot&gamma=nan");
    rig_check(&rig);
    assert_int_equal(rig.complaints.count, 5); /* all at once */
}

static void mandelbrot_accepted(void **state) {
    (void)state;
    static const struct {
        enum format format;
        const char *query;
    } rows[] = {
        {FORMAT_PNG, ""},
        {FORMAT_NPY, "supersample=8"},
        {FORMAT_PNG, "width=65536&height=64"},
        {FORMAT_PNG, "xmin=0.5&xmax=0.5000000000005&width=4096&height=16"},
        {FORMAT_PNG, "xmin=-0.0000000000001&xmax=0.0000000000001&width=4096&height=16"},
        {FORMAT_PNG, "vmin=399.5&vmax=1e10&max_iter=10"},
        {FORMAT_PNG, "escape_radius=1099511627776"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig rig;
        rig_init(&rig, mandelbrot, rows[i].format, rows[i].query);
        rig_check(&rig);
        assert_int_equal(rig.complaints.count, 0);
        assert_int_equal(mandelbrot->plan(rig.params, &rig.input, rig.format, &rig.plan), KILN_OK);
        assert_true(rig.plan.result_bytes > 0 && rig.plan.cost > 0);
    }
}

static void image_jobs_refused(void **state) {
    (void)state;
    static const struct {
        const char *query, *field, *words;
    } rows[] = {
        {"iterations=-1", "iterations", "from 0 to"},
        {"iterations=1000001", "iterations", "at most 1000000 on this daemon (--max-iterations)"},
        {"iterations=1e3", "iterations", "must be an integer"},
        {"method=exact&tolerance=1", "tolerance", "exact takes no time by the sweep"},
        {"method=direct&tolerance=1", "tolerance", "direct takes no time by the sweep"},
        {"method=fast", "method", "sweeps, exact, direct, auto"},
        {"tolerance=-1", "tolerance", "at least 0"},
        {"bits=12", "bits", "8, 16"},
        {"scale=0", "scale", "must not be 0"},
        {"image=AAAA", "image", "request body"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuse(jacobi, FORMAT_PNG, rows[i].query, rows[i].field, rows[i].words);
    refuse(laplacian, FORMAT_NPY, "scale=0.0", "scale", "must not be 0");
    refuse(laplacian, FORMAT_NPY, "iterations=1", "iterations", "is not a field of this job");
    struct rig rig;
    rig_init(&rig, laplacian, FORMAT_NPY, "");
    rig_check(&rig);
    assert_int_equal(rig.complaints.count, 1);
    assert_string_equal(rig.complaints.rows[0].field, "image");
    rig_init(&rig, jacobi, FORMAT_NPY, "");
    rig_input(&rig, image, sizeof image - 1);
    rig.limits.max_pixels = 5;
    rig_check(&rig);
    assert_int_equal(rig.complaints.count, 1);
    assert_non_null(strstr(rig.complaints.rows[0].reason, "6 pixels; this daemon allows 5"));
}

static void expect_canonical(const struct job_type *type, enum format format, const char *query,
                             const char *words) {
    struct rig rig, again;
    char first[2048];
    rig_init(&rig, type, format, query);
    if (type->input == INPUT_IMAGE)
        rig_input(&rig, image, sizeof image - 1);
    rig_check(&rig);
    assert_int_equal(rig.complaints.count, 0);
    strcpy(first, rig_canonical(&rig));
    if (!strstr(first, words))
        fail_msg("%s lacks %s", first, words);
    rig_init(&again, type, format, first); /* it is a query that means itself */
    again.input = rig.input;
    rig_check(&again);
    assert_int_equal(again.complaints.count, 0);
    assert_string_equal(rig_canonical(&again), first);
}

static void canonical(void **state) {
    (void)state;
    expect_canonical(
        mandelbrot, FORMAT_PNG, "",
        "width=1500&height=1250&xmin=-2.25&xmax=0.75&ymin=-1.25&ymax=1.25&"
        "max_iter=400&escape_radius=1024&precision=fp32&smooth=true&field=smooth&"
        "colormap=hot&gamma=0.3&vmin=0&shade=false&azimuth=315&altitude=10&vert_exag=1.5&"
        "supersample=1");
    expect_canonical(mandelbrot, FORMAT_NPY, "xmin=-2.250&smooth=1&width=+1500",
                     "width=1500&height=1250&xmin=-2.25&");
    expect_canonical(mandelbrot, FORMAT_PNG, "vmin=2&vmax=50.0", "vmin=2&vmax=50&");
    /* 1024 units in the last place of a float 2, 2^-12: just that and just below */
    expect_canonical(mandelbrot, FORMAT_PNG, "xmin=1&xmax=2&width=4096&height=2&ymin=0&ymax=1",
                     "precision=fp32");
    expect_canonical(mandelbrot, FORMAT_PNG, "xmin=1&xmax=2&width=4097&height=2&ymin=0&ymax=1",
                     "precision=fp64");
    expect_canonical(mandelbrot, FORMAT_PNG, "escape_radius=2147483648", "precision=fp32");
    expect_canonical(mandelbrot, FORMAT_PNG, "escape_radius=2147483649", "precision=fp64");
    expect_canonical(mandelbrot, FORMAT_PNG, "xmin=0&xmax=1e-40&ymin=0&ymax=1e-40&width=128",
                     "precision=fp64"); /* floats end at 2^-149 */
    expect_canonical(mandelbrot, FORMAT_PNG, "xmin=-1e20&xmax=1e20", "precision=fp64");
    expect_canonical(mandelbrot, FORMAT_PNG, "precision=fp64", "precision=fp64");
    expect_canonical(jacobi, FORMAT_PNG, "", "iterations=0&method=direct&");
    expect_canonical(jacobi, FORMAT_PNG, "method=auto", "iterations=0&method=direct&");
    expect_canonical(jacobi, FORMAT_PNG, "iterations=300", "iterations=300&method=sweeps&");
    expect_canonical(jacobi, FORMAT_PNG, "method=sweeps", "iterations=150000&method=sweeps&");
    expect_canonical(jacobi, FORMAT_PNG, "method=exact", "iterations=150000&method=exact&");
    expect_canonical(jacobi, FORMAT_PNG, "method=auto&iterations=300",
                     "iterations=300&method=exact&");
    expect_canonical(jacobi, FORMAT_PNG, "tolerance=1", "iterations=150000&method=sweeps&");
    expect_canonical(jacobi, FORMAT_PNG, "bits=16", "&bits=16");
    expect_canonical(jacobi, FORMAT_PNG, "method=auto&iterations=9", "iterations=9&method=sweeps&");
    expect_canonical(jacobi, FORMAT_PNG, "method=auto&tolerance=1", "method=sweeps&");
    expect_canonical(
        jacobi, FORMAT_PNG, "method=direct&iterations=9&initial=zero",
        "iterations=0&method=direct&precision=fp32&offset=0&scale=1&initial=laplacian");
    expect_canonical(jacobi, FORMAT_PNG, "tolerance=1e-9", "tolerance=1e-9");
    expect_canonical(laplacian, FORMAT_PNG, "", "offset=32768&scale=1");
    expect_canonical(laplacian, FORMAT_PGM, "scale=-2", "offset=32768&scale=-2");
    expect_canonical(laplacian, FORMAT_NPY, "", "offset=0&scale=1");
    expect_canonical(laplacian, FORMAT_PNG, "offset=-5", "offset=-5");
}

/* What the header Kiln-Precision says. */
static void precision_told(void **state) {
    (void)state;
    static const struct {
        const char *query, *text;
    } rows[] = {
        {"xmin=1&xmax=2&width=1024&height=1&ymin=0&ymax=1", "fp32;ulps=4096.0"},
        {"xmin=1&xmax=2&width=4096&height=1&ymin=0&ymax=1", "fp32;ulps=1024.0"},
        {"xmin=1&xmax=2&width=8192&height=1&ymin=0&ymax=1", "fp64;ulps=274877906944"},
        {"xmin=1&xmax=2&width=8192&height=1&ymin=0&ymax=1&precision=fp32",
         "fp32;ulps=512.0;limited"},
        {"xmin=0.5&xmax=0.50000000000048&width=1&height=1&ymin=0&ymax=1", "fp64;ulps=2161.5"},
        {"xmin=0.5&xmax=0.500000000000048&width=2&height=1&ymin=0&ymax=1",
         "fp64;ulps=108.0;limited"},
        {"width=1&height=1&xmin=-1e300&xmax=1e300&ymin=-1e300&ymax=1e300",
         "fp64;ulps=999999999999999"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig rig;
        char text[48];
        rig_init(&rig, mandelbrot, FORMAT_PNG, rows[i].query);
        rig_check(&rig);
        assert_int_equal(rig.complaints.count, 0);
        mandelbrot->precision(rig.params, text, sizeof text);
        assert_string_equal(text, rows[i].text);
    }
}

static enum kiln_status bind(struct rig *rig, const char *z, const char *x, const char *name) {
    const char *const captures[] = {z, x, name};
    rig_init(rig, mandelbrot, FORMAT_PNG, "");
    return mandelbrot->paths[0].bind(captures, rig->params, &rig->complaints);
}

static void tiles_bound(void **state) {
    (void)state;
    static const struct {
        const char *z, *x, *name;
        double xmin, xmax, ymin, ymax;
        int64_t pixels;
        const char *precision;
    } rows[] = {
        {"0", "0", "0.png", -2.5, 1.5, -2, 2, 256, "fp32"},
        {"0", "0", "0@2x.png", -2.5, 1.5, -2, 2, 512, "fp32"},
        {"1", "0", "0.png", -2.5, -0.5, 0, 2, 256, "fp32"},
        {"1", "1", "1@2x.png", -0.5, 1.5, -2, 0, 512, "fp32"},
        {"6", "40", "32.png", 0, 0x1p-4, -0x1p-4, 0, 256, "fp32"},
        {"7", "80", "64.png", 0, 0x1p-5, -0x1p-5, 0, 256, "fp64"}, /* as all of level 7 */
        {"7", "0", "0.png", -2.5, -2.5 + 0x1p-5, 2 - 0x1p-5, 2, 256, "fp64"},
        {"45", "13743895347200", "17592186044416.png", -0.9375, -0.9375 + 0x1p-43, -0x1p-43, 0, 256,
         "fp64"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig rig;
        struct mandelbrot_params *tile = (struct mandelbrot_params *)rig.params;
        assert_int_equal(bind(&rig, rows[i].z, rows[i].x, rows[i].name), KILN_OK);
        rig_check(&rig);
        assert_int_equal(rig.complaints.count, 0);
        assert_true(tile->xmin == rows[i].xmin && tile->xmax == rows[i].xmax);
        assert_true(tile->ymin == rows[i].ymin && tile->ymax == rows[i].ymax);
        assert_true(tile->width == rows[i].pixels && tile->height == rows[i].pixels);
        char words[32];
        snprintf(words, sizeof words, "precision=%s", rows[i].precision);
        assert_non_null(strstr(rig_canonical(&rig), words));
    }
}

static void tiles_absent(void **state) {
    (void)state;
    static const char *const rows[][3] = {
        {"0", "1", "0.png"},
        {"0", "0", "1.png"},
        {"1", "2", "0.png"},
        {"3", "0", "8.png"},
        {"0", "0", "0.jpg"},
        {"0", "0", "0"},
        {"0", "0", ".png"},
        {"0", "0", "@2x.png"},
        {"0", "0", "0@3x.png"},
        {"0", "0", "-0.png"},
        {"00", "0", "0.png"},
        {"1", "01", "0.png"},
        {"a", "0", "0.png"},
        {"", "0", "0.png"},
        {"0", "", "0.png"},
        {"0", "0", "0 .png"},
        {"0", "0", "0.png.png"},
        {"0", "0", ""},
        {"2", "18446744073709551616", "0.png"},
        {"48", "0", "281474976710656.png"},
    };
    struct rig rig;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(bind(&rig, rows[i][0], rows[i][1], rows[i][2]), KILN_NOT_FOUND);
        assert_int_equal(rig.complaints.count, 0);
    }
    static const char *const deep[][2] = {
        {"49", "0"}, {"99999999999999999999999", "0"}, {"46", "0"}};
    for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
        assert_int_equal(bind(&rig, deep[i][0], deep[i][1], "0.png"), KILN_OK);
        rig_check(&rig);
        assert_int_equal(rig.complaints.count, 1);
        assert_string_equal(rig.complaints.rows[0].field, "z");
    }
    /* near the origin double precision reaches further: the tile right and below of c = 0 */
    assert_int_equal(bind(&rig, "48", "175921860444160", "140737488355328.png"), KILN_OK);
    rig_check(&rig);
    assert_int_equal(rig.complaints.count, 0);
}

static void canaries(void **state) {
    (void)state;
    for (int i = 0; job_types[i]; i++) {
        static _Alignas(64) uint8_t data[65536];
        struct rig rig;
        rig_init(&rig, job_types[i], job_types[i]->canary_format, job_types[i]->canary_query);
        if (job_types[i]->canary_input) {
            rig.complaints.count = 0; /* arrays that are missing come from canary_input */
            size_t size = job_types[i]->canary_input(data, sizeof data, &rig.input, rig.params);
            assert_true(size > 0 && size <= sizeof data);
            rig.data = data;
        }
        assert_int_equal(rig_run(&rig), KILN_OK);
        assert_true(rig.size > 0);
        assert_int_equal(rig_launched, rig.plan.kernels);
        rig_finish(&rig);
    }
}

/* All that is wrong is said at once; what depends on a bad field is not. */
static void complaints_together(void **state) {
    static const struct {
        const char *type, *query, *fields;
    } rows[] = {
        {"mandelbrot", "colormap=nope&max_iter=1000001", "colormap max_iter"},
        {"mandelbrot", "widht=9&max_iter=1000001&width=65536&height=65536", "widht width max_iter"},
        {"mandelbrot", "xmin=left&xmax=-3&ymin=2&ymax=1&max_iter=1000001", "xmin max_iter ymax"},
        {"mandelbrot", "supersample=9&width=65536&height=65536&xmin=1&xmax=1", "supersample xmax"},
        {"mandelbrot", "max_iter=0&vmin=400&height=0&width=65536", "max_iter height"},
        {"mandelbrot", "vmax=0&vmin=20&gamma=0&max_iter=1000001", "vmax gamma max_iter"},
        {"jacobi", "scale=big&method=sweeps&iterations=1000001", "scale iterations"},
        {"jacobi", "method=swep&iterations=1000001", "method"},
        {"jacobi", "bits=12&method=exact&tolerance=1", "bits tolerance"},
        {"laplacian", "offset=x&scale=0", "offset scale"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char told[256] = "";
        struct rig rig;
        rig_init(&rig, job_type_find(rows[i].type), FORMAT_PNG, rows[i].query);
        if (rig.type->input == INPUT_IMAGE)
            rig_input(&rig, image, sizeof image - 1);
        rig_check(&rig);
        for (size_t k = 0; k < rig.complaints.count; k++) {
            strcat(told, k > 0 ? " " : "");
            strcat(told, rig.complaints.rows[k].field);
        }
        assert_string_equal(told, rows[i].fields);
    }
}

/* A plan names the kernels that are launched and no others, so that no device is passed over. */
static void kernels_planned(void **state) {
    static const struct {
        const char *type, *query;
        enum format format;
        uint32_t kernels;
    } rows[] = {
        {"mandelbrot", "width=8&height=8", FORMAT_PNG,
         KERNEL_BIT(MANDELBROT) | KERNEL_BIT(COLORIZE)},
        {"mandelbrot", "width=8&height=8", FORMAT_NPY, KERNEL_BIT(MANDELBROT)},
        {"mandelbrot", "width=8&height=8", FORMAT_JSON, KERNEL_BIT(MANDELBROT)},
        {"jacobi", "iterations=3", FORMAT_PNG, KERNEL_BIT(JACOBI)},
        {"jacobi", "method=exact&iterations=3", FORMAT_NPY, KERNEL_BIT(SPECTRAL)},
        {"jacobi", "method=direct", FORMAT_PGM, KERNEL_BIT(SPECTRAL)},
        {"laplacian", "scale=1", FORMAT_PNG, KERNEL_BIT(LAPLACIAN)},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig rig;
        rig_init(&rig, job_type_find(rows[i].type), rows[i].format, rows[i].query);
        if (rig.type->input == INPUT_IMAGE)
            rig_input(&rig, image, sizeof image - 1);
        assert_int_equal(rig_run(&rig), KILN_OK);
        assert_int_equal(rig.plan.kernels, rows[i].kernels);
        assert_int_equal(rig_launched, rows[i].kernels);
        rig_finish(&rig);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registry),
        cmocka_unit_test(mandelbrot_refused),
        cmocka_unit_test(mandelbrot_accepted),
        cmocka_unit_test(precision_told),
        cmocka_unit_test(image_jobs_refused),
        cmocka_unit_test(canonical),
        cmocka_unit_test(tiles_bound),
        cmocka_unit_test(tiles_absent),
        cmocka_unit_test(complaints_together),
        cmocka_unit_test(canaries),
        cmocka_unit_test(kernels_planned),
    };
    return cmocka_run_group_tests(tests, setup, rig_close);
}
