/*
 * expressions.h: running a program on the CPU among guard pages, for the fuzz targets of
 * expressions.
 *
 * Every array lies at the end of a mapping whose next page cannot be touched: an access past it
 * ends the process, also in the kernels' code, which has no sanitizer.
 */
#ifndef KILN_TESTS_FUZZ_EXPRESSIONS_H
#define KILN_TESTS_FUZZ_EXPRESSIONS_H

#include "compute/expression/expression.h"
#include "compute/expression/validate.h"
#include "kernels/backend.h"
#include "tests/fuzz/expect.h"

#include <sys/mman.h>

#define ROOM_BYTES ((size_t)64 << 10)
#define COST_MAX   ((uint64_t)1 << 18)

static inline char *room_end(size_t number) {
    static char *rooms[EXPRESSION_INPUTS + EXPRESSION_OUTPUTS];
    if (rooms[number] == NULL) {
        char *room = mmap(NULL, ROOM_BYTES + 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        EXPECT(room != MAP_FAILED && mprotect(room + ROOM_BYTES, 4096, PROT_NONE) == 0);
        for (size_t i = 0; i < ROOM_BYTES; i++) {
            room[i] =
                (char)(i * 37 + i / 251); /* bools of any byte, NaN, large and small numbers */
        }
        rooms[number] = room;
    }
    return rooms[number] + ROOM_BYTES;
}

static inline struct stream *stream_here(void) {
    static struct stream *stream;
    struct device_options options = {.threads = 1};
    struct device *device;
    char why[160];
    if (stream == NULL) {
        EXPECT(cpu_backend.open(0, &options, &device, why, sizeof why) == KILN_OK);
        EXPECT(cpu_backend.stream_create(device, &stream) == KILN_OK);
    }
    return stream;
}

/** Runs a valid program if it is small, twice: the same bytes must come. */
static inline void program_run(const struct expression_program *program) {
    struct expression_args args = {.program = program};
    struct timing timing = {0};
    static char first[EXPRESSION_OUTPUTS][ROOM_BYTES];
    size_t all = (size_t)program->inputs + program->outputs, bytes[EXPRESSION_ARRAYS];
    for (size_t i = 0; i < all + program->temporaries; i++) {
        bytes[i] =
            (size_t)program->array[i].elements * expression_type_bytes(program->array[i].type);
        if (bytes[i] > ROOM_BYTES || program->cost > COST_MAX) {
            return;
        }
    }
    for (size_t i = 0; i < all; i++) {
        char *array = room_end(i) - bytes[i];
        *(i < program->inputs ? (char **)(void *)&args.inputs[i]
                              : (char **)&args.outputs[i - program->inputs]) = array;
    }
    for (int again = 0; again <= 1; again++) {
        EXPECT(cpu_backend.begin(stream_here(), NULL) == KILN_OK);
        EXPECT(cpu_backend.launch(stream_here(), KERNEL_EXPRESSION, &args) == KILN_OK);
        EXPECT(cpu_backend.finish(stream_here(), &timing) == KILN_OK);
        for (size_t i = 0; i < program->outputs; i++) {
            size_t size = bytes[program->inputs + i];
            EXPECT(!again || memcmp(first[i], args.outputs[i], size) == 0);
            memcpy(first[i], args.outputs[i], size);
        }
    }
}

#endif
