/*
 * lombscargle_peaks.h: the strongest peaks of a periodogram (kernels/lombscargle.h says what one
 * is).
 *
 * Threads: reentrant.
 */
#ifndef KILN_KERNELS_CPU_LOMBSCARGLE_LOMBSCARGLE_PEAKS_H
#define KILN_KERNELS_CPU_LOMBSCARGLE_LOMBSCARGLE_PEAKS_H

#include "kernels/lombscargle.h"

/** Fills all `count` peaks of power[nf], which was computed in single precision or not. */
void lombscargle_peaks_keep(const double *power, int64_t nf, int fp32,
                            struct lombscargle_peak *peaks, int count);

#endif
