/*
 * expression.c: the kernel `expression` against an interpreter that goes element by element, in
 * int64_t wrapped by masks and in double rounded to float; and random programs made of random
 * texts.
 *
 * The interpreter knows the exact operations only. What functions are worth is the oracle's to say
 * (tests/oracle/test_expression_numpy.py).
 */
#include "compute/expression/expression.h"
#include "tests/kernelcheck/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 3000

/* A value of any type: reals in `real`, all others in `whole` (uint64 by its bits). */
struct cell {
    double real;
    int64_t whole;
};

struct reference {
    const struct expression_program *program;
    const void *input[EXPRESSION_INPUTS];
    unsigned char *memory[EXPRESSION_ARRAYS]; /* of outputs and temporaries */
};

static bool is_real(int type) {
    return type >= EXPRESSION_F16;
}

static double half_to(unsigned half) {
    int exponent = (int)(half >> 10 & 31);
    double size = exponent == 31  ? ((half & 1023) != 0 ? NAN : INFINITY)
                  : exponent == 0 ? ldexp((double)(half & 1023), -24)
                                  : ldexp((double)(1024 + (half & 1023)), exponent - 25);
    return (half & 0x8000) != 0 ? -size : size;
}

/* To nearest, ties to even, by the unit of the last place. */
static unsigned half_from(double value) {
    unsigned sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isnan(value)) {
        return 0x7e00;
    }
    if (size >= 65520) {
        return sign | 0x7c00;
    }
    int exponent = size < 0x1p-14 ? -14 : ilogb(size);
    double steps = rint(ldexp(size, 10 - exponent));
    return sign | (unsigned)((exponent + 14) * 1024 + (int)steps);
}

/* A whole number wrapped to a type. */
static int64_t wrap(int64_t whole, int type) {
    unsigned bits = 8 * expression_type_bytes(type);
    if (bits == 64) {
        return whole;
    }
    uint64_t low = (uint64_t)whole & ((UINT64_C(1) << bits) - 1);
    bool negative = type <= EXPRESSION_I64 && type != EXPRESSION_BOOL && (low >> (bits - 1)) != 0;
    return negative ? (int64_t)(low | ~((UINT64_C(1) << bits) - 1)) : (int64_t)low;
}

static struct cell cell_load(const void *from, int type, int64_t at) {
    const unsigned char *bytes = (const unsigned char *)from + at * expression_type_bytes(type);
    struct cell cell = {0, 0};
    float narrow;
    if (type == EXPRESSION_F64) {
        memcpy(&cell.real, bytes, 8);
    } else if (type == EXPRESSION_F32) {
        memcpy(&narrow, bytes, 4);
        cell.real = narrow;
    } else {
        memcpy(&cell.whole, bytes, expression_type_bytes(type));
        cell.whole = wrap(cell.whole, type);
        cell.real = type == EXPRESSION_F16 ? half_to((unsigned)cell.whole & 0xffff) : 0;
    }
    return cell;
}

static void cell_store(void *to, int type, int64_t at, struct cell cell) {
    unsigned char *bytes = (unsigned char *)to + at * expression_type_bytes(type);
    float narrow = (float)cell.real;
    unsigned half = half_from(cell.real);
    memcpy(bytes,
           type == EXPRESSION_F64   ? (const void *)&cell.real
           : type == EXPRESSION_F32 ? (const void *)&narrow
           : type == EXPRESSION_F16 ? (const void *)&half
                                    : (const void *)&cell.whole,
           expression_type_bytes(type));
}

/* A real rounded to its type: a sum, product, quotient or root of floats in double is rounded as if
   once. */
static struct cell real(double value, int type) {
    return (struct cell){type == EXPRESSION_F32 ? (double)(float)value : value, 0};
}

static struct cell truth(bool value) {
    return (struct cell){0, value};
}

static bool less(struct cell a, struct cell b, int type) {
    return is_real(type)            ? a.real < b.real
           : type == EXPRESSION_U64 ? (uint64_t)a.whole < (uint64_t)b.whole
                                    : a.whole < b.whole;
}

