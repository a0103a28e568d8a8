/*
 * hosts.c: names out of Host headers. Any thread.
 */
#include "server/http/hosts.h"

#include "compute/core/words.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_BYTES 255 /* of a name in the DNS */

/* The name without port, brackets and the dot that may end it; 0 where it is no name. */
static size_t name_take(const char *host, char name[NAME_MAX_BYTES + 1]) {
    bool bracketed = host[0] == '[';
    size_t size = bracketed ? strcspn(++host, "]") : strcspn(host, ":");
    if (!bracketed && size > 0 && host[size - 1] == '.') {
        size--;
    }
    if (size > NAME_MAX_BYTES) {
        return 0;
    }
    memcpy(name, host, size);
    name[size] = '\0';
    return size;
}

static bool is_address(const char *name) {
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

static bool is_local(const char *name, size_t size) {
    static const char local[] = "localhost";
    const size_t length = sizeof local - 1;
    return size >= length && strcasecmp(name + size - length, local) == 0 &&
           (size == length || name[size - length - 1] == '.');
}

static bool is_listed(const char *list, const char *name, size_t size) {
    for (struct words names = words_of(list, strlen(list)); words_next(&names);) {
        if (words_at(&names, "*") ||
            (names.size == size && strncasecmp(names.word, name, size) == 0)) {
            return true;
        }
    }
    return false;
}

bool hosts_allow(const char *list, const char *host) {
    char name[NAME_MAX_BYTES + 1];
    if (host == NULL) {
        return true;
    }
    size_t size = name_take(host, name);
    return size > 0 && (is_address(name) || is_local(name, size) || is_listed(list, name, size));
}
