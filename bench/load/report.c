/*
 * report.c: tables for people, JSON for programs. Faults are in both, always.
 */
#include "bench/load/report.h"

#include <inttypes.h>
#include <string.h>

#define BUSY_NOTE 0.85 /* of its threads: from here on the client may be what is measured */

/* Three digits, so that microseconds and seconds read alike. */
static void ms_print(FILE *file, double ms) {
    int decimals = ms >= 99.95 ? 0 : ms >= 9.995 ? 1 : ms >= 0.9995 ? 2 : 3;
    fprintf(file, " %.*f |", decimals, ms);
}

static void quantiles_print(FILE *file, const struct quantiles *times) {
    const double columns[] = {times->p50,  times->p90, times->p95, times->p99,
                              times->p999, times->max, times->mean};
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        ms_print(file, columns[i]);
    }
    fprintf(file, "\n");
}

static void row_print(FILE *file, const char *name, const struct quantiles *times) {
    if (times->count > 0) {
        fprintf(file, "| %s |", name);
        quantiles_print(file, times);
    }
}

static void faults_print(FILE *file, const struct measure_point *point, const char *separator) {
    const char *before = "";
    for (size_t i = 0; i < FAULTS_COUNT; i++) {
        if (point->faults[i] > 0) {
            fprintf(file, "%s%s %" PRIu64, before, fault_names[i], point->faults[i]);
            before = separator;
        }
    }
    fprintf(file, "%s", before[0] == '\0' ? "none" : "");
}

static void statuses_print(FILE *file, const struct measure_point *point) {
    for (int i = 0; i < STATUSES_MAX; i++) {
        if (point->statuses[i] > 0) {
            fprintf(file, " %d×%" PRIu64, i, point->statuses[i]);
        }
    }
}

static void notes_print(FILE *file, const struct measure_point *point) {
    if (!point->stable) {
        fprintf(file, "\nNot stable: the last windows still differed.\n");
    }
    if (point->client_busy > BUSY_NOTE) {
        fprintf(file, "\nThe client's threads were busy %.0f%% of the time: it may be the limit.\n",
                point->client_busy * 100);
    }
}

static void items_print(FILE *file, const struct measure_point *point) {
    if (point->item_count < 2) {
        return;
    }
    fprintf(file, "\n| request | right | wrong | p50 | p99 | max |\n|---|--:|--:|--:|--:|--:|\n");
    for (size_t i = 0; i < point->item_count; i++) {
        const struct named_quantiles *item = &point->items[i];
        fprintf(file, "| %s | %" PRIu64 " | %" PRIu64 " |", item->name, item->done, item->faults);
        ms_print(file, item->times.p50);
        ms_print(file, item->times.p99);
        ms_print(file, item->times.max);
        fprintf(file, "\n");
    }
}

static void run_print(FILE *file, const struct measure_point *point) {
    fprintf(file, "%zu connection%s, %zu thread%s, ", point->connections,
            point->connections == 1 ? "" : "s", point->threads, point->threads == 1 ? "" : "s");
    if (point->offered > 0) {
        fprintf(file, "%.1f requests/s due, ", point->offered);
    }
    fprintf(file, "%.2f s: **%.1f right answers/s**, %.1f MB/s\n", point->seconds, point->rate,
            (double)point->bytes / point->seconds / 1e6);
    fprintf(file, "Right: %" PRIu64 ". Errors: ", point->done);
    faults_print(file, point, ", ");
    fprintf(file, ". Status:");
    statuses_print(file, point);
    fprintf(file, ". Reconnects: %" PRIu64 ".\n", point->reconnects);
    notes_print(file, point);
    fprintf(file, "\n| ms | p50 | p90 | p95 | p99 | p99.9 | max | mean |\n"
                  "|---|--:|--:|--:|--:|--:|--:|--:|\n");
    row_print(file, "latency", &point->latency);
    if (point->offered > 0) {
        row_print(file, "from sending", &point->service);
    }
    for (size_t i = 0; i < point->phase_count; i++) {
        row_print(file, point->phases[i].name, &point->phases[i].times);
    }
    row_print(file, "job's phases", &point->job);
    row_print(file, "beyond the job", &point->overhead);
    row_print(file, "outside `total`", &point->transport);
    items_print(file, point);
}

static void sweep_print(FILE *file, const struct report *report) {
    bool rates = report->kind == REPORT_RATES;
    if (rates) {
        fprintf(file, "Peak in closed loop: **%.1f right answers/s**. Poisson arrivals.\n\n",
                report->peak);
    }
    fprintf(file,
            "| %s | right/s | p50 | p90 | p95 | p99 | p99.9 | max | mean | p99/p50 | errors |\n"
            "%s|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n",
            rates ? "load | due/s" : "connections", rates ? "|--:" : "");
    for (size_t i = 0; i < report->count; i++) {
        const struct measure_point *point = &report->points[i];
        if (rates && point->offered > 0) {
            fprintf(file, "| %.0f%% | %.1f | %.1f |", point->share, point->offered, point->rate);
        } else if (rates) {
            fprintf(file, "| closed, %zu | – | %.1f |", point->connections, point->rate);
        } else {
            fprintf(file, "| %zu | %.1f |", point->connections, point->rate);
        }
        const struct quantiles *times = &point->latency;
        const double columns[] = {times->p50,  times->p90, times->p95, times->p99,
                                  times->p999, times->max, times->mean};
        for (size_t k = 0; k < sizeof columns / sizeof columns[0]; k++) {
            ms_print(file, columns[k]);
        }
        fprintf(file, " %.1f | ", times->p50 > 0 ? times->p99 / times->p50 : 0);
        faults_print(file, point, ", ");
        fprintf(file, "%s%s |\n", point->stable ? "" : "; not stable",
                point->client_busy > BUSY_NOTE ? "; client busy" : "");
    }
}

