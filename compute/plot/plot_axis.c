/*
 * plot_axis.c: ticks that people can read.
 *
 * Steps are 1, 2 or 5 times a power of ten. Where the numbers would be long because the range is
 * far from zero compared with its width, a round offset is taken out of the labels; where they
 * would be long because they are large or small, a power of ten (a multiple of three). Both are
 * told in a note beside the axis. Runs on a slot thread of a worker.
 */
#include "compute/plot/font.h"
#include "compute/plot/plot.h"

#include <math.h>
#include <stdio.h>

static double nice_step(double raw) {
    double scale = pow(10, floor(log10(raw))), lead = raw / scale;
    return (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10) * scale;
}

/* A round number below the whole range, when its labels would need more than six digits. */
static double round_offset(double low, double high, double step) {
    double most = fmax(fabs(low), fabs(high));
    if (most / step < 1e6) {
        return 0;
    }
    double unit = pow(10, ceil(log10(high - low)));
    return floor(low / unit) * unit;
}

static int thousands(double most) {
    if (most <= 0 || (most < 1e5 && most >= 1e-2)) {
        return 0;
    }
    return 3 * (int)floor(log10(most) / 3);
}

void plot_axis_choose(struct plot_axis *axis, double low, double high, int most) {
    *axis = (struct plot_axis){.low = low, .high = high};
    axis->step = nice_step((high - low) / (most > 2 ? most - 1 : 1));
    double slack = 1e-9 * (high - low);
    axis->first = ceil((low - slack) / axis->step);
    double last = floor((high + slack) / axis->step);
    axis->count = last >= axis->first ? (int)fmin(last - axis->first, most) + 1 : 0;
    axis->offset = round_offset(low, high, axis->step);
    axis->exponent = thousands(fmax(fabs(low - axis->offset), fabs(high - axis->offset)));
    int decimals = axis->exponent - (int)floor(log10(axis->step) + 1e-9);
    axis->decimals = decimals < 0 ? 0 : decimals > 9 ? 9 : decimals;
}

double plot_axis_tick(const struct plot_axis *axis, int index) {
    return (axis->first + index) * axis->step;
}

void plot_axis_label(const struct plot_axis *axis, int index, char *text, size_t size) {
    double value = (plot_axis_tick(axis, index) - axis->offset) / pow(10, axis->exponent);
    if (fabs(value) < 0.5 * pow(10, -axis->decimals)) {
        value = 0;
    }
    snprintf(text, size, "%.*f", axis->decimals, value + 0.0);
}

void plot_axis_note(const struct plot_axis *axis, char *text, size_t size) {
    int length = 0;
    text[0] = 0;
    if (axis->exponent) {
        length = snprintf(text, size, FONT_TIMES " 10" FONT_RAISE "%d" FONT_LOWER, axis->exponent);
    }
    if (axis->offset != 0 && length >= 0 && (size_t)length < size) {
        snprintf(text + length, size - (size_t)length, "%s%c %.12g", length ? " " : "",
                 axis->offset < 0 ? '-' : '+', fabs(axis->offset));
    }
}
