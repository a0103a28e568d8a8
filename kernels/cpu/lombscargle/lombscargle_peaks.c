/*
 * lombscargle_peaks.c: one pass over a periodogram that keeps the strongest peaks in order.
 *
 * Lists are short (LOMBSCARGLE_KERNEL_PEAKS_MAX), and a bin that is not above the weakest of a full
 * list is passed over at once: insertion is rare.
 */
#include "kernels/cpu/lombscargle/lombscargle_peaks.h"

#include "kernels/lombscargle_rank.h"

#include <math.h>
#include <stdbool.h>

static double at(const double *power, int64_t nf, int64_t k) {
    return k >= 0 && k < nf ? power[k] : (double)NAN;
}

/* Indices rise, so that an equal peak comes after those that are there. */
static void peak_insert(struct lombscargle_peak *peaks, int count, int fp32,
                        struct lombscargle_peak peak) {
    int64_t rank = lombscargle_rank(peak.power, fp32);
    int place = count - 1;
    for (; place > 0 &&
           (peaks[place - 1].index < 0 || lombscargle_rank(peaks[place - 1].power, fp32) < rank);
         place--) {
        peaks[place] = peaks[place - 1];
    }
    peaks[place] = peak;
}

void lombscargle_peaks_keep(const double *power, int64_t nf, int fp32,
                            struct lombscargle_peak *peaks, int count) {
    const double none = (double)NAN;
    for (int i = 0; i < count; i++) {
        peaks[i] = (struct lombscargle_peak){none, none, none, -1};
    }
    const struct lombscargle_peak *weakest = &peaks[count - 1];
    for (int64_t k = 0, end; k < nf; k = end) {
        double value = power[k];
        end = k + 1;
        if (!(value > at(power, nf, k - 1)) && !isnan(at(power, nf, k - 1))) {
            continue;
        }
        while (end < nf && power[end] == value) {
            end++;
        }
        if (isnan(value) || value <= at(power, nf, end) ||
            (weakest->index >= 0 &&
             lombscargle_rank(value, fp32) <= lombscargle_rank(weakest->power, fp32))) {
            continue;
        }
        int64_t middle = k + (end - 1 - k) / 2;
        peak_insert(peaks, count, fp32,
                    (struct lombscargle_peak){value, at(power, nf, middle - 1),
                                              at(power, nf, middle + 1), middle});
    }
}
