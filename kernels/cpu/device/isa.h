/*
 * isa.h: the instruction sets that the inner files are compiled for, and the choice among them.
 *
 * Every inner file exports one constant table of functions, named after the instruction set and
 * the element type (SIMD_NAME in simd.h makes the name). A kernel's outer file lists the tables
 * by `enum isa` and takes the one of its stream's device.
 *
 * Threads: constant after the device is opened.
 */
#ifndef KILN_KERNELS_CPU_DEVICE_ISA_H
#define KILN_KERNELS_CPU_DEVICE_ISA_H

#ifdef KILN_CPU_X86
#define KILN_CPU_ISAS(X) X(baseline) X(avx2) X(avx512)
#else
#define KILN_CPU_ISAS(X) X(baseline)
#endif

enum isa {
#define X(name) ISA_##name,
    KILN_CPU_ISAS(X)
#undef X
        ISA_COUNT
};

/** The widest set that this machine has; the environment variable KILN_CPU_ISA may name a lower
    one (a name that is unknown or that the machine lacks is passed over). */
enum isa isa_choose(void);
/** "avx512" */
const char *isa_name(enum isa isa);

#endif
