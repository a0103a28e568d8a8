/*
 * guard.c: one walk over the headers (RFC 9110 section 5, RFC 9112 section 6).
 */
#include "server/guard.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct walk {
    int lengths, codings, hosts;
    struct framing *framing;
    uintptr_t next;    /* where the next header must begin */
    const char *wrong; /* first thing that is, or NULL */
};

/* Whether the library leaves what it shows in the buffer that it received it in, one after the
   other with a NUL for every byte of the separators. */
#define GUARD_IN_PLACE (MHD_VERSION < 0x00097700)

bool framing_has_body(const struct framing *framing) {
    return framing->chunked || (framing->sized && framing->length > 0);
}

static bool token_valid(const char *text, size_t size) {
    static const char others[] = "!#$%&'*+-.^_`|~";
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        bool alnum = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        if (!alnum && (c == '\0' || strchr(others, c) == NULL)) {
            return false;
        }
    }
    return size > 0;
}

static bool value_valid(const char *text, size_t size) {
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f) {
            return false;
        }
    }
    return true;
}

static void length_read(struct walk *walk, const char *value, size_t size) {
    uint64_t length = 0;
    for (size_t i = 0; i < size; i++) {
        if (value[i] < '0' || value[i] > '9' || i > 17) {
            walk->wrong = "The Content-Length is not a plain number.";
            return;
        }
        length = length * 10 + (uint64_t)(value[i] - '0');
    }
    if (size == 0) {
        walk->wrong = "The Content-Length is empty.";
    } else if (++walk->lengths > 1) {
        walk->wrong = "There is more than one Content-Length.";
    }
    walk->framing->sized = true;
    walk->framing->length = length;
}

static void coding_read(struct walk *walk, const char *value, size_t size) {
    if (size != 7 || strncasecmp(value, "chunked", 7) != 0) {
        walk->wrong = "The only transfer coding that is understood here is \"chunked\".";
    } else if (++walk->codings > 1) {
        walk->wrong = "There is more than one Transfer-Encoding.";
    }
    walk->framing->chunked = true;
}

static void host_read(struct walk *walk, const char *value, size_t size) {
    if (++walk->hosts > 1) {
        walk->wrong = "There is more than one Host.";
    }
    walk->framing->host = value;
    for (size_t i = 0; i < size; i++) {
        if (strchr(" \t,/\\@?#<>\"", value[i]) != NULL) {
            walk->wrong = "The Host is not a host name.";
        }
    }
}

static void expect_read(struct walk *walk, const char *value, size_t size) {
    walk->framing->expects = size == 12 && strncasecmp(value, "100-continue", 12) == 0;
    if (!walk->framing->expects) {
        walk->wrong = "The only expectation that is understood here is \"100-continue\".";
    }
}

/* Of these a second one makes the first void: nobody could say which is meant. */
static void sent_note(struct sent *sent, const char *value, size_t size) {
    *sent = (struct sent){value, size, sent->count + 1};
}

static void parent_read(struct walk *walk, const char *value, size_t size) {
    sent_note(&walk->framing->traceparent, value, size);
}

static void state_read(struct walk *walk, const char *value, size_t size) {
    sent_note(&walk->framing->tracestate, value, size);
}

static void id_read(struct walk *walk, const char *value, size_t size) {
    sent_note(&walk->framing->request_id, value, size);
}

static void origin_read(struct walk *walk, const char *value, size_t size) {
    sent_note(&walk->framing->origin, value, size);
}

static void site_read(struct walk *walk, const char *value, size_t size) {
    sent_note(&walk->framing->fetch_site, value, size);
}

static void referer_read(struct walk *walk, const char *value, size_t size) {
    sent_note(&walk->framing->referer, value, size);
}

#define NAMED(name) name, sizeof(name) - 1

static const struct {
    const char *name;
    size_t size;
    void (*read)(struct walk *walk, const char *value, size_t size);
} readers[] = {
    {NAMED("content-length"), length_read},
    {NAMED("transfer-encoding"), coding_read},
    {NAMED("host"), host_read},
    {NAMED("expect"), expect_read},
    {NAMED("traceparent"), parent_read},
    {NAMED("tracestate"), state_read},
    {NAMED("x-request-id"), id_read},
    {NAMED("origin"), origin_read},
    {NAMED("sec-fetch-site"), site_read},
    {NAMED("referer"), referer_read},
};

