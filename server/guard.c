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
    const char *wrong; /* first thing that is, or NULL */
};

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

static const struct {
    const char *name;
    void (*read)(struct walk *walk, const char *value, size_t size);
} readers[] = {
    {"content-length", length_read},
    {"transfer-encoding", coding_read},
    {"host", host_read},
    {"expect", expect_read},
};

static enum MHD_Result header_check(void *context, enum MHD_ValueKind kind, const char *name,
                                    size_t name_size, const char *value, size_t value_size) {
    struct walk *walk = context;
    (void)kind;
    value = value != NULL ? value : "";
    if (!token_valid(name, name_size)) {
        walk->wrong = "A header's name has a blank or another character that names must not have.";
    } else if (!value_valid(value, value_size)) {
        walk->wrong = "A header has a control character.";
    }
    for (size_t i = 0; i < sizeof readers / sizeof readers[0] && walk->wrong == NULL; i++) {
        if (strlen(readers[i].name) == name_size &&
            strncasecmp(readers[i].name, name, name_size) == 0) {
            readers[i].read(walk, value, value_size);
        }
    }
    return walk->wrong == NULL ? MHD_YES : MHD_NO;
}

enum kiln_status guard_check(struct MHD_Connection *connection, const char *version,
                             struct framing *framing, char *why, size_t why_size) {
    struct walk walk = {.framing = framing};
    memset(framing, 0, sizeof *framing);
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, header_check, &walk);
    bool modern = strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
    if (walk.wrong == NULL && walk.codings > 0 && walk.lengths > 0) {
        walk.wrong = "There are both a Transfer-Encoding and a Content-Length.";
    } else if (walk.wrong == NULL && walk.codings > 0 && !modern) {
        walk.wrong = "HTTP/1.0 has no Transfer-Encoding.";
    } else if (walk.wrong == NULL && modern && walk.hosts == 0) {
        walk.wrong = "There is no Host.";
    } else if (walk.wrong == NULL && !modern && strcmp(version, MHD_HTTP_VERSION_1_0) != 0) {
        walk.wrong = "The protocol is neither HTTP/1.1 nor HTTP/1.0.";
    }
    if (walk.wrong != NULL) {
        snprintf(why, why_size, "%s", walk.wrong);
        return KILN_MALFORMED;
    }
    return KILN_OK;
}
