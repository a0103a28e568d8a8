/*
 * field_print.c: parameters and field tables as text: canonical query, JSON members, description.
 *
 * Threads: reentrant.
 */
#include "compute/jobs/field.h"

#include <math.h>
#include <string.h>

/* Reads a member by copy: the struct is bytes that travelled. */
#define MEMBER(type, params, field) (*(const type *)((const char *)(params) + (field)->offset))

/* 1e+16 as 1e16: a plus sign in a query means a blank. */
static void number_print(double value, struct text *out) {
    char buffer[64];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    text_double(&text, value);
    for (const char *c = buffer; *c; c++) {
        if (*c != '+') {
            text_bytes(out, c, 1);
        }
    }
}

static bool present(const struct field *field, const void *params) {
    switch (field->type) {
    case FIELD_REAL:
        return !isnan(MEMBER(double, params, field));
    case FIELD_INT:
        return MEMBER(int64_t, params, field) != FIELD_ABSENT;
    case FIELD_ENUM:
        return MEMBER(int32_t, params, field) != FIELD_UNCHOSEN;
    case FIELD_BOOL:
        return true;
    case FIELD_TEXT:
        return ((const char *)params)[field->offset] != '\0';
    default:
        return false;
    }
}

/* What a query would have to escape is. */
static void text_escape(const char *text, size_t size, struct text *out) {
    static const char plain[] = "-._~";
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
            strchr(plain, c) != NULL) {
            text_bytes(out, &c, 1);
        } else {
            text_format(out, "%%%02X", (unsigned)(unsigned char)c);
        }
    }
}

/* A present scalar; names are quoted in JSON. */
static void value_print(const struct field *field, const void *params, bool json,
                        struct text *out) {
    if (field->type == FIELD_BOOL) {
        text_string(out, MEMBER(bool, params, field) ? "true" : "false");
    } else if (field->type == FIELD_INT) {
        text_integer(out, MEMBER(int64_t, params, field));
    } else if (field->type == FIELD_REAL) {
        number_print(MEMBER(double, params, field), out);
    } else if (field->type == FIELD_TEXT) {
        const char *text = (const char *)params + field->offset;
        size_t size = strnlen(text, (size_t)field->max);
        if (json) {
            text_json_string(out, text, size);
        } else {
            text_escape(text, size, out);
        }
    } else {
        const char *name = field->choices[MEMBER(int32_t, params, field)];
        if (json) {
            text_json_string(out, name, strlen(name));
        } else {
            text_string(out, name);
        }
    }
}

void fields_print_query(const struct field *fields, const void *params, struct text *out) {
    const char *separator = "";
    for (const struct field *field = fields; field->name != NULL; field++) {
        if (!present(field, params)) {
            continue;
        }
        text_format(out, "%s%s=", separator, field->name);
        value_print(field, params, false, out);
        separator = "&";
    }
}

void fields_print_json(const struct field *fields, const void *params, struct text *out) {
    const char *separator = "";
    for (const struct field *field = fields; field->name != NULL; field++) {
        if (!present(field, params)) {
            continue;
        }
        text_format(out, "%s\"%s\":", separator, field->name);
        value_print(field, params, true, out);
        separator = ",";
    }
}

static void string_member(struct text *out, const char *key, const char *value) {
    text_format(out, ",\"%s\":", key);
    text_json_string(out, value, strlen(value));
}

static void limit_member(struct text *out, const char *key, double value) {
    if (!isfinite(value)) {
        return;
    }
    text_format(out, ",\"%s\":", key);
    number_print(value, out);
}

static void range_describe(const struct field *field, struct text *out) {
    if (!(field->min < field->max)) {
        return;
    }
    if (field->type == FIELD_ARRAY) {
        text_string(out, field->flags & FIELD_ROWS ? ",\"rows\":true" : "");
        text_string(out, field->flags & FIELD_SCALAR ? ",\"scalar\":true" : "");
        text_string(out, field->flags & FIELD_GAPS ? ",\"gaps\":true" : "");
        limit_member(out, "minItems", field->min);
        limit_member(out, "maxItems", field->max);
    } else if (field->type == FIELD_INT || field->type == FIELD_REAL) {
        bool above = field->flags & FIELD_ABOVE_MIN;
        limit_member(out, above ? "exclusiveMinimum" : "minimum", field->min);
        limit_member(out, "maximum", field->max);
    }
}

/* In JSON Schema's sense: characters are at most as many as bytes. */
static void length_describe(const struct field *field, struct text *out) {
    if (field->type != FIELD_TEXT) {
        return;
    }
    text_string(out, ",\"minLength\":1");
    limit_member(out, "maxLength", field->max);
}

static void choices_describe(const struct field *field, struct text *out) {
    if (field->type != FIELD_ENUM) {
        return;
    }
    text_string(out, ",\"choices\":[");
    for (size_t i = 0; field->choices[i] != NULL; i++) {
        text_string(out, i ? "," : "");
        text_json_string(out, field->choices[i], strlen(field->choices[i]));
    }
    text_string(out, "]");
}

static void field_describe(const struct field *field, struct text *out) {
    static const char *const types[] = {
        [FIELD_BOOL] = "boolean", [FIELD_INT] = "integer", [FIELD_REAL] = "number",
        [FIELD_ENUM] = "string",  [FIELD_TEXT] = "string", [FIELD_ARRAY] = "array",
        [FIELD_BLOB] = "string",
    };
    text_format(out, "{\"name\":\"%s\",\"type\":\"%s\"", field->name, types[field->type]);
    if (field->type == FIELD_BLOB) {
        string_member(out, "encoding", "base64");
    }
    if (field->unit != NULL && *field->unit) {
        string_member(out, "unit", field->unit);
    }
    range_describe(field, out);
    length_describe(field, out);
    if (field->preset != NULL && field->type == FIELD_ENUM) {
        string_member(out, "default", field->preset);
    } else if (field->preset != NULL) {
        text_format(out, ",\"default\":%s", field->preset);
    }
    choices_describe(field, out);
    bool required = field->preset == NULL && !(field->flags & FIELD_OPTIONAL);
    text_format(out, ",\"required\":%s", required ? "true" : "false");
    if (field->help != NULL) {
        string_member(out, "help", field->help);
    }
    text_string(out, "}");
}

void fields_describe(const struct field *fields, struct text *out) {
    text_string(out, "[");
    for (const struct field *field = fields; field->name != NULL; field++) {
        text_string(out, field == fields ? "" : ",");
        field_describe(field, out);
    }
    text_string(out, "]");
}
