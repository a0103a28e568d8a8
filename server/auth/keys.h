/*
 * keys.h: API keys: making them, their file, their scopes.
 *
 * A key is "kiln_" and 43 characters of base64url, 256 random bits. The file holds only its SHA-256
 * (GnuTLS): with that much chance in it a slow hash would add nothing. One key a line,
 *
 *     # id    hash                scopes         limits, each optional
 *     alice   sha256:<64 digits>  read,compute   rate=10 burst=20 concurrency=4
 *
 * where `rate` is requests a second, `burst` how many may come at once (default: the rate, at least
 * 1), `concurrency` how many may be in hand. `#` starts a comment line. Anything else that is
 * unknown, doubled, too long or out of range refuses the whole file, with the line's number. So
 * does what looks like a file that was cut, or is being written: no key at all, or a last line
 * without its end, whose limits may be missing. (A cut at the end of a line takes whole keys away,
 * and nothing tells; write a new file and rename it.)
 *
 * Threads: reentrant.
 */
#ifndef KILN_SERVER_AUTH_KEYS_H
#define KILN_SERVER_AUTH_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_ID_MAX      32
#define KEY_HASH_SIZE   32
#define KEY_TEXT_SIZE   49  /* of a new key, with its NUL */
#define KEY_TOKEN_MAX   256 /* longest that is looked up */
#define KEY_LINE_MAX    512
#define KEYS_MAX        4096
#define KEYS_FILE_MAX   (1u << 20)
#define CONCURRENCY_MAX 1000000

enum scope {
    SCOPE_OPEN = 0, /* no key is needed */
    SCOPE_READ = 1,
    SCOPE_COMPUTE = 2,
    SCOPE_ADMIN = 4
};

struct key {
    char id[KEY_ID_MAX + 1]; /* letters, digits, ".", "_", "-" */
    uint8_t hash[KEY_HASH_SIZE];
    unsigned scopes;
    double rate;          /* requests a second; 0 for no limit */
    uint64_t burst;       /* with a rate: at least 1 */
    uint64_t concurrency; /* requests; 0 for no limit */
};

struct keys {
    size_t count;
    struct key rows[];
};

/** Reads a file's bytes (any bytes). `keys` is the caller's to free(). False with `why`, which
    never repeats anything of a line but names of options. */
bool keys_parse(const char *text, size_t size, struct keys **keys, char *why, size_t why_size);
/** Reads a file of at most KEYS_FILE_MAX bytes that others cannot write. */
bool keys_load(const char *path, struct keys **keys, char *why, size_t why_size);
/** The file's line for a key, without its end; false if it does not fit. */
bool key_print(const struct key *key, char *out, size_t size);

/** A fresh key; false if the kernel gives no random bytes. */
bool key_make(char text[KEY_TEXT_SIZE]);
void key_hash(const char *text, size_t size, uint8_t hash[KEY_HASH_SIZE]);
/** Compares in a time that does not depend on where they differ. */
bool key_hash_equal(const uint8_t a[KEY_HASH_SIZE], const uint8_t b[KEY_HASH_SIZE]);

/** "read,compute" into bits, and back; false for anything else. */
bool scopes_parse(const char *text, size_t size, unsigned *scopes);
void scopes_print(unsigned scopes, char *out, size_t size);
/** Reads one option of a line ("rate=10"); false with `why`. */
bool key_option(struct key *key, const char *text, size_t size, char *why, size_t why_size);
/** Whether a text can be an id. */
bool key_id_valid(const char *text, size_t size);

/** Finds the key in the value of an Authorization header, inside it; false if there is none or it
    has characters that tokens do not have. */
bool bearer_read(const char *header, const char **token, size_t *size);

#endif