void report_markdown(FILE *file, const struct report *report) {
    fprintf(file, "### %s\n\n", report->title);
    if (report->kind == REPORT_RUN) {
        run_print(file, &report->points[0]);
    } else {
        sweep_print(file, report);
    }
    fprintf(file, "\n");
}

void json_text(FILE *file, const char *text) {
    fputc('"', file);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            fputc('\\', file);
        }
        if ((unsigned char)*text < 0x20) {
            fprintf(file, "\\u%04x", (unsigned)*text);
        } else {
            fputc(*text, file);
        }
    }
    fputc('"', file);
}

static void json_quantiles(FILE *file, const char *name, const struct quantiles *times) {
    fprintf(file, ",\n     ");
    json_text(file, name);
    fprintf(file,
            ": {\"count\": %" PRIu64 ", \"mean\": %.6f, \"p50\": %.6f, \"p90\": %.6f, "
            "\"p95\": %.6f, \"p99\": %.6f, \"p99.9\": %.6f, \"max\": %.6f}",
            times->count, times->mean, times->p50, times->p90, times->p95, times->p99, times->p999,
            times->max);
}

static void json_counts(FILE *file, const struct measure_point *point) {
    const char *before = "";
    fprintf(file, ",\n     \"errors\": {");
    for (size_t i = 0; i < FAULTS_COUNT; i++) {
        fprintf(file, "%s\"%s\": %" PRIu64, i > 0 ? ", " : "", fault_names[i], point->faults[i]);
    }
    fprintf(file, "}, \"statuses\": {");
    for (int i = 0; i < STATUSES_MAX; i++) {
        if (point->statuses[i] > 0) {
            fprintf(file, "%s\"%d\": %" PRIu64, before, i, point->statuses[i]);
            before = ", ";
        }
    }
    fprintf(file, "}");
}

static void json_named(FILE *file, const char *key, const struct named_quantiles *rows,
                       size_t count, bool requests) {
    fprintf(file, ",\n     \"%s\": [", key);
    for (size_t i = 0; i < count; i++) {
        fprintf(file, "%s{\"name\": ", i > 0 ? ", " : "");
        json_text(file, rows[i].name);
        if (requests) {
            fprintf(file, ", \"right\": %" PRIu64 ", \"wrong\": %" PRIu64, rows[i].done,
                    rows[i].faults);
        }
        json_quantiles(file, "ms", &rows[i].times);
        fprintf(file, "}");
    }
    fprintf(file, "]");
}

static void json_point(FILE *file, const struct measure_point *point) {
    fprintf(file,
            "    {\"connections\": %zu, \"threads\": %zu, \"offered\": %.3f, \"share\": %.1f, "
            "\"rate\": %.3f, \"seconds\": %.3f, \"windows\": %zu, \"stable\": %s,\n"
            "     \"client_busy\": %.3f, \"right\": %" PRIu64 ", \"wrong\": %" PRIu64
            ", \"bytes\": %" PRIu64 ", \"reconnects\": %" PRIu64,
            point->connections, point->threads, point->offered, point->share, point->rate,
            point->seconds, point->windows, point->stable ? "true" : "false", point->client_busy,
            point->done, point_faults(point), point->bytes, point->reconnects);
    json_counts(file, point);
    json_quantiles(file, "latency", &point->latency);
    json_quantiles(file, "service", &point->service);
    json_quantiles(file, "job", &point->job);
    json_quantiles(file, "overhead", &point->overhead);
    json_quantiles(file, "transport", &point->transport);
    json_named(file, "phases", point->phases, point->phase_count, false);
    json_named(file, "requests", point->items, point->item_count, true);
    fprintf(file, "}");
}

void report_json(FILE *file, const struct report *report) {
    static const char *const kinds[] = {"run", "connections", "rates"};
    fprintf(file, "{\"title\": ");
    json_text(file, report->title);
    fprintf(file, ", \"url\": ");
    json_text(file, report->url);
    fprintf(file, ", \"kind\": \"%s\", \"unit\": \"ms\", \"peak\": %.3f,\n  \"points\": [\n",
            kinds[report->kind], report->peak);
    for (size_t i = 0; i < report->count; i++) {
        json_point(file, &report->points[i]);
        fprintf(file, "%s\n", i + 1 < report->count ? "," : "");
    }
    fprintf(file, "  ]}\n");
}
