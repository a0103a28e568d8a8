/*
 * scenario_file.c: scenarios from JSON.
 */
#include "bench/load/scenario.h"

#include "compute/codecs/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCENARIO_MAX  (1 << 20)
#define BODY_TEXT_MAX (256 << 10)

char *file_load(const char *path, size_t size_max, size_t *size, char *why, size_t why_size) {
    char *bytes = NULL;
    FILE *file = fopen(path, "rb");
    if (file == NULL || (bytes = malloc(size_max + 1)) == NULL) {
        goto failed;
    }
    errno = 0;
    *size = fread(bytes, 1, size_max + 1, file);
    if (ferror(file)) {
        goto failed;
    }
    if (*size > size_max) {
        errno = EFBIG;
        goto failed;
    }
    fclose(file);
    char *fitting = realloc(bytes, *size + 1);
    bytes = fitting != NULL ? fitting : bytes;
    bytes[*size] = '\0';
    return bytes;
failed:
    snprintf(why, why_size, "%s: %s", path, strerror(errno != 0 ? errno : EIO));
    free(bytes);
    if (file != NULL) {
        fclose(file);
    }
    return NULL;
}

/* What one request of the file says. */
struct scenario_reading {
    const char *folder;
    char name[ITEM_NAME_MAX], method[16], path[ITEM_HEAD_MAX], headers[ITEM_HEAD_MAX];
    char *body;
    struct request_text request;
};

static bool text_read(const struct json_value *value, char *out, size_t capacity) {
    return value->type == JSON_STRING && json_string(value, out, capacity) < capacity &&
           (out[0] != '\0' || value->size == 2);
}

static bool name_set(struct scenario_reading *reading, const struct json_value *value) {
    return text_read(value, reading->name, sizeof reading->name);
}

static bool method_set(struct scenario_reading *reading, const struct json_value *value) {
    return text_read(value, reading->method, sizeof reading->method);
}

static bool path_set(struct scenario_reading *reading, const struct json_value *value) {
    return text_read(value, reading->path, sizeof reading->path);
}

static bool weight_set(struct scenario_reading *reading, const struct json_value *value) {
    reading->request.weight = value->type == JSON_NUMBER ? json_number(value) : 0;
    return value->type == JSON_NUMBER;
}

static bool expect_set(struct scenario_reading *reading, const struct json_value *value) {
    double number = value->type == JSON_NUMBER ? json_number(value) : 0;
    reading->request.expect = number >= 200 && number < 600 ? (int)number : 0;
    return reading->request.expect == number && number > 0;
}

static bool conditional_set(struct scenario_reading *reading, const struct json_value *value) {
    reading->request.conditional = value->type == JSON_TRUE;
    return value->type == JSON_TRUE || value->type == JSON_FALSE;
}

static bool headers_set(struct scenario_reading *reading, const struct json_value *object) {
    char key[128], text[2048];
    struct json_value value;
    size_t cursor = 0, size = 0;
    if (object->type != JSON_OBJECT) {
        return false;
    }
    while (json_next_member(object, &cursor, key, sizeof key, &value)) {
        if (!text_read(&value, text, sizeof text) || strpbrk(text, "\r\n") != NULL ||
            key[0] == '\0' || strpbrk(key, ": \r\n\t") != NULL) {
            return false;
        }
        size_t room = sizeof reading->headers - size;
        int wrote = snprintf(reading->headers + size, room, "%s: %s\r\n", key, text);
        if (wrote < 0 || (size_t)wrote >= room) {
            return false;
        }
        size += (size_t)wrote;
    }
    return true;
}

static bool body_set(struct scenario_reading *reading, const struct json_value *value) {
    if (reading->body != NULL || value->type != JSON_STRING || value->size > BODY_TEXT_MAX ||
        (reading->body = malloc(value->size + 1)) == NULL) {
        return false;
    }
    reading->request.body_size = json_string(value, reading->body, value->size + 1);
    return true;
}

static bool body_file_set(struct scenario_reading *reading, const struct json_value *value) {
    char name[512], path[1024], why[1200];
    if (reading->body != NULL || !text_read(value, name, sizeof name)) {
        return false;
    }
    snprintf(path, sizeof path, "%s%s%s", name[0] == '/' ? "" : reading->folder,
             name[0] == '/' || reading->folder[0] == '\0' ? "" : "/", name);
    reading->body = file_load(path, ITEM_BODY_MAX, &reading->request.body_size, why, sizeof why);
    reading->request.body_fixed = true;
    return reading->body != NULL;
}

