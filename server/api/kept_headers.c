/*
 * kept_headers.c: Prefer, Idempotency-Key, Range.
 */
#include "server/api/kept_headers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool digit(char byte) {
    return isdigit((unsigned char)byte) != 0;
}

uint64_t kept_prefer_read(const char *text, bool *async) {
    uint64_t wait = 0;
    *async = false;
    while (*text != '\0') {
        text += strspn(text, " \t,;");
        size_t size = strcspn(text, " \t,;");
        if (size == 13 && strncasecmp(text, "respond-async", size) == 0) {
            *async = true;
        } else if (size > 5 && strncasecmp(text, "wait=", 5) == 0 && digit(text[5])) {
            wait = strtoull(text + 5, NULL, 10); /* too large: ULLONG_MAX */
        }
        text += size;
    }
    return wait < KEPT_WAIT_MAX ? wait : KEPT_WAIT_MAX;
}

bool kept_key_read(const char *text, char *key, size_t size) {
    size_t count = 0;
    bool good = *text == '"';
    text += good;
    while (good && *text != '"') {
        text += *text == '\\' && (text[1] == '"' || text[1] == '\\');
        good = *text >= ' ' && *text <= '~' && count + 1 < size;
        if (good) {
            key[count++] = *text++;
        }
    }
    key[count] = '\0';
    return good && count > 0 && text[1] == '\0';
}

bool kept_range_read(const char *text, uint64_t total, uint64_t *first, uint64_t *size) {
    uint64_t last = total > 0 ? total - 1 : 0;
    char *end;
    if (text == NULL || strncmp(text, "bytes=", 6) != 0 || strchr(text, ',') != NULL) {
        return false;
    }
    text += 6;
    bool suffix = *text == '-';
    if (!digit(text[suffix])) {
        return false;
    }
    uint64_t number = strtoull(text + suffix, &end, 10); /* too large: ULLONG_MAX */
    if (suffix) {
        *first = number < total ? total - number : 0;
        *size = *end == '\0' ? total - *first : 0;
        return *end == '\0';
    }
    if (*end++ != '-') {
        return false;
    }
    if (digit(*end)) {
        uint64_t to = strtoull(end, &end, 10);
        if (to < number) {
            return false;
        }
        last = to < last ? to : last;
    }
    *first = number;
    *size = number < total ? last - number + 1 : 0;
    return *end == '\0';
}
