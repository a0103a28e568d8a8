/*
 * negotiate.c: media ranges with qualities (RFC 9110, 12.5.1).
 *
 * For each format the most specific range counts, and of two that are equally specific the better
 * one. The format with the best quality is taken. Of those with the same one that the client has
 * named more exactly, then the one that it has named first, then the first of the kind's list: so
 * JSON, plain text and then anything, which axios asks for, is answered with JSON.
 */
#include "server/jobs/negotiate.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define RANGE_MAX 128

/* One element of the list. */
struct range {
    char media[RANGE_MAX]; /* "image/png", or with a star for the second part */
    double quality;
};

static const char *blanks_skip(const char *at) {
    return at + strspn(at, " \t");
}

/* Reads parameters up to ',' and keeps q. Quoted strings may hold commas. */
static const char *parameters_read(const char *at, double *quality) {
    while (*at != '\0' && *at != ',') {
        if (*at == ';') {
            at = blanks_skip(at + 1);
            if ((*at == 'q' || *at == 'Q') && at[1] == '=') {
                double value = at[2] == '0' || at[2] == '1' ? strtod(at + 2, NULL) : 1;
                *quality = value < 0 ? 0 : value > 1 ? 1 : value;
            }
        } else if (*at == '"') {
            for (at++; *at != '\0' && *at != '"'; at++) {
                at += *at == '\\' && at[1] != '\0';
            }
            at += *at == '"';
        } else {
            at++;
        }
    }
    return at;
}

/* Next element; false at the end. Elements that are not media ranges are passed over. */
static bool range_next(const char **cursor, struct range *range) {
    const char *at = *cursor;
    while (*at != '\0') {
        at += strspn(at, " \t,");
        size_t size = strcspn(at, " \t,;");
        const char *media = at;
        range->quality = 1;
        at = parameters_read(at + size, &range->quality);
        if (size > 0 && size < sizeof range->media && memchr(media, '/', size) != NULL) {
            memcpy(range->media, media, size);
            range->media[size] = '\0';
            *cursor = at;
            return true;
        }
    }
    *cursor = at;
    return false;
}

/* 0: the range does not cover the format; 1: any, 2: any of its type, 3: itself. */
static int range_covers(const char *media, enum format format) {
    size_t slash = strcspn(media, "/");
    if (strcmp(media, "*/*") == 0) {
        return 1;
    }
    if (strcmp(media + slash, "/*") == 0) {
        return strncasecmp(media, format_row(format)->media, slash + 1) == 0 ? 2 : 0;
    }
    return format_by_media(media) == format ? 3 : 0;
}

/* What the client thinks of one format. */
struct wish {
    double quality;
    int covers;   /* as range_covers, of the range that counts */
    size_t place; /* of that range in the list */
};

static struct wish format_wish(const char *accept, enum format format, bool *any) {
    struct range range;
    struct wish wish = {0, 0, 0};
    for (size_t place = 0; range_next(&accept, &range); place++) {
        int covers = range_covers(range.media, format);
        *any = true;
        if (covers > wish.covers ||
            (covers == wish.covers && covers > 0 && range.quality > wish.quality)) {
            wish = (struct wish){range.quality, covers, place};
        }
    }
    return wish;
}

static bool wish_beats(const struct wish *one, const struct wish *other) {
    if (one->quality != other->quality) {
        return one->quality > other->quality;
    }
    return one->covers != other->covers ? one->covers > other->covers : one->place < other->place;
}

enum format negotiate(const char *accept, const enum format *formats) {
    enum format chosen = FORMAT_NONE;
    struct wish best = {0, 0, 0};
    bool any = false;
    if (accept == NULL) {
        return formats[0];
    }
    for (size_t i = 0; formats[i] != FORMAT_NONE; i++) {
        struct wish wish = format_wish(accept, formats[i], &any);
        if (wish.quality > 0 && (chosen == FORMAT_NONE || wish_beats(&wish, &best))) {
            best = wish;
            chosen = formats[i];
        }
    }
    return any ? chosen : formats[0];
}
