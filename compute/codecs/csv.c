/*
 * csv.c: light curves as separated text (csv.h).
 *
 * The separator is chosen once, from the first line that counts: a semicolon if there is one, else
 * a comma, a tab, or blanks. A first line whose first field is no number is a header. After that
 * every line is walked once, field by field, and a column map says where a field goes.
 * Thread: any.
 */
#include "compute/codecs/csv.h"

#include "compute/cancel.h"
#include "compute/decimal.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NOWHERE SIZE_MAX

struct span {
    const char *text;
    size_t size;
};

struct reader {
    const char *text;
    size_t size, at;
    size_t look; /* where the next cancellation point is */
    bool cancelled;
    uint64_t line;     /* number of the line read last, from 1 */
    char separator;    /* ' ' stands for runs of blanks */
    size_t columns[3]; /* where t, y, dy are; NOWHERE: absent */
    size_t width;      /* columns of the header or of the first line */
    char *why;
    size_t why_size;
};

static enum kiln_status broken(const struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum kiln_status broken(const struct reader *reader, const char *format, ...) {
    int length =
        snprintf(reader->why, reader->why_size, "line %llu: ", (unsigned long long)reader->line);
    if (length > 0 && (size_t)length < reader->why_size) {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(reader->why + length, reader->why_size - (size_t)length, format, arguments);
        va_end(arguments);
    }
    return KILN_MALFORMED;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

static struct span trimmed(struct span span) {
    while (span.size > 0 && is_blank(span.text[0])) {
        span.text++;
        span.size--;
    }
    while (span.size > 0 && is_blank(span.text[span.size - 1]))
        span.size--;
    return span;
}

/* The next line, ended by LF, CR or both; false at the end, or where the work is to end. */
static bool line_next(struct reader *reader, struct span *line) {
    if (reader->at >= reader->look) {
        reader->look = reader->at + CANCEL_STRIDE;
        reader->cancelled = cancel_point(CANCEL_STRIDE);
    }
    if (reader->at >= reader->size || reader->cancelled)
        return false;
    const char *start = reader->text + reader->at;
    size_t left = reader->size - reader->at, length = 0;
    while (length < left && start[length] != '\n' && start[length] != '\r')
        length++;
    *line = (struct span){start, length};
    bool pair = left - length >= 2 && memcmp(start + length, "\r\n", 2) == 0;
    reader->at += length + (length < left) + pair;
    reader->line++;
    return true;
}

/* The next line that is neither empty nor a comment. */
static bool line_next_full(struct reader *reader, struct span *line) {
    while (line_next(reader, line)) {
        struct span inner = trimmed(*line);
        if (inner.size > 0 && inner.text[0] != '#')
            return true;
    }
    return false;
}

static char separator_guess(struct span line) {
    static const char candidates[] = ";,\t";
    for (const char *candidate = candidates; *candidate; candidate++) {
        bool quoted = false;
        for (size_t i = 0; i < line.size; i++) {
            quoted ^= line.text[i] == '"';
            if (!quoted && line.text[i] == *candidate)
                return *candidate;
        }
    }
    return ' ';
}

static size_t blanks_skip(struct span line, size_t at, char separator) {
    while (at < line.size && is_blank(line.text[at]) &&
           (separator == ' ' || line.text[at] != separator))
        at++;
    return at;
}

/* The next field, without blanks around it and without quotes; false at the end of the line. */
static bool field_next(struct span line, char separator, size_t *at, struct span *field) {
    size_t start = blanks_skip(line, *at, separator), end = start;
    if (start > line.size || (separator == ' ' && start == line.size))
        return false;
    bool quoted = start < line.size && line.text[start] == '"';
    if (quoted)
        for (end++; end < line.size && line.text[end] != '"';)
            end++;
    while (end < line.size && line.text[end] != separator &&
           !(separator == ' ' && is_blank(line.text[end])))
        end++;
    *field = trimmed((struct span){line.text + start, end - start});
    if (field->size >= 2 && quoted && field->text[field->size - 1] == '"')
        *field = trimmed((struct span){field->text + 1, field->size - 2});
    *at = separator == ' ' ? end : end + 1; /* past the end where no field follows */
    return true;
}

static bool span_equal(struct span span, const char *word) {
    return strlen(word) == span.size && strncasecmp(span.text, word, span.size) == 0;
}

static bool number_read(struct span field, double *value) {
    static const struct {
        const char *word;
        double value;
    } words[] = {{"nan", NAN}, {"inf", INFINITY}, {"infinity", INFINITY}};
    if (field.size > 0 && decimal_read(field.text, field.size, value) == field.size)
        return true;
    bool negative = field.size > 0 && field.text[0] == '-';
    if (field.size > 0 && (negative || field.text[0] == '+')) {
        field.text++;
        field.size--;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (span_equal(field, words[i].word)) {
            *value = negative ? -words[i].value : words[i].value;
            return true;
        }
    }
    return false;
}

/* Columns up to the last that is not empty. */
static size_t columns_count(struct span line, char separator) {
    struct span field;
    size_t at = 0, index = 0, count = 0;
    while (field_next(line, separator, &at, &field)) {
        index++;
        if (field.size > 0)
            count = index;
    }
    return count;
}

/* Which of t, y, dy a header's name stands for, or -1. */
static int name_column(struct span name) {
    static const struct {
        const char *name;
        int column;
    } names[] = {{"t", 0},    {"time", 0}, {"y", 1},   {"value", 1}, {"mag", 1},
                 {"flux", 1}, {"dy", 2},   {"err", 2}, {"error", 2}, {"sigma", 2}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (span_equal(name, names[i].name))
            return names[i].column;
    return -1;
}

/* Fills the column map from a header; names that do not give both t and y count for nothing. */
static void header_read(struct reader *reader, struct span line) {
    struct span field;
    size_t at = 0;
    size_t found[3] = {NOWHERE, NOWHERE, NOWHERE};
    for (size_t i = 0; field_next(line, reader->separator, &at, &field); i++) {
        int column = name_column(field);
        if (column >= 0 && found[column] == NOWHERE)
            found[column] = i;
    }
    if (found[0] != NOWHERE && found[1] != NOWHERE)
        memcpy(reader->columns, found, sizeof found);
}

/* Looks at the first full line: separator, header or not, column map. */
static enum kiln_status start_read(struct reader *reader, struct span line, bool *header) {
    struct span field;
    size_t at = 0;
    double value;
    reader->separator = separator_guess(line);
    reader->width = columns_count(line, reader->separator);
    if (reader->width < 2)
        return broken(reader, "two or three columns are needed");
    reader->columns[0] = 0;
    reader->columns[1] = 1;
    reader->columns[2] = reader->width > 2 ? 2 : NOWHERE;
    *header = field_next(line, reader->separator, &at, &field) && !number_read(field, &value);
    if (*header)
        header_read(reader, line);
    else if (reader->width > 3)
        return broken(reader, "%zu columns, but without a header there can be two or three",
                      reader->width);
    return KILN_OK;
}

/* What is wrong with a field, with as much of it as can be shown. */
static enum kiln_status field_broken(const struct reader *reader, size_t column,
                                     struct span field) {
    char shown[24];
    size_t size = field.size < sizeof shown - 1 ? field.size : sizeof shown - 1;
    if (field.size == 0)
        return broken(reader, "column %zu is empty", column + 1);
    for (size_t i = 0; i < size; i++)
        shown[i] = field.text[i] >= ' ' && field.text[i] <= '~' ? field.text[i] : '?';
    shown[size] = '\0';
    return broken(reader, "column %zu is not a number: '%s'", column + 1, shown);
}

static enum kiln_status line_read(const struct reader *reader, struct span line, double values[3]) {
    struct span field;
    size_t at = 0, index = 0, found = 0, wanted = reader->columns[2] == NOWHERE ? 2 : 3;
    for (; field_next(line, reader->separator, &at, &field); index++) {
        if (index >= reader->width && field.size > 0)
            return broken(reader, "there are more columns than in the first line (%zu)",
                          reader->width);
        for (size_t i = 0; i < wanted; i++) {
            if (reader->columns[i] != index)
                continue;
            if (!number_read(field, &values[i]))
                return field_broken(reader, index, field);
            found++;
        }
    }
    if (found < wanted)
        return broken(reader, "there are fewer columns than needed");
    return KILN_OK;
}

uint64_t csv_rows_bound(const char *text, size_t size) {
    uint64_t lines = 1;
    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n' || (text[i] == '\r' && (i + 1 == size || text[i + 1] != '\n'));
    return lines;
}

enum kiln_status csv_read(const char *text, size_t size, double *t, double *y, double *dy,
                          uint64_t capacity, uint64_t *rows, int *columns, char *why,
                          size_t why_size) {
    struct reader reader = {.text = text, .size = size, .why = why, .why_size = why_size};
    struct span line;
    bool header = false;
    *rows = 0;
    *columns = 2;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        reader.at = 3;
    if (!line_next_full(&reader, &line)) {
        if (reader.cancelled)
            return KILN_CANCELLED;
        snprintf(why, why_size, "there are no lines of numbers");
        return KILN_MALFORMED;
    }
    enum kiln_status status = start_read(&reader, line, &header);
    if (status != KILN_OK)
        return status;
    *columns = reader.columns[2] == NOWHERE ? 2 : 3;
    if (header && !line_next_full(&reader, &line))
        return KILN_OK;
    do {
        double values[3] = {0};
        status = line_read(&reader, line, values);
        if (status != KILN_OK)
            return status;
        if (*rows == capacity)
            return broken(&reader, "there are more rows than fit");
        t[*rows] = values[0];
        y[*rows] = values[1];
        if (*columns == 3)
            dy[*rows] = values[2];
        ++*rows;
    } while (line_next_full(&reader, &line));
    return reader.cancelled ? KILN_CANCELLED : KILN_OK;
}
