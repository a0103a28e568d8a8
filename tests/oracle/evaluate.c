/*
 * evaluate.c: expressions over arrays from standard input, for tests and benchmarks in Python.
 *
 *   evaluate [THREADS]
 *
 * A request is a line "REPEAT SIZE ARRAYS", SIZE bytes of text, and for each array a line "NAME
 * TYPE DIMS n… stride…" (strides in elements) and its memory. The answer is "ok OUTPUTS COST STAGES
 * ns…" with the time of each of REPEAT more launches, and for each output a line "NAME TYPE DIMS
 * n…" and its bytes; or "error COLUMN TEXT". One after the other until the input ends.
 */
#include "compute/expression/expression.h"
#include "kernels/backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define REPEATS 1000

struct request {
    int repeat, size, arrays;
    char text[65536];
    char names[EXPRESSION_INPUTS + 1][80];
    struct expression_input inputs[EXPRESSION_INPUTS + 1];
    void *memory[EXPRESSION_INPUTS + 1];
};

static void must(bool condition, const char *what) {
    if (!condition) {
        fprintf(stderr, "evaluate: %s\n", what);
        exit(1);
    }
}

static int type_find(const char *name) {
    for (int type = 0; type < EXPRESSION_TYPE_COUNT; type++) {
        if (strcmp(name, expression_type_name((enum expression_type)type)) == 0) {
            return type;
        }
    }
    must(false, "no such type");
    return 0;
}

static void array_read(struct request *request, int number) {
    struct expression_input *input = &request->inputs[number];
    char type[32];
    int64_t elements = 1;
    must(scanf("%79s %31s %d", request->names[number], type, &input->dims) == 3, "an array");
    input->name = request->names[number];
    input->type = (enum expression_type)type_find(type);
    for (int i = 0; i < input->dims; i++) {
        must(scanf("%" SCNd64, &input->shape[i]) == 1, "a shape");
    }
    for (int i = 0; i < input->dims; i++) {
        must(scanf("%" SCNd64, &input->strides[i]) == 1, "a stride");
        elements += (input->shape[i] - 1) * (input->shape[i] > 1 ? input->strides[i] : 0);
    }
    for (int i = 0; i < input->dims; i++) {
        elements = input->shape[i] == 0 ? 0 : elements;
    }
    must(getchar() == '\n', "the end of a line");
    size_t size = (size_t)elements * expression_type_bytes(input->type);
    request->memory[number] = malloc(size + 1);
    must(request->memory[number] != NULL, "memory");
    must(fread(request->memory[number], 1, size, stdin) == size, "an array's bytes");
}

static bool request_read(struct request *request) {
    memset(request, 0, sizeof *request);
    if (scanf("%d %d %d", &request->repeat, &request->size, &request->arrays) != 3) {
        return false;
    }
    must(getchar() == '\n', "the end of a line");
    must(request->size < (int)sizeof request->text && request->arrays <= EXPRESSION_INPUTS + 1 &&
             request->repeat <= REPEATS,
         "a request's size");
    must(fread(request->text, 1, (size_t)request->size, stdin) == (size_t)request->size, "a text");
    for (int i = 0; i < request->arrays; i++) {
        array_read(request, i);
    }
    return true;
}

static uint64_t launch(struct stream *stream, const struct expression_args *args) {
    struct timespec from, to;
    struct timing timing = {0};
    must(cpu_backend.begin(stream, NULL) == KILN_OK, "begin");
    clock_gettime(CLOCK_MONOTONIC, &from);
    must(cpu_backend.launch(stream, KERNEL_EXPRESSION, args) == KILN_OK, "launch");
    must(cpu_backend.wait(stream) == KILN_OK, "wait");
    clock_gettime(CLOCK_MONOTONIC, &to);
    must(cpu_backend.finish(stream, &timing) == KILN_OK, "finish");
    return (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000u + (uint64_t)to.tv_nsec -
           (uint64_t)from.tv_nsec;
}

static void answer(struct stream *stream, const struct request *request,
                   const struct expression_program *program, const struct expression_names *names) {
    struct expression_args args = {.program = program};
    size_t sizes[EXPRESSION_OUTPUTS];
    for (int i = 0; i < request->arrays; i++) {
        args.inputs[i] = request->memory[i];
    }
    for (int i = 0; i < program->outputs; i++) {
        const struct expression_array *array = &program->array[program->inputs + i];
        sizes[i] = (size_t)array->elements * expression_type_bytes(array->type);
        args.outputs[i] = malloc(sizes[i] + 1);
        must(args.outputs[i] != NULL, "memory");
        memset(args.outputs[i], 0xa5, sizes[i] + 1);
    }
    launch(stream, &args);
    printf("ok %d %" PRIu64 " %d", program->outputs, program->cost, program->stages);
    for (int i = 0; i < request->repeat; i++) {
        printf(" %" PRIu64, launch(stream, &args));
    }
    printf("\n");
    for (int i = 0; i < program->outputs; i++) {
        const struct expression_array *array = &program->array[program->inputs + i];
        const unsigned char *bytes = args.outputs[i];
        must(bytes[sizes[i]] == 0xa5, "a write past the result");
        printf("%s %s %d", names->output[i], expression_type_name(array->type), array->dims);
        for (int k = 0; k < array->dims; k++) {
            printf(" %" PRId64, array->shape[k]);
        }
        printf("\n");
        fwrite(bytes, 1, sizes[i], stdout);
        free(args.outputs[i]);
    }
}

int main(int count, char **arguments) {
    static struct request request;
    static struct expression_program program;
    static struct expression_names names;
    struct expression_error error;
    struct device_options options = {.threads = count > 1 ? atoi(arguments[1]) : 2};
    struct device *device;
    struct stream *stream;
    char why[160];
    must(cpu_backend.open(0, &options, &device, why, sizeof why) == KILN_OK, "no device");
    must(cpu_backend.stream_create(device, &stream) == KILN_OK, "no stream");
    while (request_read(&request)) {
        if (expression_compile(request.text, (size_t)request.size, request.inputs,
                               (size_t)request.arrays, &program, &names, &error) == KILN_OK) {
            answer(stream, &request, &program, &names);
        } else {
            printf("error %zu %s\n", error.column, error.text);
        }
        fflush(stdout);
        for (int i = 0; i < request.arrays; i++) {
            free(request.memory[i]);
        }
    }
    cpu_backend.stream_destroy(stream);
    cpu_backend.close(device);
    return 0;
}
