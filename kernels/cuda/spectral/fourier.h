/*
 * fourier.h: passes of a complex Fourier transform in shared memory, for device code.
 *
 * Forward passes split frequencies (Gentleman and Sande 1966), backward ones undo them in reverse
 * order; every thread writes where it read, and what lies in between sees frequencies in the order
 * that the passes leave. Every 8th and 64th element is followed by a gap, which keeps the banks
 * apart at strides of powers of two.
 */
#ifndef KILN_KERNELS_CUDA_SPECTRAL_FOURIER_H
#define KILN_KERNELS_CUDA_SPECTRAL_FOURIER_H

#include <stdint.h>

#define INLINE static __device__ __forceinline__

/* One block's line. */
struct fourier {
    double2 *data;          /* shared memory */
    const double2 *twiddle; /* exp(-2πi j/size), j < size/2 */
    int size, thread, threads;
};

INLINE int slot(int i) {
    return i + (i >> 3) + (i >> 6);
}

INLINE double2 add(double2 a, double2 b) {
    return make_double2(a.x + b.x, a.y + b.y);
}

INLINE double2 subtract(double2 a, double2 b) {
    return make_double2(a.x - b.x, a.y - b.y);
}

INLINE double2 multiply(double2 a, double2 b) {
    return make_double2(fma(a.x, b.x, -(a.y * b.y)), fma(a.x, b.y, a.y * b.x));
}

INLINE double2 scale(double2 a, double by) {
    return make_double2(a.x * by, a.y * by);
}

/* a + b · by */
INLINE double2 mix(double2 a, double2 b, double by) {
    return make_double2(fma(b.x, by, a.x), fma(b.y, by, a.y));
}

template <bool BACK> INLINE double2 facing(double2 w) {
    return BACK ? make_double2(w.x, -w.y) : w;
}

/* a times -i, backward i */
template <bool BACK> INLINE double2 turn(double2 a) {
    return BACK ? make_double2(-a.y, a.x) : make_double2(a.y, -a.x);
}

template <bool BACK> INLINE void four(double2 &a, double2 &b, double2 &c, double2 &d) {
    double2 even = add(a, c), cross = subtract(a, c);
    double2 odd = add(b, d), side = turn<BACK>(subtract(b, d));
    a = add(even, odd);
    b = add(cross, side);
    c = subtract(even, odd);
    d = subtract(cross, side);
}

/* exp(-2πi/8), its cube */
template <bool BACK> INLINE double2 eighth(double2 a) {
    return scale(add(a, turn<BACK>(a)), 0.70710678118654752440);
}

template <bool BACK> INLINE double2 eighth_3(double2 a) {
    return scale(subtract(turn<BACK>(a), a), 0.70710678118654752440);
}

/* Transforms of R elements, in order. */
template <int R, bool BACK> struct butterfly;

template <bool BACK> struct butterfly<2, BACK> {
    static __device__ __forceinline__ void run(double2 (&a)[2]) {
        double2 sum = add(a[0], a[1]);
        a[1] = subtract(a[0], a[1]);
        a[0] = sum;
    }
};

template <bool BACK> struct butterfly<3, BACK> {
    static __device__ __forceinline__ void run(double2 (&a)[3]) {
        double2 sum = add(a[1], a[2]);
        double2 side = turn<BACK>(scale(subtract(a[1], a[2]), 0.86602540378443864676));
        double2 mid = mix(a[0], sum, -0.5);
        a[0] = add(a[0], sum);
        a[1] = add(mid, side);
        a[2] = subtract(mid, side);
    }
};

template <bool BACK> struct butterfly<4, BACK> {
    static __device__ __forceinline__ void run(double2 (&a)[4]) {
        four<BACK>(a[0], a[1], a[2], a[3]);
    }
};

template <bool BACK> struct butterfly<5, BACK> {
    static __device__ __forceinline__ void run(double2 (&a)[5]) {
        const double c1 = 0.30901699437494742410, c2 = -0.80901699437494742410;
        const double s1 = 0.95105651629515357212, s2 = 0.58778525229247312917;
        double2 p1 = add(a[1], a[4]), m1 = subtract(a[1], a[4]);
        double2 p2 = add(a[2], a[3]), m2 = subtract(a[2], a[3]);
        double2 r1 = mix(mix(a[0], p1, c1), p2, c2), r2 = mix(mix(a[0], p1, c2), p2, c1);
        double2 i1 = turn<BACK>(mix(scale(m1, s1), m2, s2));
        double2 i2 = turn<BACK>(mix(scale(m1, s2), m2, -s1));
        a[0] = add(a[0], add(p1, p2));
        a[1] = add(r1, i1);
        a[2] = add(r2, i2);
        a[3] = subtract(r2, i2);
        a[4] = subtract(r1, i1);
    }
};

