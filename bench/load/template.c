/*
 * template.c: compiling and rendering texts with variables.
 */
#include "bench/load/template.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_DIGITS 20 /* of the largest 64-bit number */

uint64_t dice_roll(struct dice *dice) {
    dice->state ^= dice->state >> 12;
    dice->state ^= dice->state << 25;
    dice->state ^= dice->state >> 27;
    return dice->state * UINT64_C(0x2545F4914F6CDD1D);
}

double dice_fraction(struct dice *dice) {
    return (double)(dice_roll(dice) >> 11) * 0x1p-53;
}

static bool part_add(struct template *template, struct template_part part) {
    if (template->count == TEMPLATE_PARTS_MAX) {
        return false;
    }
    template->parts[template->count++] = part;
    template->size_max += part.type == PART_TEXT ? part.size : NUMBER_DIGITS;
    template->varies = template->varies || part.type != PART_TEXT;
    return true;
}

/* What stands between ${ and }. */
static bool variable_read(const char *name, size_t size, struct template_part *part) {
    char copy[64];
    int end = 0;
    if (size >= sizeof copy) {
        return false;
    }
    memcpy(copy, name, size);
    copy[size] = '\0';
    if (strcmp(copy, "i") == 0) {
        *part = (struct template_part){.type = PART_NUMBER};
        return true;
    }
    if (strcmp(copy, "random") == 0) {
        *part = (struct template_part){.type = PART_FRACTION};
        return true;
    }
    *part = (struct template_part){.type = PART_INTEGER};
    if (sscanf(copy, "random:%9" SCNd64 ":%9" SCNd64 "%n", &part->low, &part->high, &end) == 2 &&
        (size_t)end == size) {
        return part->low <= part->high;
    }
    *part = (struct template_part){.type = PART_NUMBER};
    if (sscanf(copy, "i:%2zu%n", &part->size, &end) == 1 && (size_t)end == size) {
        return part->size >= 1 && part->size < NUMBER_DIGITS;
    }
    return false;
}

bool template_compile(struct template *template, const char *text, char *why, size_t why_size) {
    memset(template, 0, sizeof *template);
    while (*text != '\0') {
        struct template_part part = {.type = PART_TEXT, .text = text};
        const char *open = strstr(text, "${");
        part.size = open != NULL ? (size_t)(open - text) : strlen(text);
        if (part.size == 0) {
            const char *close = strchr(text, '}');
            size_t size = close != NULL ? (size_t)(close - text) - 2 : strlen(text) - 2;
            if (close == NULL || !variable_read(text + 2, size, &part)) {
                snprintf(why, why_size, "`%.*s` is no variable", (int)(size < 40 ? size + 3 : 40),
                         text);
                return false;
            }
            text = close + 1;
        } else {
            text += part.size;
        }
        if (!part_add(template, part)) {
            snprintf(why, why_size, "more than %d variables", TEMPLATE_PARTS_MAX / 2);
            return false;
        }
    }
    return true;
}

/* Decimal digits of `value`, exactly `width` of them unless 0. */
static size_t number_write(uint64_t value, size_t width, char *out) {
    char digits[NUMBER_DIGITS];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (width > 0 ? count < width : value > 0);
    for (size_t i = 0; i < count; i++) {
        out[i] = digits[count - 1 - i];
    }
    return count;
}

static size_t part_render(const struct template_part *part, uint64_t number, struct dice *dice,
                          char *out) {
    int64_t integer;
    switch (part->type) {
    case PART_TEXT:
        memcpy(out, part->text, part->size);
        return part->size;
    case PART_NUMBER:
        return number_write(number, part->size, out);
    case PART_FRACTION:
        memcpy(out, "0.", 2);
        return 2 + number_write(dice_roll(dice) % UINT64_C(1000000000000000), 15, out + 2);
    default:
        integer = part->low +
                  (int64_t)(dice_fraction(dice) * ((double)part->high - (double)part->low + 1));
        *out = '-';
        return (integer < 0) + number_write((uint64_t)llabs(integer), 0, out + (integer < 0));
    }
}

size_t template_render(const struct template *template, uint64_t number, struct dice *dice,
                       char *out) {
    size_t size = 0;
    for (size_t i = 0; i < template->count; i++) {
        size += part_render(&template->parts[i], number, dice, out + size);
    }
    return size;
}
