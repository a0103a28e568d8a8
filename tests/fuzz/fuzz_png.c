/*
 * fuzz_png.c: PNG bytes as they are, and once more with every chunk's checksum put right, so that
 * mutations come past the checksums.
 */
#include "tests/fuzz/expect.h"

#include <libdeflate.h>

static uint32_t big32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void checksums_fix(uint8_t *bytes, size_t size) {
    size_t at = 8;
    while (at + 12 <= size && big32(bytes + at) <= size - at - 12) {
        size_t length = big32(bytes + at);
        uint32_t crc = libdeflate_crc32(0, bytes + at + 4, length + 4);
        for (size_t i = 0; i < 4; i++) {
            bytes[at + 8 + length + i] = (uint8_t)(crc >> (24 - 8 * i));
        }
        at += 12 + length;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    image_check(data, size, FORMAT_PNG);
    uint8_t *fixed = malloc(size ? size : 1);
    EXPECT(fixed);
    memcpy(fixed, data, size);
    checksums_fix(fixed, size);
    image_check(fixed, size, FORMAT_PNG);
    free(fixed);
    return 0;
}
