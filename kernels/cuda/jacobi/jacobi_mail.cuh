/*
 * jacobi_mail.cuh: cells that travel between blocks, as words of 32 bits beside a tag of 32 bits.
 *
 * A reader sees by the word itself whether it is the one it waits for: no fence, flag or barrier is
 * between writer and reader.
 */
#ifndef KILN_CUDA_JACOBI_MAIL_CUH
#define KILN_CUDA_JACOBI_MAIL_CUH

#include "kernels/cuda/jacobi/jacobi_tile.cuh"

static __device__ __forceinline__ unsigned long long load_acquire(const unsigned long long *word) {
    unsigned long long value;
#ifdef __CUDA_ARCH__
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
#else
    value = *(const volatile unsigned long long *)word;
#endif
    return value;
}

/* A word of a row of cells, and a row of words. */
INLINE unsigned word_get(const float (&cells)[ACROSS], int word) {
    return (unsigned)__float_as_int(cells[word]);
}
INLINE unsigned word_get(const double (&cells)[ACROSS], int word) {
    return (unsigned)(word & 1 ? __double2hiint(cells[word / 2]) : __double2loint(cells[word / 2]));
}
INLINE void cells_of(const unsigned long long (&words)[ACROSS], float (&cells)[ACROSS]) {
#pragma unroll
    for (int c = 0; c < ACROSS; c++) {
        cells[c] = __int_as_float((int)(unsigned)words[c]);
    }
}
INLINE void cells_of(const unsigned long long (&words)[2 * ACROSS], double (&cells)[ACROSS]) {
#pragma unroll
    for (int c = 0; c < ACROSS; c++) {
        cells[c] = __hiloint2double((int)(unsigned)words[2 * c + 1], (int)(unsigned)words[2 * c]);
    }
}

/* Words of 32 bits, each with its tag in the upper half. */
template <typename T> struct mail {
    static constexpr int words = ACROSS * (int)sizeof(T) / 4;
    unsigned long long word[words];
};

template <typename T> INLINE mail<T> mail_of(const T (&cells)[ACROSS], unsigned tag) {
    mail<T> out;
#pragma unroll
    for (int w = 0; w < mail<T>::words; w++) {
        out.word[w] = (unsigned long long)tag << 32 | word_get(cells, w);
    }
    return out;
}

/* Pairs of words lie `step` apart, so that neighbouring threads' are side by side. */
template <typename T>
INLINE void mail_send(unsigned long long *to, int64_t step, const mail<T> &mail) {
#pragma unroll
    for (int w = 0; w < mail.words; w += 2, to += step) {
#ifdef __CUDA_ARCH__
        asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to),
                     "l"(mail.word[w]), "l"(mail.word[w + 1])
                     : "memory");
#else
        *(volatile unsigned long long *)to = mail.word[w];
        *(volatile unsigned long long *)(to + 1) = mail.word[w + 1];
#endif
    }
}

/* Reads again what has not come. */
template <typename T>
INLINE void mail_receive(const unsigned long long *from, int64_t step, bool wanted, mail<T> &in) {
#pragma unroll
    for (int w = 0; w < in.words; w += 2, from += step) {
#ifdef __CUDA_ARCH__
        asm volatile("{ .reg .pred p; setp.ne.u32 p, %3, 0;\n"
                     "@p ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2]; }"
                     : "+l"(in.word[w]), "+l"(in.word[w + 1])
                     : "l"(from), "r"((int)wanted)
                     : "memory");
#else
        in.word[w] = wanted ? load_acquire(from) : in.word[w];
        in.word[w + 1] = wanted ? load_acquire(from + 1) : in.word[w + 1];
#endif
    }
}

template <typename T> INLINE bool mail_missing(const mail<T> &in, unsigned tag) {
    unsigned wrong = 0;
#pragma unroll
    for (int w = 0; w < in.words; w++) {
        wrong |= (unsigned)(in.word[w] >> 32) ^ tag;
    }
    return wrong != 0;
}

#endif
