// fault.cu: kernels that break a device or never end (fault.h). One block of 32 threads each.
//   base   memory of the job, 256-byte aligned
//   stop   the word that is not 0 once the job is cancelled

extern "C" __global__ void fault_store(unsigned *base, const volatile unsigned *stop) {
    *(volatile unsigned *)(base + (1ull << 40) + threadIdx.x) = *stop;
}

extern "C" __global__ void fault_trap(unsigned *base, const volatile unsigned *stop) {
    base[threadIdx.x] = *stop;
    asm volatile("trap;");
}

extern "C" __global__ void fault_misaligned(unsigned *base, const volatile unsigned *stop) {
    *(volatile unsigned *)((char *)base + 1) = *stop;
}

// No value is 1 and 2 at a time, but the compiler does not know that of a volatile word.
extern "C" __global__ void fault_spin(unsigned *base, const volatile unsigned *stop) {
    volatile unsigned *word = base;
    *word = 0;
    while (*word != 1) {
        (void)stop;
    }
}

extern "C" __global__ void fault_polite(unsigned *base, const volatile unsigned *stop) {
    unsigned turns = 0;
    while (*stop == 0) {
        turns++;
    }
    base[threadIdx.x] = turns;
}
