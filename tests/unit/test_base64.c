/* test_base64.c: RFC 4648's vectors, and everything that is not base64. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute/codecs/base64.h"

#include <string.h>

static enum kiln_status decode(const char *text, char out[64]) {
    size_t size = 99;
    memset(out, 0, 64);
    enum kiln_status status = base64_decode(text, strlen(text), (uint8_t *)out, 63, &size);
    assert_int_equal(size, strlen(out));
    return status;
}

static void test_good(void **state) {
    static const char *const cases[][2] = {
        {"", ""},
        {"Zg==", "f"},
        {"Zm8=", "fo"},
        {"Zm9v", "foo"},
        {"Zm9vYg==", "foob"},
        {"Zm9vYmE=", "fooba"},
        {"Zm9vYmFy", "foobar"},
        {"+/+/", "\xfb\xff\xbf"},
        {"data:image/png;base64,Zm9v", "foo"},
        {"data:;base64,Zm9v", "foo"},
    };
    char out[64];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(decode(cases[i][0], out), KILN_OK);
        assert_string_equal(out, cases[i][1]);
    }
}

static void test_bad(void **state) {
    static const char *const cases[] = {"Z",
                                        "Zg",
                                        "Zg=",
                                        "====",
                                        "=Zg=",
                                        "Zg=v",
                                        "Zg==Zg==",
                                        "Zm9v\n",
                                        "Zm 9",
                                        "Zm9-",
                                        "Zm9_",
                                        "Zh==" /* bits cut off */,
                                        "Zm9=",
                                        "data:Zm9v",
                                        "data:,Zm9v",
                                        "Zm9\xc3",
                                        "data:image/png,Zm9v"};
    char out[64];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(decode(cases[i], out), KILN_MALFORMED);
    }
}

static void test_capacity(void **state) {
    uint8_t out[3] = {0, 0, 7};
    size_t size;
    (void)state;
    assert_int_equal(base64_decode("Zm9v", 4, out, 2, &size), KILN_TOO_LARGE);
    assert_int_equal(base64_decode("Zm8=", 4, out, 2, &size), KILN_OK);
    assert_int_equal(size, 2);
    assert_int_equal(out[2], 7);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
