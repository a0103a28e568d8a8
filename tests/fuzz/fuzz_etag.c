/*
 * fuzz_etag.c: If-None-Match is matched only by a header that has the tag or a star, and by every
 * header that has it behind something without quotes.
 */
#include "tests/fuzz/expect.h"

#include "server/cache/etag.h"

static const char tag[] = "\"08a0a8095942b35e59f34283d02fa647\"";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *header = malloc(size + sizeof tag + 8);
    char weak[sizeof tag + 2];
    EXPECT(header);
    memcpy(header, data, size);
    header[size] = '\0';
    snprintf(weak, sizeof weak, "W/%s", tag);
    bool found = etag_match(header, tag);
    EXPECT(etag_match(header, weak) == found); /* the comparison is weak */
    EXPECT(!found || strstr(header, tag) != NULL || strchr(header, '*') != NULL);
    if (strpbrk(header, "\"*") == NULL) {
        EXPECT(!found);
        strcat(header, size % 2 == 0 ? ", W/" : ",");
        strcat(header, tag);
        EXPECT(etag_match(header, tag));
    }
    free(header);
    return 0;
}
