/*
 * dst_simd.c: sine transforms through complex Fourier transforms of the folded rows.
 *
 * The first half of a batch's rows are the real parts and the second the imaginary parts of the
 * lanes; the two are told apart afterwards by the symmetry of a real row's transform.
 *
 * Threads: any.
 */
#include "kernels/cpu/spectral/dst_simd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct dst {
    size_t length;
    double *sines; /* sin(πj / (length+1)), j = 0 … length */
    double *waves; /* see dst_waves */
    struct fft *fft;
};

struct dst *dst_create(size_t length) {
    struct dst *dst = calloc(1, sizeof *dst);
    if (dst == NULL) {
        return NULL;
    }
    dst->length = length;
    dst->sines = malloc((length + 1) * sizeof *dst->sines);
    dst->waves = malloc(length * sizeof *dst->waves);
    dst->fft = fft_create(length + 1);
    if (dst->sines == NULL || dst->waves == NULL || dst->fft == NULL) {
        dst_destroy(dst);
        return NULL;
    }
    for (size_t j = 0; j <= length; j++) {
        dst->sines[j] = sin(M_PI * (double)j / (double)(length + 1));
    }
    for (size_t k = 1; k <= length; k++) {
        double sine = sin(M_PI * (double)k / (double)(2 * (length + 1)));
        dst->waves[k - 1] = sine * sine;
    }
    return dst;
}

void dst_destroy(struct dst *dst) {
    if (dst == NULL) {
        return;
    }
    free(dst->sines);
    free(dst->waves);
    fft_destroy(dst->fft);
    free(dst);
}

size_t dst_length(const struct dst *dst) {
    return dst->length;
}

const double *dst_waves(const struct dst *dst) {
    return dst->waves;
}

size_t dst_work(const struct dst *dst) {
    return (dst->length + 1 + fft_work(dst->fft)) * sizeof(struct fft_element);
}

/* y_j = sin(πj/N) (x_j + x_{N-j}) + (x_j - x_{N-j}) / 2, y_0 = 0. */
static void fold(const struct dst *dst, const struct dst_element *x, struct fft_element *y) {
    size_t n = dst->length + 1;
    memset(&y[0], 0, sizeof y[0]);
    for (size_t j = 1; j < n; j++) {
        const struct dst_element *a = &x[j - 1], *b = &x[n - j - 1];
        double sine = dst->sines[j];
        y[j].re = sine * (a->half[0] + b->half[0]) + 0.5 * (a->half[0] - b->half[0]);
        y[j].im = sine * (a->half[1] + b->half[1]) + 0.5 * (a->half[1] - b->half[1]);
    }
}

/* With Y the transform of a real row: result 2k is -Im Y_k, result 2k+1 the running sum of Re Y_k,
   which starts at Re Y_0 / 2. */
static void unfold(const struct dst *dst, const struct fft_element *z, struct dst_element *x) {
    size_t n = dst->length + 1;
    vec sum_a = 0.5 * z[0].re, sum_b = 0.5 * z[0].im;
    x[0] = (struct dst_element){{sum_a, sum_b}};
    for (size_t k = 1; 2 * k < n; k++) {
        struct fft_element p = z[k], m = z[n - k];
        x[2 * k - 1] = (struct dst_element){{0.5 * (m.im - p.im), 0.5 * (p.re - m.re)}};
        if (2 * k + 1 < n) {
            sum_a += 0.5 * (p.re + m.re);
            sum_b += 0.5 * (p.im + m.im);
            x[2 * k] = (struct dst_element){{sum_a, sum_b}};
        }
    }
}

void dst_run(const struct dst *dst, struct dst_element *data, void *work) {
    struct fft_element *folded = work;
    fold(dst, data, folded);
    fft_forward(dst->fft, folded, folded + dst->length + 1);
    unfold(dst, folded, data);
}
