/*
 * head.c: where a head ends, and what it says.
 */
#include "server/http/wire/head.h"

#include <string.h>
#include <strings.h>

/* The first that is wrong is what is told. */
static void reject(struct rejection *rejection, enum kiln_status status, const char *why) {
    if (rejection->status == KILN_OK) {
        *rejection = (struct rejection){status, why};
    }
}

static void malformed(struct rejection *rejection, const char *why) {
    reject(rejection, KILN_MALFORMED, why);
}

/* ---- where it ends ---- */

enum {
    AT_START,  /* before the request line: empty lines are skipped */
    START_CR,  /* a CR there */
    IN_LINE,   /* in the middle of a line */
    LINE_CR,   /* its CR has come */
    AT_LINE,   /* a line has ended */
    AT_LINE_CR /* the CR of the empty line has come */
};

/* Whether a byte may stand in a line. */
static bool byte_plain(unsigned char c) {
    return (c >= 0x20 && c != 0x7f) || c == '\t';
}

static const char *byte_wrong(unsigned char c, int state) {
    if (state == START_CR || state == LINE_CR || state == AT_LINE_CR) {
        return "A carriage return in the head is not followed by a line feed.";
    }
    return c == '\n' ? "A line of the head ends in a line feed without a carriage return."
                     : "The head has a control character.";
}

/* The next state, or -1. */
static int state_next(int state, unsigned char c) {
    switch (state) {
    case AT_START:
        return c == '\r' ? START_CR : byte_plain(c) ? IN_LINE : -1;
    case START_CR:
        return c == '\n' ? AT_START : -1;
    case LINE_CR:
        return c == '\n' ? AT_LINE : -1;
    case AT_LINE:
        return c == '\r' ? AT_LINE_CR : byte_plain(c) ? IN_LINE : -1;
    default:
        return c == '\r' ? LINE_CR : byte_plain(c) ? IN_LINE : -1;
    }
}

static enum head_found scan_wrong(const struct head_scan *scan, struct rejection *rejection) {
    *rejection =
        scan->lined
            ? (struct rejection){KILN_HEAD_TOO_LARGE, "The head has more than 24 KiB."}
            : (struct rejection){KILN_URI_TOO_LONG, "The request line has more than 24 KiB."};
    return HEAD_WRONG;
}

enum head_found head_scan(struct head_scan *scan, const char *bytes, size_t size, size_t *used,
                          size_t *skipped, struct rejection *rejection) {
    size_t room = HEAD_SIZE_MAX - scan->size;
    size_t most = size < room ? size : room;
    int state = scan->state;
    *skipped = 0;
    for (size_t i = 0; i < most; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (state == IN_LINE && byte_plain(c)) {
            continue;
        }
        if (state == AT_LINE_CR && c == '\n') {
            *used = i + 1;
            memset(scan, 0, sizeof *scan);
            return HEAD_WHOLE;
        }
        int next = state == AT_LINE_CR ? -1 : state_next(state, c);
        if (next < 0) {
            *rejection = (struct rejection){KILN_MALFORMED, byte_wrong(c, state)};
            return HEAD_WRONG;
        }
        scan->lined = scan->lined || next == AT_LINE;
        state = next;
        if (state == AT_START || state == START_CR) {
            *skipped = i + 1;
        }
    }
    scan->state = (uint8_t)state;
    scan->size += (uint32_t)most;
    *used = size;
    return size > room || scan->size == HEAD_SIZE_MAX ? scan_wrong(scan, rejection) : HEAD_MORE;
}

/* ---- what it says ---- */

