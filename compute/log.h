/*
 * log.h: one line a message on standard error: time, level, process role, text.
 *
 * Threads: any. Lines are written whole (one write call).
 */
#ifndef KILN_COMPUTE_LOG_H
#define KILN_COMPUTE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/** Sets what is written and the role shown ("front", "cpu:0"; copied, cut at 23 bytes). The level
    also comes from KILN_LOG_LEVEL in workers. KILN_LOG_FORMAT=json makes a JSON object of each
   line. */
void log_init(enum log_level level, const char *role);
enum log_level log_level_get(void);
/** The level in KILN_LOG_LEVEL, which children of the front inherit; else INFO. */
enum log_level log_level_environment(void);
void log_write(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...)   log_write(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_write(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...)    log_write(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
