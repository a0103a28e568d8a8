/*
 * field.h: a job's parameters as one table of field descriptors, and everything read through it.
 *
 * A job owns a plain struct of parameters (fixed size, no pointers, so that it travels in a
 * command) and a table that names each member: type, unit, range, default, help. Query strings,
 * form fields and JSON members are all set through this table; the type list, the canonical
 * parameter text and the comparison with the OpenAPI document are printed from it.
 *
 * Storage at `offset` in the parameter struct, by type:
 *   FIELD_BOOL   bool
 *   FIELD_INT    int64_t
 *   FIELD_REAL   double (a decimal string is allowed in JSON too); an optional real that is absent
 *                is NaN
 *   FIELD_ENUM   int32_t, the index into `choices`; absent: FIELD_UNCHOSEN
 *   FIELD_TEXT   char[max + 1], UTF-8 without control characters, ended by NUL; absent: ""
 *   FIELD_ARRAY  struct array_ref (numbers that lie in the job's input block); absent: count 0
 *   FIELD_BLOB   nothing is stored: the member is a base64 text that becomes the job's input
 *
 * Threads: tables are constant; a form belongs to one thread at a time.
 */
#ifndef KILN_COMPUTE_JOBS_FIELD_H
#define KILN_COMPUTE_JOBS_FIELD_H

#include "compute/core/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_type {
    FIELD_BOOL,
    FIELD_INT,
    FIELD_REAL,
    FIELD_ENUM,
    FIELD_TEXT,
    FIELD_ARRAY,
    FIELD_BLOB
};

/** Numbers in a job's input block: `count` doubles (8-byte aligned) at `offset` bytes from its
    start. An array of arrays (FIELD_ROWS) has its `rows` one after the other, and behind all
   numbers as many doubles again, the rows' lengths; rows 0: a plain array. */
struct array_ref {
    uint64_t offset;
    uint64_t count;
    uint64_t rows;
    uint64_t dropped; /* numbers that were left out because their sample was missing */
};

enum field_flags {
    FIELD_OPTIONAL = 1,  /* may be absent without a default (REAL: NaN, INT: FIELD_ABSENT, ENUM:
                            FIELD_UNCHOSEN, ARRAY: count 0) */
    FIELD_ABOVE_MIN = 2, /* `min` itself is out of range */
    FIELD_ROWS = 4,      /* ARRAY: may also be an array of arrays; the range is that of each */
    FIELD_GAPS = 8,      /* ARRAY: null and NaN may stand for missing numbers */
    FIELD_SCALAR = 16,   /* ARRAY: one number may stand for all */
};

#define FIELD_ABSENT   INT64_MIN
#define FIELD_UNCHOSEN (-1)

struct field {
    const char *name;
    enum field_type type;
    int flags;
    size_t offset;   /* of the member in the parameter struct */
    double min, max; /* INT and REAL: inclusive unless FIELD_ABOVE_MIN. ARRAY: range of the count.
                        An infinite side has no limit; neither has min == max (unset). TEXT: max is
                        the number of bytes */
    const char *preset;         /* default as a client would write it; NULL: none */
    const char *const *choices; /* ENUM: NULL-terminated names */
    const char *unit;           /* "pixels", "cycles per unit of time", or "" */
    const char *help;           /* one sentence */
};

/** One bad field. */
struct complaint {
    char field[64];
    char reason[192];
};

#define COMPLAINTS_MAX 32

/** All bad fields of a request; those past COMPLAINTS_MAX are counted, not kept. */
struct complaints {
    size_t count;
    struct complaint rows[COMPLAINTS_MAX];
};

/** Adds a complaint (printf format). */
void complaints_add(struct complaints *complaints, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Has one of these fields (names, NULL last) been complained of? What depends on it need not be
    looked at then. */
bool complaints_about(const struct complaints *complaints, ...) __attribute__((sentinel));

struct json_value;

/** A parameter struct being filled from a request. */
struct form {
    const struct field *fields; /* table, ended by a row with name NULL */
    void *params;
    uint64_t seen; /* bit i: field i was given; tables have at most 64 rows */
    struct complaints *complaints;
};

/** Writes every default into `params`, whose bytes the caller has zeroed before (members without a
    field stay as they are). The table is ended by a row with name NULL. */
void form_init(struct form *form, const struct field *fields, void *params,
               struct complaints *complaints);

/** The field's row, or NULL. Names are compared with case. */
const struct field *form_find(const struct form *form, const char *name);

/** Sets a scalar from the text of a query or form field; complains of repeated, unknown, wrong or
    out-of-range ones. "name=" (empty) is wrong for every type. */
void form_set_text(struct form *form, const char *name, const char *text);

/** Sets a scalar from a JSON value. null means "not given". ARRAY and BLOB are the caller's: false
    is returned for them (and nothing is done) so that it can store the data and call
   form_set_array. */
bool form_set_json(struct form *form, const char *name, const struct json_value *value);

/** Records an array that the caller has stored; checks the count against the field's range. */
void form_set_array(struct form *form, const char *name, struct array_ref array);

/** Marks a field as given (BLOB), complaining if it was given before. */
void form_mark(struct form *form, const char *name);

/** The same without a complaint: that it cannot be used has been said. */
void form_mark_quietly(struct form *form, const char *name);

bool form_has(const struct form *form, const char *name);

/** Complains of every field that is neither given, optional nor preset. */
void form_finish(struct form *form);

/** Canonical parameters: "name=value&name=value", table order, defaults included, arrays, blobs and
    absent optional fields left out, numbers shortest round trip, never a character that a query
    would have to escape. Two requests with equal text and equal input are equal. */
void fields_print_query(const struct field *fields, const void *params, struct text *out);

/** The same as members of a JSON object, without braces. */
void fields_print_json(const struct field *fields, const void *params, struct text *out);

/** The table as a JSON array of {name,type,unit,minimum,maximum,default,choices,required,help}, in
    the words of JSON Schema: type is boolean, integer, number, string (with `choices` for ENUM,
    with `encoding` "base64" for BLOB) or array; a range that excludes its minimum has
    `exclusiveMinimum`, an array has `minItems` and `maxItems`, a text `maxLength`. Members that say
    nothing (no unit, no limit, no default) are left out; `rows` is true where an array of arrays is
    taken too, `scalar` where one number may stand for all, `gaps` where null may stand for a
    missing one. */
void fields_describe(const struct field *fields, struct text *out);

#endif
