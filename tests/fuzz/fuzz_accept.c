/*
 * fuzz_accept.c: the format that an Accept header chooses is one of those there are, and one that
 * the header accepts by itself; none is chosen only where it accepts none of them.
 */
#include "tests/fuzz/expect.h"

#include "server/jobs/negotiate.h"

#define FORMATS_MAX 6

static const enum format lists[][FORMATS_MAX] = {
    {FORMAT_PNG, FORMAT_NPY, FORMAT_JSON, FORMAT_RAW, FORMAT_NONE},
    {FORMAT_NPY, FORMAT_PNG, FORMAT_PGM, FORMAT_NONE},
    {FORMAT_JSON, FORMAT_NPY, FORMAT_CSV, FORMAT_PNG, FORMAT_SVG, FORMAT_NONE},
    {FORMAT_PNG, FORMAT_NONE},
};

static void list_check(const char *accept, const enum format *formats) {
    enum format chosen = negotiate(accept, formats);
    bool any = false, listed = false;
    for (size_t i = 0; formats[i] != FORMAT_NONE; i++) {
        const enum format alone[] = {formats[i], FORMAT_NONE};
        bool taken = negotiate(accept, alone) == formats[i];
        EXPECT(taken || negotiate(accept, alone) == FORMAT_NONE);
        any |= taken;
        listed |= taken && formats[i] == chosen;
    }
    EXPECT(chosen == FORMAT_NONE ? !any : listed);
    EXPECT(negotiate(accept, formats) == chosen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *accept = malloc(size + 1);
    EXPECT(accept);
    memcpy(accept, data, size);
    accept[size] = '\0';
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        list_check(accept, lists[i]);
        EXPECT(negotiate(NULL, lists[i]) == lists[i][0]);
    }
    free(accept);
    return 0;
}
