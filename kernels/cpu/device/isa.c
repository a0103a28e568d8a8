/*
 * isa.c: asks the processor once, when the device is opened.
 */
#include "kernels/cpu/device/isa.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[ISA_COUNT] = {
#define X(name) [ISA_##name] = #name,
    KILN_CPU_ISAS(X)
#undef X
};

static bool machine_has(enum isa isa) {
    if (isa == ISA_baseline) {
        return true;
    }
#ifdef KILN_CPU_X86
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (isa == ISA_avx2) {
        return avx2;
    }
    if (isa == ISA_avx512) {
        return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    }
#endif
    return false;
}

enum isa isa_choose(void) {
    const char *wanted = getenv("KILN_CPU_ISA");
    enum isa best = ISA_baseline;
    for (int isa = 0; isa < ISA_COUNT; isa++) {
        if (!machine_has((enum isa)isa)) {
            continue;
        }
        best = (enum isa)isa;
        if (wanted != NULL && strcmp(wanted, names[isa]) == 0) {
            break;
        }
    }
    return best;
}

const char *isa_name(enum isa isa) {
    return names[isa];
}
