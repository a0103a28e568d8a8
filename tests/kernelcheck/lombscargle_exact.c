/*
 * lombscargle_exact.c: the power of one frequency by least squares, orthogonal functions one after
 * the other, in long double and, where that is not enough, in quadruple precision.
 *
 * An error of 1e-19 (of 1e-34) shows in the power over the least that a function keeps beside those
 * before it, squared; so quadruple precision is right to 1e-10 down to shares of 1e-24. Phases that
 * kernels/lombscargle_basis.h calls one are given one time first, so that what is left of dependent
 * functions is rounding alone. Quadruple precision is __float128 (libgcc), or long double where
 * that is it; its sines are Taylor's series.
 */
#include "kernels/lombscargle_basis.h"
#include "tests/kernelcheck/lombscargle.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#if LDBL_MANT_DIG >= 113
typedef long double quad;
#else
__extension__ typedef __float128 quad;
#endif

#define FUNCTIONS LOMBSCARGLE_BASIS_MAX
#define SAMPLES   4096
#define ENOUGH    1e-7L  /* squared, for long double */
#define NOTHING   1e-60L /* squared: rounding alone, in quadruple precision */
#define FEW       1e-24L /* squared: what kernels/lombscargle_basis.h takes for nothing there */
#define LEAST     1e-46L /* squared: below this it is not precise enough */

static quad functions[FUNCTIONS][SAMPLES], values[SAMPLES];

static quad dot(const struct curve *curve, const quad *a, const quad *b) {
    quad sum = 0;
    for (int j = 0; j < curve->n; j++) {
        sum += (quad)curve->w[j] * a[j] * b[j];
    }
    return sum;
}

/* x less the whole number next to it. */
static quad turns_of(quad x) {
    quad whole = (quad)rintl((long double)x), rest = x - whole;
    return rest - (quad)rintl((long double)rest);
}

/* Of a phase in turns, at most half of one. */
static void sincos_of(quad turns, quad *sine, quad *cosine) {
    const quad pi = (quad)3.141592653589793115997963468544185161590576171875L +
                    (quad)1.2246467991473531772260659322749979970830539e-16L;
    quad angle = 2 * pi * turns, term = 1, sum[2] = {1, 0};
    for (int i = 1; i < 52; i++) {
        term *= angle / i;
        sum[i % 2] += i & 2 ? -term : term;
    }
    *cosine = sum[0];
    *sine = sum[1];
}

/* Times of which those with one phase are one, of samples that weigh anything; returns the number
   of phases. */
static int times_fill(const struct curve *curve, quad f, double *t) {
    int phases = curve->n;
    double low = INFINITY, high = -INFINITY;
    for (int j = 0; j < curve->n; j++) {
        low = curve->w[j] > 0 ? fmin(low, curve->t[j]) : low;
        high = curve->w[j] > 0 ? fmax(high, curve->t[j]) : high;
    }
    quad same = (f < 0 ? -f : f) * (quad)(high - low) * (quad)LOMBSCARGLE_SAME;
    for (int j = 0; j < curve->n; j++) {
        t[j] = curve->t[j];
        for (int i = 0; i < j; i++) {
            long double near = (long double)f * ((long double)t[j] - (long double)t[i]);
            if (t[i] != curve->t[i] || fabsl(near - rintl(near)) > 1e-6L) {
                continue;
            }
            quad turns = turns_of(f * ((quad)t[j] - (quad)t[i]));
            if ((turns < 0 ? -turns : turns) <= same) {
                t[j] = t[i];
                phases--;
                break;
            }
        }
    }
    return phases;
}

static int functions_fill(const struct curve *curve, int fit_mean, int terms, quad f) {
    static double t[SAMPLES];
    int phases = times_fill(curve, f, t);
    for (int j = 0; j < curve->n; j++) {
        quad sine, cosine, s = 0, c = 1;
        int count = 0;
        sincos_of(turns_of(f * (quad)t[j]), &sine, &cosine);
        if (fit_mean) {
            functions[count++][j] = 1;
        }
        for (int h = 1; h <= terms; h++) {
            quad turned = c * cosine - s * sine;
            s = s * cosine + c * sine;
            c = turned;
            functions[count++][j] = c;
            functions[count++][j] = s;
        }
        values[j] = curve->y[j];
    }
    return phases;
}

