/* fuzz_expression.c: any text over arrays that the first byte chooses: refused with a reason, or a
   sound program, which runs. */
#include "tests/fuzz/expressions.h"

static const struct expression_input sets[][4] = {
    {{"a", EXPRESSION_F32, 2, {3, 4}, {4, 1}},
     {"b", EXPRESSION_F64, 1, {4}, {1}},
     {"c", EXPRESSION_I8, 2, {3, 1}, {1, 1}},
     {"x", EXPRESSION_BOOL, 0, {0}, {0}}},
    {{"a", EXPRESSION_U64, 3, {5, 1, 7}, {7, 99, 1}},
     {"b", EXPRESSION_I64, 2, {6, 7}, {1, 6}},
     {"c", EXPRESSION_F16, 1, {7}, {3}},
     {"x", EXPRESSION_U8, 3, {5, 6, 7}, {42, 7, 1}}},
    {{"a", EXPRESSION_F32, 1, {5000}, {1}},
     {"b", EXPRESSION_I16, 2, {2, 5000}, {0, 1}},
     {"c", EXPRESSION_F32, 2, {0, 5000}, {1, 1}},
     {"x", EXPRESSION_F64, 8, {1, 2, 1, 2, 1, 2, 1, 2}, {9, 8, 0, 4, 0, 2, 0, 1}}},
    {{"a", EXPRESSION_U32, 2, {70, 90}, {90, 1}},
     {"b", EXPRESSION_F32, 2, {70, 1}, {1, 1}},
     {"c", EXPRESSION_U16, 2, {70, 90}, {1, 70}},
     {"x", EXPRESSION_I32, 1, {1}, {1}}},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct expression_program program;
    struct expression_names names;
    struct expression_error error;
    if (size == 0) {
        return 0;
    }
    char *text = malloc(size); /* so that a step too far is seen */
    EXPECT(text != NULL);
    memcpy(text, data + 1, size - 1);
    const struct expression_input *inputs = sets[data[0] % 4];
    enum kiln_status status =
        expression_compile(text, size - 1, inputs, 4, &program, &names, &error);
    free(text);
    if (status != KILN_OK) {
        EXPECT(status == KILN_INVALID && why_good(error.text, sizeof error.text));
        EXPECT(error.column <= size);
        return 0;
    }
    EXPECT(program.outputs >= 1 && expression_validate(&program) == NULL);
    for (int i = 0; i < program.outputs; i++) {
        EXPECT(why_good(names.output[i], sizeof names.output[i]));
    }
    program_run(&program);
    return 0;
}
