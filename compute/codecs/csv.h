/*
 * csv.h: light curves as comma-separated text.
 *
 * Lines of two or three numbers: time, value and optionally the value's uncertainty. Separators are
 * comma, semicolon, tab or blanks, one kind in a file, as the first line shows; empty lines and
 * lines starting with '#' are skipped; the first line is a header if it does not start with a
 * number. With a header, columns named t|time, y|value|mag|flux, dy|err|error|sigma are found by
 * name (any case, quotes removed); without both t and y the first two or three columns count.
 * Further columns are ignored where there is a header and refused where there is none. Quotes
 * around a field are removed; empty fields at the end of a line, a byte order mark and carriage
 * returns are ignored.
 *
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_CODECS_CSV_H
#define KILN_COMPUTE_CODECS_CSV_H

#include "compute/status.h"

#include <stddef.h>
#include <stdint.h>

/** Upper bound of the rows in `size` bytes (for the caller's allocation): lines + 1. */
uint64_t csv_rows_bound(const char *text, size_t size);

/** Parses into t, y, dy of `capacity` each; `columns` receives 2 or 3 and `rows` the count. Broken
    lines are KILN_MALFORMED ("line 7: …"). Values "nan" and "inf" are read as such; the job's check
    refuses them. KILN_CANCELLED at a cancellation point. */
enum kiln_status csv_read(const char *text, size_t size, double *t, double *y, double *dy,
                          uint64_t capacity, uint64_t *rows, int *columns, char *why,
                          size_t why_size);

#endif
