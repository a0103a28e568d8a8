/*
 * answer.c: an incremental reader of HTTP/1.1 answers.
 */
#include "bench/load/answer.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE_MAX_BYTES 1024 /* of a chunk's size line or a trailer */

void answer_begin(struct load_answer *answer, bool bodyless) {
    answer->state = ANSWER_HEAD;
    answer->status = 0;
    answer->bodyless = bodyless;
    answer->closing = false;
    answer->body_started = false;
    answer->left = answer->body = 0;
    answer->line = answer->head_size = 0;
    answer->head[0] = '\0';
}

/* The value of the header at or behind `line`, and its end; NULL where there is none. `next`
   receives where to look for another one. */
static const char *header_find(const char *line, const char *name, const char **end,
                               const char **next) {
    size_t length = strlen(name);
    while ((line = strstr(line, "\r\n")) != NULL) {
        line += 2;
        if (strncasecmp(line, name, length) == 0 && line[length] == ':') {
            const char *value = line + length + 1;
            *end = strstr(value, "\r\n");
            *next = *end;
            while (*value == ' ' || *value == '\t') {
                value++;
            }
            while (*end > value && ((*end)[-1] == ' ' || (*end)[-1] == '\t')) {
                (*end)--;
            }
            return value;
        }
    }
    return NULL;
}

bool answer_header(const struct load_answer *answer, const char *name, char *value,
                   size_t capacity) {
    const char *end, *next, *found = header_find(answer->head, name, &end, &next);
    if (found == NULL || (size_t)(end - found) >= capacity) {
        return false;
    }
    memcpy(value, found, (size_t)(end - found));
    value[end - found] = '\0';
    return true;
}

/* Exactly digits, at most 18 of them. */
static bool length_read(const char *text, const char *end, uint64_t *value) {
    *value = 0;
    if (text == end || end - text > 18) {
        return false;
    }
    for (; text < end; text++) {
        if (!isdigit((unsigned char)*text)) {
            return false;
        }
        *value = *value * 10 + (uint64_t)(*text - '0');
    }
    return true;
}

static bool status_read(const char *head, int *status) {
    if (strncmp(head, "HTTP/1.", 7) != 0 || (head[7] != '0' && head[7] != '1') || head[8] != ' ' ||
        !isdigit((unsigned char)head[9]) || !isdigit((unsigned char)head[10]) ||
        !isdigit((unsigned char)head[11]) || (head[12] != ' ' && head[12] != '\r')) {
        return false;
    }
    *status = (head[9] - '0') * 100 + (head[10] - '0') * 10 + (head[11] - '0');
    return *status >= 100;
}

static bool word_is(const char *value, const char *end, const char *word) {
    size_t length = strlen(word);
    return (size_t)(end - value) == length && strncasecmp(value, word, length) == 0;
}

/* How the body is framed. */
static enum answer_state framing_read(struct load_answer *answer) {
    const char *end, *next, *again, *value;
    value = header_find(answer->head, "Connection", &end, &next);
    answer->closing = value != NULL ? word_is(value, end, "close") : answer->head[7] == '0';
    if (answer->bodyless || answer->status == 204 || answer->status == 304) {
        return ANSWER_DONE;
    }
    value = header_find(answer->head, "Transfer-Encoding", &end, &next);
    if (value != NULL) {
        bool both = header_find(answer->head, "Content-Length", &again, &next) != NULL;
        return !both && word_is(value, end, "chunked") ? ANSWER_CHUNK_SIZE : ANSWER_BROKEN;
    }
    value = header_find(answer->head, "Content-Length", &end, &next);
    if (value == NULL) {
        answer->closing = true;
        return ANSWER_UNTIL_CLOSE;
    }
    if (!length_read(value, end, &answer->left) ||
        header_find(next, "Content-Length", &again, &next) != NULL) {
        return ANSWER_BROKEN;
    }
    return answer->left > 0 ? ANSWER_LENGTH : ANSWER_DONE;
}

static size_t head_feed(struct load_answer *answer, const char *bytes, size_t size) {
    size_t room = ANSWER_HEAD_MAX - answer->head_size, old = answer->head_size;
    size_t take = size < room ? size : room;
    memcpy(answer->head + old, bytes, take);
    size_t from = old > 3 ? old - 3 : 0;
    const char *end = memmem(answer->head + from, old + take - from, "\r\n\r\n", 4);
    if (end == NULL) {
        answer->head_size = old + take;
        answer->state = take < room ? ANSWER_HEAD : ANSWER_BROKEN;
        return take;
    }
    answer->head_size = (size_t)(end + 4 - answer->head);
    answer->head[answer->head_size] = '\0';
    take = answer->head_size - old;
    if (strlen(answer->head) != answer->head_size || !status_read(answer->head, &answer->status)) {
        answer->state = ANSWER_BROKEN;
    } else if (answer->status < 200) {
        bool bodyless = answer->bodyless;
        bool upgrade = answer->status == 101;
        answer_begin(answer, bodyless);
        answer->state = upgrade ? ANSWER_BROKEN : ANSWER_HEAD;
    } else {
        answer->state = framing_read(answer);
    }
    return take;
}

