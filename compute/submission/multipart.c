/*
 * multipart.c: delimiters, part headers, parts.
 */
#include "compute/submission/multipart.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* Finds parameter `name` in a header value ("form-data; name=\"x\"") and copies its value. */
static bool parameter_find(const char *value, const char *name, char *out, size_t out_size) {
    const char *at = value + strcspn(value, ";");
    size_t name_size = strlen(name);
    while (*at == ';') {
        at += 1 + strspn(at + 1, " \t");
        size_t key = strcspn(at, "=; \t");
        bool wanted = key == name_size && strncasecmp(at, name, key) == 0;
        at += key;
        size_t size = 0;
        if (*at != '=') {
            at += strcspn(at, ";");
            continue;
        }
        bool quoted = *++at == '"';
        for (at += quoted; *at != '\0' && (quoted ? *at != '"' : *at != ';'); at++) {
            at += quoted && *at == '\\' && (at[1] == '"' || at[1] == '\\');
            if (wanted && size + 1 < out_size) {
                out[size] = *at;
            }
            size++;
        }
        if (quoted && *at != '"') {
            return false;
        }
        at += strcspn(at, ";");
        if (wanted) {
            out[size < out_size ? size : out_size - 1] = '\0';
            return size < out_size;
        }
    }
    return false;
}

static bool boundary_valid(const char *boundary) {
    static const char others[] = "'()+_,-./:=? ";
    size_t size = strlen(boundary);
    for (size_t i = 0; i < size; i++) {
        char c = boundary[i];
        bool alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        if (!alnum && strchr(others, c) == NULL) {
            return false;
        }
    }
    return size > 0 && size <= 70 && boundary[size - 1] != ' ';
}

/* After a delimiter: "--" ends the body, blanks and a line break start a part. */
static enum kiln_status delimiter_pass(struct multipart *multipart, char *why, size_t why_size) {
    char *at = multipart->at;
    if (multipart->end - at >= 2 && memcmp(at, "--", 2) == 0) {
        multipart->done = true;
        return KILN_OK;
    }
    while (at < multipart->end && (*at == ' ' || *at == '\t')) {
        at++;
    }
    if (multipart->end - at < 2 || memcmp(at, "\r\n", 2) != 0) {
        snprintf(why, why_size, "The multipart body has a delimiter that does not end its line.");
        return KILN_MALFORMED;
    }
    multipart->at = at + 2;
    return KILN_OK;
}

enum kiln_status multipart_open(struct multipart *multipart, const char *content_type, char *body,
                                size_t size, char *why, size_t why_size) {
    char boundary[72];
    memset(multipart, 0, sizeof *multipart);
    if (!parameter_find(content_type, "boundary", boundary, sizeof boundary) ||
        !boundary_valid(boundary)) {
        snprintf(why, why_size, "The multipart Content-Type has no valid boundary.");
        return KILN_MALFORMED;
    }
    multipart->delimiter_size =
        (size_t)snprintf(multipart->delimiter, sizeof multipart->delimiter, "\r\n--%s", boundary);
    multipart->end = body + size;
    size_t first = multipart->delimiter_size - 2;
    if (size >= first && memcmp(body, multipart->delimiter + 2, first) == 0) {
        multipart->at = body + first; /* no preamble */
        return delimiter_pass(multipart, why, why_size);
    }
    char *found = memmem(body, size, multipart->delimiter, multipart->delimiter_size);
    if (found == NULL) {
        snprintf(why, why_size, "The multipart body does not have its boundary.");
        return KILN_MALFORMED;
    }
    multipart->at = found + multipart->delimiter_size;
    return delimiter_pass(multipart, why, why_size);
}

/* One header line of a part, NUL-terminated. */
static bool part_header_read(char *line, struct part *part) {
    char *colon = strchr(line, ':');
    if (colon == NULL) {
        return false;
    }
    *colon = '\0';
    const char *value = colon + 1 + strspn(colon + 1, " \t");
    if (strcasecmp(line, "content-disposition") == 0) {
        char file[256];
        part->file = parameter_find(value, "filename", file, sizeof file) ||
                     strstr(value, "filename") != NULL;
        return strncasecmp(value, "form-data", 9) == 0 &&
               parameter_find(value, "name", part->name, sizeof part->name);
    }
    if (strcasecmp(line, "content-type") == 0) {
        snprintf(part->media, sizeof part->media, "%.*s", (int)strcspn(value, "; \t"), value);
    }
    return true;
}

/* Reads header lines up to the empty one. */
static bool part_headers_read(struct multipart *multipart, struct part *part) {
    char *limit = multipart->end;
    if (limit - multipart->at > MULTIPART_HEADER_MAX) {
        limit = multipart->at + MULTIPART_HEADER_MAX;
    }
    for (;;) {
        char *stop = memmem(multipart->at, (size_t)(limit - multipart->at), "\r\n", 2);
        if (stop == NULL || memchr(multipart->at, '\0', (size_t)(stop - multipart->at)) != NULL) {
            return false;
        }
        char *line = multipart->at;
        multipart->at = stop + 2;
        if (stop == line) {
            return part->name[0] != '\0';
        }
        *stop = '\0';
        if (!part_header_read(line, part)) {
            return false;
        }
    }
}

enum kiln_status multipart_next(struct multipart *multipart, struct part *part, bool *found,
                                char *why, size_t why_size) {
    memset(part, 0, sizeof *part);
    *found = false;
    if (multipart->done) {
        return KILN_OK;
    }
    if (++multipart->parts > MULTIPART_PARTS_MAX) {
        snprintf(why, why_size, "The multipart body has more than %d parts.", MULTIPART_PARTS_MAX);
        return KILN_MALFORMED;
    }
    if (!part_headers_read(multipart, part)) {
        snprintf(why, why_size, "Part %d of the multipart body has broken headers, or no name.",
                 multipart->parts);
        return KILN_MALFORMED;
    }
    /* An empty part's delimiter begins with the line break that ended its headers. */
    char *from = multipart->at - 2;
    char *stop = memmem(from, (size_t)(multipart->end - from), multipart->delimiter,
                        multipart->delimiter_size);
    if (stop == NULL) {
        snprintf(why, why_size, "Part %d of the multipart body does not end.", multipart->parts);
        return KILN_MALFORMED;
    }
    part->data = multipart->at;
    part->size = stop < multipart->at ? 0 : (size_t)(stop - multipart->at);
    multipart->at = stop + multipart->delimiter_size;
    enum kiln_status status = delimiter_pass(multipart, why, why_size);
    part->data[part->size] = '\0';
    *found = true;
    return status;
}
