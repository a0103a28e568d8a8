/*
 * etag.c: making and comparing entity tags.
 */
#include "server/etag.h"

#include "compute/text.h"
#include "server/service.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#define CANONICAL_MAX 16384

/* How the input is divided into arrays is not in its bytes. */
static void arrays_print(const struct job *job, struct text *text) {
    for (const struct field *field = job->type->fields; field->name != NULL; field++) {
        if (field->type == FIELD_ARRAY) {
            struct array_ref array;
            memcpy(&array, job->params + field->offset, sizeof array);
            text_format(text, "%s[%llu,%llu]", field->name, (unsigned long long)array.count,
                        (unsigned long long)array.rows);
        }
    }
}

void etag_make(const struct job *job, const uint8_t *data, const char *kinds, char *out,
               size_t size) {
    char bytes[CANONICAL_MAX];
    struct text text;
    text_init(&text, bytes, sizeof bytes);
    text_format(&text, "%s %s %d %s %s\n", KILN_VERSION, job->type->name, job->type->version,
                format_row(job->format)->name, job->device[0] != '\0' ? job->device : kinds);
    fields_print_query(job->type->fields, job->params, &text);
    arrays_print(job, &text);
    if (data != NULL && job->input.size > 0) {
        XXH128_hash_t hash = XXH3_128bits(data + job->input.offset, (size_t)job->input.size);
        text_format(&text, "\n%d %016llx%016llx", (int)job->input.format,
                    (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    }
    out[0] = '\0';
    if (text.full) {
        return;
    }
    bool mixed = job->device[0] == '\0' && strchr(kinds, ',') != NULL;
    XXH128_hash_t hash = XXH3_128bits(bytes, text.size);
    snprintf(out, size, "%s\"%016llx%016llx\"", job->format == FORMAT_JSON || mixed ? "W/" : "",
             (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

bool etag_match(const char *header, const char *etag) {
    const char *opaque = etag[0] == 'W' ? etag + 2 : etag;
    size_t size = strlen(opaque);
    for (const char *at = header; *at != '\0';) {
        at += strspn(at, " \t,");
        if (*at == '*') {
            return true;
        }
        at += strncmp(at, "W/", 2) == 0 ? 2 : 0;
        if (strncmp(at, opaque, size) == 0) {
            return true;
        }
        const char *quote = *at == '"' ? strchr(at + 1, '"') : NULL;
        at = quote != NULL ? quote + 1 : at + strcspn(at, ",");
    }
    return false;
}