static struct cell divide_floor(struct cell a, struct cell b, int type, bool rest) {
    __int128 x = type == EXPRESSION_U64 ? (__int128)(uint64_t)a.whole : a.whole;
    __int128 y = type == EXPRESSION_U64 ? (__int128)(uint64_t)b.whole : b.whole;
    if (y == 0) {
        return (struct cell){0, 0};
    }
    __int128 quotient = x / y;
    if (quotient * y != x && (x < 0) != (y < 0)) {
        quotient--;
    }
    return (struct cell){0, wrap((int64_t)(rest ? x - quotient * y : quotient), type)};
}

static struct cell shift(struct cell a, struct cell b, int type, bool right) {
    uint64_t bits = 8 * expression_type_bytes(type), by = (uint64_t)b.whole;
    bool negative = type != EXPRESSION_U64 && a.whole < 0;
    if (by >= bits) {
        return (struct cell){0, right && negative ? -1 : 0};
    }
    return (struct cell){
        0,
        wrap(right ? (type == EXPRESSION_U64 ? (int64_t)((uint64_t)a.whole >> by) : a.whole >> by)
                   : (int64_t)((uint64_t)a.whole << by),
             type)};
}

static struct cell cast(struct cell a, int from, int type) {
    double value = !is_real(from) ? 0 : is_real(type) ? a.real : isnan(a.real) ? 0 : trunc(a.real);
    if (is_real(type)) {
        if (is_real(from)) {
            return type == EXPRESSION_F16 ? (struct cell){half_to(half_from(value)), 0}
                                          : real(value, type);
        }
        if (type == EXPRESSION_F32) { /* from an integer at once */
            return (struct cell){from == EXPRESSION_U64 ? (double)(float)(uint64_t)a.whole
                                                        : (double)(float)a.whole,
                                 0};
        }
        value = from == EXPRESSION_U64 ? (double)(uint64_t)a.whole : (double)a.whole;
        return (struct cell){type == EXPRESSION_F16 ? half_to(half_from(value)) : value, 0};
    }
    if (type == EXPRESSION_BOOL) {
        return truth(is_real(from) ? a.real != 0 : a.whole != 0);
    }
    if (!is_real(from)) {
        return (struct cell){0, wrap(a.whole, type)};
    }
    int bits = 8 * (int)expression_type_bytes(type);
    bool sign = type <= EXPRESSION_I64;
    double low = sign ? -ldexp(1, bits - 1) : 0, high = ldexp(1, sign ? bits - 1 : bits);
    uint64_t most = sign ? (UINT64_C(1) << (bits - 1)) - 1 : UINT64_MAX >> (64 - bits);
    return (struct cell){0, value >= high  ? (int64_t)most
                            : value <= low ? (sign ? (int64_t)(~UINT64_C(0) << (bits - 1)) : 0)
                            : type == EXPRESSION_U64 ? (int64_t)(uint64_t)value
                                                     : (int64_t)value};
}

static struct cell operate_real(int op, int type, struct cell a, struct cell b) {
    double x = a.real, y = b.real;
    switch (op) {
    case EXPRESSION_ADD:
        return real(x + y, type);
    case EXPRESSION_SUBTRACT:
        return real(x - y, type);
    case EXPRESSION_MULTIPLY:
        return real(x * y, type);
    case EXPRESSION_DIVIDE:
        return real(x / y, type);
    case EXPRESSION_SQRT:
        return real(sqrt(x), type);
    case EXPRESSION_NEGATE:
        return real(-x, type);
    case EXPRESSION_ABSOLUTE:
        return real(fabs(x), type);
    case EXPRESSION_FLOOR:
        return real(floor(x), type);
    case EXPRESSION_CEIL:
        return real(ceil(x), type);
    case EXPRESSION_RINT:
        return real(rint(x), type);
    case EXPRESSION_ISNAN:
        return truth(isnan(x));
    case EXPRESSION_MINIMUM:
        return isnan(x) || x < y ? a : b;
    case EXPRESSION_MAXIMUM:
        return isnan(x) || x > y ? a : b;
    default:
        return (struct cell){NAN, -1};
    }
}

