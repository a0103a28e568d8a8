/*
 * keytool.c: making keys on a terminal.
 *
 * Standard output is two lines, the key and its line for the file, so that scripts can take them
 * apart; what they are is said on standard error.
 */
#include "server/auth/keytool.h"

#include "server/auth/keys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE 2

static int usage(void) {
    fprintf(stderr, "usage: kilnd key new [--id ID] [--scopes read,compute,admin] [--rate R] "
                    "[--burst N] [--concurrency N]\n"
                    "       kilnd key check FILE\n");
    return EXIT_USAGE;
}

/* Sets what one flag says; false with `why`. */
static bool flag_set(struct key *key, const char *flag, const char *value, char *why,
                     size_t why_size) {
    char option[64];
    if (strcmp(flag, "--id") == 0) {
        snprintf(why, why_size, "an id has 1 to 32 letters, digits, dots, underscores and hyphens");
        snprintf(key->id, sizeof key->id, "%s", value);
        return key_id_valid(value, strlen(value));
    }
    if (strcmp(flag, "--scopes") == 0) {
        snprintf(why, why_size, "scopes are read, compute and admin, with commas");
        return scopes_parse(value, strlen(value), &key->scopes);
    }
    snprintf(why, why_size, "there is no flag %.40s", flag);
    return strncmp(flag, "--", 2) == 0 &&
           (size_t)snprintf(option, sizeof option, "%s=%s", flag + 2, value) < sizeof option &&
           key_option(key, option, strlen(option), why, why_size);
}

static bool flags_read(struct key *key, int argc, char **argv, int first) {
    char why[192];
    for (int i = first; i < argc; i += 2) {
        if (i + 1 == argc) {
            fprintf(stderr, "kilnd key: %.40s needs a value\n", argv[i]);
            return false;
        }
        if (!flag_set(key, argv[i], argv[i + 1], why, sizeof why)) {
            fprintf(stderr, "kilnd key: %s\n", why);
            return false;
        }
    }
    if (key->burst > 0 && key->rate == 0) {
        fprintf(stderr, "kilnd key: --burst needs --rate\n");
        return false;
    }
    return true;
}

static int key_new(int argc, char **argv, int first) {
    struct key key = {.scopes = 0};
    char text[KEY_TEXT_SIZE], line[KEY_LINE_MAX];
    if (!flags_read(&key, argc, argv, first)) {
        return usage();
    }
    if (!key_make(text)) {
        fprintf(stderr, "kilnd key: the system gives no random bytes\n");
        return EXIT_FAILURE;
    }
    key_hash(text, strlen(text), key.hash);
    if (key.id[0] == '\0') {
        snprintf(key.id, sizeof key.id, "key-%02x%02x%02x%02x", key.hash[0], key.hash[1],
                 key.hash[2], key.hash[3]);
    }
    key.scopes = key.scopes == 0 ? SCOPE_READ | SCOPE_COMPUTE : key.scopes;
    if (key.rate > 0 && key.burst == 0) {
        key.burst = key.rate > 1 ? (uint64_t)key.rate : 1;
    }
    key_print(&key, line, sizeof line);
    fprintf(stderr, "The key, shown only now, and its line for the file of --keys:\n");
    bool good = printf("%s\n%s\n", text, line) > 0 && fflush(stdout) == 0;
    explicit_bzero(text, sizeof text);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int keys_check(const char *path) {
    struct keys *keys;
    char why[256];
    if (!keys_load(path, &keys, why, sizeof why)) {
        fprintf(stderr, "kilnd key: %s: %s\n", path, why);
        return EXIT_FAILURE;
    }
    printf("%zu %s\n", keys->count, keys->count == 1 ? "key" : "keys");
    free(keys);
    return EXIT_SUCCESS;
}

int keytool_run(int argc, char **argv, int first) {
    const char *what = first < argc ? argv[first] : "";
    if (strcmp(what, "new") == 0) {
        return key_new(argc, argv, first + 1);
    }
    if (strcmp(what, "check") == 0 && first + 2 == argc) {
        return keys_check(argv[first + 1]);
    }
    return usage();
}
