/*
 * lib_acceptance.c: figures of the acceptance table, one line each.
 */
#include "tests/api/lib_acceptance.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* Before main, and so before anything is written. */
__attribute__((constructor)) static void lines_flush(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
}

bool acceptance_is_long(void) {
    return getenv("KILN_SOAK") != NULL;
}

bool acceptance_is_sanitized(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return true;
#else
    return false;
#endif
}

void acceptance_print(bool met, const char *row, const char *target, const char *format, ...) {
    char figure[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(figure, sizeof figure, format, arguments);
    va_end(arguments);
    printf("acceptance: %s | %s | %s | %s\n", row, figure, target, met ? "yes" : "NO");
    fflush(stdout);
}
