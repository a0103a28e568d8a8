/* fuzz_quantum.c: what a picture says of its samples: what is taken is sound, and is said again in
   the same words. */
#include "tests/fuzz/expect.h"

#include <math.h>

static bool same(const struct quantum *one, const struct quantum *other) {
    return one->offset == other->offset && one->scale == other->scale && one->bits == other->bits;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct quantum untouched = {1, 2, 3};
    struct quantum quantum = untouched, again = {0};
    char text[QUANTUM_MAX];
    char *copy = malloc(size + 1); /* so that a step too far is seen */
    EXPECT(copy);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    if (quantum_read(copy, size, &quantum)) {
        EXPECT(isfinite(quantum.offset) && isfinite(quantum.scale) && quantum.scale != 0);
        EXPECT(quantum.bits == 0 || quantum.bits == 8 || quantum.bits == 16);
        quantum_print(&quantum, text);
        EXPECT(strlen(text) < QUANTUM_MAX - 1);
        EXPECT(quantum_read(text, strlen(text), &again));
        EXPECT(same(&quantum, &again));
    } else {
        EXPECT(same(&quantum, &untouched));
    }
    free(copy);
    return 0;
}
