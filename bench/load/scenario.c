/*
 * scenario.c: checking, preparing and rendering requests.
 */
#include "bench/load/scenario.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TAIL_MAX 48 /* "Content-Length: …" and the empty line */

struct scenario *scenario_create(void) {
    return calloc(1, sizeof(struct scenario));
}

void scenario_destroy(struct scenario *scenario) {
    if (scenario == NULL) {
        return;
    }
    for (size_t i = 0; i < scenario->count; i++) {
        free(scenario->items[i].head);
        free(scenario->items[i].body);
    }
    free(scenario);
}

/* No byte that would end the line that it stands in. */
static bool text_is_plain(const char *text, const char *also) {
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < 0x20 && strchr(also, *text) == NULL) {
            return false;
        }
        if (*text == 0x7f) {
            return false;
        }
    }
    return true;
}

static bool method_is_right(const char *method) {
    size_t size = 0;
    while (isupper((unsigned char)method[size])) {
        size++;
    }
    return size > 0 && size < 16 && method[size] == '\0';
}

static const char *text_fault(const struct scenario *scenario, const struct request_text *request) {
    if (scenario->count == ITEMS_MAX) {
        return "more requests than 32";
    }
    if (!method_is_right(request->method)) {
        return "`method` is a word in capitals";
    }
    if (request->path[0] != '/' || strpbrk(request->path, " #") != NULL ||
        !text_is_plain(request->path, "")) {
        return "`path` begins with a slash and has no blanks";
    }
    if (!text_is_plain(request->headers, "\r\n\t")) {
        return "`headers` holds a control character";
    }
    if (!(request->weight > 0) || !isfinite(request->weight)) {
        return "`weight` is above 0";
    }
    if (request->expect != 0 && (request->expect < 200 || request->expect > 599)) {
        return "`expect` is a status from 200 to 599";
    }
    return strlen(request->name) >= ITEM_NAME_MAX ? "`name` is too long" : NULL;
}

static bool body_take(struct item *item, const struct request_text *request, char *why,
                      size_t why_size) {
    if (request->body == NULL) {
        return true;
    }
    item->body = malloc(request->body_size + 1);
    if (item->body == NULL) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    memcpy(item->body, request->body, request->body_size);
    item->body[request->body_size] = '\0';
    item->body_size = request->body_size;
    if (request->body_fixed || strlen(item->body) != item->body_size) {
        return true;
    }
    if (!template_compile(&item->body_template, item->body, why, why_size)) {
        return false;
    }
    if (item->body_template.varies && item->body_template.size_max > ITEM_RENDERED_MAX) {
        snprintf(why, why_size, "a body with variables may have %d bytes", ITEM_RENDERED_MAX);
        return false;
    }
    return true;
}

bool scenario_add(struct scenario *scenario, const struct request_text *request, char *why,
                  size_t why_size) {
    const char *fault = text_fault(scenario, request);
    struct item *item = &scenario->items[scenario->count];
    if (fault != NULL) {
        snprintf(why, why_size, "%s", fault);
        return false;
    }
    memset(item, 0, sizeof *item);
    scenario->count++;
    snprintf(item->name, sizeof item->name, "%s", request->name);
    item->weight = request->weight;
    item->expect = request->conditional ? 304 : request->expect;
    item->conditional = request->conditional;
    item->bodyless = strcmp(request->method, "HEAD") == 0;
    item->head = calloc(1, ITEM_HEAD_MAX);
    if (item->head == NULL) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    int size = snprintf(item->head, ITEM_HEAD_MAX, "%s %s\r\n%s", request->method, request->path,
                        request->headers);
    if (size < 0 || size >= ITEM_HEAD_MAX - 1024) {
        snprintf(why, why_size, "path and headers are too long");
        return false;
    }
    scenario->weight += request->weight;
    return body_take(item, request, why, why_size);
}

/* Puts prefix, version, Host and `more` into the head, which so far is "METHOD PATH CRLF headers".
 */
