/*
 * options.c: names, ranges and help of every option; the rest is checked across options.
 */
#include "bench/load/options.h"

#include "bench/load/engine.h"

#include <ctype.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum option_type {
    OPTION_TEXT,
    OPTION_NUMBER,
    OPTION_INTEGER,
    OPTION_SIZE,
    OPTION_FLAG,
    OPTION_HEADER
};

struct load_option {
    const char *name, *value;
    enum option_type type;
    size_t offset;
    double low, high, preset;
    const char *help;
};

#define AT(member) offsetof(struct load_options, member)

static const struct load_option rows[] = {
    {"scenario", "FILE", OPTION_TEXT, AT(scenario), 0, 0, 0,
     "requests to mix (JSON, see scenario.h)"},
    {"path", "PATH", OPTION_TEXT, AT(path), 0, 0, 0, "or one request: its path and query"},
    {"method", "WORD", OPTION_TEXT, AT(method), 0, 0, 0, "GET, or POST where there is a body"},
    {"header", "'NAME: TEXT'", OPTION_HEADER, AT(headers), 0, 0, 0, "a header; may be repeated"},
    {"body", "TEXT", OPTION_TEXT, AT(body), 0, 0, 0, "the body; variables are filled in"},
    {"body-file", "FILE", OPTION_TEXT, AT(body_file), 0, 0, 0, "the body, as it is"},
    {"expect", "STATUS", OPTION_INTEGER, AT(expect), 0, 599, 0, "the right status; 0: any 2xx"},
    {"connections", "N", OPTION_INTEGER, AT(connections), 1, CONNECTIONS_MAX, 1,
     "keep-alive connections"},
    {"threads", "N", OPTION_INTEGER, AT(threads), 0, THREADS_MAX, 0, "0: what suits them"},
    {"rate", "R", OPTION_NUMBER, AT(rate), 0, 1e7, 0,
     "open loop: requests a second that are due; 0: closed loop"},
    {"constant", NULL, OPTION_FLAG, AT(constant), 0, 0, 0,
     "open loop: due at equal distances, not Poisson"},
    {"duration", "S", OPTION_NUMBER, AT(duration), 0.05, 86400, 5, "seconds of a window"},
    {"warmup", "S", OPTION_NUMBER, AT(warmup), 0, 86400, 1, "seconds before the first one"},
    {"stable", "PERCENT", OPTION_NUMBER, AT(stable), 0, 100, 0,
     "windows until three in a row agree so well; 0: one window"},
    {"windows", "N", OPTION_INTEGER, AT(windows), 3, 1000, 10, "at most so many for that"},
    {"count", "N", OPTION_INTEGER, AT(count), 0, 1e12, 0, "send so many instead of for a time"},
    {"timeout", "S", OPTION_NUMBER, AT(timeout), 0.01, 3600, 30, "of one request"},
    {"spin", "MICROSECONDS", OPTION_NUMBER, AT(spin), 0, 10000, 0,
     "open loop: awake so long before a request is due (a core of its own)"},
    {"seed", "N", OPTION_INTEGER, AT(seed), 0, 9e15, 1, "of arrivals, mixes and ${random}"},
    {"first", "N", OPTION_INTEGER, AT(first), 0, 9e15, 0, "first ${i}; 0: from the time of day"},
    {"sweep", "WHAT", OPTION_TEXT, AT(sweep), 0, 0, 0,
     "connections=1,2,4,… or rates[=10,20,…] (percent of the peak)"},
    {"title", "TEXT", OPTION_TEXT, AT(title), 0, 0, 0, "of tables and picture"},
    {"json", "FILE", OPTION_TEXT, AT(json), 0, 0, 0, "write the figures there"},
    {"svg", "FILE", OPTION_TEXT, AT(svg), 0, 0, 0, "draw a sweep there"},
    {"watch", "PID", OPTION_INTEGER, AT(watch), 0, 4194304, 0,
     "with --count: what this daemon holds before and after"},
    {"leak-memory", "BYTES", OPTION_SIZE, AT(leak_memory), 0, 1e15, 16 << 20,
     "growth of a process that is allowed"},
    {"leak-device", "BYTES", OPTION_SIZE, AT(leak_device), 0, 1e15, 16 << 20,
     "growth of a device's memory that is allowed"},
    {"leak-descriptors", "N", OPTION_INTEGER, AT(leak_descriptors), 0, 1e6, 0,
     "growth of descriptors that is allowed"},
    {"allow-errors", NULL, OPTION_FLAG, AT(allow_errors), 0, 0, 0,
     "exit code 0 even if requests failed"},
    {"help", NULL, OPTION_FLAG, AT(help), 0, 0, 0, "this text"},
};

