/*
 * fuzz_multipart.c: the first line is a Content-Type, the rest a body. Every part of a body that is
 * taken lies inside it, apart from the others and ended by a NUL, and the same parts come back from
 * a body that is written of them. Every refusal says why.
 */
#include "tests/fuzz/expect.h"

#include "compute/submission/multipart.h"

#define BOUNDARY "kiln-fuzz-4f1c0a9b7d"

struct kept {
    struct part part;
    uint8_t *data;
};

static struct kept kept[MULTIPART_PARTS_MAX];

static void part_check(const struct part *part, const char *body, size_t size, const char *after) {
    EXPECT(part->name[0] != '\0' && memchr(part->name, '\0', sizeof part->name) != NULL);
    EXPECT(memchr(part->media, '\0', sizeof part->media) != NULL);
    EXPECT(part->data >= after && part->data + part->size < body + size);
    EXPECT(part->data[part->size] == '\0');
}

/* Reads all parts; returns how many, or -1 where the body is refused. */
static int parts_read(char *body, size_t size, const char *type, bool keep) {
    char why[160] = "";
    struct multipart multipart;
    struct part part;
    bool found = true;
    const char *after = body;
    int count = 0;
    enum kiln_status status = multipart_open(&multipart, type, body, size, why, sizeof why);
    while (status == KILN_OK && found) {
        status = multipart_next(&multipart, &part, &found, why, sizeof why);
        if (status != KILN_OK || !found) {
            break;
        }
        EXPECT(count < MULTIPART_PARTS_MAX);
        part_check(&part, body, size, after);
        after = part.data + part.size;
        if (keep) {
            kept[count] = (struct kept){part, malloc(part.size + 1)};
            EXPECT(kept[count].data);
            memcpy(kept[count].data, part.data, part.size);
        } else {
            EXPECT(part.size == kept[count].part.size);
            EXPECT(memcmp(part.data, kept[count].data, part.size) == 0);
            EXPECT(strcmp(part.name, kept[count].part.name) == 0);
            EXPECT(strcmp(part.media, kept[count].part.media) == 0);
            EXPECT(part.file == kept[count].part.file);
        }
        count++;
    }
    EXPECT(status == KILN_OK || (status == KILN_MALFORMED && why_good(why, sizeof why)));
    if (status != KILN_OK) {
        for (int i = 0; keep && i < count; i++) {
            free(kept[i].data);
        }
        return -1;
    }
    return count;
}

static char *quoted_print(char *at, const char *text) {
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            *at++ = '\\';
        }
        *at++ = *text;
    }
    return at;
}

/* The parts that were kept, as a body of our own. */
static void again_check(int count) {
    size_t room = 256;
    for (int i = 0; i < count; i++) {
        room += kept[i].part.size + 1024;
    }
    char *body = malloc(room), *at = body;
    EXPECT(body);
    for (int i = 0; i < count; i++) {
        const struct part *part = &kept[i].part;
        at += sprintf(at, "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"");
        at = quoted_print(at, part->name);
        at += sprintf(at, part->file ? "\"; filename=\"f\"\r\n" : "\"\r\n");
        if (part->media[0] != '\0') {
            at += sprintf(at, "Content-Type: %s\r\n", part->media);
        }
        at += sprintf(at, "\r\n");
        memcpy(at, kept[i].data, part->size);
        at += part->size;
        at += sprintf(at, "\r\n");
    }
    at += sprintf(at, "--" BOUNDARY "--\r\n");
    EXPECT(parts_read(body, (size_t)(at - body), "multipart/form-data; boundary=" BOUNDARY,
                      false) == count);
    free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *line = size > 0 ? memchr(data, '\n', size) : NULL;
    if (line == NULL || memmem(data, size, BOUNDARY, strlen(BOUNDARY)) != NULL) {
        return 0;
    }
    size_t body_size = size - (size_t)(line + 1 - data);
    char *type = strndup((const char *)data, (size_t)(line - data));
    char *body = malloc(body_size > 0 ? body_size : 1);
    EXPECT(type != NULL && body != NULL);
    memcpy(body, line + 1, body_size);
    int count = parts_read(body, body_size, type, true);
    if (count >= 0) {
        again_check(count);
    }
    for (int i = 0; i < count; i++) {
        free(kept[i].data);
    }
    free(body);
    free(type);
    return 0;
}