bool head_token(const char *text, size_t size) {
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

/* What the lines say together. */
struct facts {
    struct head *head;
    int lengths, codings, hosts, fields;
    size_t size; /* of what was written */
    bool expects;
};

static bool span_is(struct span span, const char *text) {
    return span.size == strlen(text) && strncasecmp(span.text, text, span.size) == 0;
}

static void length_read(struct facts *facts, struct span value) {
    struct head *head = facts->head;
    uint64_t length = 0;
    if (value.size == 0) {
        malformed(&head->rejection, "The Content-Length is empty.");
    }
    for (size_t i = 0; i < value.size; i++) {
        if (value.text[i] < '0' || value.text[i] > '9') {
            malformed(&head->rejection, "The Content-Length is not a plain number.");
            return;
        }
        length = i < 18 ? length * 10 + (uint64_t)(value.text[i] - '0') : length;
    }
    if (value.size > 18) {
        reject(&head->rejection, KILN_TOO_LARGE, "The Content-Length has more than 18 digits.");
    } else if (++facts->lengths > 1) {
        malformed(&head->rejection, "There is more than one Content-Length.");
    }
    head->sized = true;
    head->length = length;
}

static void coding_read(struct facts *facts, struct span value) {
    if (!span_is(value, "chunked")) {
        malformed(&facts->head->rejection,
                  "The only transfer coding that is understood here is \"chunked\".");
    } else if (++facts->codings > 1) {
        malformed(&facts->head->rejection, "There is more than one Transfer-Encoding.");
    }
    facts->head->chunked = true;
}

static void host_read(struct facts *facts, struct span value) {
    if (++facts->hosts > 1) {
        malformed(&facts->head->rejection, "There is more than one Host.");
    }
    for (size_t i = 0; i < value.size; i++) {
        if (strchr(" \t,/\\@?#<>\"", value.text[i]) != NULL) {
            malformed(&facts->head->rejection, "The Host is not a host name.");
        }
    }
}

static void expect_read(struct facts *facts, struct span value) {
    facts->expects = true;
    if (!span_is(value, "100-continue")) {
        malformed(&facts->head->rejection,
                  "The only expectation that is understood here is \"100-continue\".");
    }
}

static void id_read(struct facts *facts, struct span value) {
    facts->head->request_id = value;
}

static void parent_read(struct facts *facts, struct span value) {
    facts->head->traceparent = value;
}

static const struct {
    const char *name;
    void (*read)(struct facts *facts, struct span value);
} readers[] = {
    {"content-length", length_read},
    {"transfer-encoding", coding_read},
    {"host", host_read},
    {"expect", expect_read},
    {"x-request-id", id_read},
    {"traceparent", parent_read},
};

static void field_read(struct facts *facts, struct span name, struct span value) {
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        if (span_is(name, readers[i].name)) {
            readers[i].read(facts, value);
        }
    }
}

/* The line at `at`, which ends before CR LF; the scan has seen to it that there is one. */
static struct span line_at(const char *at, const char *end) {
    const char *stop = memchr(at, '\r', (size_t)(end - at));
    return (struct span){at, (size_t)(stop - at)};
}

static bool version_known(struct span version) {
    return version.size == 8 &&
           (memcmp(version.text, "HTTP/1.1", 8) == 0 || memcmp(version.text, "HTTP/1.0", 8) == 0);
}

/* Method, target and version with one blank between. */
static void request_line_read(struct head *head, struct span line) {
    const char *end = line.text + line.size;
    const char *first = memchr(line.text, ' ', line.size);
    if (first == NULL || !head_token(line.text, (size_t)(first - line.text))) {
        malformed(&head->rejection, "The method is not a word.");
        return;
    }
    const char *second = memchr(first + 1, ' ', (size_t)(end - first - 1));
    head->method = (struct span){line.text, (size_t)(first - line.text)};
    if (second == NULL || second == first + 1 || memchr(first, '\t', (size_t)(second - first))) {
        malformed(&head->rejection,
                  "The request line is not a method, a target and a protocol with "
                  "one blank between each.");
        return;
    }
    head->target = (struct span){first + 1, (size_t)(second - first - 1)};
    head->version = (struct span){second + 1, (size_t)(end - second - 1)};
    if (!version_known(head->version)) {
        malformed(&head->rejection, "The protocol is neither HTTP/1.1 nor HTTP/1.0.");
    }
    if (memchr(head->target.text, HEAD_QUERY, head->target.size) != NULL) {
        malformed(&head->rejection, "The request target has a fragment.");
    }
    if (head->target.text[0] == '?') {
        malformed(&head->rejection, "The request target does not start with a slash.");
    }
}

