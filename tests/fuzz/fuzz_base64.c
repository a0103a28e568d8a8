/* fuzz_base64.c: whatever decodes must encode to the same characters. */
#include "tests/fuzz/expect.h"

#include "compute/codecs/base64.h"

static void encode(const uint8_t *bytes, size_t size, char *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t group = (uint32_t)bytes[i] << 16 | (left > 1 ? bytes[i + 1] : 0u) << 8 |
                         (left > 2 ? bytes[i + 2] : 0u);
        for (size_t k = 0; k < 4; k++) {
            *out++ = k <= left ? digits[group >> (18 - 6 * k) & 63] : '=';
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    size_t capacity = size / 4 * 3, decoded = 0;
    uint8_t *out = malloc(capacity + 1);
    EXPECT(out);
    out[capacity] = 0xee;
    enum kiln_status status = base64_decode(text, size, out, capacity, &decoded);
    EXPECT(status == KILN_OK || status == KILN_MALFORMED);
    EXPECT(decoded <= capacity && out[capacity] == 0xee);
    if (status == KILN_OK) {
        size_t length = (decoded + 2) / 3 * 4;
        char *again = malloc(length + 1);
        EXPECT(again != NULL && length <= size);
        encode(out, decoded, again);
        EXPECT(memcmp(again, text + size - length, length) == 0);
        EXPECT(length == size || text[size - length - 1] == ',');
        free(again);
    }
    free(out);
    return 0;
}
