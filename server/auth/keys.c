/*
 * keys.c: reading and printing keys and their file.
 */
#include "server/auth/keys.h"

#include "compute/core/words.h"
#include "server/auth/rate_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define HASH_PREFIX "sha256:"
#define KEY_PREFIX  "kiln_"
#define BLANKS      " \t"

static const struct {
    const char *name;
    enum scope scope;
} scope_rows[] = {{"read", SCOPE_READ}, {"compute", SCOPE_COMPUTE}, {"admin", SCOPE_ADMIN}};
#define SCOPES (sizeof scope_rows / sizeof scope_rows[0])

/* ---- keys themselves ---- */

bool key_make(char text[KEY_TEXT_SIZE]) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t bytes[33] = {0};
    if (getrandom(bytes, 32, 0) != 32) {
        return false;
    }
    char *out = text + sizeof KEY_PREFIX - 1;
    memcpy(text, KEY_PREFIX, sizeof KEY_PREFIX - 1);
    for (size_t i = 0; i < 33; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | bytes[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6) {
            *out++ = digits[group >> shift & 63];
        }
    }
    out[-1] = '\0'; /* the 44th digit is of no byte */
    explicit_bzero(bytes, sizeof bytes);
    return true;
}

void key_hash(const char *text, size_t size, uint8_t hash[KEY_HASH_SIZE]) {
    /* cannot fail for a digest that the library has; if it did, nothing would be found */
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, text, size, hash) != 0) {
        memset(hash, 0, KEY_HASH_SIZE);
    }
}

bool key_hash_equal(const uint8_t a[KEY_HASH_SIZE], const uint8_t b[KEY_HASH_SIZE]) {
    return gnutls_memcmp(a, b, KEY_HASH_SIZE) == 0;
}

bool bearer_read(const char *header, const char **token, size_t *size) {
    static const char tokens[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                 "-._~+/";
    if (strncasecmp(header, "Bearer ", 7) != 0) {
        return false;
    }
    *token = header + 7 + strspn(header + 7, " ");
    size_t body = strspn(*token, tokens);
    *size = body + strspn(*token + body, "=");
    return body > 0 && *size <= KEY_TOKEN_MAX && (*token)[*size] == '\0';
}

/* ---- words of a line ---- */

bool scopes_parse(const char *text, size_t size, unsigned *scopes) {
    *scopes = 0;
    for (struct words words = words_of(text, size); words_next(&words);) {
        unsigned scope = 0;
        for (size_t i = 0; i < SCOPES; i++) {
            scope |= words_at(&words, scope_rows[i].name) ? scope_rows[i].scope : 0;
        }
        if (scope == 0 || (*scopes & scope) != 0) {
            return false;
        }
        *scopes |= scope;
    }
    return true;
}

void scopes_print(unsigned scopes, char *out, size_t size) {
    size_t used = 0;
    if (size > 0) {
        out[0] = '\0';
    }
    for (size_t i = 0; i < SCOPES && used < size; i++) {
        if ((scopes & scope_rows[i].scope) != 0) {
            used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? "," : "",
                                     scope_rows[i].name);
        }
    }
}

bool key_id_valid(const char *text, size_t size) {
    static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                  "0123456789._-";
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\0' || strchr(allowed, text[i]) == NULL) {
            return false;
        }
    }
    return size > 0 && size <= KEY_ID_MAX;
}

