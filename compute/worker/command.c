/*
 * command.c: the length of commands on their way: most kinds have one input or none.
 *
 * Threads: any. The front's own numbers come back, but what receives them trusts none.
 */
#include "compute/worker/command.h"

#include <string.h>

/* Bytes of a command of the kind with this number; none has fewer. */
static size_t stride_of(const struct command *command) {
    const struct job_type *type = job_type_at(command->type);
    size_t inputs = type != NULL ? job_type_inputs(type) : 0;
    return offsetof(struct command, inputs) + inputs * sizeof(struct input);
}

size_t commands_pack(struct command *commands, size_t count) {
    size_t stride = stride_of(commands);
    for (size_t i = 1; i < count; i++) {
        memmove((char *)commands + i * stride, &commands[i], stride);
    }
    return count * stride;
}

size_t commands_unpack(struct command *commands, size_t size) {
    size_t stride = size >= offsetof(struct command, inputs) ? stride_of(commands) : SIZE_MAX;
    size_t count = size / stride;
    if (count == 0 || count > GROUP_MAX || size % stride != 0) {
        return 0;
    }
    for (size_t i = count - 1; i > 0; i--) {
        memmove(&commands[i], (char *)commands + i * stride, stride);
    }
    return count;
}
