/*
 * options.c: the option table and its four sources.
 *
 * Sources are applied in rising order of precedence, each through the same setter, so that a value
 * is refused with the same words wherever it came from.
 */
#include "server/core/options.h"

#include "compute/core/log.h"
#include "compute/core/spelling.h"
#include "compute/jobs/job.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum option_type {
    OPTION_TEXT,
    OPTION_COUNT,
    OPTION_BYTES,
    OPTION_SECONDS,
    OPTION_CHOICE,
    OPTION_SWITCH /* "true" or "false"; as a flag also alone, for "true" */
};

struct option_row {
    const char *name;
    enum option_type type;
    size_t offset;
    double min, max; /* TEXT: of its size; max 0 for OPTION_TEXT_MAX */
    const char *preset;
    const char *const *choices; /* CHOICE: NULL-terminated */
    const char *help;
};

static const char *const levels[] = {"error", "warning", "info", "debug", NULL};
static const char *const log_formats[] = {"text", "json", NULL};
static const char *const sandboxes[] = {"on", "off", "report", NULL};

#define AT(member) offsetof(struct options, member)

static const struct option_row rows[] = {
    {"listen", OPTION_TEXT, AT(listen), 1, 0, "127.0.0.1:8080", NULL,
     "address and port; port 0 takes a free one and prints it"},
    {"port-file", OPTION_TEXT, AT(port_file), 0, 0, "", NULL, "file that receives the port"},
    {"device", OPTION_TEXT, AT(device), 1, 0, "auto", NULL,
     "auto, cpu, or a list such as cuda:0,cuda:1"},
    {"slots", OPTION_COUNT, AT(slots), 0, 64, "0", NULL,
     "jobs that one device runs at a time; 0: what suits it"},
    {"gather", OPTION_COUNT, AT(gather), 0, GROUP_MAX, "0", NULL,
     "small waiting jobs that share a launch, at most; 0: what suits the device; 1: none"},
    {"threads", OPTION_COUNT, AT(threads), 0, 4096, "0", NULL,
     "threads of the CPU device; 0: one a core"},
    {"arena", OPTION_BYTES, AT(arena), 1 << 20, 0x1p46, "1G", NULL,
     "memory shared with the workers, for inputs and results; each client has a share of it"},
    {"device-memory", OPTION_BYTES, AT(device_memory), 0, 0x1p46, "0", NULL,
     "memory of each device that jobs may take; 0: all there is"},
    {"cache-bytes", OPTION_BYTES, AT(cache_bytes), 0, 0x1p42, "256M", NULL,
     "memory for results that are kept; 0: every request runs a job of its own"},
    {"max-body", OPTION_BYTES, AT(max_body), 1024, 0x1p40, "260M", NULL, "largest request body"},
    {"max-pixels", OPTION_COUNT, AT(max_pixels), 1, 0x1p40, "67108864", NULL,
     "most pixels of one picture, each of supersample²"},
    {"max-iterations", OPTION_COUNT, AT(max_iterations), 1, 1e12, "10000000", NULL,
     "most iterations of one job"},
    {"max-samples", OPTION_COUNT, AT(max_samples), 3, 0x1p40, "10000000", NULL,
     "most points of one light curve"},
    {"max-frequencies", OPTION_COUNT, AT(max_frequencies), 1, 0x1p40, "16777216", NULL,
     "most points of one periodogram"},
    {"queue", OPTION_COUNT, AT(queue), 0, 1000000, "256", NULL, "jobs that may wait"},
    {"deadline", OPTION_SECONDS, AT(deadline), 0.01, 86400, "300", NULL,
     "longest time from a job's request to its answer"},
    {"drain-timeout", OPTION_SECONDS, AT(drain_timeout), 0, 86400, "20", NULL,
     "how long running jobs may go on after SIGTERM, and their answers be read"},
    {"connections", OPTION_COUNT, AT(connections), 2, 1000000, "4096", NULL,
     "most connections at a time; fewer where the limit of open files is low"},
    {"connections-per-address", OPTION_COUNT, AT(connections_per_address), 0, 1000000, "1024", NULL,
     "most connections of one client address; 0: no limit"},
    {"http-threads", OPTION_COUNT, AT(http_threads), 0, 64, "0", NULL,
     "event loops; more serve more requests at a time; 0: one for every four cores, up to four"},
    {"idle-timeout", OPTION_SECONDS, AT(idle_timeout), 1, 3600, "30", NULL,
     "silence, or crawling, after which a connection is cut"},
    {"transfer-timeout", OPTION_SECONDS, AT(transfer_timeout), 1, 86400, "600", NULL,
     "longest time for a body to come, or an answer to be taken; a large one must keep pace"},
    {"keys", OPTION_TEXT, AT(keys), 0, 0, "", NULL,
     "file of API keys (`kilnd key new` makes one); read again on SIGHUP"},
    {"wrong-keys", OPTION_COUNT, AT(wrong_keys), 0, 1000000, "30", NULL,
     "unknown keys that an address may send in a minute before it gets 429; 0: no limit"},
    {"allow-open", OPTION_SWITCH, AT(allow_open), 0, 0, "false", NULL,
     "serve other machines without keys (--hosts holds all the same)"},
    {"hosts", OPTION_TEXT, AT(hosts), 0, 0, "", NULL,
     "names besides localhost that a daemon without keys answers to, with commas between; *: any"},
    {"tls-cert", OPTION_TEXT, AT(tls_cert), 0, 0, "", NULL,
     "PEM file of the certificate and its chain: HTTPS instead of HTTP"},
    {"tls-key", OPTION_TEXT, AT(tls_key), 0, 0, "", NULL, "PEM file of the certificate's key"},
    {"cors-origin", OPTION_TEXT, AT(cors_origin), 0, OPTION_LIST_MAX, "", NULL,
     "origins whose pages may ask and read answers, with commas; or *"},
    {"state-dir", OPTION_TEXT, AT(state_dir), 0, 0, "", NULL,
     "directory of jobs that outlive their connection, and of the driver's compiled kernels"},
    {"store-bytes", OPTION_BYTES, AT(store_bytes), 0, 0x1p46, "0", NULL,
     "inputs and results of kept jobs; 0: as the disk allows, or 256M without --state-dir"},
    {"store-jobs", OPTION_COUNT, AT(store_jobs), 1, 1e6, "100000", NULL,
     "kept jobs that wait or run; more get 503"},
    {"log-level", OPTION_CHOICE, AT(log_level), 0, 0, "info", levels,
     "error, warning, info or debug"},
    {"log-requests", OPTION_SWITCH, AT(log_requests), 0, 0, "false", NULL,
     "a line in the log for every request (at log level info and debug)"},
    {"log-format", OPTION_CHOICE, AT(log_format), 0, 0, "text", log_formats,
     "text, or json: one object a line"},
    {"sandbox", OPTION_CHOICE, AT(sandbox), 0, 0, "on", sandboxes,
     "on, off, or report: system calls that are not needed are refused, or only logged"},
    {"config", OPTION_TEXT, AT(config), 0, 0, "", NULL, "file of lines `name = value`"},
};

