/*
 * fuzz_kept_headers.c: Prefer, Idempotency-Key and Range: what is read stays within its bounds, and
 * a key that was read is read again from what it was written as.
 */
#include "tests/fuzz/expect.h"

#include "server/api/kept_headers.h"

static void key_check(const char *text) {
    char key[65], again[65], written[132] = "\"";
    size_t at = 1;
    if (!kept_key_read(text, key, sizeof key)) {
        return;
    }
    size_t size = strlen(key);
    EXPECT(size >= 1 && size <= 64);
    for (size_t i = 0; i < size; i++) {
        EXPECT(key[i] >= ' ' && key[i] <= '~');
        if (key[i] == '"' || key[i] == '\\') {
            written[at++] = '\\';
        }
        written[at++] = key[i];
    }
    written[at] = '"';
    written[at + 1] = '\0';
    EXPECT(kept_key_read(written, again, sizeof again) && strcmp(key, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint64_t totals[] = {0, 1, 100, 1 << 20, UINT64_MAX >> 1};
    char *text = malloc(size + 1);
    bool async;
    EXPECT(text);
    memcpy(text, data, size);
    text[size] = '\0';
    EXPECT(kept_prefer_read(text, &async) <= KEPT_WAIT_MAX);
    EXPECT(!async || size >= strlen("respond-async"));
    key_check(text);
    for (size_t i = 0; i < sizeof totals / sizeof *totals; i++) {
        uint64_t first = 0, count = 0;
        if (kept_range_read(text, totals[i], &first, &count)) {
            EXPECT(strncmp(text, "bytes=", 6) == 0);
            EXPECT(count <= totals[i] && (count == 0 || first <= totals[i] - count));
        }
    }
    free(text);
    return 0;
}
