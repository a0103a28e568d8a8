/*
 * fuzz_origin.c: the origin of any address is a front part of it without a path; it is of a host
 * only if that host, but for letters' case and a default port, stands behind its scheme. Input: a
 * host, a line feed, an address.
 */
#include "tests/fuzz/expect.h"

#include "server/http/origin.h"

#include <strings.h>

/* A page of `host` is always of it, by either scheme. */
static void own_check(const char *host) {
    static const char *const schemes[] = {"http://", "https://"};
    for (int i = 0; i < 2; i++) {
        size_t scheme = strlen(schemes[i]), size = scheme + strlen(host);
        char *origin = malloc(size + 1);
        EXPECT(origin);
        memcpy(origin, schemes[i], scheme);
        memcpy(origin + scheme, host, size - scheme + 1);
        EXPECT(origin_is_host(origin, size, host) == (host[0] != '\0'));
        free(origin);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *end = memchr(data, '\n', size);
    size_t named = end != NULL ? (size_t)(end - data) : size;
    size_t rest = end != NULL ? size - named - 1 : 0;
    char *host = malloc(named + 1), *address = malloc(rest + 1); /* ends that are watched */
    EXPECT(host != NULL && address != NULL);
    memcpy(host, data, named);
    host[named] = '\0';
    memcpy(address, data + size - rest, rest);
    size_t origin = origin_size(address, rest);
    EXPECT(origin <= rest);
    if (origin < rest) {
        EXPECT(memchr("/?#", address[origin], 3) != NULL &&
               memmem(address, origin, "://", 3) != NULL);
    }
    if (origin_is_host(address, origin, host)) {
        const char *name = memmem(address, origin, "://", 3);
        EXPECT(name != NULL && named > 0);
        size_t shown = origin - (size_t)(name + 3 - address);
        size_t common = shown < strlen(host) ? shown : strlen(host);
        EXPECT(common > 0 && strncasecmp(name + 3, host, common) == 0);
        EXPECT(shown + 4 >= strlen(host) && strlen(host) + 4 >= shown);
    }
    EXPECT(!origin_is_host(address, origin, NULL));
    own_check(host);
    free(address);
    free(host);
    return 0;
}
