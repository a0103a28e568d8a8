/*
 * log.h: one line a message on standard error: time, level, process role, text, members.
 *
 * A line is either the words and then name=value of each member, or (KILN_LOG_FORMAT=json, which
 * workers inherit) one JSON object. It leaves whole, with one write call, or not at all: a reader
 * that does not keep up, is gone, or has no room loses lines, and never stops or ends the process.
 * What was lost is counted, and said once there is room again.
 *
 * Threads: any.
 */
#ifndef KILN_COMPUTE_CORE_LOG_H
#define KILN_COMPUTE_CORE_LOG_H

#include "compute/core/trace.h"

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/** A fact beside the words. Names are ours; values may hold any bytes. */
struct log_member {
    const char *name;
    const char *value; /* NULL: left out */
    bool number;       /* the value is a JSON number or literal as it is */
};

/** Sets what is written and the role shown ("front", "cpu:0"; copied, cut at 23 bytes). The level
    also comes from KILN_LOG_LEVEL in workers. Before other threads start. Opens /dev/null in place
    of a standard descriptor that is closed, lest another file be taken for it. */
void log_init(enum log_level level, const char *role);
enum log_level log_level_get(void);
/** The level in KILN_LOG_LEVEL, which children of the front inherit; else INFO. */
enum log_level log_level_environment(void);
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** The same with the trace and span of the request that it is about; NULL or empty for none. */
void log_about(enum log_level level, const struct trace *trace, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** A line with members. */
void log_members(enum log_level level, const char *message, const struct log_member *members,
                 size_t count);
/** Lines of this process that were lost. */
uint64_t log_dropped(void);

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
