/*
 * report.h: the figures as Markdown and as JSON.
 */
#ifndef KILN_BENCH_LOAD_REPORT_H
#define KILN_BENCH_LOAD_REPORT_H

#include "bench/load/measure.h"

#include <stdio.h>

enum report_kind { REPORT_RUN, REPORT_CONNECTIONS, REPORT_RATES };

struct report {
    const char *title;
    const char *url;
    enum report_kind kind;
    const struct measure_point *points;
    size_t count;
    double peak; /* REPORT_RATES: right answers a second in closed loop, else 0 */
};

void report_markdown(FILE *file, const struct report *report);
void report_json(FILE *file, const struct report *report);

/** A text with its quotes, for JSON. */
void json_text(FILE *file, const char *text);

#endif