static struct cell operate_whole(int op, int type, struct cell a, struct cell b) {
    uint64_t x = (uint64_t)a.whole, y = (uint64_t)b.whole;
    switch (op) {
    case EXPRESSION_ADD:
        return (struct cell){0, wrap((int64_t)(x + y), type)};
    case EXPRESSION_SUBTRACT:
        return (struct cell){0, wrap((int64_t)(x - y), type)};
    case EXPRESSION_MULTIPLY:
        return (struct cell){0, wrap((int64_t)(x * y), type)};
    case EXPRESSION_NEGATE:
        return (struct cell){0, wrap((int64_t)(0 - x), type)};
    case EXPRESSION_ABSOLUTE:
        return (struct cell){0, type != EXPRESSION_U64 && a.whole < 0 ? wrap((int64_t)(0 - x), type)
                                                                      : a.whole};
    case EXPRESSION_FLOOR_DIVIDE:
    case EXPRESSION_REMAINDER:
        return divide_floor(a, b, type, op == EXPRESSION_REMAINDER);
    case EXPRESSION_AND:
        return (struct cell){0, (int64_t)(x & y)};
    case EXPRESSION_OR:
        return (struct cell){0, (int64_t)(x | y)};
    case EXPRESSION_XOR:
        return (struct cell){0, (int64_t)(x ^ y)};
    case EXPRESSION_SHIFT_LEFT:
    case EXPRESSION_SHIFT_RIGHT:
        return shift(a, b, type, op == EXPRESSION_SHIFT_RIGHT);
    case EXPRESSION_INVERT:
        return type == EXPRESSION_BOOL ? truth(x == 0) : (struct cell){0, wrap((int64_t)~x, type)};
    case EXPRESSION_MINIMUM:
        return less(a, b, type) ? a : b;
    case EXPRESSION_MAXIMUM:
        return less(b, a, type) ? a : b;
    default:
        return (struct cell){NAN, -1};
    }
}

static struct cell operate(const struct expression_instruction *code, struct cell a, struct cell b,
                           struct cell c, int64_t place) {
    int type = code->type;
    switch (code->op) {
    case EXPRESSION_COPY:
        return a;
    case EXPRESSION_INDEX:
        return (struct cell){0, place};
    case EXPRESSION_CAST:
        return cast(a, code->from, type);
    case EXPRESSION_WHERE:
        return a.whole != 0 ? b : c;
    case EXPRESSION_EQUAL:
        return truth(is_real(type) ? a.real == b.real : a.whole == b.whole);
    case EXPRESSION_NOT_EQUAL:
        return truth(is_real(type) ? a.real != b.real : a.whole != b.whole);
    case EXPRESSION_LESS:
        return truth(less(a, b, type));
    case EXPRESSION_LESS_EQUAL:
        return truth(is_real(type) ? a.real <= b.real : !less(b, a, type));
    default:
        return is_real(type) ? operate_real(code->op, type, a, b)
                             : operate_whole(code->op, type, a, b);
    }
}

/* One of a stage's elements: all its slots, and where its accesses are. */
struct element {
    struct cell registers[EXPRESSION_REGISTERS];
    int64_t places[EXPRESSION_STAGE_ACCESSES];
};

static void element_place(const struct reference *reference, const struct expression_stage *stage,
                          int64_t number, struct element *element) {
    memset(element->places, 0, sizeof element->places);
    for (int i = stage->dims - 1; i >= 0; i--) {
        for (int k = 0; k < stage->accesses; k++) {
            element->places[k] += number % stage->shape[i] *
                                  reference->program->access[stage->first_access + k].strides[i];
        }
        number /= stage->shape[i];
    }
}

static void *array_memory(const struct reference *reference, unsigned array) {
    return array < reference->program->inputs ? (void *)(uintptr_t)reference->input[array]
                                              : reference->memory[array];
}

static struct cell slot_load(const struct reference *reference,
                             const struct expression_stage *stage, const struct element *element,
                             unsigned slot) {
    const struct expression_program *program = reference->program;
    if (slot < EXPRESSION_REGISTERS) {
        return element->registers[slot];
    }
    if (slot >= EXPRESSION_CONSTANT) {
        slot -= EXPRESSION_CONSTANT;
        return cell_load(&program->constant[slot], program->constant_type[slot], 0);
    }
    slot -= EXPRESSION_ACCESS;
    unsigned array = program->access[stage->first_access + slot].array;
    return cell_load(array_memory(reference, array), program->array[array].type,
                     element->places[slot]);
}

