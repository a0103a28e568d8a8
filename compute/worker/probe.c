/*
 * probe.c: `kilnd probe`: which devices there are.
 *
 * Runs in a process of its own, because asking a driver may load it, hang or crash; the front only
 * reads the text. Main thread.
 */
#include "compute/core/log.h"
#include "compute/worker/device_kind.h"
#include "compute/worker/worker.h"
#include "kernels/backend.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROBE_TEXT_MAX (256u << 10)

#define KINDS_MAX 8

/* What was asked of one kind. */
struct finding {
    const struct backend *backend; /* NULL: it could not be loaded */
    char why[256];                 /* there are no devices */
};

/* Adds the kind's JSON array: empty where there are no devices. */
static void print_kind(struct text *out, const char *kind, struct finding *finding) {
    int index = 0;
    size_t start = out->size, why_size = sizeof finding->why;
    char *why = finding->why;
    const struct backend *backend = backend_find(kind, &index, why, why_size);
    finding->backend = backend;
    if (backend == NULL || backend->enumerate(out, why, why_size) != KILN_OK) {
        out->size = start; /* whatever a failed enumeration wrote */
        text_string(out, "[]");
        return;
    }
    why[0] = '\0';
}

static bool write_all(int fd, const char *data, size_t size) {
    while (size > 0) {
        ssize_t written = write(fd, data, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        data += written;
        size -= (size_t)written;
    }
    return true;
}

int worker_probe(void) {
    struct finding findings[KINDS_MAX] = {{0}};
    struct text out;
    char *buffer = malloc(PROBE_TEXT_MAX);
    if (buffer == NULL) {
        return 1;
    }
    text_init(&out, buffer, PROBE_TEXT_MAX);
    text_string(&out, "{");
    for (int i = 0; device_kinds[i].name != NULL; i++) {
        assert(i < KINDS_MAX);
        text_format(&out, "\"%s\":", device_kinds[i].name);
        print_kind(&out, device_kinds[i].name, &findings[i]);
        text_string(&out, ",");
    }
    text_string(&out, "\"kernels\":{");
    const char *comma = "";
    for (int i = 0; device_kinds[i].name != NULL; i++) {
        if (findings[i].backend != NULL) {
            text_format(&out, "%s\"%s\":", comma, device_kinds[i].name);
            kernels_print(findings[i].backend->kernels, &out);
            comma = ",";
        }
    }
    text_string(&out, "},\"why\":{");
    comma = "";
    for (int i = 0; device_kinds[i].name != NULL; i++) {
        if (findings[i].why[0]) {
            text_format(&out, "%s\"%s\":", comma, device_kinds[i].name);
            text_json_string(&out, findings[i].why, strlen(findings[i].why));
            comma = ",";
        }
    }
    text_string(&out, "}}\n");
    bool fine = !out.full && write_all(STDOUT_FILENO, out.data, out.size);
    free(buffer);
    return fine ? 0 : 1;
}
