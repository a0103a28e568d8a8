/*
 * pack.c: bounded writing and reading of packets (pack.h). Reentrant.
 */
#include "compute/store/pack.h"

#include <math.h>
#include <string.h>

void pack_bytes(struct pack *pack, const void *bytes, size_t size) {
    if (pack->full || size > pack->capacity - pack->size) {
        pack->full = true;
        return;
    }
    if (size > 0) {
        memcpy(pack->data + pack->size, bytes, size);
    }
    pack->size += size;
}

void pack_number(struct pack *pack, int64_t value) {
    pack_bytes(pack, &value, sizeof value);
}

void pack_real(struct pack *pack, double value) {
    pack_bytes(pack, &value, sizeof value);
}

void pack_text(struct pack *pack, const char *text) {
    uint32_t size = (uint32_t)strlen(text);
    pack_bytes(pack, &size, sizeof size);
    pack_bytes(pack, text, (size_t)size + 1);
}

static const uint8_t *take(struct unpack *unpack, size_t size) {
    if (unpack->bad || size > unpack->size - unpack->at) {
        unpack->bad = true;
        return NULL;
    }
    const uint8_t *bytes = unpack->data + unpack->at;
    unpack->at += size;
    return bytes;
}

void unpack_bytes(struct unpack *unpack, void *bytes, size_t size) {
    const uint8_t *from = take(unpack, size);
    if (from != NULL) {
        memcpy(bytes, from, size);
    } else {
        memset(bytes, 0, size);
    }
}

int64_t unpack_number(struct unpack *unpack) {
    int64_t value;
    unpack_bytes(unpack, &value, sizeof value);
    return value;
}

int64_t unpack_range(struct unpack *unpack, int64_t low, int64_t high) {
    int64_t value = unpack_number(unpack);
    if (unpack->bad || value < low || value > high) {
        unpack->bad = true;
        return low;
    }
    return value;
}

double unpack_real(struct unpack *unpack) {
    double value;
    unpack_bytes(unpack, &value, sizeof value);
    if (!isfinite(value)) {
        unpack->bad = true;
        return 0;
    }
    return value;
}

const char *unpack_text(struct unpack *unpack, size_t max) {
    uint32_t size;
    unpack_bytes(unpack, &size, sizeof size);
    const char *text =
        size <= max && !unpack->bad ? (const char *)take(unpack, (size_t)size + 1) : NULL;
    if (text == NULL || memchr(text, '\0', (size_t)size + 1) != text + size) {
        unpack->bad = true;
        return "";
    }
    return text;
}

bool unpack_done(const struct unpack *unpack) {
    return !unpack->bad && unpack->at == unpack->size;
}
