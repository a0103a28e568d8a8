/*
 * field.c: fills a parameter struct from texts and JSON values through its field table.
 *
 * Every scalar, wherever it comes from, ends in `store_*`, so that a range or a message exists
 * once. Numbers are checked against our own grammar before the C library converts them: strtod
 * alone would also take "inf", "0x10", leading blanks and the locale's decimal comma.
 *
 * Threads: any; a form belongs to one thread at a time.
 */
#include "compute/jobs/field.h"

#include "compute/codecs/json.h"
#include "compute/core/spelling.h"
#include "compute/core/utf8.h"

#include <assert.h>
#include <locale.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 112 /* bytes of choices in one complaint */
#define INTEGER_EXACT                                                                              \
    9007199254740992.0 /* 2^53: beyond it a JSON number may not be what was meant */

void complaints_add(struct complaints *complaints, const char *field, const char *format, ...) {
    if (complaints->count < COMPLAINTS_MAX) {
        struct complaint *row = &complaints->rows[complaints->count];
        va_list arguments;
        va_start(arguments, format);
        snprintf(row->field, sizeof row->field, "%s", field);
        vsnprintf(row->reason, sizeof row->reason, format, arguments);
        va_end(arguments);
    }
    complaints->count++;
}

static bool complained(const struct complaints *complaints, const char *field) {
    size_t kept = complaints->count < COMPLAINTS_MAX ? complaints->count : COMPLAINTS_MAX;
    for (size_t i = 0; i < kept; i++) {
        if (strcmp(complaints->rows[i].field, field) == 0) {
            return true;
        }
    }
    return false;
}

bool complaints_about(const struct complaints *complaints, ...) {
    va_list names;
    bool found = false;
    va_start(names, complaints);
    for (const char *name; !found && (name = va_arg(names, const char *)) != NULL;) {
        found = complained(complaints, name);
    }
    va_end(names);
    return found;
}

static bool limited(const struct field *field) {
    return field->min < field->max;
}

/* "from 1 to 9", "of at least 1", "above 0 and at most 10", or "". */
static void range_print(const struct field *field, struct text *text) {
    if (!limited(field))
        return;
    bool low = isfinite(field->min), high = isfinite(field->max);
    bool above = field->flags & FIELD_ABOVE_MIN;
    if (low) {
        text_string(text, above ? " above " : high ? " from " : " of at least ");
        text_double(text, field->min);
    }
    if (high) {
        text_string(text, !low ? " of at most " : above ? " and at most " : " to ");
        text_double(text, field->max);
    }
}

/* How many elements an array that is limited may have: "3 to 10", "at least 3", "at most 10". */
static void count_print(const struct field *field, struct text *text) {
    bool low = isfinite(field->min), high = isfinite(field->max);
    if (low) {
        text_string(text, high ? "" : "at least ");
        text_double(text, field->min);
    }
    if (high) {
        text_string(text, low ? " to " : "at most ");
        text_double(text, field->max);
    }
}

static bool in_range(const struct field *field, double value) {
    if (!limited(field))
        return true;
    if (value < field->min || value > field->max)
        return false;
    return !(field->flags & FIELD_ABOVE_MIN) || value > field->min;
}

static void expect(struct form *form, const struct field *field, const char *what) {
    char buffer[128];
    struct text range;
    text_init(&range, buffer, sizeof buffer);
    range_print(field, &range);
    complaints_add(form->complaints, field->name, "must be %s%s", what, buffer);
}

static void *member(const struct form *form, const struct field *field) {
    return (char *)form->params + field->offset;
}

static void store_int(struct form *form, const struct field *field, int64_t value) {
    if (!in_range(field, (double)value)) {
        expect(form, field, "an integer");
        return;
    }
    memcpy(member(form, field), &value, sizeof value);
}

