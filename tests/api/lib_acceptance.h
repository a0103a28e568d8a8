/*
 * lib_acceptance.h: figures of the acceptance table in docs/testing.md.
 *
 * A row may have several lines. tests/soak/run.sh collects them: every line begins with
 * "acceptance: ". Standard output is written line by line, so that a run that is cut short has told
 * all that it had found.
 *
 * Threads: one at a time.
 */
#ifndef KILN_TESTS_API_LIB_ACCEPTANCE_H
#define KILN_TESTS_API_LIB_ACCEPTANCE_H

#include <stdbool.h>

/** True where the long forms are wanted: KILN_SOAK is set. */
bool acceptance_is_long(void);

/** True in a program built with a sanitizer, where times say little. */
bool acceptance_is_sanitized(void);

/** Prints "acceptance: ROW | FIGURE | TARGET | yes" or "… | NO". It fails nothing. */
void acceptance_print(bool met, const char *row, const char *target, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