static int nibble(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool hash_parse(const char *text, size_t size, uint8_t hash[KEY_HASH_SIZE]) {
    const size_t prefix = sizeof HASH_PREFIX - 1;
    if (size != prefix + 2 * KEY_HASH_SIZE || memcmp(text, HASH_PREFIX, prefix) != 0) {
        return false;
    }
    for (size_t i = 0; i < KEY_HASH_SIZE; i++) {
        int high = nibble(text[prefix + 2 * i]), low = nibble(text[prefix + 2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        hash[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* A decimal number without sign or exponent, at most 16 characters. */
static bool number_parse(const char *text, size_t size, bool whole, double min, double max,
                         double *value) {
    char copy[17];
    if (size == 0 || size >= sizeof copy) {
        return false;
    }
    memcpy(copy, text, size);
    copy[size] = '\0';
    size_t digits = strspn(copy, "0123456789");
    if (digits > 0 && copy[digits] == '.' && !whole) {
        size_t fraction = strspn(copy + digits + 1, "0123456789");
        digits = fraction > 0 ? digits + 1 + fraction : 0;
    }
    if (digits != size) {
        return false;
    }
    *value = strtod(copy, NULL);
    return *value >= min && *value <= max;
}

bool key_option(struct key *key, const char *text, size_t size, char *why, size_t why_size) {
    static const struct {
        const char *name;
        bool whole;
        double min, max;
    } rows[] = {{"rate=", false, RATE_MIN, RATE_MAX},
                {"burst=", true, 1, BURST_MAX},
                {"concurrency=", true, 1, CONCURRENCY_MAX}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length = strlen(rows[i].name);
        double value;
        if (size < length || memcmp(text, rows[i].name, length) != 0) {
            continue;
        }
        bool seen = i == 0 ? key->rate > 0 : i == 1 ? key->burst > 0 : key->concurrency > 0;
        if (seen || !number_parse(text + length, size - length, rows[i].whole, rows[i].min,
                                  rows[i].max, &value)) {
            snprintf(why, why_size, "%s must stand once, with a number from %.15g to %.15g",
                     rows[i].name, rows[i].min, rows[i].max);
            return false;
        }
        key->rate = i == 0 ? value : key->rate;
        key->burst = i == 1 ? (uint64_t)value : key->burst;
        key->concurrency = i == 2 ? (uint64_t)value : key->concurrency;
        return true;
    }
    snprintf(why, why_size, "after the scopes there are only rate=, burst= and concurrency=");
    return false;
}

/* ---- lines and files ---- */

/* Next word of a line; false at its end. */
static bool word_next(const char **at, const char *end, const char **word, size_t *size) {
    while (*at < end && strchr(BLANKS, **at) != NULL) {
        (*at)++;
    }
    *word = *at;
    while (*at < end && strchr(BLANKS, **at) == NULL) {
        (*at)++;
    }
    *size = (size_t)(*at - *word);
    return *size > 0;
}

static bool complain(char *why, size_t why_size, const char *text) {
    snprintf(why, why_size, "%s", text);
    return false;
}

/* The line has no control characters but tabs. */
static bool line_parse(const char *line, const char *end, struct key *key, char *why,
                       size_t why_size) {
    const char *word;
    size_t size;
    memset(key, 0, sizeof *key);
    if (!word_next(&line, end, &word, &size) || !key_id_valid(word, size)) {
        return complain(why, why_size,
                        "an id has 1 to 32 letters, digits, dots, underscores and hyphens");
    }
    memcpy(key->id, word, size);
    if (!word_next(&line, end, &word, &size) || !hash_parse(word, size, key->hash)) {
        return complain(why, why_size, "after the id comes sha256: and 64 digits from 0 to f");
    }
    if (!word_next(&line, end, &word, &size) || !scopes_parse(word, size, &key->scopes)) {
        return complain(why, why_size,
                        "after the hash come scopes, of read, compute and admin, with commas");
    }
    while (word_next(&line, end, &word, &size)) {
        if (!key_option(key, word, size, why, why_size)) {
            return false;
        }
    }
    if (key->burst > 0 && key->rate == 0) {
        return complain(why, why_size, "a burst needs a rate");
    }
    if (key->rate > 0 && key->burst == 0) {
        key->burst = key->rate > 1 ? (uint64_t)key->rate : 1;
    }
    return true;
}

static bool line_clean(const char *line, const char *end) {
    for (; line < end; line++) {
        if (((unsigned char)*line < 0x20 && *line != '\t') || *line == 0x7f) {
            return false;
        }
    }
    return true;
}

/* Reads one line; sets `any` where it holds a key. */
static bool line_take(const char *line, const char *end, struct key *key, bool *any, char *why,
                      size_t why_size) {
    *any = false;
    if (end > line && end[-1] == '\r') {
        end--;
    }
    if (end - line > KEY_LINE_MAX) {
        return complain(why, why_size, "a line has at most 512 characters");
    }
    if (!line_clean(line, end)) {
        return complain(why, why_size, "there is a control character");
    }
    while (line < end && strchr(BLANKS, *line) != NULL) {
        line++;
    }
    if (line == end || *line == '#') {
        return true;
    }
    *any = true;
    return line_parse(line, end, key, why, why_size);
}

static int hash_order(const void *a, const void *b) {
    return memcmp((*(const struct key *const *)a)->hash, (*(const struct key *const *)b)->hash,
                  KEY_HASH_SIZE);
}

static int id_order(const void *a, const void *b) {
    return strcmp((*(const struct key *const *)a)->id, (*(const struct key *const *)b)->id);
}

/* The first of two rows that `order` finds equal, or NULL. */
static const struct key *twin_find(const struct key **sorted, size_t count,
                                   int (*order)(const void *, const void *)) {
    qsort(sorted, count, sizeof *sorted, order);
    for (size_t i = 1; i < count; i++) {
        if (order(&sorted[i - 1], &sorted[i]) == 0) {
            return sorted[i];
        }
    }
    return NULL;
}

static bool rows_differ(const struct keys *keys, char *why, size_t why_size) {
    const struct key **sorted = malloc((keys->count + 1) * sizeof *sorted);
    if (sorted == NULL) {
        return complain(why, why_size, "no memory");
    }
    for (size_t i = 0; i < keys->count; i++) {
        sorted[i] = &keys->rows[i];
    }
    const struct key *same = twin_find(sorted, keys->count, id_order);
    if (same != NULL) {
        snprintf(why, why_size, "the id %s stands twice", same->id);
    } else {
        same = twin_find(sorted, keys->count, hash_order);
        if (same != NULL) {
            snprintf(why, why_size, "the key of %s stands twice", same->id);
        }
    }
    free(sorted);
    return same == NULL;
}

static bool lines_parse(const char *text, const char *end, struct keys *keys, char *why,
                        size_t why_size) {
    char reason[160];
    for (size_t number = 1; text < end; number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline != NULL ? newline : end;
        struct key key;
        bool any;
        if (!line_take(text, stop, &key, &any, reason, sizeof reason)) {
            snprintf(why, why_size, "line %zu: %s", number, reason);
            return false;
        }
        if (any && keys->count == KEYS_MAX) {
            snprintf(why, why_size, "line %zu: at most %d keys are taken", number, KEYS_MAX);
            return false;
        }
        if (any) {
            keys->rows[keys->count++] = key;
        }
        if (newline == NULL) {
            snprintf(why, why_size, "line %zu, the last, has no end: is the file cut?", number);
            return false;
        }
        text = newline + 1;
    }
    if (keys->count == 0) {
        return complain(why, why_size, "there is no key in it");
    }
    return rows_differ(keys, why, why_size);
}

bool keys_parse(const char *text, size_t size, struct keys **out, char *why, size_t why_size) {
    size_t lines = 1;
    *out = NULL;
    if (size > KEYS_FILE_MAX) {
        return complain(why, why_size, "the file has more than 1 MiB");
    }
    for (size_t i = 0; i < size; i++) {
        lines += text[i] == '\n';
    }
    size_t most = lines < KEYS_MAX ? lines : KEYS_MAX;
    struct keys *keys = malloc(sizeof *keys + most * sizeof keys->rows[0]);
    if (keys == NULL) {
        return complain(why, why_size, "no memory");
    }
    keys->count = 0;
    if (!lines_parse(text, text + size, keys, why, why_size)) {
        free(keys);
        return false;
    }
    *out = keys;
    return true;
}

/* Reads at most `capacity` bytes; -1 on errors. */
static ssize_t file_read(int fd, char *bytes, size_t capacity) {
    size_t used = 0;
    while (used < capacity) {
        ssize_t got = read(fd, bytes + used, capacity - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        used += (size_t)got;
    }
    return (ssize_t)used;
}

bool keys_load(const char *path, struct keys **out, char *why, size_t why_size) {
    struct stat status;
    char *bytes = malloc(KEYS_FILE_MAX + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hold us */
    bool good = false;
    *out = NULL;
    if (bytes == NULL) {
        snprintf(why, why_size, "no memory");
    } else if (fd < 0 || fstat(fd, &status) != 0) {
        snprintf(why, why_size, "%s", strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        snprintf(why, why_size, "it is not a file");
    } else if ((status.st_mode & S_IWOTH) != 0) {
        snprintf(why, why_size, "everyone may write to it (chmod o-w)");
    } else {
        ssize_t size = file_read(fd, bytes, KEYS_FILE_MAX + 1);
        if (size < 0) {
            snprintf(why, why_size, "%s", strerror(errno));
        } else {
            good = keys_parse(bytes, (size_t)size, out, why, why_size);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    free(bytes);
    return good;
}

bool key_print(const struct key *key, char *out, size_t size) {
    char hash[2 * KEY_HASH_SIZE + 1], scopes[32];
    for (size_t i = 0; i < KEY_HASH_SIZE; i++) {
        snprintf(hash + 2 * i, 3, "%02x", key->hash[i]);
    }
    scopes_print(key->scopes, scopes, sizeof scopes);
    size_t used = (size_t)snprintf(out, size, "%s " HASH_PREFIX "%s %s", key->id, hash, scopes);
    if (used < size && key->rate > 0) {
        used += (size_t)snprintf(out + used, size - used, " rate=%.15g burst=%llu", key->rate,
                                 (unsigned long long)key->burst);
    }
    if (used < size && key->concurrency > 0) {
        used += (size_t)snprintf(out + used, size - used, " concurrency=%llu",
                                 (unsigned long long)key->concurrency);
    }
    return used < size;
}