static const struct {
    const char *key, *must;
    bool (*set)(struct scenario_reading *reading, const struct json_value *value);
} members[] = {
    {"name", "a text of up to 39 bytes", name_set},
    {"weight", "a number above 0", weight_set},
    {"method", "a text such as \"GET\"", method_set},
    {"path", "a text", path_set},
    {"headers", "an object of texts", headers_set},
    {"body", "a text, and there is one body", body_set},
    {"body_file", "a readable file of up to 64 MiB, and there is one body", body_file_set},
    {"expect", "a status from 200 to 599", expect_set},
    {"conditional", "true or false", conditional_set},
};

static bool member_read(struct scenario_reading *reading, const char *key,
                        const struct json_value *value, char *why, size_t why_size) {
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (strcmp(members[i].key, key) == 0) {
            snprintf(why, why_size, "`%s` must be %s", key, members[i].must);
            return members[i].set(reading, value);
        }
    }
    snprintf(why, why_size, "`%s` is unknown", key);
    return false;
}

static bool request_read(struct scenario *scenario, struct scenario_reading *reading,
                         const struct json_value *object, char *why, size_t why_size) {
    char key[64];
    struct json_value value;
    size_t cursor = 0;
    snprintf(reading->name, sizeof reading->name, "%zu", scenario->count + 1);
    reading->request.weight = 1;
    if (object->type != JSON_OBJECT) {
        snprintf(why, why_size, "a request must be an object");
        return false;
    }
    while (json_next_member(object, &cursor, key, sizeof key, &value)) {
        if (!member_read(reading, key, &value, why, why_size)) {
            return false;
        }
    }
    if (reading->method[0] == '\0') {
        strcpy(reading->method, reading->body != NULL ? "POST" : "GET");
    }
    reading->request.name = reading->name;
    reading->request.method = reading->method;
    reading->request.path = reading->path;
    reading->request.headers = reading->headers;
    reading->request.body = reading->body;
    return scenario_add(scenario, &reading->request, why, why_size);
}

static bool requests_read(struct scenario *scenario, const struct json_value *array,
                          const char *folder, char *why, size_t why_size) {
    struct json_value element;
    size_t cursor = 0;
    bool fine = array->type == JSON_ARRAY;
    snprintf(why, why_size, "`requests` must be an array");
    while (fine && json_next_element(array, &cursor, &element)) {
        char reason[300] = "out of memory";
        size_t index = scenario->count + 1;
        struct scenario_reading *reading = calloc(1, sizeof *reading);
        fine = reading != NULL;
        if (fine) {
            reading->folder = folder;
            fine = request_read(scenario, reading, &element, reason, sizeof reason);
            free(reading->body);
        }
        free(reading);
        if (!fine) {
            snprintf(why, why_size, "request %zu: %s", index, reason);
        }
    }
    return fine;
}

bool scenario_parse(struct scenario *scenario, const char *text, size_t size, const char *folder,
                    char *why, size_t why_size) {
    struct json_value root, value;
    char key[64], reason[300];
    size_t cursor = 0;
    if (json_check(text, size, &root, reason, sizeof reason) != KILN_OK) {
        snprintf(why, why_size, "%s", reason);
        return false;
    }
    if (root.type != JSON_OBJECT) {
        snprintf(why, why_size, "a scenario is an object");
        return false;
    }
    while (json_next_member(&root, &cursor, key, sizeof key, &value)) {
        bool about = strcmp(key, "about") == 0;
        if (!about && strcmp(key, "requests") != 0) {
            snprintf(why, why_size, "`%s` is unknown", key);
            return false;
        }
        if (about && !text_read(&value, scenario->about, sizeof scenario->about)) {
            snprintf(why, why_size, "`about` must be a text of up to 199 bytes");
            return false;
        }
        if (!about && !requests_read(scenario, &value, folder, why, why_size)) {
            return false;
        }
    }
    if (scenario->count == 0) {
        snprintf(why, why_size, "there are no requests");
    }
    return scenario->count > 0;
}

bool scenario_load(struct scenario *scenario, const char *path, char *why, size_t why_size) {
    char reason[400], folder[1024] = "";
    size_t size = 0;
    const char *slash = strrchr(path, '/');
    char *text = file_load(path, SCENARIO_MAX, &size, why, why_size);
    if (text == NULL) {
        return false;
    }
    if (slash != NULL && (size_t)(slash - path) < sizeof folder) {
        memcpy(folder, path, (size_t)(slash - path));
    }
    bool fine = scenario_parse(scenario, text, size, folder, reason, sizeof reason);
    if (!fine) {
        snprintf(why, why_size, "%s: %s", path, reason);
    }
    free(text);
    return fine;
}