template <bool BACK> struct butterfly<8, BACK> {
    static __device__ __forceinline__ void run(double2 (&a)[8]) {
        four<BACK>(a[0], a[2], a[4], a[6]);
        four<BACK>(a[1], a[3], a[5], a[7]);
        double2 odd[4] = {a[1], eighth<BACK>(a[3]), turn<BACK>(a[5]), eighth_3<BACK>(a[7])};
        double2 even[4] = {a[0], a[2], a[4], a[6]};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            a[i] = add(even[i], odd[i]);
            a[i + 4] = subtract(even[i], odd[i]);
        }
    }
};

template <bool BACK> struct butterfly<16, BACK> {
    static __device__ __forceinline__ void run(double2 (&a)[16]) {
        const double2 w1 =
            facing<BACK>(make_double2(0.92387953251128675613, -0.38268343236508977173));
        const double2 w3 =
            facing<BACK>(make_double2(0.38268343236508977173, -0.92387953251128675613));
#pragma unroll
        for (int i = 0; i < 4; i++) {
            four<BACK>(a[i], a[i + 4], a[i + 8], a[i + 12]);
        }
        a[5] = multiply(a[5], w1);
        a[6] = eighth<BACK>(a[6]);
        a[7] = multiply(a[7], w3);
        a[9] = eighth<BACK>(a[9]);
        a[10] = turn<BACK>(a[10]);
        a[11] = eighth_3<BACK>(a[11]);
        a[13] = multiply(a[13], w3);
        a[14] = eighth_3<BACK>(a[14]);
        a[15] = multiply(a[15], make_double2(-w1.x, -w1.y));
        double2 b[16];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            four<BACK>(a[4 * i], a[4 * i + 1], a[4 * i + 2], a[4 * i + 3]);
#pragma unroll
            for (int k = 0; k < 4; k++) {
                b[i + 4 * k] = a[4 * i + k];
            }
        }
#pragma unroll
        for (int i = 0; i < 16; i++) {
            a[i] = b[i];
        }
    }
};

/* Multiplies a[q] by w^q: two chains of powers. */
template <int R> INLINE void twist(double2 (&a)[R], double2 w) {
    double2 step = multiply(w, w), odd = w, even = step;
#pragma unroll
    for (int q = 1; q < R; q++) {
        if (q % 2) {
            a[q] = multiply(a[q], odd);
            odd = multiply(odd, step);
        } else {
            a[q] = multiply(a[q], even);
            even = multiply(even, step);
        }
    }
}

/* The pass of radix R over parts of `length` elements. */
template <int R, bool BACK> INLINE void radix_stage(const fourier &f, int length) {
    int stride = length / R, step = f.size / length;
#pragma unroll 1
    for (int i = f.thread; i < f.size / R; i += f.threads) {
        int part = i / stride, j = i - part * stride, base = part * length + j;
        double2 a[R], w = facing<BACK>(f.twiddle[j * step]);
#pragma unroll
        for (int q = 0; q < R; q++) {
            a[q] = f.data[slot(base + q * stride)];
        }
        if (BACK) {
            twist<R>(a, w);
        }
        butterfly<R, BACK>::run(a);
        if (!BACK) {
            twist<R>(a, w);
        }
#pragma unroll
        for (int q = 0; q < R; q++) {
            f.data[slot(base + q * stride)] = a[q];
        }
    }
    __syncthreads();
}

/* The last pass forward, the filter, the first pass backward; or MAKE: the filter itself. */
template <int R, bool MAKE> INLINE void middle(const fourier &f, double2 *filter) {
    int count = f.size / R;
#pragma unroll 1
    for (int i = f.thread; i < count; i += f.threads) {
        double2 a[R];
#pragma unroll
        for (int q = 0; q < R; q++) {
            a[q] = f.data[slot(i * R + q)];
        }
        butterfly<R, false>::run(a);
#pragma unroll
        for (int q = 0; q < R; q++) {
            if (MAKE) {
                filter[q * count + i] = a[q];
            } else {
                a[q] = multiply(a[q], filter[q * count + i]);
            }
        }
        if (!MAKE) {
            butterfly<R, true>::run(a);
#pragma unroll
            for (int q = 0; q < R; q++) {
                f.data[slot(i * R + q)] = a[q];
            }
        }
    }
    __syncthreads();
}

#define BY_RADIX(radix, call)                                                                      \
    switch (radix) {                                                                               \
    case 2:                                                                                        \
        call(2);                                                                                   \
        break;                                                                                     \
    case 3:                                                                                        \
        call(3);                                                                                   \
        break;                                                                                     \
    case 4:                                                                                        \
        call(4);                                                                                   \
        break;                                                                                     \
    case 5:                                                                                        \
        call(5);                                                                                   \
        break;                                                                                     \
    case 8:                                                                                        \
        call(8);                                                                                   \
        break;                                                                                     \
    default:                                                                                       \
        call(16);                                                                                  \
        break;                                                                                     \
    }

#endif
