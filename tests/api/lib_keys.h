/*
 * lib_keys.h: keys and certificates for tests, in a folder of their own.
 *
 * Whatever cannot be done here fails the running test.
 */
#ifndef KILN_TESTS_API_LIB_KEYS_H
#define KILN_TESTS_API_LIB_KEYS_H

#include "tests/api/lib_daemon.h"

/** A key as `kilnd key new` makes it. */
struct secret {
    char key[64];
    char header[96]; /* "Authorization: Bearer …" */
    char line[256];  /* of the key file */
};

struct keyfolder {
    char folder[64];
    char keys[96], certificate[96], key[96]; /* files */
};

void keyfolder_make(struct keyfolder *folder);
/** Writes a self-signed certificate for 127.0.0.1 and its key, of an elliptic curve or of RSA. */
void keyfolder_certify(const struct keyfolder *folder, bool rsa);
void keyfolder_remove(const struct keyfolder *folder);

/** `flags` as for the shell. */
void secret_make(struct secret *secret, const char *flags);
/** Writes the key file: the lines of `count` secrets, then `more`. */
void secrets_write(const struct keyfolder *folder, const struct secret *const *secrets,
                   size_t count, const char *more);

#endif
