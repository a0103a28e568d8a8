/*
 * origin.c: origins held against hosts. Any thread.
 */
#include "server/http/origin.h"

#include <string.h>
#include <strings.h>

/* Without ":80" or ":443", which browsers leave out and others may not. */
static size_t port_trimmed(const char *host, size_t size) {
    static const char *const defaults[] = {":80", ":443"};
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        size_t length = strlen(defaults[i]);
        if (size > length && memcmp(host + size - length, defaults[i], length) == 0) {
            return size - length;
        }
    }
    return size;
}

bool origin_is_host(const char *origin, size_t size, const char *host) {
    const char *scheme = memmem(origin, size, "://", 3);
    if (scheme == NULL || host == NULL) {
        return false;
    }
    const char *name = scheme + 3;
    size_t named = port_trimmed(name, size - (size_t)(name - origin));
    size_t asked = port_trimmed(host, strlen(host));
    return named > 0 && named == asked && strncasecmp(name, host, named) == 0;
}

size_t origin_size(const char *address, size_t size) {
    const char *scheme = memmem(address, size, "://", 3);
    size_t at = scheme != NULL ? (size_t)(scheme - address) + 3 : size;
    while (at < size && memchr("/?#", address[at], 3) == NULL) {
        at++;
    }
    return at;
}