/* All instructions up to the reductions, for element `number`. */
static void element_run(const struct reference *reference, const struct expression_stage *stage,
                        int64_t number, struct element *element) {
    const struct expression_program *program = reference->program;
    element_place(reference, stage, number, element);
    for (int i = 0; i < stage->instructions; i++) {
        const struct expression_instruction *code =
            &program->instruction[stage->first_instruction + i];
        struct cell operands[3] = {{0, 0}};
        const uint8_t slots[3] = {code->a, code->b, code->c};
        if (code->op >= EXPRESSION_REDUCTION_FIRST) {
            return;
        }
        for (int k = 0; k < expression_op_row(code->op)->operands; k++) {
            operands[k] = slot_load(reference, stage, element, slots[k]);
        }
        struct cell result = operate(code, operands[0], operands[1], operands[2], number);
        if (code->to < EXPRESSION_REGISTERS) {
            element->registers[code->to] = result;
        } else {
            unsigned slot = code->to - EXPRESSION_ACCESS;
            unsigned array = program->access[stage->first_access + slot].array;
            cell_store(array_memory(reference, array), program->array[array].type,
                       element->places[slot], result);
        }
    }
}

static struct cell join(int op, int type, struct cell a, struct cell b) {
    int by = op == EXPRESSION_SUM        ? EXPRESSION_ADD
             : op == EXPRESSION_PRODUCT  ? EXPRESSION_MULTIPLY
             : op == EXPRESSION_LEAST    ? EXPRESSION_MINIMUM
             : op == EXPRESSION_GREATEST ? EXPRESSION_MAXIMUM
             : op == EXPRESSION_ANY      ? EXPRESSION_OR
                                         : EXPRESSION_AND;
    return is_real(type) ? operate_real(by, type, a, b) : operate_whole(by, type, a, b);
}

static struct cell identity(int op, int type) {
    uint64_t bits = 8 * expression_type_bytes(type);
    bool sign = type <= EXPRESSION_I64;
    int64_t most =
        sign ? (int64_t)(UINT64_MAX >> (65 - bits)) : (int64_t)(UINT64_MAX >> (64 - bits));
    switch (op) {
    case EXPRESSION_SUM:
        return (struct cell){-0.0, 0};
    case EXPRESSION_PRODUCT:
    case EXPRESSION_ALL:
        return (struct cell){1, 1};
    case EXPRESSION_LEAST:
        return (struct cell){INFINITY, most};
    case EXPRESSION_GREATEST:
        return (struct cell){-INFINITY, sign ? -most - 1 : 0};
    default:
        return (struct cell){0, 0};
    }
}

/* The tree over [first, first + count) of `cells`, in chunks: recursion by halves that are powers
   of two of chunks is the same as joining neighbours. */
static struct cell tree(int op, int type, const struct cell *cells, int64_t count) {
    if (count > EXPRESSION_CHUNK) {
        int64_t left = EXPRESSION_CHUNK;
        while (left * 2 < count) {
            left *= 2;
        }
        return join(op, type, tree(op, type, cells, left),
                    tree(op, type, cells + left, count - left));
    }
    struct cell lanes[EXPRESSION_LANES];
    for (int i = 0; i < EXPRESSION_LANES; i++) {
        lanes[i] = identity(op, type);
        for (int64_t k = i; k < count; k += EXPRESSION_LANES) {
            lanes[i] = join(op, type, lanes[i], cells[k]);
        }
    }
    for (int half = EXPRESSION_LANES / 2; half > 0; half /= 2) {
        for (int i = 0; i < half; i++) {
            lanes[i] = join(op, type, lanes[i], lanes[i + half]);
        }
    }
    return lanes[0];
}

