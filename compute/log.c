/*
 * log.c: log lines on standard error.
 *
 * A line is built in one buffer on the stack and leaves with one write, so that lines of several
 * threads and processes that share standard error do not mix. Control characters become '?': text
 * that came from a client must not forge a second line or reach a terminal.
 *
 * With KILN_LOG_FORMAT=json in the environment (--log-format, which workers inherit) a line is one
 * JSON object: time, level, role, message.
 *
 * Threads: any; level and role are set before other threads start.
 */
#include "compute/log.h"
#include "compute/text.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024
#define JSON_MAX_BYTES (6 * LINE_MAX_BYTES + 128) /* every byte of the text escaped */

static _Atomic int current_level = LOG_LEVEL_INFO;
static char current_role[24] = "kilnd";
static bool as_json;

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARNING] = "warning",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

void log_init(enum log_level level, const char *role) {
    atomic_store(&current_level, (int)level);
    snprintf(current_role, sizeof current_role, "%s", role);
    const char *format = getenv("KILN_LOG_FORMAT");
    as_json = format != NULL && strcmp(format, "json") == 0;
}

enum log_level log_level_get(void) {
    return (enum log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

/* "2026-01-31T12:00:00.123Z" */
static void print_time(char time[32]) {
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t size = strftime(time, 32, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(time + size, 32 - size, ".%03dZ", (int)(now.tv_nsec / 1000000 % 1000));
}

/* Nowhere to report a failing standard error to. */
static void line_write(const char *line, size_t size) {
    ssize_t written = write(STDERR_FILENO, line, size);
    (void)written;
}

static void line_plain(const char *time, enum log_level level, const char *message) {
    char line[LINE_MAX_BYTES + 96];
    int size = snprintf(line, sizeof line, "%s %s %s %s\n", time, level_names[level], current_role,
                        message);
    for (int i = 0; i < size - 1; i++) {
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) {
            line[i] = '?';
        }
    }
    line_write(line, size > 0 ? (size_t)size : 0);
}

static void line_json(const char *time, enum log_level level, const char *message) {
    char line[JSON_MAX_BYTES];
    struct text text;
    text_init(&text, line, sizeof line);
    text_format(&text, "{\"time\":\"%s\",\"level\":\"%s\",\"role\":", time, level_names[level]);
    text_json_string(&text, current_role, strlen(current_role));
    text_string(&text, ",\"message\":");
    text_json_string(&text, message, strlen(message));
    text_string(&text, "}\n");
    line_write(line, text.size);
}

void log_write(enum log_level level, const char *format, ...) {
    if (level < LOG_LEVEL_ERROR || level > log_level_get()) {
        return;
    }
    char time[32], message[LINE_MAX_BYTES] = "";
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    print_time(time);
    (as_json ? line_json : line_plain)(time, level, message);
}

enum log_level log_level_environment(void) {
    const char *text = getenv("KILN_LOG_LEVEL");
    for (int i = LOG_LEVEL_ERROR; text != NULL && i <= LOG_LEVEL_DEBUG; i++) {
        if (strcmp(text, level_names[i]) == 0) {
            return (enum log_level)i;
        }
    }
    return LOG_LEVEL_INFO;
}
