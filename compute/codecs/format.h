/*
 * format.h: the representations that results and inputs come in.
 *
 * One table gives each format its short name (`?format=`), media type and file extension.
 * Threads: constant.
 */
#ifndef KILN_COMPUTE_CODECS_FORMAT_H
#define KILN_COMPUTE_CODECS_FORMAT_H

#include <stddef.h>

/* X(symbol, name, media type) */
#define KILN_FORMATS(X)                                                                            \
    X(PNG, "png", "image/png")                                                                     \
    X(SVG, "svg", "image/svg+xml")                                                                 \
    X(PGM, "pgm", "image/x-portable-graymap")                                                      \
    X(NPY, "npy", "application/x-npy")                                                             \
    X(JSON, "json", "application/json")                                                            \
    X(CSV, "csv", "text/csv")                                                                      \
    X(RAW, "raw", "application/octet-stream")

enum format {
    FORMAT_NONE = 0,
#define X(symbol, name, media) FORMAT_##symbol,
    KILN_FORMATS(X)
#undef X
        FORMAT_COUNT
};

struct format_row {
    const char *name;
    const char *media;
};

/** The row of a format; FORMAT_NONE and out-of-range values yield empty strings. */
const struct format_row *format_row(enum format format);
/** FORMAT_NONE where there is none. */
enum format format_by_name(const char *name);
/** Compares case-insensitively and ignores parameters ("; charset=utf-8"). Known aliases:
    image/x-portable-anymap and image/x-portable-pixmap for PGM, application/npy for NPY. */
enum format format_by_media(const char *media);

#endif