static struct cell first_of(int op, int type, const struct cell *cells, int64_t count) {
    int64_t best = 0;
    for (int64_t i = 1; i < count; i++) {
        bool nan = is_real(type) && isnan(cells[best].real);
        bool better = op == EXPRESSION_ARGMIN ? less(cells[i], cells[best], type)
                                              : less(cells[best], cells[i], type);
        best = !nan && (better || (is_real(type) && isnan(cells[i].real))) ? i : best;
    }
    return (struct cell){0, best};
}

static void stage_reduce(const struct check *check, const struct reference *reference,
                         const struct expression_stage *stage, int64_t kept, int64_t reduced) {
    const struct expression_program *program = reference->program;
    struct cell *cells =
        check_alloc((struct check *)(uintptr_t)check, (size_t)reduced * sizeof *cells);
    for (int i = 0; i < stage->instructions; i++) {
        const struct expression_instruction *code =
            &program->instruction[stage->first_instruction + i];
        if (code->op < EXPRESSION_REDUCTION_FIRST) {
            continue;
        }
        unsigned array = program->access[stage->first_access + code->to - EXPRESSION_ACCESS].array;
        for (int64_t row = 0; row < kept; row++) {
            struct element element;
            for (int64_t k = 0; k < reduced; k++) {
                element_run(reference, stage, row * reduced + k, &element);
                cells[k] = slot_load(reference, stage, &element, code->a);
            }
            bool place = code->op == EXPRESSION_ARGMIN || code->op == EXPRESSION_ARGMAX;
            struct cell result = place ? first_of(code->op, code->type, cells, reduced)
                                       : tree(code->op, code->type, cells, reduced);
            cell_store(array_memory(reference, array), program->array[array].type, row, result);
        }
    }
}

static void reference_run(struct check *check, struct reference *reference) {
    const struct expression_program *program = reference->program;
    size_t arrays = (size_t)program->inputs + program->outputs + program->temporaries;
    for (size_t i = program->inputs; i < arrays; i++) {
        size_t bytes = expression_type_bytes(program->array[i].type);
        reference->memory[i] = check_alloc(check, (size_t)program->array[i].elements * bytes);
    }
    for (int i = 0; i < program->stages; i++) {
        const struct expression_stage *stage = &program->stage[i];
        const struct expression_instruction *last =
            &program->instruction[stage->first_instruction + stage->instructions - 1];
        int64_t kept = 1, reduced = 1;
        for (int k = 0; k < stage->dims; k++) {
            *(k < stage->kept ? &kept : &reduced) *= stage->shape[k];
        }
        if (last->op >= EXPRESSION_REDUCTION_FIRST) {
            stage_reduce(check, reference, stage, kept, reduced);
        } else {
            struct element element;
            for (int64_t k = 0; k < kept; k++) {
                element_run(reference, stage, k, &element);
            }
        }
    }
}

/* Random arrays and texts. */

static const struct {
    int dims;
    int64_t shape[3], strides[3];
} layouts[] = {
    {2, {60, 70}, {70, 1}},
    {2, {60, 70}, {1, 60}},
    {2, {60, 70}, {210, 3}},
    {1, {70}, {1}},
    {2, {60, 1}, {1, 1}},
    {0, {0}, {0}},
    {3, {2, 60, 70}, {4200, 1, 60}},
    {3, {2, 1, 70}, {70, 70, 1}},
    {1, {1}, {5}},
    {2, {60, 70}, {0, 1}},
};

static void input_make(struct check *check, struct expression_input *input, size_t *elements) {
    size_t layout = (size_t)check_pick(check, sizeof layouts / sizeof layouts[0]);
    *elements = 1;
    input->type = (enum expression_type)check_pick(check, EXPRESSION_TYPE_COUNT);
    input->dims = layouts[layout].dims;
    for (int i = 0; i < input->dims; i++) {
        input->shape[i] = layouts[layout].shape[i];
        input->strides[i] = layouts[layout].strides[i];
        *elements += (size_t)((input->shape[i] - 1) * input->strides[i]);
    }
}

