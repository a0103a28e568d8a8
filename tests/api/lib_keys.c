/*
 * lib_keys.c: keys by the daemon's own tool, certificates by GnuTLS.
 */
#include "tests/api/lib_keys.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void keyfolder_make(struct keyfolder *folder) {
    memset(folder, 0, sizeof *folder);
    snprintf(folder->folder, sizeof folder->folder, "/tmp/kiln-keys-XXXXXX");
    assert_non_null(mkdtemp(folder->folder));
    snprintf(folder->keys, sizeof folder->keys, "%s/keys", folder->folder);
    snprintf(folder->certificate, sizeof folder->certificate, "%s/cert.pem", folder->folder);
    snprintf(folder->key, sizeof folder->key, "%s/key.pem", folder->folder);
}

void keyfolder_remove(const struct keyfolder *folder) {
    unlink(folder->keys);
    unlink(folder->certificate);
    unlink(folder->key);
    rmdir(folder->folder);
}

static void bytes_write(const char *path, const void *bytes, size_t size) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_true(write(fd, bytes, size) == (ssize_t)size);
    assert_int_equal(close(fd), 0);
}

void keyfolder_certify(const struct keyfolder *folder, bool rsa) {
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t certificate;
    gnutls_datum_t text;
    const unsigned char loopback[4] = {127, 0, 0, 1};
    assert_int_equal(gnutls_x509_privkey_init(&key), 0);
    unsigned bits = rsa ? 2048 : GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1);
    assert_int_equal(
        gnutls_x509_privkey_generate(key, rsa ? GNUTLS_PK_RSA : GNUTLS_PK_ECDSA, bits, 0), 0);
    assert_int_equal(gnutls_x509_crt_init(&certificate), 0);
    assert_int_equal(gnutls_x509_crt_set_version(certificate, 3), 0);
    assert_int_equal(gnutls_x509_crt_set_serial(certificate, "\x01", 1), 0);
    assert_int_equal(gnutls_x509_crt_set_activation_time(certificate, time(NULL) - 86400), 0);
    assert_int_equal(gnutls_x509_crt_set_expiration_time(certificate, time(NULL) + 86400), 0);
    assert_int_equal(gnutls_x509_crt_set_dn(certificate, "CN=kiln test", NULL), 0);
    assert_int_equal(gnutls_x509_crt_set_subject_alt_name(certificate, GNUTLS_SAN_IPADDRESS,
                                                          loopback, sizeof loopback,
                                                          GNUTLS_FSAN_SET),
                     0);
    assert_int_equal(gnutls_x509_crt_set_basic_constraints(certificate, 1, -1), 0);
    assert_int_equal(gnutls_x509_crt_set_key_usage(certificate, GNUTLS_KEY_DIGITAL_SIGNATURE |
                                                                    GNUTLS_KEY_KEY_CERT_SIGN |
                                                                    GNUTLS_KEY_KEY_ENCIPHERMENT),
                     0); /* the last one for static RSA, which is to be refused all the same */
    assert_int_equal(gnutls_x509_crt_set_key(certificate, key), 0);
    assert_int_equal(gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA256, 0), 0);
    assert_int_equal(gnutls_x509_crt_export2(certificate, GNUTLS_X509_FMT_PEM, &text), 0);
    bytes_write(folder->certificate, text.data, text.size);
    gnutls_free(text.data);
    assert_int_equal(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text), 0);
    bytes_write(folder->key, text.data, text.size);
    gnutls_free(text.data);
    gnutls_x509_crt_deinit(certificate);
    gnutls_x509_privkey_deinit(key);
}

void secret_make(struct secret *secret, const char *flags) {
    char command[512];
    memset(secret, 0, sizeof *secret);
    snprintf(command, sizeof command, "'%s' key new %s 2>/dev/null", getenv("KILND"), flags);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    assert_non_null(fgets(secret->key, sizeof secret->key, pipe));
    assert_non_null(fgets(secret->line, sizeof secret->line, pipe));
    assert_int_equal(pclose(pipe), 0);
    secret->key[strcspn(secret->key, "\n")] = '\0';
    snprintf(secret->header, sizeof secret->header, "Authorization: Bearer %s", secret->key);
}

void secrets_write(const struct keyfolder *folder, const struct secret *const *secrets,
                   size_t count, const char *more) {
    char text[4096] = "# of a test\n\n";
    size_t used = strlen(text);
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", secrets[i]->line);
    }
    used += (size_t)snprintf(text + used, sizeof text - used, "%s", more);
    assert_true(used < sizeof text);
    bytes_write(folder->keys, text, used);
}
