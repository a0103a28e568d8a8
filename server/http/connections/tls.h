/*
 * tls.h: certificate and key for HTTPS, and the little of a TLS client that the health check needs.
 *
 * TLS 1.2 and 1.3 through libmicrohttpd and GnuTLS. The descriptor under a connection stays the TCP
 * socket: what connections.c and the dispatcher ask the kernel about it (bytes moved, hang-up)
 * holds for records as for plain bytes, and lingering begins after the library has sent its
 * close-notify.
 *
 * Threads: the main thread.
 */
#ifndef KILN_SERVER_HTTP_CONNECTIONS_TLS_H
#define KILN_SERVER_HTTP_CONNECTIONS_TLS_H

#include <stdbool.h>
#include <stddef.h>

/* Ephemeral key request only, so that a key that leaks opens no old recordings; authenticated
   encryption only, so that no padding can be asked about. */
#define TLS_PRIORITIES                                                                             \
    "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-KX-ALL:+ECDHE-ECDSA:+ECDHE-RSA:+DHE-RSA:"         \
    "-CIPHER-ALL:+AES-256-GCM:+AES-128-GCM:+CHACHA20-POLY1305:-MAC-ALL:+AEAD"

/** PEM texts; zeroed: no TLS. */
struct tls {
    char *certificate, *key;
};

/** Reads both files (at most 256 KiB each) and tries them with each other; both paths "" : no TLS.
    False with `why`. */
bool tls_load(struct tls *tls, const char *certificate, const char *key, char *why,
              size_t why_size);
/** Wipes and frees. */
void tls_finish(struct tls *tls);

/** Sends a request over `fd`, reads the answer to its end or to `capacity` - 1 bytes and ends it
   with NUL; false on errors. Whose certificate it is is not asked: for one's own daemon only. */
bool tls_ask(int fd, const char *request, size_t size, char *answer, size_t capacity);

#endif