/* Small whole numbers mostly, so that comparisons and divisions are of all sorts; any bits else. */
static void input_fill(struct check *check, const struct expression_input *input, void *memory,
                       size_t elements) {
    for (size_t i = 0; i < elements; i++) {
        uint64_t bits = check_random(check);
        struct cell cell = {.real = (double)(int64_t)(bits % 41) / 4 - 5,
                            .whole =
                                (int64_t)(bits % 41) - (input->type <= EXPRESSION_I64 ? 20 : 0)};
        if (bits >> 60 == 0) { /* NaN are of one payload */
            cell.real = bits % 3 == 0 ? (double)NAN : bits % 3 == 1 ? INFINITY : 1e30 * cell.real;
            cell.whole = (int64_t)check_random(check);
        }
        cell.whole =
            input->type == EXPRESSION_BOOL ? cell.whole & 3 : wrap(cell.whole, input->type);
        cell_store(memory, input->type, (int64_t)i, cell);
    }
}

static size_t text_make(struct check *check, char *text, size_t room, int depth) {
    static const char *const leaves[] = {"a", "b",   "c",    "a", "b",       "c",
                                         "3", "0.5", "True", "1", "index(0)"};
    static const char *const signs[] = {"+", "-", "*",  "/",  "//", "%",  "&", "|",
                                        "^", "<", "<=", "==", "!=", "<<", ">>"};
    static const char *const calls[] = {"abs",   "floor", "rint",    "isnan",   "sqrt",
                                        "int16", "uint8", "float16", "float32", "float64",
                                        "int64", "bool",  "-",       "not "};
    static const char *const sums[] = {"sum", "prod", "min",    "max",
                                       "any", "all",  "argmin", "argmax"};
    static const char *const axes[] = {"", ", axis=0", ", axis=-1", ", axis=0, keepdims=True",
                                       ", keepdims=True"};
    static const char *const twos[] = {"minimum", "maximum"};
#define PICK(list) list[check_pick(check, sizeof(list) / sizeof(list)[0])]
    char one[TEXT_MAX] = "", other[TEXT_MAX] = "", third[TEXT_MAX] = "";
    int kind = depth == 0 ? 0 : 1 + check_pick(check, 20);
    if (kind > 0) {
        text_make(check, one, sizeof one, depth - 1);
        text_make(check, other, sizeof other, depth - 1);
    }
    if (kind == 0) {
        return (size_t)snprintf(text, room, "%s", PICK(leaves));
    }
    if (kind <= 11) {
        return (size_t)snprintf(text, room, "(%s %s %s)", one, PICK(signs), other);
    }
    if (kind <= 15) {
        return (size_t)snprintf(text, room, "%s(%s)", PICK(calls), one);
    }
    if (kind == 16) {
        return (size_t)snprintf(text, room, "%s(%s, %s)", PICK(twos), one, other);
    }
    if (kind <= 18) {
        text_make(check, third, sizeof third, depth - 1);
        return (size_t)snprintf(text, room, "where(%s, %s, %s)", one, other, third);
    }
    return (size_t)snprintf(text, room, "%s(%s%s)", PICK(sums), one, PICK(axes));
}

/* Whether the interpreter has all that a program does: not // and % of reals. */
static bool program_known(const struct expression_program *program) {
    for (int i = 0; i < program->instructions; i++) {
        const struct expression_instruction *code = &program->instruction[i];
        bool divides = code->op == EXPRESSION_FLOOR_DIVIDE || code->op == EXPRESSION_REMAINDER;
        if (divides && is_real(code->type)) {
            return false;
        }
    }
    return true;
}

static void compare(struct check *check, const struct reference *reference) {
    const struct expression_program *program = reference->program;
    for (int i = 0; i < program->outputs; i++) {
        const struct expression_array *array = &program->array[program->inputs + i];
        const void *wanted = reference->memory[program->inputs + i];
        const void *got = check_result(check, i);
        for (int64_t k = 0; k < array->elements; k++) {
            struct cell a = cell_load(got, array->type, k), b = cell_load(wanted, array->type, k);
            bool same = is_real(array->type)
                            ? (isnan(a.real) && isnan(b.real)) ||
                                  (a.real == b.real && signbit(a.real) == signbit(b.real))
                            : a.whole == b.whole;
            if (!same) {
                check_fail(check, "output %d, element %lld: %.17g, %lld instead of %.17g, %lld", i,
                           (long long)k, a.real, (long long)a.whole, b.real, (long long)b.whole);
                return;
            }
        }
    }
}

