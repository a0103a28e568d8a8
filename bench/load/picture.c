/*
 * picture.c: two curves, a linear axis of load, a logarithmic axis of time.
 *
 * Colours are classes of a style sheet with a dark variant, so that the picture follows the page
 * that shows it; a viewer without media queries gets the light one.
 */
#include "bench/load/picture.h"

#include <math.h>
#include <string.h>

#define WIDTH  760.0
#define HEIGHT 430.0
#define LEFT   74.0
#define RIGHT  58.0
#define TOP    74.0
#define BOTTOM 58.0

struct frame {
    FILE *file;
    double load_most; /* right end of the load axis, requests a second */
    double low, high; /* ends of the time axis, ms */
    const struct report *report;
};

static double x_of(const struct frame *frame, double load) {
    return LEFT + load / frame->load_most * (WIDTH - LEFT - RIGHT);
}

static double y_of(const struct frame *frame, double ms) {
    double at = log(ms / frame->low) / log(frame->high / frame->low);
    return HEIGHT - BOTTOM - at * (HEIGHT - TOP - BOTTOM);
}

/* The largest of 1, 2, 5 times a power of ten that is not above `value`. */
static double round_down(double value) {
    double power = pow(10, floor(log10(value) + 1e-9)), lead = value / power;
    return power * (lead >= 5 - 1e-9 ? 5 : lead >= 2 - 1e-9 ? 2 : 1);
}

static double round_up(double value) {
    double low = round_down(value);
    if (low >= value * (1 - 1e-9)) {
        return low;
    }
    double power = pow(10, floor(log10(low) + 1e-9)), lead = low / power;
    return power * (lead > 4 ? 10 : lead > 1.5 ? 5 : 2);
}

/* Where a point stands: what was due in open loop, so that a curve goes on to the right when a
   service falls behind; what was reached in closed loop. */
static double load_of(const struct measure_point *point) {
    return point->offered > 0 ? point->offered : point->rate;
}

static bool frame_fit(struct frame *frame) {
    double load = 0, low = INFINITY, high = 0;
    for (size_t i = 0; i < frame->report->count; i++) {
        const struct measure_point *point = &frame->report->points[i];
        if (point->latency.count > 0 && point->latency.p50 > 0) {
            load = fmax(load, load_of(point));
            low = fmin(low, point->latency.p50);
            high = fmax(high, point->latency.p99);
        }
    }
    if (!(load > 0) || !(high > 0)) {
        return false;
    }
    frame->load_most = load * 1.03;
    frame->low = round_down(low * 0.9);
    frame->high = round_up(high * 1.1);
    return true;
}

static void escaped(FILE *file, const char *text) {
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '&':
            fputs("&amp;", file);
            break;
        default:
            fputc((unsigned char)*text < 0x20 ? ' ' : *text, file);
        }
    }
}

static void head_draw(const struct frame *frame) {
    fprintf(frame->file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" width=\"%g\" "
            "height=\"%g\" role=\"img\" font-family=\"system-ui, -apple-system, 'Segoe UI', "
            "'DejaVu Sans', sans-serif\" font-size=\"13\">\n<title>",
            WIDTH, HEIGHT, WIDTH, HEIGHT);
    escaped(frame->file, frame->report->title);
    fputs("</title>\n<style>\n"
          ".page{fill:#ffffff}.ink{fill:#1f2328}.soft{fill:#59636e}\n"
          ".grid{stroke:#d8dee4;stroke-width:1}.axis{stroke:#59636e;stroke-width:1.2}\n"
          ".p50{stroke:#0a66c2}.p99{stroke:#c2410c}.d50{fill:#0a66c2}.d99{fill:#c2410c}\n"
          ".h50{stroke:#0a66c2;stroke-width:2}.h99{stroke:#c2410c;stroke-width:2}\n"
          ".line{fill:none;stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}\n"
          "@media (prefers-color-scheme: dark){\n"
          ".page{fill:#0d1117}.ink{fill:#e6edf3}.soft{fill:#9da7b1}\n"
          ".grid{stroke:#2b323b}.axis{stroke:#9da7b1}\n"
          ".h50{stroke:#6cb6ff}.h99{stroke:#ff9d5c}\n"
          ".p50{stroke:#6cb6ff}.p99{stroke:#ff9d5c}.d50{fill:#6cb6ff}.d99{fill:#ff9d5c}}\n"
          "</style>\n",
          frame->file);
    fprintf(frame->file,
            "<rect class=\"page\" width=\"%g\" height=\"%g\" rx=\"8\"/>\n"
            "<text class=\"ink\" x=\"%g\" y=\"30\" font-size=\"16\" font-weight=\"600\">",
            WIDTH, HEIGHT, LEFT);
    escaped(frame->file, frame->report->title);
    fputs("</text>\n", frame->file);
}

static void legend_draw(const struct frame *frame) {
    static const struct {
        const char *line, *dot, *name;
    } rows[] = {{"p50", "d50", "p50 (median)"}, {"p99", "d99", "p99"}};
    double x = LEFT;
    for (size_t i = 0; i < 2; i++) {
        fprintf(frame->file,
                "<path class=\"line %s\" d=\"M%g 51h26\"/><circle class=\"%s\" cx=\"%g\" cy=\"51\" "
                "r=\"3.5\"/><text class=\"ink\" x=\"%g\" y=\"55.5\">%s</text>\n",
                rows[i].line, x, rows[i].dot, x + 13, x + 33, rows[i].name);
        x += 140;
    }
    fprintf(frame->file, "<text class=\"soft\" x=\"%g\" y=\"55.5\">%s</text>\n", x - 40,
            frame->report->kind == REPORT_RATES ? "labels: share of the peak; hollow: with errors"
                                                : "labels: connections; hollow: with errors");
}