#define ROWS (sizeof rows / sizeof rows[0])

static const struct option_row *row_find(const char *name, size_t size) {
    for (size_t i = 0; i < ROWS; i++) {
        if (strlen(rows[i].name) == size && memcmp(rows[i].name, name, size) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

struct unit {
    const char *name; /* in lower case; sizes' may be upper case too */
    double factor;
};

/* Counts take the same as sizes: 64M are 67108864 pixels, as many as 64M bytes are bytes. */
static const struct unit sizes[] = {
    {"k", 0x1p10}, {"m", 0x1p20}, {"g", 0x1p30}, {"t", 0x1p40}, {NULL, 0}};
static const struct unit times[] = {{"ms", 1e-3}, {"s", 1},     {"m", 60},
                                    {"h", 3600},  {"d", 86400}, {NULL, 0}};

/* Reads a plain decimal number with one of the units behind it, or none. */
static bool number_read(const char *text, const struct unit *units, bool upper, double *value) {
    char *end = NULL;
    if (!isdigit((unsigned char)text[0]) || strpbrk(text, "xXpP") != NULL) {
        return false;
    }
    errno = 0;
    *value = strtod(text, &end);
    if (errno != 0 || !isfinite(*value)) {
        return false;
    }
    for (; *end != '\0' && units->name != NULL; units++) {
        if ((upper ? strcasecmp(end, units->name) : strcmp(end, units->name)) == 0) {
            *value *= units->factor;
            return true;
        }
    }
    return *end == '\0';
}

static bool choice_set(const struct option_row *row, int32_t *value, const char *text) {
    for (int32_t i = 0; row->choices[i] != NULL; i++) {
        if (strcmp(row->choices[i], text) == 0) {
            *value = i;
            return true;
        }
    }
    return false;
}

static bool number_set(const struct option_row *row, void *place, const char *text) {
    double value;
    bool time = row->type == OPTION_SECONDS;
    if (!number_read(text, time ? times : sizes, !time, &value) || value < row->min ||
        value > row->max) {
        return false;
    }
    if (row->type == OPTION_SECONDS) {
        *(double *)place = value;
        return true;
    }
    if (value != floor(value)) {
        return false;
    }
    *(uint64_t *)place = (uint64_t)value;
    return true;
}

static bool switch_set(bool *place, const char *text) {
    *place = strcmp(text, "true") == 0;
    return *place || strcmp(text, "false") == 0;
}

static bool text_set(const struct option_row *row, char *place, const char *text) {
    size_t size = strlen(text);
    if (size >= (row->max > 0 ? (size_t)row->max : OPTION_TEXT_MAX) || (double)size < row->min) {
        return false;
    }
    memcpy(place, text, size + 1);
    return true;
}

/* Sets one option; `source` is how the user named it, for the message. */
static bool row_set(struct options *options, const struct option_row *row, const char *text,
                    const char *source, char *why, size_t why_size) {
    void *place = (char *)options + row->offset;
    bool good = row->type == OPTION_TEXT     ? text_set(row, place, text)
                : row->type == OPTION_CHOICE ? choice_set(row, place, text)
                : row->type == OPTION_SWITCH ? switch_set(place, text)
                                             : number_set(row, place, text);
    if (!good &&
        (row->type == OPTION_TEXT || row->type == OPTION_CHOICE || row->type == OPTION_SWITCH)) {
        snprintf(why, why_size, "%s: \"%.60s\" is not possible (%s)", source, text, row->help);
    } else if (!good) {
        snprintf(why, why_size, "%s: \"%.60s\" is not a %s from %.15g to %.15g, %s (%s)", source,
                 text, row->type == OPTION_SECONDS ? "number of seconds" : "number", row->min,
                 row->max,
                 row->type == OPTION_SECONDS ? "or with ms, s, m, h or d behind it"
                                             : "or with K, M, G or T (powers of 1024) behind it",
                 row->help);
    }
    return good;
}

static bool presets_apply(struct options *options, char *why, size_t why_size) {
    memset(options, 0, sizeof *options);
    for (size_t i = 0; i < ROWS; i++) {
        if (!row_set(options, &rows[i], rows[i].preset, rows[i].name, why, why_size)) {
            return false;
        }
    }
    return true;
}

/* Cuts blanks off both ends, in place. */
static char *trimmed(char *text) {
    while (isspace((unsigned char)*text)) {
        text++;
    }
    size_t size = strlen(text);
    while (size > 0 && isspace((unsigned char)text[size - 1])) {
        text[--size] = '\0';
    }
    return text;
}

/* Takes quotes off a value, in place: '…' as it is, "…" with \\" and \\\\. What follows may be a
   comment only. NULL where the quote does not end so. */
static char *unquoted(char *text) {
    char quote = text[0];
    if (quote != '"' && quote != '\'') {
        return text;
    }
    char *out = text, *at = text + 1;
    for (; *at != '\0' && *at != quote; at++) {
        at += quote == '"' && *at == '\\' && (at[1] == '"' || at[1] == '\\');
        *out++ = *at;
    }
    if (*at != quote) {
        return NULL;
    }
    at += 1 + strspn(at + 1, " \t");
    *out = '\0';
    return *at == '\0' || *at == '#' ? text : NULL;
}

static bool line_apply(struct options *options, char *line, const char *source, char *why,
                       size_t why_size) {
    char *text = trimmed(line);
    if (*text == '\0' || *text == '#') {
        return true;
    }
    char *equals = strchr(text, '=');
    if (equals == NULL) {
        snprintf(why, why_size, "%s: expected `name = value`", source);
        return false;
    }
    *equals = '\0';
    const char *name = trimmed(text);
    const struct option_row *row = row_find(name, strlen(name));
    if (row == NULL) {
        snprintf(why, why_size, "%s: there is no option \"%.60s\"", source, name);
        return false;
    }
    char *value = unquoted(trimmed(equals + 1));
    if (value == NULL) {
        snprintf(why, why_size, "%s: the quotes around the value of \"%.60s\" do not end it",
                 source, name);
        return false;
    }
    return row_set(options, row, value, source, why, why_size);
}

enum line_state { LINE_NONE, LINE_WHOLE, LINE_LONG, LINE_NUL };

/* The next line without its end. What does not fit must not become two lines. */
static enum line_state line_next(FILE *file, char *line, size_t capacity) {
    size_t size = 0;
    int byte;
    while ((byte = fgetc(file)) != EOF && byte != '\n') {
        if (byte == '\0') {
            return LINE_NUL;
        }
        if (size == capacity - 1) {
            return LINE_LONG;
        }
        line[size++] = (char)byte;
    }
    line[size] = '\0';
    return byte == EOF && size == 0 ? LINE_NONE : LINE_WHOLE;
}

static bool file_apply(struct options *options, const char *path, char *why, size_t why_size) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        snprintf(why, why_size, "%.200s: %s", path, strerror(errno));
        return false;
    }
    char line[OPTION_LIST_MAX + 64];
    bool good = true;
    for (int number = 1; good; number++) {
        char source[OPTION_TEXT_MAX + 16];
        snprintf(source, sizeof source, "%.200s:%d", path, number);
        enum line_state state = line_next(file, line, sizeof line);
        if (state == LINE_NONE) {
            break;
        }
        if (state != LINE_WHOLE) {
            snprintf(why, why_size,
                     state == LINE_LONG ? "%s: the line is longer than %zu bytes"
                                        : "%s: the line has a NUL byte",
                     source, sizeof line - 1);
            good = false;
        } else {
            good = line_apply(options, line, source, why, why_size);
        }
    }
    fclose(file);
    return good;
}

static const char *environment_get(const struct option_row *row, char *name, size_t name_size) {
    size_t size = (size_t)snprintf(name, name_size, "KILN_%s", row->name);
    for (size_t i = 0; i < size && i < name_size; i++) {
        name[i] = name[i] == '-' ? '_' : (char)toupper((unsigned char)name[i]);
    }
    return getenv(name);
}

/* What begins with one of these is no option and means to be none: our own variables, and those
   that Kubernetes and container links set for a service of the name "kiln". */
static const char *const strangers[] = {
    "MODULE_PATH", "CPU_ISA", "PARENT_PID", "TEST_",    "FAULT", "SOAK",     "ALLOCATOR", "STANDIN",
    "BUILD",       "URL",     "CUDA",       "SERVICE_", "PORT_", "PORT=tcp", "NAME=",     "ENV_"};

/* The option that `name` (as after "KILN_") was probably meant for, or NULL. */
static const struct option_row *row_guess(const char *name) {
    const char *best = NULL;
    for (size_t i = 0; i < ROWS; i++) {
        spelling_consider(name, rows[i].name, &best);
    }
    return best != NULL ? row_find(best, strlen(best)) : NULL;
}

/* `entry` is what stands behind "KILN_" in the environment: NAME=value. */
static bool variable_check(struct options *options, const char *entry, char *why, size_t why_size) {
    char name[64], meant[64];
    size_t size = strcspn(entry, "=");
    for (size_t i = 0; i < size && i < sizeof name - 1; i++) {
        name[i] = entry[i] == '_' ? '-' : (char)tolower((unsigned char)entry[i]);
    }
    name[size < sizeof name - 1 ? size : sizeof name - 1] = '\0';
    const struct option_row *guess = row_find(name, strlen(name));
    if (guess != NULL) {
        environment_get(guess, meant, sizeof meant);
        if (strlen(meant) == size + 5 && strncmp(meant + 5, entry, size) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        if (strncmp(entry, strangers[i], strlen(strangers[i])) == 0) {
            return true;
        }
    }
    guess = guess != NULL ? guess : row_guess(name);
    if (guess != NULL) {
        environment_get(guess, meant, sizeof meant);
        snprintf(why, why_size, "KILN_%.*s in the environment is no option; did you mean %s?",
                 (int)(size < 60 ? size : 60), entry, meant);
        return false;
    }
    size_t used = strlen(options->unknown);
    snprintf(options->unknown + used, sizeof options->unknown - used, "%sKILN_%.*s",
             used > 0 ? ", " : "", (int)(size < 60 ? size : 60), entry);
    return true;
}

/* A name that is almost an option's is a mistake that would go unnoticed; others may be anybody's.
 */
static bool environment_check(struct options *options, char *why, size_t why_size) {
    options->unknown[0] = '\0';
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        if (strncmp(*entry, "KILN_", 5) == 0 &&
            !variable_check(options, *entry + 5, why, why_size)) {
            return false;
        }
    }
    return true;
}

static bool environment_apply(struct options *options, char *why, size_t why_size) {
    for (size_t i = 0; i < ROWS; i++) {
        char name[64];
        const char *value = environment_get(&rows[i], name, sizeof name);
        if (value != NULL && !row_set(options, &rows[i], value, name, why, why_size)) {
            return false;
        }
    }
    return environment_check(options, why, why_size);
}

/* Walks the flags; with `only` NULL sets all of them, else just that row (for --config, which has
   to be known before the file is read). */
static bool flags_apply(struct options *options, int argc, char **argv, int first,
                        const struct option_row *only, bool *help, char *why, size_t why_size) {
    for (int i = first; i < argc; i++) {
        const char *flag = argv[i];
        if (strcmp(flag, "--help") == 0 || strcmp(flag, "-h") == 0) {
            *help = true;
            return true;
        }
        const char *equals = strchr(flag, '=');
        size_t size = equals != NULL ? (size_t)(equals - flag) : strlen(flag);
        const struct option_row *row =
            size > 2 && memcmp(flag, "--", 2) == 0 ? row_find(flag + 2, size - 2) : NULL;
        if (row == NULL) {
            snprintf(why, why_size, "unknown argument \"%.100s\" (see --help)", flag);
            return false;
        }
        bool alone = equals == NULL && row->type == OPTION_SWITCH;
        if (equals == NULL && !alone && i + 1 >= argc) {
            snprintf(why, why_size, "%.100s needs a value (%s)", flag, row->help);
            return false;
        }
        const char *value = equals != NULL ? equals + 1 : alone ? "true" : argv[++i];
        if ((only == NULL || only == row) && !row_set(options, row, value, flag, why, why_size)) {
            return false;
        }
    }
    return true;
}

bool options_read(struct options *options, int argc, char **argv, int first, bool *help, char *why,
                  size_t why_size) {
    const struct option_row *config = row_find("config", strlen("config"));
    char name[64];
    *help = false;
    if (!presets_apply(options, why, why_size)) {
        return false;
    }
    const char *value = environment_get(config, name, sizeof name);
    if (value != NULL && !row_set(options, config, value, name, why, why_size)) {
        return false;
    }
    if (!flags_apply(options, argc, argv, first, config, help, why, why_size) || *help) {
        return *help;
    }
    char path[OPTION_TEXT_MAX];
    memcpy(path, options->config, sizeof path);
    return (path[0] == '\0' || file_apply(options, path, why, why_size)) &&
           environment_apply(options, why, why_size) &&
           flags_apply(options, argc, argv, first, NULL, help, why, why_size);
}

void options_help(FILE *out) {
    fprintf(out, "Options (flag, KILN_… environment variable, line of the configuration file).\n"
                 "Numbers may have K, M, G or T behind them (powers of 1024), times ms, s, m, h or "
                 "d.\n");
    for (size_t i = 0; i < ROWS; i++) {
        char flag[64];
        snprintf(flag, sizeof flag, "--%s %s", rows[i].name,
                 rows[i].preset[0] != '\0' ? rows[i].preset : "…");
        /* "…" is three bytes of one column */
        fprintf(out, "  %-*s  %s\n", rows[i].preset[0] != '\0' ? 34 : 36, flag, rows[i].help);
    }
}
