/*
 * csv.c: light curves as separated text (csv.h).
 *
 * A row is walked once, field by field. A wanted field that is a plain number, which nearly all
 * are, is converted where it stands; quotes, missing samples and what is wrong take the slower way
 * through field_next.
 * Thread: any.
 */
#include "compute/codecs/csv.h"

#include "compute/core/cancel.h"
#include "compute/core/decimal.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define UNWANTED (-1)

/* What reading the rows needs beside the table itself. */
struct reader {
    struct csv *csv;
    size_t wanted; /* how many roles have a column */
    char *why;
    size_t why_size;
    struct csv_missing *missing;
    int8_t roles[COLUMNS_MAX]; /* of each column, or UNWANTED */
};

static enum kiln_status broken(const struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum kiln_status broken(const struct reader *reader, const char *format, ...) {
    int length = snprintf(reader->why, reader->why_size,
                          "line %llu: ", (unsigned long long)reader->csv->line);
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

static bool is_end(char c) {
    return c == '\n' || c == '\r';
}

static struct column_name trimmed(struct column_name span) {
    while (span.size > 0 && is_blank(span.text[0])) {
        span.text++;
        span.size--;
    }
    while (span.size > 0 && is_blank(span.text[span.size - 1])) {
        span.size--;
    }
    return span;
}

/* Past blanks that do not separate. */
static size_t blanks_skip(const struct csv *csv, size_t at) {
    while (at < csv->size && is_blank(csv->text[at]) &&
           (csv->separator == ' ' || csv->text[at] != csv->separator)) {
        at++;
    }
    return at;
}

static bool at_end(const struct csv *csv, size_t at) {
    return at >= csv->size || is_end(csv->text[at]);
}

static bool at_separator(const struct csv *csv, size_t at) {
    return csv->separator == ' ' ? is_blank(csv->text[at]) : csv->text[at] == csv->separator;
}

/* The end of the line that `at` lies in. */
static size_t line_end(const struct csv *csv, size_t at) {
    while (at < csv->size && !is_end(csv->text[at])) {
        at++;
    }
    return at;
}

/* Past the end of a line: LF, CR or both. */
static size_t line_skip(const struct csv *csv, size_t end) {
    bool pair = csv->size - end >= 2 && memcmp(csv->text + end, "\r\n", 2) == 0;
    return end < csv->size ? end + 1 + pair : end;
}

/* Just behind the last end of a line in the `size` bytes at `at`, 0 for none. */
static size_t last_end(const struct csv *csv, size_t at, size_t size) {
    const char *start = csv->text + at, *end = memrchr(start, '\n', size);
    end = end != NULL ? end : memrchr(start, '\r', size);
    return end != NULL ? (size_t)(end - csv->text) + 1 : 0;
}

/* A cancellation point where a line begins, at csv->at. The next one is where a line begins too:
   all lines before it are known to end, so that none is walked for long. */
static void line_look(struct csv *csv) {
    size_t left = csv->size - csv->at;
    size_t stride = left < CANCEL_STRIDE ? left : CANCEL_STRIDE;
    if (cancel_point(CANCEL_STRIDE)) {
        csv->status = KILN_CANCELLED;
        return;
    }
    csv->look = stride == left ? csv->size : last_end(csv, csv->at, stride);
    if (csv->look == 0) {
        csv->look = left <= CSV_LINE_MAX ? csv->size : last_end(csv, csv->at, CSV_LINE_MAX);
    }
    if (csv->look == 0) {
        csv->status = KILN_MALFORMED;
    }
}

/* To the next line that is neither empty nor a comment, which begins at csv->at then; false at the
   end, or where csv->status says why reading ends. `comment` receives the last comment passed over,
   if it is not NULL. */
static bool line_find(struct csv *csv, struct column_name *comment) {
    while (csv->at < csv->size) {
        size_t at = csv->at;
        if (at >= csv->look) {
            line_look(csv);
        }
        if (csv->status != KILN_OK) {
            return false;
        }
        csv->line++;
        while (at < csv->size && is_blank(csv->text[at])) {
            at++;
        }
        if (!at_end(csv, at) && csv->text[at] != '#') {
            return true;
        }
        size_t end = line_end(csv, at);
        if (comment != NULL && end > at) {
            *comment = (struct column_name){csv->text + at, end - at};
        }
        csv->at = line_skip(csv, end);
    }
    return false;
}

/* The field at *at, without blanks around it and without quotes; *at moves to what ends it. False
   for a quote that is not closed on its line, or not at the end of its field. */
static bool field_next(const struct csv *csv, size_t *at, struct column_name *field) {
    size_t start = blanks_skip(csv, *at), end = start;
    if (end < csv->size && csv->text[end] == '"') {
        for (end++; !at_end(csv, end); end++) {
            if (csv->text[end] != '"') {
                continue;
            }
            if (end + 1 >= csv->size || csv->text[end + 1] != '"') {
                break;
            }
            end++;
        }
        if (at_end(csv, end)) {
            return false;
        }
        *field = trimmed((struct column_name){csv->text + start + 1, end - start - 1});
        *at = blanks_skip(csv, end + 1);
        /* of blanks that separate, the last is left to end the field */
        if (csv->separator == ' ' && *at > end + 1) {
            *at -= 1;
        }
        return at_end(csv, *at) || at_separator(csv, *at);
    }
    while (!at_end(csv, end) && !at_separator(csv, end)) {
        end++;
    }
    *field = trimmed((struct column_name){csv->text + start, end - start});
    *at = end;
    return true;
}

/* Past the separator at *at; false where the line ends there. */
static bool separator_skip(const struct csv *csv, size_t *at) {
    if (csv->separator == ' ') {
        *at = blanks_skip(csv, *at);
    }
    if (at_end(csv, *at)) {
        return false;
    }
    *at += csv->separator != ' ';
    return true;
}

static bool span_equal(struct column_name span, const char *word) {
    return strlen(word) == span.size && strncasecmp(span.text, word, span.size) == 0;
}

/* Whether a field stands for a sample that is not there. */
static bool is_missing(struct column_name field) {
    static const char *const words[] = {"nan", "-nan", "+nan", "null", "none",
                                        "na",  "n/a",  "--",   "-"};
    double limit;
    if (field.size == 0) {
        return true;
    }
    if (field.text[0] >= '0' && field.text[0] <= '9') {
        return false;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (span_equal(field, words[i])) {
            return true;
        }
    }
    return (field.text[0] == '<' || field.text[0] == '>') && field.size > 1 &&
           decimal_read(field.text + 1, field.size - 1, &limit) == field.size - 1;
}

bool csv_missing_word(const char *text, size_t size) {
    return is_missing((struct column_name){text, size});
}

static bool number_read(struct column_name field, double *value) {
    static const struct {
        const char *word;
        double value;
    } words[] = {{"inf", INFINITY},   {"+inf", INFINITY},      {"infinity", INFINITY},
                 {"-inf", -INFINITY}, {"+infinity", INFINITY}, {"-infinity", -INFINITY}};
    if (field.size > 0 && decimal_read(field.text, field.size, value) == field.size) {
        return true;
    }
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (span_equal(field, words[i].word)) {
            *value = words[i].value;
            return true;
        }
    }
    return false;
}

/* What ended the reading before its end: csv->status. */
static enum kiln_status lines_end(const struct reader *reader) {
    struct csv *csv = reader->csv;
    if (csv->status != KILN_MALFORMED) {
        return csv->status;
    }
    csv->line++;
    return broken(reader,
                  "the line has more than %zu bytes; were the line ends lost? curl -d strips "
                  "them, curl --data-binary does not",
                  CSV_LINE_MAX);
}

/* ---- the first line ---- */

/* Whether a separator stands in the line that begins at `at`, outside of quotes. */
static bool separator_stands(const struct csv *csv, size_t at, char separator) {
    bool quoted = false;
    for (; !at_end(csv, at); at++) {
        quoted ^= csv->text[at] == '"';
        if (!quoted && csv->text[at] == separator) {
            return true;
        }
    }
    return false;
}

/* Whether the line that begins at `at` has blanks inside. */
static bool blanks_stand(const struct csv *csv, size_t at) {
    while (at < csv->size && is_blank(csv->text[at])) {
        at++;
    }
    while (!at_end(csv, at) && !is_blank(csv->text[at])) {
        at++;
    }
    while (at < csv->size && is_blank(csv->text[at])) {
        at++;
    }
    return !at_end(csv, at);
}

/* The separator: the first that both of the first two lines have, because a header's names may hold
   others; where there is none, one of the first line, unless the second is parted by blanks.
   `second` is the start of the second line, or the text's size. */
static char separator_guess(const struct csv *csv, size_t second) {
    static const char candidates[] = ";,\t";
    char first = ' ';
    for (const char *candidate = candidates; *candidate; candidate++) {
        if (!separator_stands(csv, csv->at, *candidate)) {
            continue;
        }
        if (second >= csv->size || separator_stands(csv, second, *candidate)) {
            return *candidate;
        }
        first = first == ' ' ? *candidate : first;
    }
    return second < csv->size && blanks_stand(csv, second) ? ' ' : first;
}

/* Splits a line into the table's names. Columns count up to the last that is not empty. */
static enum kiln_status names_split(const struct reader *reader, size_t at,
                                    struct column_table *table) {
    const struct csv *csv = reader->csv;
    size_t index = 0;
    bool more = true;
    table->count = 0;
    for (at = csv->separator == ' ' ? blanks_skip(csv, at) : at; more; index++) {
        struct column_name field;
        if (index == COLUMNS_MAX) {
            return broken(reader,
                          "there are more than %d columns; were the line ends lost? curl -d strips "
                          "them, curl --data-binary does not",
                          COLUMNS_MAX);
        }
        if (!field_next(csv, &at, &field)) {
            return broken(reader, "the quotes of column %zu are not closed", index + 1);
        }
        table->names[index] = field;
        if (field.size > 0) {
            table->count = index + 1;
        }
        more = separator_skip(csv, &at);
    }
    return KILN_OK;
}

static bool is_header(const struct column_table *table) {
    double value;
    for (size_t i = 0; i < table->count; i++) {
        if (table->names[i].size > 0 &&
            (is_missing(table->names[i]) || number_read(table->names[i], &value))) {
            return false;
        }
    }
    return true;
}

/* A comment of as many words as there are columns, none of them a number, names these. */
static void comment_split(const struct reader *reader, struct column_name comment) {
    struct column_table *table = &reader->csv->table;
    while (comment.size > 0 && (comment.text[0] == '#' || is_blank(comment.text[0]))) {
        comment.text++;
        comment.size--;
    }
    struct csv line = {.text = comment.text,
                       .size = comment.size,
                       .separator = reader->csv->separator,
                       .line = reader->csv->line};
    if (!separator_stands(&line, 0, line.separator)) {
        line.separator = ' ';
    }
    const struct reader inner = {.csv = &line, .why = reader->why, .why_size = reader->why_size};
    if (comment.size > 0 && names_split(&inner, 0, &line.table) == KILN_OK &&
        line.table.count == table->count && is_header(&line.table)) {
        memcpy(table->names, line.table.names, table->count * sizeof table->names[0]);
        table->comment = true;
    }
}

enum kiln_status csv_open(struct csv *csv, const char *text, size_t size, char *why,
                          size_t why_size) {
    const struct reader reader = {.csv = csv, .why = why, .why_size = why_size};
    struct column_name comment = {NULL, 0};
    csv->text = text;
    csv->size = size;
    csv->at = size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    csv->line = 0;
    csv->separator = ' ';
    csv->table.count = 0;
    csv->table.header = csv->table.comment = false;
    csv->look = 0;
    csv->status = KILN_OK;
    if (!line_find(csv, &comment)) {
        if (csv->status != KILN_OK) {
            return lines_end(&reader);
        }
        snprintf(why, why_size, "there are no lines of numbers");
        return KILN_MALFORMED;
    }
    size_t first = csv->at;
    uint64_t line = csv->line;
    csv->at = line_skip(csv, line_end(csv, first));
    size_t second = line_find(csv, NULL) ? csv->at : size;
    if (csv->status != KILN_OK) {
        return lines_end(&reader);
    }
    csv->at = first;
    csv->line = line;
    csv->separator = separator_guess(csv, second);
    enum kiln_status status = names_split(&reader, csv->at, &csv->table);
    if (status != KILN_OK) {
        return status;
    }
    if (csv->table.count < 2) {
        return broken(&reader, "two or three columns are needed: times, values and, if there are "
                               "any, their uncertainties");
    }
    csv->table.header = is_header(&csv->table);
    if (csv->table.header) {
        csv->at = line_skip(csv, line_end(csv, csv->at));
    } else {
        csv->line--; /* the rows begin with it */
    }
    if (!csv->table.header && comment.size > 0) {
        comment_split(&reader, comment);
    }
    return KILN_OK;
}

/* ---- rows ---- */

/* As much of a field as can be shown. */
static void field_show(struct column_name field, char shown[24]) {
    size_t size = field.size < 23 ? field.size : 23;
    for (size_t i = 0; i < size; i++) {
        shown[i] = field.text[i] >= ' ' && field.text[i] <= '~' ? field.text[i] : '?';
    }
    shown[size] = '\0';
}

/* What is wrong with a field, and what would be right where that can be guessed. */
static enum kiln_status field_broken(const struct reader *reader, size_t column,
                                     struct column_name field) {
    char shown[24];
    size_t digits = 0;
    const char *hint = "";
    field_show(field, shown);
    while (digits < field.size && field.text[digits] >= '0' && field.text[digits] <= '9') {
        digits++;
    }
    if (digits > 0 && digits < field.size && field.text[digits] == ',') {
        hint = "; decimals have a point";
    } else if (digits == 4 && field.size >= 8 && (field.text[4] == '-' || field.text[4] == '/')) {
        hint = "; dates must be sent as numbers, such as Julian days";
    }
    return broken(reader, "column %zu is not a number: '%s'%s", column + 1, shown, hint);
}

/* A wanted field that is not a plain number. */
static enum kiln_status field_read(const struct reader *reader, size_t column,
                                   struct column_name field, double *value) {
    if (is_missing(field)) {
        struct csv_missing *missing = reader->missing;
        if (missing->line == 0) {
            *missing = (struct csv_missing){
                .line = reader->csv->line, .column = column, .role = reader->roles[column]};
            field_show(field, missing->shown);
        }
        *value = NAN;
        return KILN_OK;
    }
    return number_read(field, value) ? KILN_OK : field_broken(reader, column, field);
}

/* The number at *at, if the field is nothing else. */
static bool number_next(const struct csv *csv, size_t *at, double *value) {
    size_t start = blanks_skip(csv, *at);
    size_t length = decimal_read(csv->text + start, csv->size - start, value);
    size_t end = start + length;
    if (length == 0) {
        return false;
    }
    if (csv->separator != ' ') {
        end = blanks_skip(csv, end);
    }
    if (!at_end(csv, end) && !at_separator(csv, end)) {
        return false;
    }
    *at = end;
    return true;
}

/* Reads the row at csv->at and moves past it. */
static enum kiln_status row_read(const struct reader *reader, double values[COLUMN_ROLES]) {
    struct csv *csv = reader->csv;
    size_t at = csv->separator == ' ' ? blanks_skip(csv, csv->at) : csv->at, found = 0;
    bool more = true;
    for (size_t index = 0; more; index++) {
        struct column_name field;
        int role = index < csv->table.count ? reader->roles[index] : UNWANTED;
        bool plain = role != UNWANTED && number_next(csv, &at, &values[role]);
        if (!plain && !field_next(csv, &at, &field)) {
            return broken(reader, "the quotes of column %zu are not closed", index + 1);
        }
        if (index >= csv->table.count && (field.size > 0 || index >= COLUMNS_MAX)) {
            return broken(reader, "there are more columns than in the first line (%zu)",
                          csv->table.count);
        }
        if (!plain && role != UNWANTED) {
            enum kiln_status status = field_read(reader, index, field, &values[role]);
            if (status != KILN_OK) {
                return status;
            }
        }
        found += role != UNWANTED;
        more = separator_skip(csv, &at);
    }
    if (found < reader->wanted) {
        return broken(reader, "there are fewer columns than needed");
    }
    csv->at = line_skip(csv, at);
    return KILN_OK;
}

uint64_t csv_rows_bound(const char *text, size_t size) {
    uint64_t lines = 1;
    for (size_t i = 0; i < size; i++) {
        lines += text[i] == '\n' || (text[i] == '\r' && (i + 1 == size || text[i + 1] != '\n'));
    }
    return lines;
}

enum kiln_status csv_read(struct csv *csv, const struct column_map *map,
                          double *const values[COLUMN_ROLES], uint64_t capacity, uint64_t *rows,
                          struct csv_missing *missing, char *why, size_t why_size) {
    struct reader reader = {.csv = csv, .why = why, .why_size = why_size, .missing = missing};
    memset(reader.roles, UNWANTED, sizeof reader.roles);
    for (size_t i = 0; i < COLUMN_ROLES; i++) {
        if (map->at[i] < csv->table.count) {
            reader.roles[map->at[i]] = (int8_t)i;
            reader.wanted++;
        }
    }
    *rows = 0;
    missing->line = 0;
    while (line_find(csv, NULL)) {
        double row[COLUMN_ROLES] = {0};
        enum kiln_status status = row_read(&reader, row);
        if (status != KILN_OK) {
            return status;
        }
        if (*rows == capacity) {
            return broken(&reader, "there are more rows than fit");
        }
        for (size_t i = 0; i < COLUMN_ROLES; i++) {
            if (map->at[i] < csv->table.count) {
                values[i][*rows] = row[i];
            }
        }
        ++*rows;
    }
    return lines_end(&reader);
}
