/*
 * quantum.c: how samples came from values, as a picture carries it along (image.h). Reads hostile
 * bytes. Thread: any.
 */
#include "compute/codecs/image.h"
#include "compute/core/decimal.h"
#include "compute/core/text.h"

#include <math.h>
#include <string.h>

void quantum_print(const struct quantum *quantum, char out[QUANTUM_MAX]) {
    struct text text;
    text_init(&text, out, QUANTUM_MAX);
    text_string(&text, "offset=");
    text_double(&text, quantum->offset);
    text_string(&text, "&scale=");
    text_double(&text, quantum->scale);
    if (quantum->bits > 0) {
        text_format(&text, "&bits=%u", quantum->bits);
    }
}

/* Takes `name` and a number behind it. */
static bool number_take(const char **text, size_t *size, const char *name, double *value) {
    size_t length = strlen(name);
    if (*size < length || memcmp(*text, name, length) != 0) {
        return false;
    }
    size_t digits = decimal_read(*text + length, *size - length, value);
    *text += length + digits;
    *size -= length + digits;
    return digits > 0 && isfinite(*value);
}

bool quantum_read(const char *text, size_t size, struct quantum *quantum) {
    double offset, scale, bits = 0;
    if (size >= QUANTUM_MAX || !number_take(&text, &size, "offset=", &offset) ||
        !number_take(&text, &size, "&scale=", &scale) || scale == 0) {
        return false;
    }
    if (size > 0 && (!number_take(&text, &size, "&bits=", &bits) || (bits != 8 && bits != 16))) {
        return false;
    }
    if (size > 0) {
        return false;
    }
    *quantum = (struct quantum){.offset = offset, .scale = scale, .bits = (uint32_t)bits};
    return true;
}
