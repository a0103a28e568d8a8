/*
 * fft_simd.c: plans and passes of the batched Fourier transform.
 *
 * A pass of radix r reads r elements a stride apart, combines them, applies the twiddle factors and
 * writes them side by side (Stockham: the output is in order after the last pass, no reversal). The
 * two buffers take turns. Lanes are innermost everywhere and become vector operations.
 *
 * Threads: any.
 */
#include "kernels/cpu/spectral/fft_simd.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PASSES_MAX 40
#define RADIX_MAX  5
#define INLINE     static inline __attribute__((always_inline))

struct twiddle {
    double re, im;
};

struct pass {
    unsigned radix;
    size_t groups;            /* butterflies of different twiddles */
    size_t stride;            /* butterflies of equal twiddles */
    struct twiddle *twiddles; /* groups × (radix - 1) */
};

struct fft {
    size_t length;
    unsigned passes;
    struct pass pass[PASSES_MAX];
    /* Bluestein: chirp of `length`, its transformed conjugate of the inner length; else NULL */
    struct fft *inner;
    struct twiddle *chirp, *filter;
};

INLINE struct fft_element add(struct fft_element a, struct fft_element b) {
    return (struct fft_element){a.re + b.re, a.im + b.im};
}

INLINE struct fft_element subtract(struct fft_element a, struct fft_element b) {
    return (struct fft_element){a.re - b.re, a.im - b.im};
}

/* a times -i */
INLINE struct fft_element turn(struct fft_element a) {
    return (struct fft_element){a.im, -a.re};
}

INLINE struct fft_element scale(struct fft_element a, double factor) {
    return (struct fft_element){a.re * factor, a.im * factor};
}

INLINE struct fft_element multiply(struct fft_element a, struct twiddle w) {
    return (struct fft_element){a.re * w.re - a.im * w.im, a.re * w.im + a.im * w.re};
}

INLINE void butterfly_2(struct fft_element *a) {
    struct fft_element sum = add(a[0], a[1]);
    a[1] = subtract(a[0], a[1]);
    a[0] = sum;
}

INLINE void butterfly_3(struct fft_element *a) {
    struct fft_element sum = add(a[1], a[2]);
    struct fft_element side = turn(scale(subtract(a[1], a[2]), 0.86602540378443864676));
    struct fft_element mid = subtract(a[0], scale(sum, 0.5));
    a[0] = add(a[0], sum);
    a[1] = add(mid, side);
    a[2] = subtract(mid, side);
}

INLINE void butterfly_4(struct fft_element *a) {
    struct fft_element even = add(a[0], a[2]), odd = add(a[1], a[3]);
    struct fft_element cross = subtract(a[0], a[2]), side = turn(subtract(a[1], a[3]));
    a[0] = add(even, odd);
    a[1] = add(cross, side);
    a[2] = subtract(even, odd);
    a[3] = subtract(cross, side);
}

INLINE void butterfly_5(struct fft_element *a) {
    const double c1 = 0.30901699437494742410, c2 = -0.80901699437494742410;
    const double s1 = 0.95105651629515357212, s2 = 0.58778525229247312917;
    struct fft_element p1 = add(a[1], a[4]), m1 = subtract(a[1], a[4]);
    struct fft_element p2 = add(a[2], a[3]), m2 = subtract(a[2], a[3]);
    struct fft_element r1 = add(a[0], add(scale(p1, c1), scale(p2, c2)));
    struct fft_element r2 = add(a[0], add(scale(p1, c2), scale(p2, c1)));
    struct fft_element i1 = turn(add(scale(m1, s1), scale(m2, s2)));
    struct fft_element i2 = turn(subtract(scale(m1, s2), scale(m2, s1)));
    a[0] = add(a[0], add(p1, p2));
    a[1] = add(r1, i1);
    a[2] = add(r2, i2);
    a[3] = subtract(r2, i2);
    a[4] = subtract(r1, i1);
}

