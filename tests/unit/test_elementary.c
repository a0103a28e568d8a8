/*
 * test_elementary.c: the functions of kernels/elementary.h against the C library's, and exact where
 * they must be.
 */
#include "kernels/elementary.h"

#include "kernels/mandelbrot_smooth.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void float_logarithms(void **state) {
    (void)state;
    for (double x = 0.7072; x < 1e38; x *= 1.00037) {
        double wanted = log2((double)(float)x);
        double bound = 1e-7 + fabs(wanted) * 0x1p-24;
        assert_true(fabs((double)elementary_log2f((float)x) - wanted) <= bound);
    }
    for (double x = 0.7072; x < 1e300; x *= 1.0037) {
        double bound = 1e-7 + log2(x) * 0x1p-24 + 0x1p-24 * 1.45; /* the mantissa is a float */
        assert_true(fabs((double)elementary_log2d(x) - log2(x)) <= bound);
    }
    for (int k = 0; k < 128; k++) {
        assert_true(elementary_log2f((float)ldexp(1, k)) == (float)k);
    }
    assert_true(elementary_log2f(INFINITY) == 128 && elementary_log2d((double)INFINITY) == 1024);
    assert_true(elementary_log2d(0x1p512) == 512);
}

/* Where float and double hold the same number they agree. */
static void types_agree(void **state) {
    (void)state;
    for (float x = 4; x < 1e38f; x *= 1.0013f) {
        assert_true(elementary_log2f(x) == elementary_log2d((double)x));
    }
}

static void roots(void **state) {
    (void)state;
    for (double x = 1; x < 1e37; x *= 1.00091) {
        double wanted = 1 / sqrt((double)(float)x);
        assert_true(fabs((double)elementary_rsqrt((float)x) - wanted) <= 3e-7 * wanted);
    }
}

static void powers(void **state) {
    (void)state;
    for (double x = 1e-6; x < 1e12; x *= 1.0071) {
        double wanted = log2(x);
        assert_true(fabs(elementary_log2(x) - wanted) <= 1e-15 * (fabs(wanted) + 0.1));
    }
    for (double t = -1000; t < 900; t += 0.137) {
        assert_true(fabs(elementary_exp2(t) / exp2(t) - 1) <= 1e-15);
    }
    for (int k = -1022; k < 1000; k++) {
        assert_true(elementary_exp2(k) == ldexp(1, k));
    }
    for (int k = -300; k < 300; k++) {
        assert_true(elementary_log2(ldexp(1, k)) == k);
    }
    assert_true(elementary_exp2(-1023) == 0 && elementary_exp2((double)-INFINITY) == 0);
    assert_true(elementary_exp2((double)NAN) == 0);
}

static void circle(void **state) {
    (void)state;
    static const double sines[] = {0, 1, 0, -1};
    for (int k = -8; k <= 8; k++) {
        assert_true(elementary_sine(90.0 * k) == sines[k & 3]);
        assert_true(elementary_cosine(90.0 * k) == sines[(k + 1) & 3]);
    }
    for (double a = -360; a <= 720; a += 0.0713) {
        double radian = a * 0.017453292519943295;
        assert_true(fabs(elementary_sine(a) - sin(radian)) <= 3e-15);
        assert_true(fabs(elementary_cosine(a) - cos(radian)) <= 3e-15);
    }
}

/* Through both logarithms, at the radii that are used. */
static void fractions(void **state) {
    (void)state;
    static const double radii[] = {2, 2.01, 1024, 0x1p31, 0x1p40};
    for (size_t i = 0; i < 5; i++) {
        double square = radii[i] * radii[i];
        float inverse = mandelbrot_inverse(radii[i]);
        for (double x = square * 1.0001; x < square * square; x *= 1.0019) {
            double wanted = log2(log(x) / log(square));
            double got = (double)mandelbrot_fraction_f64(x, inverse);
            assert_true(fabs(got - wanted) <= 5e-7);
            if (x < 1e38) {
                wanted = log2(log((double)(float)x) / log(square));
                got = (double)mandelbrot_fraction_f32((float)x, inverse);
                assert_true(fabs(got - wanted) <= 5e-7);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(float_logarithms),
        cmocka_unit_test(types_agree),
        cmocka_unit_test(roots),
        cmocka_unit_test(powers),
        cmocka_unit_test(circle),
        cmocka_unit_test(fractions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