static bool head_complete(struct item *item, const struct target *target, const char *more,
                          char *why, size_t why_size) {
    char copy[ITEM_HEAD_MAX];
    memcpy(copy, item->head, ITEM_HEAD_MAX);
    char *path = strchr(copy, ' '), *line = strstr(copy, "\r\n");
    *path++ = '\0';
    *line = '\0';
    int size = snprintf(item->head, ITEM_HEAD_MAX, "%s %s%s HTTP/1.1\r\nHost: %s\r\n%s%s", copy,
                        target->prefix, path, target->host, line + 2, more);
    if (size < 0 || size >= ITEM_HEAD_MAX) {
        snprintf(why, why_size, "`%s`: the head is too long", item->name);
        return false;
    }
    return template_compile(&item->head_template, item->head, why, why_size);
}

/* Asks once, and puts the answer's ETag behind the head. */
static bool etag_fetch(struct item *item, const struct target *target, char *why, size_t why_size) {
    static struct load_answer
        answer; /* too large for a stack that others measure; main thread only */
    char etag[256], line[300], *request = NULL;
    struct dice dice = {1};
    bool rest = false, fine = false;
    if (item->head_template.varies || item->body_template.varies) {
        snprintf(why, why_size, "`%s`: a conditional request cannot vary", item->name);
        return false;
    }
    request = malloc(item->head_template.size_max + TAIL_MAX + item->body_size);
    if (request == NULL) {
        snprintf(why, why_size, "out of memory");
        return false;
    }
    size_t size = item_render(item, 0, &dice, request, &rest);
    if (rest) {
        memcpy(request + size, item->body, item->body_size);
        size += item->body_size;
    }
    if (!target_ask(target, request, size, 60, &answer, NULL, 0, why, why_size)) {
        goto out;
    }
    if (answer.status != 200 || !answer_header(&answer, "ETag", etag, sizeof etag)) {
        snprintf(why, why_size, "`%s`: no ETag (HTTP %d)", item->name, answer.status);
        goto out;
    }
    snprintf(line, sizeof line, "If-None-Match: %s\r\n", etag);
    if (strlen(item->head) + strlen(line) >= ITEM_HEAD_MAX) {
        snprintf(why, why_size, "`%s`: the head is too long", item->name);
        goto out;
    }
    strcat(item->head, line);
    fine = template_compile(&item->head_template, item->head, why, why_size);
out:
    free(request);
    return fine;
}

bool scenario_prepare(struct scenario *scenario, const struct target *target, char *why,
                      size_t why_size) {
    for (size_t i = 0; i < scenario->count; i++) {
        struct item *item = &scenario->items[i];
        if (!head_complete(item, target, "", why, why_size) ||
            (item->conditional && !etag_fetch(item, target, why, why_size))) {
            return false;
        }
    }
    return true;
}

size_t scenario_pick(const struct scenario *scenario, struct dice *dice) {
    if (scenario->count == 1) {
        return 0;
    }
    double at = dice_fraction(dice) * scenario->weight;
    for (size_t i = 0; i + 1 < scenario->count; i++) {
        at -= scenario->items[i].weight;
        if (at < 0) {
            return i;
        }
    }
    return scenario->count - 1;
}

size_t scenario_size_max(const struct scenario *scenario) {
    size_t most = 0;
    for (size_t i = 0; i < scenario->count; i++) {
        const struct item *item = &scenario->items[i];
        size_t size = item->head_template.size_max + TAIL_MAX + item->body_template.size_max;
        most = size > most ? size : most;
    }
    return most;
}

size_t item_render(const struct item *item, uint64_t number, struct dice *dice, char *out,
                   bool *rest) {
    size_t size = template_render(&item->head_template, number, dice, out), body = item->body_size;
    bool varies = item->body_template.varies;
    *rest = item->body != NULL && !varies;
    if (item->body == NULL) {
        memcpy(out + size, "\r\n", 2);
        return size + 2;
    }
    /* The length stands before the body but is known after it: render the body behind the longest
       possible line, then move it up. */
    char *place = out + size + TAIL_MAX;
    if (varies) {
        body = template_render(&item->body_template, number, dice, place);
    }
    int tail = snprintf(out + size, TAIL_MAX, "Content-Length: %zu\r\n\r\n", body);
    size += (size_t)tail;
    if (varies) {
        memmove(out + size, place, body);
        size += body;
    }
    return size;
}