/* What the functions but the constant explain of the values; NaN where none is left. */
static double quad_power(const struct curve *curve, int fit_mean, int terms, double yy, quad f) {
    int count = 2 * terms + (fit_mean ? 1 : 0), left = 0;
    quad explained = 0;
    /* Without a mean and with few phases a function may depend on the others but for what rounding
       has left in the times; that is nothing. */
    bool few = functions_fill(curve, fit_mean, terms, f) <= 2 * terms && !fit_mean;
    quad least = few ? (quad)FEW : (quad)NOTHING;
    for (int i = 0; i < count; i++) {
        quad *x = functions[i], before = dot(curve, x, x);
        for (int again = 0; again < 2; again++) {
            for (int k = 0; k < i; k++) {
                quad share = dot(curve, x, functions[k]);
                for (int j = 0; j < curve->n; j++) {
                    x[j] -= share * functions[k][j];
                }
            }
        }
        quad norm = dot(curve, x, x), share;
        bool nothing = !(norm > least);
        if (!nothing && norm < (quad)LEAST * before) {
            abort(); /* a case that this reference cannot judge */
        }
        quad root = nothing ? 1 : (quad)sqrtl((long double)norm);
        root = nothing ? 1 : (root + norm / root) / 2; /* Newton's step */
        for (int j = 0; j < curve->n; j++) {
            x[j] = nothing ? 0 : x[j] / root;
        }
        share = dot(curve, x, values);
        left += !nothing && !(fit_mean && i == 0);
        if (fit_mean && i == 0) {
            for (int j = 0; j < curve->n; j++) {
                values[j] -= share * x[j];
            }
        } else {
            explained += share * share;
        }
    }
    return left > 0 ? (double)(explained / (quad)yy) : (double)NAN;
}

static long double dot_long(const struct curve *curve, const long double *a, const long double *b) {
    long double sum = 0;
    for (int j = 0; j < curve->n; j++) {
        sum += (long double)curve->w[j] * a[j] * b[j];
    }
    return sum;
}

/* The same in long double, and the least share that a function keeps. */
static struct bin long_power(const struct curve *curve, int fit_mean, int terms, double yy,
                             long double f) {
    static long double x[FUNCTIONS][SAMPLES], y[SAMPLES];
    int count = 2 * terms + (fit_mean ? 1 : 0);
    long double explained = 0, condition = 1;
    for (int j = 0; j < curve->n; j++) {
        long double turns = f * (long double)curve->t[j];
        long double phase = TWO_PI * (turns - rintl(turns));
        y[j] = curve->y[j];
        if (fit_mean) {
            x[0][j] = 1;
        }
        for (int h = 1; h <= terms; h++) {
            x[count - 2 * terms + 2 * h - 2][j] = cosl((long double)h * phase);
            x[count - 2 * terms + 2 * h - 1][j] = sinl((long double)h * phase);
        }
    }
    for (int i = 0; i < count; i++) {
        for (int again = 0; again < 2; again++) {
            for (int k = 0; k < i; k++) {
                long double share = dot_long(curve, x[i], x[k]);
                for (int j = 0; j < curve->n; j++) {
                    x[i][j] -= share * x[k][j];
                }
            }
        }
        long double norm = dot_long(curve, x[i], x[i]), root = sqrtl(norm);
        condition = fminl(condition, norm);
        for (int j = 0; j < curve->n; j++) {
            x[i][j] /= root;
        }
        long double share = dot_long(curve, x[i], y);
        if (fit_mean && i == 0) {
            for (int j = 0; j < curve->n; j++) {
                y[j] -= share * x[0][j];
            }
        } else {
            explained += share * share;
        }
    }
    return (struct bin){(double)(explained / (long double)yy), (double)condition};
}

struct bin curve_power(const struct curve *curve, int fit_mean, int terms, double yy, double f0,
                       double k, double df) {
    if (curve->n > SAMPLES) {
        abort();
    }
    struct bin bin =
        long_power(curve, fit_mean, terms, yy, (long double)f0 + (long double)k * (long double)df);
    if (!(bin.condition > (double)ENOUGH)) {
        bin.p = quad_power(curve, fit_mean, terms, yy, (quad)f0 + (quad)k * (quad)df);
    }
    return bin;
}

/* Standard power again, from how it is given. */
double power_standard(int normalization, double psd_factor, double power) {
    const double rows[] = {power, isinf(power) ? 1 : power / (1 + power), -expm1(-power),
                           power / psd_factor};
    return rows[normalization];
}

bool power_right(int normalization, double psd_factor, double power, double p, double error) {
    if (isnan(p) || isnan(power)) {
        return isnan(p) && isnan(power);
    }
    const double slopes[] = {1, 1 / ((1 - p) * (1 - p)), 1 / (1 - p), fabs(psd_factor)};
    const double rows[] = {p, p / (1 - p), -log1p(-p), p * psd_factor};
    double standard = power_standard(normalization, psd_factor, power);
    if (!(standard >= 0 && standard <= 1 + 4e-16) || !(fabs(standard - p) <= 1.01 * error)) {
        return false;
    }
    /* Where a normalization is steep at 1 an error of the power is more than its slope says. */
    return p > 0.999 || fabs(power - rows[normalization]) <=
                            error * slopes[normalization] * 1.1 + 4e-16 * fabs(rows[normalization]);
}
