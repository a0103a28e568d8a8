/* test_load_histogram.c: kiln-bench's cells against sorted values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/load/histogram.h"

#include <math.h>
#include <stdlib.h>

#define VALUES 20000

static struct load_histogram histogram, other;
static uint64_t values[VALUES];
static uint64_t state = 88172645463325252u;

static uint64_t random_bits(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static int compare(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static uint64_t nearest_rank(size_t count, double percent) {
    size_t rank = (size_t)ceil(percent / 100 * (double)count - 1e-9);
    return values[rank > 0 ? rank - 1 : 0];
}

static void within(uint64_t found, uint64_t wanted) {
    double error = fabs((double)found - (double)wanted);
    if (error > 0.004 * (double)wanted) {
        fail_msg("%llu instead of %llu", (unsigned long long)found, (unsigned long long)wanted);
    }
}

/* Values of every size, from single nanoseconds to hours. */
static void test_percentiles(void **unused) {
    static const double percents[] = {0.001, 1, 25, 50, 90, 95, 99, 99.9, 100};
    (void)unused;
    histogram_reset(&histogram);
    double sum = 0;
    for (size_t i = 0; i < VALUES; i++) {
        values[i] = (random_bits() >> 20) >> (random_bits() % 44);
        histogram_add(&histogram, values[i]);
        sum += (double)values[i];
    }
    qsort(values, VALUES, sizeof *values, compare);
    for (size_t i = 0; i < sizeof percents / sizeof *percents; i++) {
        within(histogram_percentile(&histogram, percents[i]), nearest_rank(VALUES, percents[i]));
    }
    assert_int_equal(histogram.least, values[0]);
    assert_int_equal(histogram_percentile(&histogram, 100), values[VALUES - 1]);
    assert_true(fabs(histogram_mean(&histogram) - sum / VALUES) <= 1e-9 * sum);
}

static void test_edges(void **unused) {
    (void)unused;
    histogram_reset(&histogram);
    assert_int_equal(histogram_percentile(&histogram, 50), 0);
    assert_true(histogram_mean(&histogram) == 0);
    histogram_add(&histogram, 12345678);
    assert_int_equal(histogram_percentile(&histogram, 0), 12345678);
    assert_int_equal(histogram_percentile(&histogram, 50), 12345678);
    histogram_add(&histogram, 0);
    assert_int_equal(histogram_percentile(&histogram, 50), 0);
    histogram_add(&histogram, UINT64_MAX);
    assert_int_equal(histogram.most, (UINT64_C(1) << 44) - 1);
    assert_int_equal(histogram.count, 3);
}

/* Every cell's ends, and one beyond: the error is bounded at each octave. */
static void test_octaves(void **unused) {
    (void)unused;
    for (unsigned octave = 0; octave < 44; octave++) {
        uint64_t ends[] = {(UINT64_C(1) << octave) - (octave > 0), UINT64_C(1) << octave,
                           (UINT64_C(1) << octave) + (UINT64_C(1) << octave) / 3};
        for (size_t i = 0; i < 3; i++) {
            histogram_reset(&histogram);
            histogram_add(&histogram, ends[i]);
            histogram_add(&histogram, (UINT64_C(1) << 44) - 1);
            histogram_add(&histogram, 0);
            within(histogram_percentile(&histogram, 60), ends[i]);
        }
    }
}

static void test_merge(void **unused) {
    (void)unused;
    histogram_reset(&histogram);
    histogram_reset(&other);
    histogram_merge(&histogram, &other);
    assert_int_equal(histogram.count, 0);
    for (uint64_t i = 1; i <= 100; i++) {
        histogram_add(i % 2 ? &histogram : &other, i);
    }
    histogram_merge(&histogram, &other);
    assert_int_equal(histogram.count, 100);
    assert_int_equal(histogram.sum, 5050);
    assert_int_equal(histogram.least, 1);
    assert_int_equal(histogram.most, 100);
    assert_int_equal(histogram_percentile(&histogram, 50), 50);
    assert_int_equal(histogram_percentile(&histogram, 99), 99);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_octaves),
        cmocka_unit_test(test_merge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
