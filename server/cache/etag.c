/*
 * etag.c: making and comparing entity tags.
 */
#include "server/cache/etag.h"

#include "compute/core/text.h"
#include "server/core/service.h"

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
            text_format(text, "%s[%llu,%llu,%llu]", field->name, (unsigned long long)array.count,
                        (unsigned long long)array.rows, (unsigned long long)array.dropped);
        }
    }
}

static XXH128_hash_t hash_of(const void *bytes, size_t size, const void *secret) {
    return secret != NULL ? XXH3_128bits_withSecret(bytes, size, secret, ETAG_SECRET_SIZE)
                          : XXH3_128bits(bytes, size);
}

void etag_hash(const void *bytes, size_t size, const void *secret, struct digest *digest) {
    XXH128_hash_t hash = hash_of(bytes, size, secret);
    /* zero is the name of nothing */
    *digest = (struct digest){.high = hash.high64, .low = hash.low64 | (hash.high64 == 0)};
}

/* Hash of the canonical text with the hash of each input behind it. */
static void name_hash(const struct job *job, const uint8_t *data, struct text text,
                      const void *secret, struct digest *digest) {
    *digest = (struct digest){0, 0};
    for (size_t i = 0; data != NULL && i < job_type_inputs(job->type); i++) {
        const struct input *input = &job->inputs[i];
        XXH128_hash_t hash = hash_of(data + input->offset, (size_t)input->size, secret);
        text_format(&text, "\n%d %016llx%016llx", (int)input->format,
                    (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    }
    if (!text.full) {
        etag_hash(text.data, text.size, secret, digest);
    }
}

void etag_make(const struct job *job, const uint8_t *data, const char *variants, const void *secret,
               char *tag, size_t size, struct digest *digest) {
    char bytes[CANONICAL_MAX];
    struct digest open;
    struct text text;
    text_init(&text, bytes, sizeof bytes);
    bool differs = !job->type->portable || job->format == FORMAT_JSON;
    text_format(&text, "%s %s %d %s\n", KILN_VERSION, job->type->name, job->type->version,
                format_row(job->format)->name);
    if (differs) {
        text_format(&text, "%s of %s\n", job->device, variants);
    }
    fields_print_query(job->type->fields, job->params, &text);
    arrays_print(job, &text);
    name_hash(job, data, text, NULL, &open);
    *digest = (struct digest){0, 0};
    tag[0] = '\0';
    if (digest_empty(&open)) {
        return;
    }
    bool mixed = differs && job->device[0] == '\0' && strchr(variants, ',') != NULL;
    snprintf(tag, size, "%s\"%016llx%016llx\"", job->format == FORMAT_JSON || mixed ? "W/" : "",
             (unsigned long long)open.high, (unsigned long long)open.low);
    if (secret != NULL) {
        text_format(&text, "\n%s", job->device); /* who names a device gets its own work */
        name_hash(job, data, text, secret, digest);
    }
}

bool etag_match(const char *header, const char *etag) {
    const char *opaque = etag[0] == 'W' ? etag + 2 : etag;
    size_t size = strlen(opaque);
    for (const char *at = header; *at != '\0';) {
        at += strspn(at, " \t,");
        if (*at == '*' && strspn(at + 1, " \t") == strcspn(at + 1, ",")) {
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
