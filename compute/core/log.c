/*
 * log.c: log lines on standard error.
 *
 * A line is built in one buffer on the stack and leaves with one write, so that lines of several
 * threads and processes that share standard error do not mix; it is at most PIPE_BUF bytes, which a
 * pipe takes whole or not at all. Control characters become '?' or are escaped: text that came from
 * a client must not forge a second line or reach a terminal.
 *
 * Nobody waits for a reader. What standard error is tells how: a socket is sent to without
 * waiting; a pipe or terminal is opened once more, because O_NONBLOCK set on the descriptor itself
 * would be everybody's who shares it; where that cannot be, it is asked whether it has room. Files
 * on a disk do not make a writer wait for long.
 *
 * Threads: any; level, role and sink are set before other threads start.
 */
#include "compute/core/log.h"

#include "compute/core/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_MAX 1024
#define LINE_SIZE   PIPE_BUF

static _Atomic int current_level = LOG_LEVEL_INFO;
static char current_role[24] = "kilnd";
static bool as_json;

static struct {
    int fd;
    enum { SINK_FILE, SINK_SOCKET, SINK_OWN, SINK_ASKED } kind;
} sink = {STDERR_FILENO, SINK_ASKED};

static _Atomic uint64_t dropped, told; /* lines lost, and those of them that a line tells of */
static atomic_bool torn;               /* the last line ended in the middle */

static const char *const level_names[] = {
    [LOG_LEVEL_ERROR] = "error",
    [LOG_LEVEL_WARNING] = "warning",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_DEBUG] = "debug",
};

/* ---- where lines go ---- */

static void standard_open(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) {
            return;
        }
    }
}

static void sink_open(void) {
    struct stat status;
    if (sink.kind == SINK_OWN) {
        close(sink.fd);
    }
    sink.fd = STDERR_FILENO;
    sink.kind = SINK_ASKED;
    if (fstat(STDERR_FILENO, &status) != 0) {
        return;
    }
    if (S_ISREG(status.st_mode)) {
        sink.kind = SINK_FILE;
    } else if (S_ISSOCK(status.st_mode)) {
        sink.kind = SINK_SOCKET;
    } else if (S_ISFIFO(status.st_mode) || isatty(STDERR_FILENO)) {
        int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd >= 0) {
            sink.fd = fd;
            sink.kind = SINK_OWN;
        }
    }
}

