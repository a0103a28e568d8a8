/*
 * configuration.c: one check for each option that means more than its text.
 */
#include "server/configuration.h"

#include "compute/core/words.h"
#include "compute/worker/device_kind.h"
#include "server/auth/keys.h"
#include "server/http/connections/socket.h"
#include "server/http/connections/tls.h"
#include "server/http/cors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kind, with a number or without. Whether it is there only its driver knows. */
static bool device_valid(const char *name, size_t size) {
    char whole[DEVICE_NAME_MAX];
    snprintf(whole, sizeof whole, "%.*s", (int)(size < sizeof whole ? size : sizeof whole), name);
    return size < sizeof whole && device_kind_find(whole, NULL) != NULL;
}

static bool devices_check(const char *list, char *why, size_t why_size) {
    if (strcmp(list, "auto") == 0) {
        return true;
    }
    for (struct words names = words_of(list, strlen(list)); words_next(&names);) {
        if (!device_valid(names.word, names.size)) {
            snprintf(why, why_size,
                     "--device: \"%.*s\" is not auto, cpu, cuda or one of them with its number, "
                     "such as cuda:1",
                     (int)(names.size < 60 ? names.size : 60), names.word);
            return false;
        }
    }
    return true;
}

static bool keys_check(const char *path, char *why, size_t why_size) {
    struct keys *keys = NULL;
    char reason[256];
    if (path[0] == '\0') {
        return true;
    }
    bool good = keys_load(path, &keys, reason, sizeof reason);
    if (!good) {
        snprintf(why, why_size, "--keys %.200s: %s", path, reason);
    }
    free(keys);
    return good;
}

static bool certificate_check(const struct options *options, char *why, size_t why_size) {
    struct tls tls = {NULL, NULL};
    bool good = tls_load(&tls, options->tls_cert, options->tls_key, why, why_size);
    tls_finish(&tls);
    return good;
}

static bool origins_check(const char *list, char *why, size_t why_size) {
    struct cors *cors = list[0] != '\0' ? cors_create(list, why, why_size) : NULL;
    bool good = list[0] == '\0' || cors != NULL;
    cors_destroy(cors);
    return good;
}

bool configuration_check(const struct options *options, char *why, size_t why_size) {
    return devices_check(options->device, why, why_size) &&
           keys_check(options->keys, why, why_size) && certificate_check(options, why, why_size) &&
           origins_check(options->cors_origin, why, why_size) &&
           socket_check(options, why, why_size);
}