static size_t body_feed(struct load_answer *answer, size_t size, enum answer_state next) {
    size_t take = size < answer->left ? size : (size_t)answer->left;
    answer->left -= take;
    answer->body += take;
    if (answer->left == 0) {
        answer->state = next;
    }
    return take;
}

static int hex_digit(char c) {
    if (isdigit((unsigned char)c)) {
        return c - '0';
    }
    return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* One byte of a chunk's size line. `line` counts digits until something else came, then bytes. */
static void chunk_size_feed(struct load_answer *answer, char c) {
    int digit = hex_digit(c);
    if (c == '\n' && answer->line > 0) {
        answer->state = answer->left > 0 ? ANSWER_CHUNK : ANSWER_TRAILER;
        answer->line = 0;
        answer->body_started = false;
        return;
    }
    if (digit >= 0 && !answer->body_started) {
        answer->left = answer->left * 16 + (uint64_t)digit;
        answer->state = ++answer->line > 14 ? ANSWER_BROKEN : ANSWER_CHUNK_SIZE;
        return;
    }
    bool after = c == '\r' || c == ';' || c == ' ' || c == '\t';
    if (answer->line == 0 || (!answer->body_started && !after) || ++answer->line > LINE_MAX_BYTES) {
        answer->state = ANSWER_BROKEN;
    }
    answer->body_started = true; /* past the digits */
}

static void chunk_end_feed(struct load_answer *answer, char c) {
    if (c == '\n') {
        answer->state = ANSWER_CHUNK_SIZE;
        answer->line = 0;
    } else if (c != '\r') {
        answer->state = ANSWER_BROKEN;
    }
}

/* Trailers end with an empty line. */
static void trailer_feed(struct load_answer *answer, char c) {
    if (c == '\n') {
        answer->state = answer->line == 0 ? ANSWER_DONE : ANSWER_TRAILER;
        answer->line = 0;
    } else if (c != '\r' && ++answer->line > LINE_MAX_BYTES) {
        answer->state = ANSWER_BROKEN;
    }
}

size_t answer_feed(struct load_answer *answer, const char *bytes, size_t size) {
    size_t at = 0;
    while (at < size && answer->state != ANSWER_DONE && answer->state != ANSWER_BROKEN) {
        switch (answer->state) {
        case ANSWER_HEAD:
            at += head_feed(answer, bytes + at, size - at);
            break;
        case ANSWER_LENGTH:
            at += body_feed(answer, size - at, ANSWER_DONE);
            break;
        case ANSWER_CHUNK:
            at += body_feed(answer, size - at, ANSWER_CHUNK_END);
            break;
        case ANSWER_CHUNK_SIZE:
            chunk_size_feed(answer, bytes[at++]);
            break;
        case ANSWER_CHUNK_END:
            chunk_end_feed(answer, bytes[at++]);
            break;
        case ANSWER_TRAILER:
            trailer_feed(answer, bytes[at++]);
            break;
        default:
            answer->body += size - at;
            at = size;
        }
    }
    return at;
}

bool answer_close(struct load_answer *answer) {
    if (answer->state != ANSWER_UNTIL_CLOSE) {
        return false;
    }
    answer->state = ANSWER_DONE;
    return true;
}

/* One metric up to its comma; a quoted description may hold commas. */
static const char *metric_end(const char *at) {
    bool quoted = false;
    for (; *at != '\0' && (quoted || *at != ','); at++) {
        if (*at == '\\' && quoted && at[1] != '\0') {
            at++;
        } else if (*at == '"') {
            quoted = !quoted;
        }
    }
    return at;
}

bool timing_next(const char **cursor, struct timing_entry *entry) {
    while (**cursor != '\0') {
        const char *at = *cursor + strspn(*cursor, " \t,"), *end = metric_end(at);
        size_t name = strcspn(at, ";, \t=");
        *cursor = *end == ',' ? end + 1 : end;
        for (const char *part = at; (part = strchr(part, ';')) != NULL && part < end;) {
            part += 1 + strspn(part + 1, " \t");
            if (strncasecmp(part, "dur=", 4) == 0 && name > 0 && name < sizeof entry->name) {
                memcpy(entry->name, at, name);
                entry->name[name] = '\0';
                entry->ms = strtod(part + 4 + (part[4] == '"'), NULL);
                if (isfinite(entry->ms) && entry->ms >= 0) {
                    return true;
                }
            }
        }
    }
    return false;
}
