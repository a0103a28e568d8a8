/*
 * fuzz_url.c: a request target that is taken, written again with every byte escaped, is taken as
 * the same; what is decoded lies inside the text and holds no control character. The same bytes are
 * read as a form.
 */
#include "tests/fuzz/expect.h"

#include "compute/codecs/pairs.h"
#include "server/http/request/url.h"

/* Decoded text may have line breaks and tabs, and no other control character. */
static void decoded_check(const char *text, const char *from, const char *end) {
    EXPECT(text >= from && text <= end && memchr(text, '\0', (size_t)(end - text) + 1) != NULL);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++)
        EXPECT((*at >= 0x20 && *at != 0x7f) || *at == '\t' || *at == '\n' || *at == '\r');
}

/* Ends with a NUL that `size` does not count. */
static char *copy_make(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    EXPECT(text);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

static void pairs_check(char *from, char *end) {
    char *cursor = from, *name, *value, *before = from;
    bool broken;
    size_t pairs = 0;
    while (pair_next(&cursor, end, &name, &value, &broken)) {
        EXPECT(cursor > before && cursor <= end && name >= from && value >= name && value <= end);
        if (!broken) {
            decoded_check(name, from, end);
            decoded_check(value, from, end);
        }
        before = cursor;
        pairs++;
    }
    EXPECT(pairs <= (size_t)(end - from));
}

/* Every byte of every segment as %XX. */
static void again_check(const struct url *url) {
    char why[160];
    size_t room = 2;
    struct url again;
    for (size_t i = 0; i < url->segment_count; i++)
        room += 3 * strlen(url->segments[i]) + 1;
    char *text = malloc(room), *at = text;
    EXPECT(text);
    for (size_t i = 0; i < url->segment_count; i++) {
        *at++ = '/';
        for (const char *c = url->segments[i]; *c != '\0'; c++)
            at += sprintf(at, "%%%02X", (unsigned char)*c);
    }
    *at++ = '/';
    at[url->segment_count > 0 ? -1 : 0] = '\0';
    EXPECT(url_parse(text, &again, why, sizeof why) == KILN_OK);
    bool root = url->segment_count == 1 && url->segments[0][0] == '\0';
    EXPECT(again.segment_count == url->segment_count || (root && again.segment_count == 0));
    for (size_t i = 0; i < again.segment_count; i++)
        EXPECT(strcmp(again.segments[i], url->segments[i]) == 0);
    free(text);
}

static void target_check(const uint8_t *data, size_t size) {
    char why[160] = "";
    struct url url;
    char *text = copy_make(data, size), *end = text + strlen(text);
    enum kiln_status status = url_parse(text, &url, why, sizeof why);
    if (status != KILN_OK) {
        EXPECT(status == KILN_MALFORMED || status == KILN_NOT_FOUND);
        EXPECT(why_good(why, sizeof why));
    } else {
        EXPECT(url.segment_count <= URL_SEGMENTS_MAX && (!url.all || url.segment_count == 0));
        for (size_t i = 0; i < url.segment_count; i++)
            decoded_check(url.segments[i], text, end);
        again_check(&url);
        if (url.query != NULL) {
            EXPECT(url.query > text && url.query <= end);
            pairs_check(url.query, end);
        }
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    target_check(data, size);
    char *form = copy_make(data, size);
    pairs_check(form, form + size);
    free(form);
    return 0;
}