static void store_real(struct form *form, const struct field *field, double value) {
    if (!isfinite(value) || !in_range(field, value)) {
        expect(form, field, isfinite(value) ? "a number" : "a finite number");
        return;
    }
    value += 0.0; /* -0 becomes 0: equal parameters have equal canonical texts */
    memcpy(member(form, field), &value, sizeof value);
}

static void store_bool(struct form *form, const struct field *field, bool value) {
    memcpy(member(form, field), &value, sizeof value);
}

/* Lists the choices; where they are too many for one sentence, the nearest comes first. */
static void expect_choice(struct form *form, const struct field *field, const char *text) {
    char buffer[LIST_MAX];
    const char *nearest = NULL;
    struct text list;
    text_init(&list, buffer, sizeof buffer - sizeof ", …");
    for (size_t i = 0; field->choices[i]; i++) {
        text_format(&list, "%s%s", i ? ", " : "", field->choices[i]);
        spelling_consider(text, field->choices[i], &nearest);
    }
    char *cut = list.full ? strrchr(buffer, ',') : NULL; /* the last name may be half a name */
    if (cut)
        strcpy(cut, ", …");
    if (nearest && list.full)
        complaints_add(form->complaints, field->name, "did you mean %s? It must be one of: %s",
                       nearest, buffer);
    else
        complaints_add(form->complaints, field->name, "must be one of: %s", buffer);
}

static void store_choice(struct form *form, const struct field *field, const char *text) {
    for (int32_t i = 0; field->choices[i]; i++) {
        if (strcmp(field->choices[i], text) == 0) {
            memcpy(member(form, field), &i, sizeof i);
            return;
        }
    }
    expect_choice(form, field, text);
}

static void store_text(struct form *form, const struct field *field, const char *text) {
    size_t size = strlen(text);
    bool good = size > 0 && (double)size <= field->max;
    for (size_t i = 0; good && i < size;) {
        size_t length = utf8_length(text + i, size - i);
        good = length > 0 && (unsigned char)text[i] >= ' ' && text[i] != 0x7f;
        i += length;
    }
    if (good)
        memcpy(member(form, field), text, size + 1);
    else
        complaints_add(form->complaints, field->name,
                       "must be a text of 1 to %.0f bytes of UTF-8 without control characters",
                       field->max);
}

static bool digit(char c) {
    return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *text) {
    while (digit(*text))
        text++;
    return text;
}

static const char *skip_sign(const char *text) {
    return *text == '+' || *text == '-' ? text + 1 : text;
}

/* [sign] (digits [. [digits]] | . digits) [e [sign] digits] and nothing else. */
static bool decimal_valid(const char *text) {
    text = skip_sign(text);
    const char *end = skip_digits(text);
    bool mantissa = end > text;
    if (*end == '.') {
        text = end + 1;
        end = skip_digits(text);
        mantissa = mantissa || end > text;
    }
    if (!mantissa)
        return false;
    if (*end == 'e' || *end == 'E') {
        text = skip_sign(end + 1);
        end = skip_digits(text);
        if (end == text)
            return false;
    }
    return *end == '\0';
}

/* strtod under the C locale, whatever the process has set. */
static double decimal_read(const char *text) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain)
        return NAN;
    double value = strtod_l(text, NULL, plain);
    freelocale(plain);
    return value;
}

static void set_real_text(struct form *form, const struct field *field, const char *text) {
    if (decimal_valid(text))
        store_real(form, field, decimal_read(text));
    else
        expect(form, field, "a number");
}

static void set_int_text(struct form *form, const struct field *field, const char *text) {
    const char *digits = skip_sign(text);
    bool negative = *text == '-';
    int64_t value = 0;
    bool fits = *digits != '\0';
    for (; digit(*digits) && fits;
         digits++) /* counts downwards: the minimum has no positive twin */
        fits = !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_sub_overflow(value, *digits - '0', &value);
    if (!negative && fits)
        fits = !__builtin_sub_overflow(0, value, &value);
    if (!fits || *digits != '\0' || value == FIELD_ABSENT)
        expect(form, field, "an integer");
    else
        store_int(form, field, value);
}