/* Name and value of a line; false if it is no header. */
static bool field_split(struct span line, struct span *name, struct span *value,
                        struct rejection *rejection) {
    const char *colon = memchr(line.text, ':', line.size);
    const char *end = line.text + line.size;
    if (line.text[0] == ' ' || line.text[0] == '\t') {
        malformed(rejection, "A header is folded.");
        return false;
    }
    if (colon == NULL || !head_token(line.text, (size_t)(colon - line.text))) {
        malformed(rejection, "A header's name is empty, or has a blank or another character that "
                             "names must not have.");
        return false;
    }
    *name = (struct span){line.text, (size_t)(colon - line.text)};
    for (colon++; colon < end && (*colon == ' ' || *colon == '\t'); colon++) {
    }
    while (end > colon && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    *value = (struct span){colon, (size_t)(end - colon)};
    return true;
}

/* Moves `size` bytes to `*to`, which is never behind them. */
static const char *bytes_move(char **to, const char *bytes, size_t size) {
    char *place = *to;
    if (place != bytes) {
        memmove(place, bytes, size);
    }
    *to += size;
    return place;
}

/* Writes a header anew. A client that leaves out the blank gets none. */
static struct span field_write(char **to, struct span name, struct span value) {
    bool blank = value.size > 0 && value.text > name.text + name.size + 1;
    bytes_move(to, name.text, name.size + 1);
    if (blank) {
        *(*to)++ = ' ';
    }
    const char *place = bytes_move(to, value.text, value.size);
    *(*to)++ = '\r';
    *(*to)++ = '\n';
    return (struct span){place, value.size};
}

static void facts_check(const struct facts *facts) {
    struct head *head = facts->head;
    bool modern = head->version.size == 8 && head->version.text[7] == '1';
    size_t cost = facts->size + (size_t)facts->fields * HEAD_FIELD_COST;
    if (cost > HEAD_SIZE_MAX) {
        reject(&head->rejection, KILN_HEAD_TOO_LARGE,
               "The head, with 64 bytes for each header, has more than 24 KiB.");
    } else if (facts->codings > 0 && facts->lengths > 0) {
        malformed(&head->rejection, "There are both a Transfer-Encoding and a Content-Length.");
    } else if (facts->codings > 0 && !modern) {
        malformed(&head->rejection, "HTTP/1.0 has no Transfer-Encoding.");
    } else if (modern && facts->hosts == 0) {
        malformed(&head->rejection, "There is no Host.");
    }
}

/* Takes a header out of a head that was written. */
static void field_drop(char *bytes, char **end, const char *name) {
    for (char *at = memchr(bytes, '\n', (size_t)(*end - bytes)); at != NULL && at + 1 < *end;) {
        char *line = at + 1;
        at = memchr(line, '\n', (size_t)(*end - line));
        size_t size = strlen(name);
        if ((size_t)(*end - line) > size && line[size] == ':' &&
            strncasecmp(line, name, size) == 0) {
            memmove(line, at + 1, (size_t)(*end - at - 1));
            *end -= at + 1 - line;
            at = line - 1;
        }
    }
}

bool head_read(char *bytes, size_t size, struct head *head) {
    const char *end = bytes + size, *at = bytes;
    struct facts facts = {.head = head};
    struct span name, value;
    memset(head, 0, sizeof *head);
    struct span line = line_at(at, end);
    request_line_read(head, line);
    char *to = bytes + line.size + 2; /* the request line stays */
    for (at = to; at[0] != '\r'; at = line.text + line.size + 2) {
        line = line_at(at, end);
        if (!field_split(line, &name, &value, &head->rejection) || span_is(name, "cookie")) {
            continue;
        }
        facts.fields++;
        size_t name_size = name.size;
        char *place = to;
        value = field_write(&to, name, value);
        field_read(&facts, (struct span){place, name_size}, value);
    }
    facts.size = (size_t)(to - bytes) + 2;
    facts_check(&facts);
    if (head->rejection.status != KILN_OK) {
        return false;
    }
    if (facts.expects && !head->chunked && head->length == 0) {
        field_drop(bytes, &to, "expect");
    }
    char *query = memchr(bytes + head->method.size + 1, '?', head->target.size);
    if (query != NULL) {
        *query = HEAD_QUERY;
    }
    *to++ = '\r';
    *to++ = '\n';
    head->size = (size_t)(to - bytes);
    return true;
}