static void run_case(struct check *check, const char *text) {
    static struct expression_program program;
    struct expression_input inputs[3] = {{.name = "a"}, {.name = "b"}, {.name = "c"}};
    struct reference reference = {.program = &program};
    struct expression_args args = {.program = &program};
    struct expression_names names;
    struct expression_error error;
    size_t elements[3];
    for (int i = 0; i < 3; i++) {
        input_make(check, &inputs[i], &elements[i]);
    }
    if (expression_compile(text, strlen(text), inputs, 3, &program, &names, &error) != KILN_OK ||
        !program_known(&program)) {
        return; /* types or shapes that do not go together */
    }
    check_begin(check, "%.180s of %s, %s, %s", text, expression_type_name(inputs[0].type),
                expression_type_name(inputs[1].type), expression_type_name(inputs[2].type));
    for (int i = 0; i < 3; i++) {
        size_t bytes = elements[i] * expression_type_bytes(inputs[i].type);
        void *memory = check_alloc(check, bytes);
        input_fill(check, &inputs[i], memory, elements[i]);
        reference.input[i] = memory;
        args.inputs[i] = check_input(check, memory, bytes);
    }
    for (int i = 0; i < program.outputs; i++) {
        const struct expression_array *array = &program.array[program.inputs + i];
        args.outputs[i] =
            check_output(check, (size_t)array->elements * expression_type_bytes(array->type));
    }
    if (check_launch(check, KERNEL_EXPRESSION, &args)) {
        reference_run(check, &reference);
        compare(check, &reference);
    }
    check_end(check);
}

static void run(struct check *check) {
    static const char *const texts[] = {
        "a + b",
        "a * 2 - b / 3",
        "y = a < b; z = where(y, a, b); w = sum(z)",
        "sum(a)",
        "sum(a, axis=0)",
        "sum(a, axis=-1)",
        "max(a + 0.5)",
        "m = mean(a); d = a - m",
        "a = a + 1; b = sum(a, axis=0)",
        "index(0) * 3",
        "argmax(a)",
        "any(a > 3, axis=0)",
    };
    if ((check->backend->kernels & KERNEL_BIT(EXPRESSION)) == 0) {
        return;
    }
    check_group(check, "programs");
    for (int i = 0; i < (check->quick ? 24 : 240); i++) {
        run_case(check, texts[i % 12]);
    }
    check_group_end(check);
    check_group(check, "random programs");
    for (int i = 0; i < (check->quick ? 40 : 1500); i++) {
        char text[TEXT_MAX];
        text_make(check, text, sizeof text, 1 + check_pick(check, 4));
        run_case(check, text);
    }
    check_group_end(check);
}

static void bench(struct check *check) {
    static struct expression_program program;
    static const char *const texts[] = {"a + 1", "2*a + 3*b", "(a*b/sqrt(a**2 + b**2) + 0.5) * c",
                                        "exp(a)", "sum(a)"};
    if ((check->backend->kernels & KERNEL_BIT(EXPRESSION)) == 0) {
        return;
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const int64_t n = 1 << 24;
        struct expression_input inputs[3] = {{"a", EXPRESSION_F32, 1, {n}, {1}},
                                             {"b", EXPRESSION_F32, 1, {n}, {1}},
                                             {"c", EXPRESSION_F32, 1, {n}, {1}}};
        struct expression_args args = {.program = &program};
        struct expression_names names;
        struct expression_error error;
        if (expression_compile(texts[i], strlen(texts[i]), inputs, 3, &program, &names, &error) !=
            KILN_OK) {
            continue;
        }
        check_begin(check, "bench");
        for (int k = 0; k < 3; k++) {
            args.inputs[k] = check_input(check, check_alloc(check, (size_t)n * 4), (size_t)n * 4);
        }
        args.outputs[0] = check_output(check, (size_t)program.array[3].elements * 4);
        double ms = check_bench(check, KERNEL_EXPRESSION, &args);
        printf("expression %-36s 2^24 floats %10.3f ms\n", texts[i], ms);
        check_end(check);
    }
}

const struct kernel_check expression_check = {.name = "expression", .run = run, .bench = bench};
