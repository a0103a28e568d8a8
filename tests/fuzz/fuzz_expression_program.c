/* fuzz_expression_program.c: programs whose bytes somebody has changed: refused, or safe to run.
   The first byte chooses a program, then come a place (two bytes, little-endian) and a byte each.
 */
#include "tests/fuzz/expressions.h"

#include <stddef.h>

static void program_base(unsigned choice, struct expression_program *program) {
    static const char *const texts[] = {
        "2*a + 3*b",
        "m = mean(a, axis=0); d = a - m; y = d / sqrt(mean(d**2, axis=0))",
        "where(a > b, a, index(0)) + sum(c, axis=1, keepdims=True)",
        "p = argmax(a, axis=1); q = max(a); r = any(a > 1, axis=0); s = float16(a) * c",
    };
    static const struct expression_input inputs[] = {
        {"a", EXPRESSION_F32, 2, {40, 50}, {50, 1}},
        {"b", EXPRESSION_F32, 1, {50}, {1}},
        {"c", EXPRESSION_I8, 2, {40, 50}, {1, 40}},
    };
    struct expression_names names;
    struct expression_error error;
    const char *text = texts[choice % 4];
    EXPECT(expression_compile(text, strlen(text), inputs, 3, program, &names, &error) == KILN_OK);
}

/* The cost that it ought to say, so that a changed shape is not refused for that alone. */
static void cost_mend(struct expression_program *program) {
    program->cost = 0;
    for (unsigned i = 0; i < program->stages && i < EXPRESSION_STAGES; i++) {
        const struct expression_stage *stage = &program->stage[i];
        uint64_t elements = 1;
        for (int k = 0; k < stage->dims && k < EXPRESSION_DIMS; k++) {
            elements *= (uint64_t)stage->shape[k];
        }
        program->cost += elements * stage->instructions;
    }
}

/* Places are those of the parts that are in use, as if they stood together. */
static unsigned char *byte_at(struct expression_program *program, size_t place) {
    const struct {
        void *from;
        size_t size;
    } parts[] = {
        {program->instruction, program->instructions * sizeof program->instruction[0]},
        {program->stage, program->stages * sizeof program->stage[0]},
        {program->access, program->accesses * sizeof program->access[0]},
        {program->array, 12 * sizeof program->array[0]},
        {program, offsetof(struct expression_program, cost)},
    };
    size_t total = 0;
    for (size_t i = 0; i < 5; i++) {
        total += parts[i].size;
    }
    place %= total;
    size_t i = 0;
    for (; place >= parts[i].size; i++) {
        place -= parts[i].size;
    }
    return (unsigned char *)parts[i].from + place;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct expression_program program, changed;
    if (size == 0) {
        return 0;
    }
    program_base(data[0], &program);
    changed = program;
    for (size_t i = 1; i + 2 < size && i < 30; i += 3) {
        size_t place = (size_t)data[i] | (size_t)data[i + 1] << 8;
        unsigned char *like = byte_at(&program, place);
        *((unsigned char *)&changed + (like - (unsigned char *)&program)) = data[i + 2];
    }
    cost_mend(&changed);
    if (expression_validate(&changed) == NULL) {
        program_run(&changed);
    }
    return 0;
}
