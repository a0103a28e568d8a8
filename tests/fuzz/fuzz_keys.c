/*
 * fuzz_keys.c: a key file that is taken prints to one that is taken as the same; every refusal says
 * why, without the line's words. The same bytes are tried as an Authorization header.
 */
#include "tests/fuzz/expect.h"

#include "server/auth/keys.h"
#include "server/auth/rate_limit.h"

#include <ctype.h>

static void key_check(const struct key *key) {
    EXPECT(key_id_valid(key->id, strlen(key->id)));
    EXPECT(key->scopes > 0 && key->scopes <= (SCOPE_READ | SCOPE_COMPUTE | SCOPE_ADMIN));
    EXPECT(key->rate == 0 || (key->rate >= RATE_MIN && key->rate <= RATE_MAX));
    EXPECT((key->burst > 0) == (key->rate > 0) && key->burst <= BURST_MAX);
    EXPECT(key->concurrency <= CONCURRENCY_MAX);
}

static void file_check(const struct keys *keys) {
    char why[256];
    size_t room = (keys->count + 1) * (KEY_LINE_MAX + 1), used = 0;
    char *text = malloc(room);
    struct keys *again;
    EXPECT(text != NULL && keys->count <= KEYS_MAX);
    for (size_t i = 0; i < keys->count; i++) {
        key_check(&keys->rows[i]);
        EXPECT(key_print(&keys->rows[i], text + used, room - used));
        used += strlen(text + used);
        text[used++] = '\n';
    }
    EXPECT(keys_parse(text, used, &again, why, sizeof why));
    EXPECT(again->count == keys->count);
    for (size_t i = 0; i < keys->count; i++) {
        const struct key *a = &keys->rows[i], *b = &again->rows[i];
        EXPECT(strcmp(a->id, b->id) == 0 && key_hash_equal(a->hash, b->hash));
        EXPECT(a->scopes == b->scopes && a->rate == b->rate && a->burst == b->burst);
        EXPECT(a->concurrency == b->concurrency);
    }
    free(again);
    free(text);
}

static void bearer_check(const uint8_t *data, size_t size) {
    const char *token;
    size_t length;
    char *header = malloc(size + 1);
    EXPECT(header);
    memcpy(header, data, size);
    header[size] = '\0';
    if (bearer_read(header, &token, &length)) {
        EXPECT(token >= header + 7 && length > 0 && length <= KEY_TOKEN_MAX);
        EXPECT(token + length == header + strlen(header));
        for (size_t i = 0; i < length; i++) {
            EXPECT(isgraph((unsigned char)token[i]) && token[i] != ',');
        }
    }
    free(header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char why[256] = "";
    struct keys *keys;
    if (keys_parse((const char *)data, size, &keys, why, sizeof why)) {
        file_check(keys);
    } else {
        EXPECT(keys == NULL && why_good(why, sizeof why));
    }
    free(keys);
    bearer_check(data, size);
    return 0;
}
