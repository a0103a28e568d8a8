/*
 * csv.h: tables of numbers as text.
 *
 * Fields are separated by a comma, a semicolon, a tab or blanks, one kind in a file, which its
 * first two lines show. Lines end with LF, CR or both; empty ones and those that begin with '#' are
 * passed over, a byte order mark too. Fields may stand in quotes, with "" for one; a quote must be
 * closed on its line; no line is longer than CSV_LINE_MAX. The first line is a header if none of
 * its fields is a number or missing. A comment right before the first line of numbers, of as many
 * words as that has fields, counts as one too, if there is no other ("# t y dy", as NumPy writes
 * it).
 *
 * Only wanted columns are read as numbers, others may hold anything. A missing sample is a field
 * that is empty, or one of nan, null, none, na, n/a, --, - (any case), or a limit (">17.2"); it is
 * read as NaN.
 *
 * Threads: reentrant. Time and memory: linear in the text; no allocation.
 */
#ifndef KILN_COMPUTE_CODECS_CSV_H
#define KILN_COMPUTE_CODECS_CSV_H

#include "compute/codecs/columns.h"
#include "compute/core/status.h"

#include <stddef.h>
#include <stdint.h>

/** Bytes of a line, which is walked without a cancellation point. Who has lost the line ends, or
    sends something else altogether, is told so at once. */
#define CSV_LINE_MAX ((size_t)1 << 20)

/** A table whose first line has been looked at. */
struct csv {
    const char *text;
    size_t size, at;
    uint64_t line;             /* number of the line read last, from 1 */
    char separator;            /* ' ' stands for runs of blanks */
    size_t look;               /* where the next cancellation point is */
    enum kiln_status status;   /* why reading has ended early, else KILN_OK */
    struct column_table table; /* names point into the text */
};

/** The first missing sample. */
struct csv_missing {
    uint64_t line; /* 0: there is none */
    size_t column; /* from 0 */
    int role;      /* which of the wanted columns */
    char shown[24];
};

/** Whether a field stands for a sample that is missing. */
bool csv_missing_word(const char *text, size_t size);

/** Upper bound of the rows in `size` bytes (for the caller's allocation): lines + 1. */
uint64_t csv_rows_bound(const char *text, size_t size);

/** Finds separator, header and columns. KILN_MALFORMED with `why` ("line 7: …") where there are no
    rows, fewer than two columns or more than COLUMNS_MAX, or a line is too long. The text must
   outlive `csv`. */
enum kiln_status csv_open(struct csv *csv, const char *text, size_t size, char *why,
                          size_t why_size);

/** Reads the rows, once: the columns of `map` (COLUMN_NOWHERE: not wanted) into `values`, of
    `capacity` each. KILN_MALFORMED with `why` for what is no number, rows that are too short or
    longer than the first line or than CSV_LINE_MAX, and more than `capacity` rows; KILN_CANCELLED
   at a cancellation point, as csv_open. "inf" is read as such. */
enum kiln_status csv_read(struct csv *csv, const struct column_map *map,
                          double *const values[COLUMN_ROLES], uint64_t capacity, uint64_t *rows,
                          struct csv_missing *missing, char *why, size_t why_size);

#endif
