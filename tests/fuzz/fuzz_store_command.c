/* fuzz_store_command.c: packets to the store and from it: what is taken names nothing outside of
   the arena and comes back the same when it is packed and read again. The first byte chooses. */
#include "compute/store/command.h"
#include "compute/store/record.h"
#include "tests/fuzz/expect.h"

#define ARENA ((size_t)65536)

static uint8_t memory[ARENA];
static const struct store_arena arena = {memory, ARENA};

static void inside(const struct store_bytes *bytes) {
    const uint8_t *data = bytes->data;
    if (bytes->size > 0) {
        EXPECT(data >= memory && data - memory <= (ptrdiff_t)(ARENA - bytes->size));
    }
}

static void command_check(const uint8_t *packet, size_t size) {
    static struct store_command command, again;
    static uint8_t one[STORE_PACKET_MAX], other[STORE_PACKET_MAX];
    struct pack first = {.data = one, .capacity = sizeof one};
    struct pack second = {.data = other, .capacity = sizeof other};
    if (!store_command_unpack(packet, size, &arena, &command)) {
        return;
    }
    EXPECT(command.task >= TASK_ACCEPT && command.task < TASK_COUNT);
    inside(&command.lines);
    inside(&command.input);
    inside(&command.change.result);
    EXPECT(command.lines.size <= STORE_LINES_MAX);
    EXPECT(store_command_pack(&first, &command, &arena));
    EXPECT(store_command_unpack(one, first.size, &arena, &again));
    EXPECT(store_command_pack(&second, &again, &arena));
    EXPECT(first.size == second.size && memcmp(one, other, first.size) == 0);
}

static void lines_check(const uint8_t *lines, size_t size) {
    static struct store_job jobs[64];
    static struct store_bytes inputs[64];
    struct store_accept accept = {.count = size > 0 ? lines[0] % 64 + 1 : 1};
    if (size > 0 && store_lines_unpack(lines + 1, size - 1, &arena, &accept, jobs, inputs)) {
        for (size_t i = 0; i < accept.count; i++) {
            EXPECT(strlen(jobs[i].params) <= STORE_PARAMS_MAX && record_valid(&jobs[i]));
            inside(&inputs[i]);
        }
    }
}

static void answer_check(const uint8_t *packet, size_t size) {
    static struct store_answer answer;
    struct store_job job;
    struct store_event event;
    struct store_delivery delivery;
    struct store_calibration rate;
    static char line[6 * (STORE_PARAMS_MAX + STORE_OUTCOME_MAX) + 16384];
    struct text text;
    int64_t rows = 0;
    if (!store_answer_unpack(packet, size, &answer)) {
        return;
    }
    EXPECT(answer.content.fd == -1 && answer.count <= STORE_PAGE_MAX);
    while (answer.task == TASK_LIST && store_answer_job(&answer, &job)) {
        text_init(&text, line, sizeof line);
        record_print(&text, &job);
        EXPECT(!text.full);
        rows++;
    }
    while (answer.task == TASK_EVENTS && store_answer_event(&answer, &event)) {
        EXPECT(event.kind < STORE_EVENT_KINDS && strlen(event.owner) <= STORE_NAME_MAX);
        rows++;
    }
    while (answer.task == TASK_DELIVERIES && store_answer_delivery(&answer, &delivery)) {
        rows++;
    }
    while (answer.task == TASK_CALIBRATIONS && store_answer_calibration(&answer, &rate)) {
        rows++;
    }
    EXPECT(rows <= STORE_PAGE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) {
        return 0;
    }
    uint8_t *copy = malloc(size); /* so that a step too far is seen */
    EXPECT(copy != NULL);
    memcpy(copy, data + 1, size - 1);
    if (data[0] % 3 == 0) {
        command_check(copy, size - 1);
    } else if (data[0] % 3 == 1) {
        answer_check(copy, size - 1);
    } else {
        lines_check(copy, size - 1);
    }
    free(copy);
    return 0;
}
