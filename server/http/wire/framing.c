/*
 * framing.c: one walk over the headers (RFC 9112 section 6).
 */
#include "server/http/wire/framing.h"

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

static enum MHD_Result header_check(void *context, enum MHD_ValueKind kind, const char *name,
                                    size_t name_size, const char *value, size_t value_size) {
    struct walk *walk = context;
    (void)kind;
    value = value != NULL ? value : "";
    for (size_t i = 0; i < sizeof readers / sizeof readers[0] && walk->wrong == NULL; i++) {
        if (readers[i].size == name_size && strncasecmp(readers[i].name, name, name_size) == 0) {
            readers[i].read(walk, value, value_size);
        }
    }
    return walk->wrong == NULL ? MHD_YES : MHD_NO;
}

enum kiln_status framing_check(struct MHD_Connection *connection, const char *version,
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
    }
    if (walk.wrong != NULL) {
        snprintf(why, why_size, "%s", walk.wrong);
        return KILN_MALFORMED;
    }
    return KILN_OK;
}
