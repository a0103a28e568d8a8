/*
 * job_id.c: making, printing and reading the names of jobs (job_id.h).
 */
#include "compute/core/job_id.h"

#include <string.h>
#include <sys/random.h>
#include <time.h>

#define VERSION_BYTE 6
#define VARIANT_BYTE 8
#define RANDOM_BYTES 10 /* 80 bits, of which version and variant take six */

/* ---- the generator ---- */

static uint32_t rotated(uint32_t value, int bits) {
    return value << bits | value >> (32 - bits);
}

static void quarter_round(uint32_t *state, int a, int b, int c, int d) {
    state[a] += state[b], state[d] = rotated(state[d] ^ state[a], 16);
    state[c] += state[d], state[b] = rotated(state[b] ^ state[c], 12);
    state[a] += state[b], state[d] = rotated(state[d] ^ state[a], 8);
    state[c] += state[d], state[b] = rotated(state[b] ^ state[c], 7);
}

void job_ids_block(const uint32_t key[JOB_IDS_KEY], uint32_t counter, uint32_t out[16]) {
    /* "expand 32-byte k"; the nonce stays 0: no key is used twice */
    uint32_t first[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    memcpy(first + 4, key, JOB_IDS_KEY * sizeof *key);
    first[12] = counter;
    memcpy(out, first, sizeof first);
    for (int round = 0; round < 10; round++) {
        quarter_round(out, 0, 4, 8, 12);
        quarter_round(out, 1, 5, 9, 13);
        quarter_round(out, 2, 6, 10, 14);
        quarter_round(out, 3, 7, 11, 15);
        quarter_round(out, 0, 5, 10, 15);
        quarter_round(out, 1, 6, 11, 12);
        quarter_round(out, 2, 7, 8, 13);
        quarter_round(out, 3, 4, 9, 14);
    }
    for (int i = 0; i < 16; i++) {
        out[i] += first[i];
    }
}

bool job_ids_init(struct job_ids *ids) {
    memset(ids, 0, sizeof *ids);
    return getrandom(ids->key, sizeof ids->key, 0) == (ssize_t)sizeof ids->key;
}

/* What is handed out is wiped, so that the generator's memory tells nothing of earlier ids. */
static void random_take(struct job_ids *ids, uint8_t *out, size_t size) {
    if (ids->left < size) {
        uint32_t blocks[JOB_IDS_BLOCKS][16];
        for (uint32_t i = 0; i < JOB_IDS_BLOCKS; i++) {
            job_ids_block(ids->key, i, blocks[i]);
        }
        memcpy(ids->key, blocks, sizeof ids->key);
        memcpy(ids->random, (const uint8_t *)blocks + sizeof ids->key, sizeof ids->random);
        ids->left = sizeof ids->random;
        explicit_bzero(blocks, sizeof blocks);
    }
    ids->left -= size;
    memcpy(out, ids->random + ids->left, size);
    memset(ids->random + ids->left, 0, size);
}

uint64_t job_ids_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec < 0 ? 0 : (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct job_id job_ids_next(struct job_ids *ids, uint64_t now_ms) {
    struct job_id id;
    ids->last_ms = now_ms > ids->last_ms ? now_ms : ids->last_ms;
    for (int i = 0; i < 6; i++) {
        id.bytes[i] = (uint8_t)(ids->last_ms >> (40 - 8 * i));
    }
    random_take(ids, id.bytes + VERSION_BYTE, RANDOM_BYTES);
    id.bytes[VERSION_BYTE] = (uint8_t)(0x70 | (id.bytes[VERSION_BYTE] & 0x0f));
    id.bytes[VARIANT_BYTE] = (uint8_t)(0x80 | (id.bytes[VARIANT_BYTE] & 0x3f));
    return id;
}

/* ---- text ---- */

bool job_id_equal(const struct job_id *one, const struct job_id *other) {
    return memcmp(one->bytes, other->bytes, JOB_ID_SIZE) == 0;
}

bool job_id_empty(const struct job_id *id) {
    static const struct job_id none;
    return job_id_equal(id, &none);
}

static bool dash_before(size_t byte) {
    return byte == 4 || byte == 6 || byte == 8 || byte == 10;
}

void job_id_print(const struct job_id *id, char text[JOB_ID_TEXT]) {
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < JOB_ID_SIZE; i++) {
        if (dash_before(i)) {
            *text++ = '-';
        }
        *text++ = digits[id->bytes[i] >> 4];
        *text++ = digits[id->bytes[i] & 15];
    }
    *text = '\0';
}

static int digit_read(char digit) {
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
                                          : -1;
}

bool job_id_parse(const char *text, size_t size, struct job_id *out) {
    struct job_id id;
    if (size != JOB_ID_TEXT - 1) {
        return false;
    }
    for (size_t i = 0; i < JOB_ID_SIZE; i++) {
        if (dash_before(i) && *text++ != '-') {
            return false;
        }
        int high = digit_read(*text++), low = digit_read(*text++);
        if (high < 0 || low < 0) {
            return false;
        }
        id.bytes[i] = (uint8_t)(high << 4 | low);
    }
    if (id.bytes[VERSION_BYTE] >> 4 != 7 || id.bytes[VARIANT_BYTE] >> 6 != 2) {
        return false;
    }
    *out = id;
    return true;
}