/* True if the line that ends at `end` did so with carriage return and line feed, of which the
   library makes NULs. Moves `next` behind them. */
static bool line_ended(struct walk *walk, const char *end) {
    walk->next = (uintptr_t)end + 2;
    return end[0] == '\0' && end[1] == '\0';
}

/* True if this header is all that was received between the one before it and its own end. */
static bool header_whole(struct walk *walk, const char *name, size_t name_size, const char *value,
                         size_t value_size) {
    const char *between = name + name_size + 1;
    if ((uintptr_t)name != walk->next || value == NULL || (uintptr_t)value < (uintptr_t)between) {
        return false;
    }
    while ((uintptr_t)between < (uintptr_t)value && (*between == ' ' || *between == '\t')) {
        between++;
    }
    return between == value && line_ended(walk, value + value_size);
}

static enum MHD_Result header_check(void *context, enum MHD_ValueKind kind, const char *name,
                                    size_t name_size, const char *value, size_t value_size) {
    struct walk *walk = context;
    (void)kind;
    if (GUARD_IN_PLACE && !header_whole(walk, name, name_size, value, value_size)) {
        walk->wrong =
            "A header is folded, has no name or a NUL, or ends without a carriage return.";
        return MHD_NO;
    }
    value = value != NULL ? value : "";
    if (!token_valid(name, name_size)) {
        walk->wrong = "A header's name has a blank or another character that names must not have.";
    } else if (!value_valid(value, value_size)) {
        walk->wrong = "A header has a control character.";
    }
    for (size_t i = 0; i < sizeof readers / sizeof readers[0] && walk->wrong == NULL; i++) {
        if (readers[i].size == name_size && strncasecmp(readers[i].name, name, name_size) == 0) {
            readers[i].read(walk, value, value_size);
        }
    }
    return walk->wrong == NULL ? MHD_YES : MHD_NO;
}

/* The request line, from which the walk over the headers begins. */
static void line_check(struct walk *walk, const struct request_line *line) {
    size_t size = strlen(line->version);
    if (!token_valid(line->method, strlen(line->method))) {
        walk->wrong = "The method is not a word.";
    } else if (strcmp(line->version, MHD_HTTP_VERSION_1_1) != 0 &&
               strcmp(line->version, MHD_HTTP_VERSION_1_0) != 0) {
        walk->wrong = "The protocol is neither HTTP/1.1 nor HTTP/1.0.";
    } else if (GUARD_IN_PLACE && ((uintptr_t)line->version != (uintptr_t)line->target_end + 1 ||
                                  !line_ended(walk, line->version + size))) {
        walk->wrong = "The request line has a NUL or needless blanks, or ends without a carriage "
                      "return.";
    }
}

enum kiln_status guard_check(struct MHD_Connection *connection, const struct request_line *line,
                             struct framing *framing, char *why, size_t why_size) {
    struct walk walk = {.framing = framing};
    memset(framing, 0, sizeof *framing);
    line_check(&walk, line);
    if (walk.wrong == NULL) {
        MHD_get_connection_values_n(connection, MHD_HEADER_KIND, header_check, &walk);
    }
    bool modern = strcmp(line->version, MHD_HTTP_VERSION_1_1) == 0;
    if (walk.wrong == NULL && GUARD_IN_PLACE && !line_ended(&walk, (const char *)walk.next)) {
        walk.wrong = "The last header is folded, has no name or a NUL, or ends without a carriage "
                     "return.";
    } else if (walk.wrong == NULL && walk.codings > 0 && walk.lengths > 0) {
        walk.wrong = "There are both a Transfer-Encoding and a Content-Length.";
    } else if (walk.wrong == NULL && walk.codings > 0 && !modern) {
        walk.wrong = "HTTP/1.0 has no Transfer-Encoding.";
    } else if (walk.wrong == NULL && modern && walk.hosts == 0) {
        walk.wrong = "There is no Host.";
    }
    if (walk.wrong != NULL) {
        snprintf(why, why_size, "%s", walk.wrong);
        return KILN_MALFORMED;
    }
    return KILN_OK;
}