#define ROWS (sizeof rows / sizeof rows[0])

void options_help(FILE *file) {
    fprintf(file, "kiln-bench: sends HTTP requests and tells how long they took.\n\n"
                  "  kiln-bench [options] http://HOST:PORT[/PREFIX]\n"
                  "  kiln-bench [options] unix:/PATH/OF/SOCKET\n\n");
    for (size_t i = 0; i < ROWS; i++) {
        char left[64], preset[32] = "";
        snprintf(left, sizeof left, "--%s %s", rows[i].name, rows[i].value ? rows[i].value : "");
        if (rows[i].type == OPTION_SIZE) {
            snprintf(preset, sizeof preset, " (%gM)", rows[i].preset / 1048576);
        } else if (rows[i].preset > 0) {
            snprintf(preset, sizeof preset, " (%g)", rows[i].preset);
        }
        fprintf(file, "  %-24s %s%s\n", left, rows[i].help, preset);
    }
    fprintf(file, "\nVariables in path, headers and body: ${i} ${i:DIGITS} ${random} "
                  "${random:LOW:HIGH}.\n"
                  "Exit code: 0; 1 after errors of requests or a leak; 2 where nothing was "
                  "measured.\n");
}

static const struct load_option *row_find(const char *name) {
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

static bool number_read(const char *text, bool size, double *value) {
    char *end = NULL;
    const char *units = "KMGT", *unit;
    if (!isdigit((unsigned char)text[0]) && text[0] != '.') {
        return false;
    }
    *value = strtod(text, &end);
    unit = size && *end != '\0' ? strchr(units, toupper((unsigned char)*end)) : NULL;
    if (unit != NULL) {
        *value *= pow(1024, (double)(unit - units + 1));
        end++;
    }
    return *end == '\0' && isfinite(*value);
}

static bool header_add(struct load_options *options, const char *text) {
    size_t size = strlen(options->headers);
    const char *colon = strchr(text, ':');
    if (colon == NULL || colon == text || strpbrk(text, "\r\n") != NULL ||
        size + strlen(text) + 3 > sizeof options->headers) {
        return false;
    }
    snprintf(options->headers + size, sizeof options->headers - size, "%s\r\n", text);
    return true;
}

static bool option_set(struct load_options *options, const struct load_option *row,
                       const char *text, char *why, size_t why_size) {
    char *place = (char *)options + row->offset;
    double value = 0;
    switch (row->type) {
    case OPTION_TEXT:
        *(const char **)place = text;
        return true;
    case OPTION_FLAG:
        *(bool *)place = true;
        return true;
    case OPTION_HEADER:
        snprintf(why, why_size, "--header is 'NAME: TEXT'");
        return header_add(options, text);
    default:
        break;
    }
    if (!number_read(text, row->type == OPTION_SIZE, &value) || value < row->low ||
        value > row->high || (row->type != OPTION_NUMBER && value != floor(value))) {
        snprintf(why, why_size, "--%s is a%s number from %g to %g, not `%s`", row->name,
                 row->type == OPTION_NUMBER ? "" : " whole", row->low, row->high, text);
        return false;
    }
    *(double *)place = value;
    return true;
}

static bool sweep_read(struct load_options *options, char *why, size_t why_size) {
    static const double shares[] = {10, 20, 30, 40, 50, 60, 70, 80, 90, 95};
    static const double steps[] = {1, 2, 4, 8, 16, 32, 64};
    const char *list = strchr(options->sweep, '=');
    size_t size = strcspn(options->sweep, "=");
    bool rates = size == 5 && memcmp(options->sweep, "rates", 5) == 0;
    if (!rates && (size != 11 || memcmp(options->sweep, "connections", 11) != 0)) {
        snprintf(why, why_size, "--sweep is connections=… or rates=…");
        return false;
    }
    options->kind = rates ? REPORT_RATES : REPORT_CONNECTIONS;
    if (list == NULL) {
        options->step_count = rates ? sizeof shares / sizeof *shares : sizeof steps / sizeof *steps;
        memcpy(options->steps, rates ? shares : steps, options->step_count * sizeof(double));
        return true;
    }
    for (const char *at = list + 1; options->step_count < SWEEP_MAX;) {
        char *end = NULL;
        double value = strtod(at, &end);
        if (end == at || !(value > 0) || (!rates && value != floor(value)) ||
            value > (rates ? 1000 : CONNECTIONS_MAX) || (*end != ',' && *end != '\0')) {
            break;
        }
        options->steps[options->step_count++] = value;
        if (*end == '\0') {
            return true;
        }
        at = end + 1;
    }
    snprintf(why, why_size, "--sweep: `%s` is no list of up to %d numbers in range", list + 1,
             SWEEP_MAX);
    return false;
}

static bool options_check(struct load_options *options, char *why, size_t why_size) {
    const char *fault = NULL;
    if (options->url == NULL) {
        fault = "an address is missing (see --help)";
    } else if (options->scenario != NULL &&
               (options->path != NULL || options->body != NULL || options->body_file != NULL)) {
        fault = "--scenario holds the requests: no --path or body beside it";
    } else if (options->body != NULL && options->body_file != NULL) {
        fault = "--body or --body-file, not both";
    } else if (options->sweep != NULL && (options->rate > 0 || options->count > 0)) {
        fault = "--sweep sets the load itself: no --rate or --count beside it";
    } else if (options->watch > 0 && options->count <= 0) {
        fault = "--watch needs --count";
    } else if (options->svg != NULL && options->sweep == NULL) {
        fault = "--svg draws a --sweep";
    }
    if (fault != NULL) {
        snprintf(why, why_size, "%s", fault);
        return false;
    }
    return options->sweep == NULL || sweep_read(options, why, why_size);
}

bool options_read(struct load_options *options, int argc, char **argv, char *why, size_t why_size) {
    memset(options, 0, sizeof *options);
    for (size_t i = 0; i < ROWS; i++) {
        if (rows[i].type == OPTION_NUMBER || rows[i].type == OPTION_INTEGER ||
            rows[i].type == OPTION_SIZE) {
            *(double *)((char *)options + rows[i].offset) = rows[i].preset;
        }
    }
    for (int i = 1; i < argc; i++) {
        char name[40];
        const char *text = NULL;
        if (strncmp(argv[i], "--", 2) != 0) {
            if (options->url != NULL) {
                snprintf(why, why_size, "one address, not also `%s`", argv[i]);
                return false;
            }
            options->url = argv[i];
            continue;
        }
        snprintf(name, sizeof name, "%.*s", (int)strcspn(argv[i] + 2, "="), argv[i] + 2);
        const struct load_option *row = row_find(name);
        if (row == NULL) {
            snprintf(why, why_size, "--%s is unknown (see --help)", name);
            return false;
        }
        if (row->type != OPTION_FLAG) {
            const char *equals = strchr(argv[i], '=');
            text = equals != NULL ? equals + 1 : i + 1 < argc ? argv[++i] : NULL;
            if (text == NULL) {
                snprintf(why, why_size, "--%s needs a value", name);
                return false;
            }
        }
        if (!option_set(options, row, text, why, why_size)) {
            return false;
        }
    }
    return options->help || options_check(options, why, why_size);
}