static ssize_t sink_write(const char *bytes, size_t size) {
    struct pollfd room = {.fd = sink.fd, .events = POLLOUT};
    if (sink.kind == SINK_SOCKET) {
        return send(sink.fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    if (sink.kind == SINK_ASKED && (poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0)) {
        return -1;
    }
    ssize_t written = write(sink.fd, bytes, size);
    return written < 0 && errno == EINTR ? write(sink.fd, bytes, size) : written;
}

/* `line` has a byte of room before it, for the end of a line that was cut off. */
static bool line_write(char *line, size_t size) {
    int saved = errno;
    bool ends = atomic_exchange_explicit(&torn, false, memory_order_relaxed);
    line[-1] = '\n';
    ssize_t written = sink_write(line - ends, size + ends);
    bool good = written == (ssize_t)(size + ends);
    if (!good) {
        atomic_fetch_add_explicit(&dropped, 1, memory_order_relaxed);
        if (written > 0 || ends) {
            atomic_store_explicit(&torn, true, memory_order_relaxed);
        }
    }
    errno = saved;
    return good;
}

/* ---- lines ---- */

/* "2026-01-31T12:00:00.123Z" */
static void print_time(char time[32]) {
    struct timespec now;
    struct tm utc;
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    size_t size = strftime(time, 32, "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(time + size, 32 - size, ".%03dZ", (int)(now.tv_nsec / 1000000 % 1000));
}

struct line {
    char time[32];
    enum log_level level;
    const char *message;
    size_t size; /* of the message */
    const struct log_member *members;
    size_t count;
};

static void line_plain(const struct line *line, struct text *text) {
    text_format(text, "%s %s %s %.*s", line->time, level_names[line->level], current_role,
                (int)line->size, line->message);
    for (size_t i = 0; i < line->count; i++) {
        if (line->members[i].value != NULL) {
            text_format(text, " %s=%s", line->members[i].name, line->members[i].value);
        }
    }
    for (size_t i = 0; i < text->size; i++) {
        if ((unsigned char)text->data[i] < 0x20 || text->data[i] == 0x7f) {
            text->data[i] = '?';
        }
    }
}

static void line_json(const struct line *line, struct text *text) {
    text_format(text, "{\"time\":\"%s\",\"level\":\"%s\",\"role\":", line->time,
                level_names[line->level]);
    text_json_string(text, current_role, strlen(current_role));
    text_string(text, ",\"message\":");
    text_json_string(text, line->message, line->size);
    for (size_t i = 0; i < line->count; i++) {
        const struct log_member *member = &line->members[i];
        if (member->value == NULL) {
            continue;
        }
        text_format(text, ",\"%s\":", member->name);
        if (member->number) {
            text_string(text, member->value);
        } else {
            text_json_string(text, member->value, strlen(member->value));
        }
    }
    text_string(text, "}");
}

/* A line that is too long, because every byte of it is escaped, is made with fewer words, at last
   without the members. */
static bool line_leave(struct line *line) {
    char bytes[1 + LINE_SIZE];
    struct text text;
    print_time(line->time);
    for (;;) {
        text_init(&text, bytes + 1, LINE_SIZE - 1); /* without the end and the byte before */
        (as_json ? line_json : line_plain)(line, &text);
        if (!text.full || (line->size == 0 && line->count == 0)) {
            break;
        }
        line->count = line->size == 0 ? 0 : line->count;
        line->size /= 2;
    }
    text.data[text.size] = '\n';
    return line_write(bytes + 1, text.size + 1);
}

/* Tells of lost lines, once there is room again; one thread does. */
static void losses_tell(void) {
    uint64_t lost = atomic_load_explicit(&dropped, memory_order_relaxed);
    uint64_t known = atomic_load_explicit(&told, memory_order_relaxed);
    char message[64];
    if (lost == known || !atomic_compare_exchange_strong(&told, &known, lost)) {
        return;
    }
    int size = snprintf(message, sizeof message, "%llu lines of this log were lost",
                        (unsigned long long)(lost - known));
    struct line line = {.level = LOG_LEVEL_WARNING, .message = message, .size = (size_t)size};
    if (!line_leave(&line)) {
        atomic_fetch_sub(&told, lost - known);
    }
}

void log_members(enum log_level level, const char *message, const struct log_member *members,
                 size_t count) {
    if (level < LOG_LEVEL_ERROR || level > log_level_get()) {
        return;
    }
    struct line line = {.level = level,
                        .message = message,
                        .size = strnlen(message, MESSAGE_MAX),
                        .members = members,
                        .count = count};
    if (line_leave(&line)) {
        losses_tell();
    }
}

void log_init(enum log_level level, const char *role) {
    atomic_store(&current_level, (int)level);
    snprintf(current_role, sizeof current_role, "%s", role);
    const char *format = getenv("KILN_LOG_FORMAT");
    as_json = format != NULL && strcmp(format, "json") == 0;
    standard_open();
    sink_open();
}

enum log_level log_level_get(void) {
    return (enum log_level)atomic_load_explicit(&current_level, memory_order_relaxed);
}

uint64_t log_dropped(void) {
    return atomic_load_explicit(&dropped, memory_order_relaxed);
}

static void message_log(enum log_level level, const struct trace *trace, const char *format,
                        va_list arguments) {
    char message[MESSAGE_MAX] = "", id[TRACE_ID_TEXT], span[TRACE_SPAN_TEXT];
    bool known = trace != NULL && !trace_empty(trace);
    if (level < LOG_LEVEL_ERROR || level > log_level_get()) {
        return;
    }
    vsnprintf(message, sizeof message, format, arguments);
    if (known) {
        trace_id_print(trace, id);
        trace_span_print(trace, span);
    }
    const struct log_member members[] = {{"trace_id", id, false}, {"span_id", span, false}};
    log_members(level, message, members, known ? 2 : 0);
}

void log_write(enum log_level level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    message_log(level, NULL, format, arguments);
    va_end(arguments);
}

void log_about(enum log_level level, const struct trace *trace, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    message_log(level, trace, format, arguments);
    va_end(arguments);
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
