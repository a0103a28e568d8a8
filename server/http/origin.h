/*
 * origin.h: origins of web pages ("https://a.example:8080"), as browsers write them into Origin and
 * at the front of Referer.
 *
 * Threads: reentrant.
 */
#ifndef KILN_SERVER_HTTP_ORIGIN_H
#define KILN_SERVER_HTTP_ORIGIN_H

#include <stdbool.h>
#include <stddef.h>

/** Bytes of an address ("https://a.example/b?c") that are its origin: all before its path. */
size_t origin_size(const char *address, size_t size);
/** Whether an origin is of the host that a request names (the value of its Host; NULL: none). The
    scheme does not count, a proxy may have ended TLS; nor does its default port. */
bool origin_is_host(const char *origin, size_t size, const char *host);

#endif
