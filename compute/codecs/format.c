/*
 * format.c: names and media types of the representations (format.h). Thread: any.
 */
#include "compute/codecs/format.h"

#include <string.h>
#include <strings.h>

static const struct format_row rows[FORMAT_COUNT] = {[FORMAT_NONE] = {"", ""},
#define X(symbol, row_name, row_media) [FORMAT_##symbol] = {row_name, row_media},
                                                     KILN_FORMATS(X)
#undef X
};

static const struct {
    const char *media;
    enum format format;
} aliases[] = {
    {"image/x-portable-anymap", FORMAT_PGM},
    {"image/x-portable-pixmap", FORMAT_PGM},
    {"application/npy", FORMAT_NPY},
};

const struct format_row *format_row(enum format format) {
    return &rows[(unsigned)format < FORMAT_COUNT ? format : FORMAT_NONE];
}

enum format format_by_name(const char *name) {
    for (int i = FORMAT_NONE + 1; i < FORMAT_COUNT; i++) {
        if (strcmp(name, rows[i].name) == 0) {
            return (enum format)i;
        }
    }
    return FORMAT_NONE;
}

/* Whether the type before any parameter is `media`. */
static int media_equal(const char *given, size_t size, const char *media) {
    return strlen(media) == size && strncasecmp(given, media, size) == 0;
}

enum format format_by_media(const char *media) {
    media += strspn(media, " \t");
    size_t size = strcspn(media, "; \t");
    for (int i = FORMAT_NONE + 1; i < FORMAT_COUNT; i++) {
        if (media_equal(media, size, rows[i].media)) {
            return (enum format)i;
        }
    }
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++) {
        if (media_equal(media, size, aliases[i].media)) {
            return aliases[i].format;
        }
    }
    return FORMAT_NONE;
}
