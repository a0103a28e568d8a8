/*
 * log.c: log lines on standard error.
 *
 * A line is built in one buffer on the stack and leaves with one write, so that lines of several
 * threads and processes that share standard error do not mix. Control characters become '?': text
 * that came from a client must not forge a second line or reach a terminal.
 *
 * Threads: any; level and role are set before other threads start.
 */
#include "compute/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 1024

static _Atomic int current_level = LOG_LEVEL_INFO;
static char current_role[24] = "kilnd";

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARNING] = "warning",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

void log_init(enum log_level level, const char *role) {
    atomic_store(&current_level, (int)level);
    snprintf(current_role, sizeof current_role, "%s", role);
}

enum log_level log_level_get(void) {
    return (enum log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

/* Writes "2026-01-31T12:00:00.123Z warning front " and returns its length. */
static size_t print_head(char *line, size_t capacity, enum log_level level) {
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t size = strftime(line, capacity, "%Y-%m-%dT%H:%M:%S", &utc);
    int rest = snprintf(line + size, capacity - size, ".%03dZ %s %s ", (int)(now.tv_nsec / 1000000),
                        level_names[level], current_role);
    return size + (rest > 0 ? (size_t)rest : 0);
}

void log_write(enum log_level level, const char *format, ...) {
    if (level < LOG_LEVEL_ERROR || level > log_level_get()) {
        return;
    }
    char line[LINE_MAX_BYTES];
    size_t head = print_head(line, sizeof line, level);
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(line + head, sizeof line - head, format, arguments);
    va_end(arguments);
    size_t end = head + strlen(line + head);
    if (wanted < 0) {
        end = head;
    }
    for (size_t i = head; i < end; i++) {
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) {
            line[i] = '?';
        }
    }
    line[end++] = '\n'; /* over the NUL */
    /* Nowhere to report a failing standard error to. */
    ssize_t written = write(STDERR_FILENO, line, end);
    (void)written;
}