static void set_bool_text(struct form *form, const struct field *field, const char *text) {
    bool yes = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    if (yes || strcmp(text, "false") == 0 || strcmp(text, "0") == 0)
        store_bool(form, field, yes);
    else
        expect(form, field, "true or false");
}

static void refuse_text(struct form *form, const struct field *field, const char *text) {
    (void)text;
    complaints_add(form->complaints, field->name,
                   field->type == FIELD_ARRAY
                       ? "must be sent in the request body, as an array of numbers in JSON"
                       : "must be sent in the request body, or as a base64 text in JSON");
}

static void (*const text_setters[])(struct form *, const struct field *, const char *) = {
    [FIELD_BOOL] = set_bool_text, [FIELD_INT] = set_int_text, [FIELD_REAL] = set_real_text,
    [FIELD_ENUM] = store_choice,  [FIELD_TEXT] = store_text,  [FIELD_ARRAY] = refuse_text,
    [FIELD_BLOB] = refuse_text,
};

/* Writes what a field holds when it is not given: its default, or its mark of absence. */
static void preset(struct form *form, const struct field *field) {
    static const struct array_ref none;
    const int64_t absent = FIELD_ABSENT;
    const int32_t unchosen = FIELD_UNCHOSEN;
    const double nan = NAN;
    if (field->preset)
        text_setters[field->type](form, field, field->preset);
    else if (field->type == FIELD_REAL)
        memcpy(member(form, field), &nan, sizeof nan);
    else if (field->type == FIELD_INT)
        memcpy(member(form, field), &absent, sizeof absent);
    else if (field->type == FIELD_ENUM)
        memcpy(member(form, field), &unchosen, sizeof unchosen);
    else if (field->type == FIELD_ARRAY)
        memcpy(member(form, field), &none, sizeof none);
    else if (field->type == FIELD_TEXT)
        *(char *)member(form, field) = '\0';
}

void form_init(struct form *form, const struct field *fields, void *params,
               struct complaints *complaints) {
    *form = (struct form){.fields = fields, .params = params, .complaints = complaints};
    size_t before = complaints->count;
    for (const struct field *field = fields; field->name; field++)
        preset(form, field);
    assert(complaints->count == before && "a table's own default is out of its range");
    (void)before;
}

const struct field *form_find(const struct form *form, const char *name) {
    for (const struct field *field = form->fields; field->name; field++)
        if (strcmp(field->name, name) == 0)
            return field;
    return NULL;
}

/* Past the last complaint that is kept nothing is looked for: nobody would read it. */
static void complain_unknown(struct form *form, const char *name) {
    const char *nearest = NULL;
    if (form->complaints->count >= COMPLAINTS_MAX) {
        form->complaints->count++;
        return;
    }
    for (const struct field *field = form->fields; field->name; field++)
        spelling_consider(name, field->name, &nearest);
    if (nearest)
        complaints_add(form->complaints, name, "is not a field of this job; did you mean %s?",
                       nearest);
    else
        complaints_add(form->complaints, name, "is not a field of this job");
}

/* The field, marked as given; NULL with a complaint if there is none or it was given before. */
static const struct field *claim(struct form *form, const char *name) {
    const struct field *field = form_find(form, name);
    if (!field) {
        complain_unknown(form, name);
        return NULL;
    }
    uint64_t bit = UINT64_C(1) << (field - form->fields);
    if (form->seen & bit) {
        complaints_add(form->complaints, name, "is duplicated");
        return NULL;
    }
    form->seen |= bit;
    return field;
}

void form_set_text(struct form *form, const char *name, const char *text) {
    const struct field *field = claim(form, name);
    if (field)
        text_setters[field->type](form, field, text);
}