/* One pass, the radix and its butterfly known to the compiler. */
#define DEFINE_PASS(radix)                                                                         \
    static void pass_##radix(const struct pass *pass, const struct fft_element *in,                \
                             struct fft_element *out) {                                            \
        size_t groups = pass->groups, stride = pass->stride;                                       \
        for (size_t p = 0; p < groups; p++) {                                                      \
            const struct twiddle *w = pass->twiddles + p * (radix - 1);                            \
            for (size_t q = 0; q < stride; q++) {                                                  \
                struct fft_element a[radix];                                                       \
                _Pragma("GCC unroll 8") for (unsigned j = 0; j < radix; j++) {                     \
                    a[j] = in[q + stride * (p + groups * j)];                                      \
                }                                                                                  \
                butterfly_##radix(a);                                                              \
                out[q + stride * radix * p] = a[0];                                                \
                _Pragma("GCC unroll 8") for (unsigned j = 1; j < radix; j++) {                     \
                    out[q + stride * (radix * p + j)] = multiply(a[j], w[j - 1]);                  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_PASS(2)
DEFINE_PASS(3)
DEFINE_PASS(4)
DEFINE_PASS(5)

static void (*const pass_of[RADIX_MAX + 1])(const struct pass *, const struct fft_element *,
                                            struct fft_element *) = {
    [2] = pass_2,
    [3] = pass_3,
    [4] = pass_4,
    [5] = pass_5,
};

/* Runs all passes; the result is in `data` again. */
static void stockham(const struct fft *fft, struct fft_element *data, struct fft_element *work) {
    struct fft_element *in = data, *out = work;
    for (unsigned i = 0; i < fft->passes; i++) {
        pass_of[fft->pass[i].radix](&fft->pass[i], in, out);
        struct fft_element *swap = in;
        in = out;
        out = swap;
    }
    if (in != data) {
        memcpy(data, in, fft->length * sizeof *data);
    }
}

/* A forward transform between two conjugations is a backward one. */
static void conjugate(struct fft_element *data, size_t length) {
    for (size_t i = 0; i < length; i++) {
        data[i].im = -data[i].im;
    }
}

static void multiply_all(struct fft_element *data, const struct twiddle *by, size_t length) {
    for (size_t i = 0; i < length; i++) {
        data[i] = multiply(data[i], by[i]);
    }
}

static void bluestein(const struct fft *fft, struct fft_element *data, struct fft_element *work) {
    size_t inner = fft->inner->length;
    struct fft_element *padded = work, *rest = work + inner;
    memcpy(padded, data, fft->length * sizeof *data);
    multiply_all(padded, fft->chirp, fft->length);
    memset(padded + fft->length, 0, (inner - fft->length) * sizeof *padded);
    stockham(fft->inner, padded, rest);
    multiply_all(padded, fft->filter, inner);
    conjugate(padded, inner);
    stockham(fft->inner, padded, rest);
    conjugate(padded, fft->length);
    multiply_all(padded, fft->chirp, fft->length);
    memcpy(data, padded, fft->length * sizeof *data);
}

size_t fft_work(const struct fft *fft) {
    return fft->inner != NULL ? 2 * fft->inner->length : fft->length;
}

void fft_forward(const struct fft *fft, struct fft_element *data, struct fft_element *work) {
    (fft->inner != NULL ? bluestein : stockham)(fft, data, work);
}

/* exp(-iπ numerator / denominator), the angle reduced in integers first. */
static struct twiddle unit(uint64_t numerator, uint64_t denominator) {
    double angle = M_PI * (double)(numerator % (2 * denominator)) / (double)denominator;
    return (struct twiddle){cos(angle), -sin(angle)};
}

static unsigned radix_next(size_t length) {
    static const unsigned radices[] = {4, 5, 3, 2};
    for (size_t i = 0; i < sizeof radices / sizeof *radices; i++) {
        if (length % radices[i] == 0) {
            return radices[i];
        }
    }
    return 0;
}

static bool smooth(size_t length) {
    while (length > 1) {
        unsigned radix = radix_next(length);
        if (radix == 0) {
            return false;
        }
        length /= radix;
    }
    return true;
}

static bool passes_plan(struct fft *fft) {
    size_t left = fft->length, stride = 1;
    while (left > 1) {
        unsigned radix = radix_next(left);
        struct pass *pass = &fft->pass[fft->passes];
        pass->radix = radix;
        pass->groups = left / radix;
        pass->stride = stride;
        pass->twiddles = malloc(pass->groups * (radix - 1) * sizeof *pass->twiddles);
        if (pass->twiddles == NULL) {
            return false;
        }
        fft->passes++;
        for (size_t p = 0; p < pass->groups; p++) {
            for (unsigned j = 1; j < radix; j++) {
                pass->twiddles[p * (radix - 1) + j - 1] = unit(2 * (uint64_t)p * j, left);
            }
        }
        left = pass->groups;
        stride *= radix;
    }
    return true;
}

/* The chirp, and the filter's transform through one lane of the inner transform itself. */
static bool bluestein_plan(struct fft *fft) {
    size_t n = fft->length, inner = 2 * n - 1;
    bool done = false;
    while (!smooth(inner)) {
        inner++;
    }
    fft->inner = fft_create(inner);
    fft->chirp = malloc(n * sizeof *fft->chirp);
    fft->filter = malloc(inner * sizeof *fft->filter);
    struct fft_element *data = aligned_alloc(64, 2 * inner * sizeof *data);
    if (fft->inner == NULL || fft->chirp == NULL || fft->filter == NULL || data == NULL) {
        goto out;
    }
    memset(data, 0, inner * sizeof *data);
    for (size_t i = 0; i < n; i++) {
        fft->chirp[i] = unit((uint64_t)i * i, n);
        data[i].re[0] = fft->chirp[i].re;
        data[i].im[0] = -fft->chirp[i].im;
        if (i > 0) {
            data[inner - i] = data[i];
        }
    }
    stockham(fft->inner, data, data + inner);
    for (size_t i = 0; i < inner; i++) {
        fft->filter[i] =
            (struct twiddle){data[i].re[0] / (double)inner, data[i].im[0] / (double)inner};
    }
    done = true;
out:
    free(data);
    return done;
}

struct fft *fft_create(size_t length) {
    struct fft *fft = calloc(1, sizeof *fft);
    if (fft == NULL) {
        return NULL;
    }
    fft->length = length;
    if (smooth(length) ? passes_plan(fft) : bluestein_plan(fft)) {
        return fft;
    }
    fft_destroy(fft);
    return NULL;
}

void fft_destroy(struct fft *fft) {
    if (fft == NULL) {
        return;
    }
    for (unsigned i = 0; i < fft->passes; i++) {
        free(fft->pass[i].twiddles);
    }
    fft_destroy(fft->inner);
    free(fft->chirp);
    free(fft->filter);
    free(fft);
}
