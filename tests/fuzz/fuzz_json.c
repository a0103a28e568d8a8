/* fuzz_json.c: the check, then every walk over what it accepted. */
#include "tests/fuzz/expect.h"

#include "compute/codecs/json.h"
#include "compute/core/text.h"

#include <math.h>

static void string_check(const struct json_value *value) {
    char small[9];
    size_t full = json_string(value, NULL, 0);
    EXPECT(full + 2 <= value->size);
    char *out = malloc(full + 1);
    EXPECT(out != NULL && json_string(value, out, full + 1) == full && out[full] == '\0');
    EXPECT(json_string(value, small, sizeof small) == full);
    EXPECT(strlen(small) <= full && memcmp(small, out, strlen(small)) == 0);

    /* written again, it is JSON and the same string */
    size_t capacity = full * 6 + 3;
    char *again = malloc(capacity), why[160];
    struct json_value parsed;
    struct text text;
    EXPECT(again);
    text_init(&text, again, capacity);
    text_json_string(&text, out, full);
    EXPECT(!text.full && json_check(again, text.size, &parsed, why, sizeof why) == KILN_OK);
    char *back = malloc(full + 1);
    EXPECT(back != NULL && json_string(&parsed, back, full + 1) == full &&
           memcmp(back, out, full) == 0);
    free(back);
    free(again);
    free(out);
}

static void number_check(const struct json_value *value) {
    char copy[64];
    double number = json_number(value);
    EXPECT(isfinite(number));
    if (value->size < sizeof copy) {
        memcpy(copy, value->text, value->size);
        copy[value->size] = '\0';
        EXPECT(number == strtod(copy, NULL));
    }
}

static void numbers_check(const struct json_value *array, size_t count, size_t first_other) {
    size_t bad = SIZE_MAX;
    double *out = malloc(count * sizeof *out + 1);
    EXPECT(out);
    size_t read = json_numbers(array, false, out, count, &bad);
    if (first_other == SIZE_MAX) {
        EXPECT(read == count);
    } else {
        EXPECT(read == SIZE_MAX && bad == first_other);
    }
    free(out);
}

static void value_check(const struct json_value *value, int depth) {
    struct json_value inner;
    size_t cursor = 0, count = 0, first_other = SIZE_MAX;
    char key[12];
    EXPECT(depth <= JSON_DEPTH_MAX && value->size > 0);
    switch (value->type) {
    case JSON_STRING:
        string_check(value);
        break;
    case JSON_NUMBER:
        number_check(value);
        break;
    case JSON_ARRAY:
        for (; json_next_element(value, &cursor, &inner); count++) {
            if (inner.type != JSON_NUMBER && first_other == SIZE_MAX) {
                first_other = count;
            }
            value_check(&inner, depth + 1);
        }
        numbers_check(value, count, first_other);
        break;
    case JSON_OBJECT:
        while (json_next_member(value, &cursor, key, sizeof key, &inner)) {
            EXPECT(strlen(key) < sizeof key);
            value_check(&inner, depth + 1);
        }
        break;
    default:
        EXPECT(value->size == (value->type == JSON_FALSE ? 5 : 4));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct json_value value;
    char why[160] = "";
    enum kiln_status status = json_check((const char *)data, size, &value, why, sizeof why);
    if (status == KILN_OK) {
        value_check(&value, 0);
    } else {
        EXPECT(status == KILN_MALFORMED && why_good(why, sizeof why));
    }
    return 0;
}