static void number_text(double value, char *out, size_t size) {
    if (value >= 10000) {
        snprintf(out, size, "%gk", value / 1000);
    } else {
        snprintf(out, size, "%g", value);
    }
}

static void load_axis_draw(const struct frame *frame) {
    double step = round_up(frame->load_most / 8), base = HEIGHT - BOTTOM;
    char text[32];
    for (double at = 0; at <= frame->load_most; at += step) {
        double x = x_of(frame, at);
        number_text(at, text, sizeof text);
        fprintf(frame->file,
                "<path class=\"grid\" d=\"M%.1f %gV%g\"/><text class=\"soft\" x=\"%.1f\" y=\"%g\" "
                "text-anchor=\"middle\">%s</text>\n",
                x, TOP, base, x, base + 19, text);
    }
    fprintf(frame->file,
            "<path class=\"axis\" fill=\"none\" d=\"M%g %gV%gH%g\"/>\n<text class=\"ink\" x=\"%g\" "
            "y=\"%g\" text-anchor=\"middle\">load: %s a second</text>\n",
            LEFT, TOP, base, WIDTH - RIGHT, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14,
            frame->report->kind == REPORT_RATES ? "requests due" : "right answers");
}

static void time_axis_draw(const struct frame *frame) {
    bool wide = frame->high / frame->low > 2000; /* then powers of ten are enough */
    char text[32];
    for (double at = frame->low; at <= frame->high * (1 + 1e-9);) {
        double y = y_of(frame, at), power = pow(10, floor(log10(at) + 1e-9));
        number_text(at, text, sizeof text);
        fprintf(frame->file, "<path class=\"grid\" d=\"M%g %.1fH%g\"/>", LEFT, y, WIDTH - RIGHT);
        if (!wide || at / power < 1.5) {
            fprintf(frame->file,
                    "<text class=\"soft\" x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%s</text>",
                    LEFT - 9, y + 4.5, text);
        }
        fputc('\n', frame->file);
        at = at / power > 4 ? power * 10 : at / power > 1.5 ? power * 5 : power * 2;
    }
    fprintf(frame->file,
            "<text class=\"ink\" transform=\"translate(22 %g) rotate(-90)\" "
            "text-anchor=\"middle\">latency, ms (logarithmic)</text>\n",
            (TOP + HEIGHT - BOTTOM) / 2);
}

static bool drawn(const struct report *report, const struct measure_point *point) {
    bool wanted = report->kind != REPORT_RATES || point->offered > 0;
    return wanted && point->latency.count > 0 && point->latency.p50 > 0;
}

static void curve_draw(const struct frame *frame, bool tail) {
    const struct report *report = frame->report;
    char step = 'M';
    fprintf(frame->file, "<path class=\"line %s\" d=\"", tail ? "p99" : "p50");
    for (size_t i = 0; i < report->count; i++) {
        const struct measure_point *point = &report->points[i];
        if (drawn(report, point)) {
            double ms = tail ? point->latency.p99 : point->latency.p50;
            fprintf(frame->file, "%c%.1f %.1f", step, x_of(frame, load_of(point)), y_of(frame, ms));
            step = 'L';
        }
    }
    fputs("\"/>\n", frame->file);
}

static void points_draw(const struct frame *frame) {
    const struct report *report = frame->report;
    double last = -1e9;
    for (size_t i = 0; i < report->count; i++) {
        const struct measure_point *point = &report->points[i];
        double x = x_of(frame, load_of(point)), y = y_of(frame, point->latency.p99);
        if (!drawn(report, point)) {
            continue;
        }
        bool hollow = point_faults(point) > 0;
        fprintf(frame->file,
                "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>"
                "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\"/>",
                hollow ? "page h50" : "d50", x, y_of(frame, point->latency.p50),
                hollow ? "page h99" : "d99", x, y);
        if (fabs(x - last) > 26) { /* labels must not lie on each other */
            fprintf(frame->file,
                    "<text class=\"soft\" font-size=\"11\" text-anchor=\"middle\" "
                    "x=\"%.1f\" y=\"%.1f\">",
                    x, y - 9);
            fprintf(frame->file, report->kind == REPORT_RATES ? "%.0f%%" : "%.0f",
                    report->kind == REPORT_RATES ? point->share : (double)point->connections);
            fputs("</text>", frame->file);
            last = x;
        }
        fputc('\n', frame->file);
    }
}

bool picture_write(FILE *file, const struct report *report) {
    struct frame frame = {.file = file, .report = report};
    if (!frame_fit(&frame)) {
        return false;
    }
    head_draw(&frame);
    legend_draw(&frame);
    load_axis_draw(&frame);
    time_axis_draw(&frame);
    curve_draw(&frame, false);
    curve_draw(&frame, true);
    points_draw(&frame);
    fputs("</svg>\n", file);
    return true;
}
