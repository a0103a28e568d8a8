/*
 * template.h: text with variables, compiled once and rendered for every request.
 *
 *   ${i}            number of the request, never the same twice in one process
 *   ${i:12}         the same as exactly 12 digits (the lowest ones, with zeros in front)
 *   ${random}       decimal fraction from 0 to 1
 *   ${random:5:9}   integer from 5 to 9, both included
 *
 * So that no cache and no sharing of identical requests flatters a figure that is meant to be
 * without. Threads: a compiled template is read by all; the source text must outlive it.
 */
#ifndef KILN_BENCH_LOAD_TEMPLATE_H
#define KILN_BENCH_LOAD_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEMPLATE_PARTS_MAX 32

enum part_type { PART_TEXT, PART_NUMBER, PART_FRACTION, PART_INTEGER };

struct template_part {
    enum part_type type;
    const char *text;
    size_t size;       /* TEXT: bytes; NUMBER: digits, 0 for as many as it takes */
    int64_t low, high; /* INTEGER */
};

struct template {
    struct template_part parts[TEMPLATE_PARTS_MAX];
    size_t count;
    size_t size_max; /* most bytes that a rendering takes */
    bool varies;
};

/** xorshift64*; never 0. */
struct dice {
    uint64_t state;
};

uint64_t dice_roll(struct dice *dice);
/** Uniform in [0, 1). */
double dice_fraction(struct dice *dice);

/** False with a sentence in `why`. */
bool template_compile(struct template *template, const char *text, char *why, size_t why_size);

/** Writes at most size_max bytes, no NUL; returns how many. */
size_t template_render(const struct template *template, uint64_t number, struct dice *dice,
                       char *out);

#endif