/* A JSON string as text of a field; false where it is too long or holds a NUL. */
static bool string_take(const struct json_value *value, char *out, size_t capacity) {
    size_t size = json_string(value, out, capacity);
    return size < capacity && strlen(out) == size;
}

static void set_int_json(struct form *form, const struct field *field,
                         const struct json_value *value) {
    double number = value->type == JSON_NUMBER ? json_number(value) : NAN;
    if (number == floor(number) && fabs(number) <= INTEGER_EXACT)
        store_int(form, field, (int64_t)number);
    else
        expect(form, field, "an integer");
}

static void set_real_json(struct form *form, const struct field *field,
                          const struct json_value *value) {
    char text[1024];
    if (value->type == JSON_NUMBER)
        store_real(form, field, json_number(value));
    else if (value->type == JSON_STRING && string_take(value, text, sizeof text))
        set_real_text(form, field, text);
    else
        expect(form, field, "a number");
}

static void set_bool_json(struct form *form, const struct field *field,
                          const struct json_value *value) {
    if (value->type == JSON_TRUE || value->type == JSON_FALSE)
        store_bool(form, field, value->type == JSON_TRUE);
    else
        expect(form, field, "true or false");
}

static void set_choice_json(struct form *form, const struct field *field,
                            const struct json_value *value) {
    char text[128];
    if (value->type == JSON_STRING && string_take(value, text, sizeof text)) {
        store_choice(form, field, text);
    } else if (value->type == JSON_NUMBER && value->size < sizeof text) { /* "bits": 16 */
        memcpy(text, value->text, value->size);
        text[value->size] = '\0';
        store_choice(form, field, text);
    } else {
        expect_choice(form, field, "");
    }
}

static void set_text_json(struct form *form, const struct field *field,
                          const struct json_value *value) {
    char text[256];
    bool good = value->type == JSON_STRING && string_take(value, text, sizeof text);
    store_text(form, field, good ? text : "");
}

static void (*const json_setters[])(struct form *, const struct field *,
                                    const struct json_value *) = {
    [FIELD_BOOL] = set_bool_json,   [FIELD_INT] = set_int_json,   [FIELD_REAL] = set_real_json,
    [FIELD_ENUM] = set_choice_json, [FIELD_TEXT] = set_text_json,
};

bool form_set_json(struct form *form, const char *name, const struct json_value *value) {
    const struct field *field = form_find(form, name);
    if (field && value->type == JSON_NULL)
        return true;
    if (field && (field->type == FIELD_ARRAY || field->type == FIELD_BLOB))
        return false;
    field = claim(form, name);
    if (field)
        json_setters[field->type](form, field, value);
    return true;
}

void form_set_array(struct form *form, const char *name, struct array_ref array) {
    const struct field *field = claim(form, name);
    if (!field)
        return;
    assert(field->type == FIELD_ARRAY);
    bool scalar = (field->flags & FIELD_SCALAR) && array.count == 1;
    if (array.rows > 0 || scalar || in_range(field, (double)array.count)) {
        memcpy(member(form, field), &array, sizeof array);
        return;
    }
    char buffer[128];
    struct text range;
    text_init(&range, buffer, sizeof buffer);
    count_print(field, &range);
    complaints_add(form->complaints, name, "must have %s elements", buffer);
}

void form_mark(struct form *form, const char *name) {
    claim(form, name);
}

void form_mark_quietly(struct form *form, const char *name) {
    const struct field *field = form_find(form, name);
    if (field)
        form->seen |= UINT64_C(1) << (field - form->fields);
}

bool form_has(const struct form *form, const char *name) {
    const struct field *field = form_find(form, name);
    return field && (form->seen >> (field - form->fields) & 1);
}

void form_finish(struct form *form) {
    for (const struct field *field = form->fields; field->name; field++) {
        bool given = form->seen >> (field - form->fields) & 1;
        if (!given && !field->preset && !(field->flags & FIELD_OPTIONAL))
            complaints_add(form->complaints, field->name, "is missing");
    }
}
