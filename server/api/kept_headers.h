/*
 * kept_headers.h: header values of requests for kept jobs: texts in, numbers out.
 *
 * Threads: reentrant.
 */
#ifndef KILN_SERVER_API_KEPT_HEADERS_H
#define KILN_SERVER_API_KEPT_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEPT_WAIT_MAX 300 /* seconds of one request */

/** Prefer (RFC 7240): seconds of `wait`, at most KEPT_WAIT_MAX, 0 for none; `async` receives
   whether there is respond-async. */
uint64_t kept_prefer_read(const char *text, bool *async);

/** Idempotency-Key: a string of RFC 9651, printable ASCII in double quotes where \ stands before "
    and itself, of 1 to size - 1 characters. */
bool kept_key_read(const char *text, char *key, size_t size);

/** Range (RFC 9110, 14.1.2): one range of `total` bytes into `first` and `size`; `size` is 0 where
    there are no such bytes. False: the whole is meant. NULL is allowed for `text`. */
bool kept_range_read(const char *text, uint64_t total, uint64_t *first, uint64_t *size);

#endif
