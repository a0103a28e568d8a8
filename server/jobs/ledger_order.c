/*
 * ledger_order.c: what somebody sent for a job, as a text, and back.
 *
 * The text is JSON, {"query":…,"media":…,"path":…,"captures":[…]}: what the job's parameters and
 * input are read from, so that a job which is run later is read as it was sent. Reentrant.
 */
#include "compute/codecs/json.h"
#include "compute/core/text.h"
#include "server/jobs/ledger_private.h"

#include <string.h>

static void member_print(struct text *text, const char *name, const char *value) {
    if (value != NULL) {
        text_format(text, "%s\"%s\":", text->size > 1 ? "," : "", name);
        text_json_string(text, value, strlen(value));
    }
}

bool ledger_order_print(const struct job_order *order, const char *media, char *bytes,
                        size_t size) {
    struct text text;
    text_init(&text, bytes, size);
    text_string(&text, "{");
    member_print(&text, "query", order->query);
    member_print(&text, "media", order->body_size > 0 ? order->media : NULL);
    member_print(&text, "accept", media);
    if (order->path != NULL) {
        text_format(&text, "%s\"path\":%d,\"captures\":[", text.size > 1 ? "," : "",
                    (int)(order->path - order->type->paths));
        for (size_t i = 0; order->captures != NULL && order->captures[i] != NULL; i++) {
            text_string(&text, i > 0 ? "," : "");
            text_json_string(&text, order->captures[i], strlen(order->captures[i]));
        }
        text_string(&text, "]");
    }
    text_string(&text, "}");
    return !text.full;
}

/* NULL where there is none. */
static const char *member_read(const struct json_value *object, const char *name, char *out,
                               size_t size) {
    struct json_value value = json_member(object, name);
    return value.type == JSON_STRING && json_string(&value, out, size) < size ? out : NULL;
}

bool ledger_order_read(const char *text, struct job_order *order, struct ledger_order_room *room) {
    struct json_value object, capture;
    char why[128];
    size_t cursor = 0, count = 0;
    if (json_check(text, strlen(text), &object, why, sizeof why) != KILN_OK) {
        return false;
    }
    order->query = member_read(&object, "query", room->query, sizeof room->query);
    order->media = member_read(&object, "media", room->media, sizeof room->media);
    order->accept = member_read(&object, "accept", room->accept, sizeof room->accept);
    struct json_value path = json_member(&object, "path");
    if (path.type != JSON_NUMBER || order->type->paths == NULL) {
        return true;
    }
    for (const struct job_path *row = order->type->paths; row->pattern != NULL; row++) {
        order->path = row - order->type->paths == (int)json_number(&path) ? row : order->path;
    }
    struct json_value captures = json_member(&object, "captures");
    while (captures.type == JSON_ARRAY && count < 8 &&
           json_next_element(&captures, &cursor, &capture)) {
        json_string(&capture, room->captures[count], STORE_HOOK_MAX);
        room->list[count] = room->captures[count];
        count++;
    }
    room->list[count] = NULL;
    order->captures = room->list;
    return order->path != NULL;
}
