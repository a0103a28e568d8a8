/*
 * tls.c: PEM files, and one request over GnuTLS.
 */
#include "server/http/connections/tls.h"

#include "compute/core/log.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FILE_MAX (256u << 10)

static char *file_load(const char *path, const char *option, char *why, size_t why_size) {
    FILE *file = fopen(path, "re");
    char *text = file != NULL ? calloc(1, FILE_MAX + 1) : NULL;
    bool good = text != NULL;
    if (good) {
        size_t size = fread(text, 1, FILE_MAX + 1, file);
        good = size <= FILE_MAX && !ferror(file);
        errno = good ? errno : size > FILE_MAX ? EFBIG : EIO;
        text[good ? size : 0] = '\0';
    }
    if (!good) {
        snprintf(why, why_size, "%s %.200s: %s", option, path, strerror(errno));
        free(text);
        text = NULL;
    }
    if (file != NULL) {
        fclose(file);
    }
    return text;
}

/* Tells of what the library would only refuse silently. */
static bool pair_fits(const struct tls *tls, char *why, size_t why_size) {
    const gnutls_datum_t certificate = {(unsigned char *)tls->certificate,
                                        (unsigned)strlen(tls->certificate)};
    const gnutls_datum_t key = {(unsigned char *)tls->key, (unsigned)strlen(tls->key)};
    gnutls_certificate_credentials_t credentials;
    int error = gnutls_certificate_allocate_credentials(&credentials);
    if (error == 0) {
        error = gnutls_certificate_set_x509_key_mem(credentials, &certificate, &key,
                                                    GNUTLS_X509_FMT_PEM);
        gnutls_certificate_free_credentials(credentials);
    }
    if (error < 0) {
        snprintf(why, why_size, "--tls-cert and --tls-key: %s", gnutls_strerror(error));
    }
    return error >= 0;
}

bool tls_load(struct tls *tls, const char *certificate, const char *key, char *why,
              size_t why_size) {
    struct stat status;
    *tls = (struct tls){NULL, NULL};
    if (certificate[0] == '\0' && key[0] == '\0') {
        return true;
    }
    if (certificate[0] == '\0' || key[0] == '\0') {
        snprintf(why, why_size, "--tls-cert and --tls-key go together");
        return false;
    }
    if (stat(key, &status) == 0 && (status.st_mode & S_IROTH) != 0) {
        log_warning("--tls-key %s: everyone may read it", key);
    }
    tls->certificate = file_load(certificate, "--tls-cert", why, why_size);
    tls->key = tls->certificate != NULL ? file_load(key, "--tls-key", why, why_size) : NULL;
    if (tls->key == NULL || !pair_fits(tls, why, why_size)) {
        tls_finish(tls);
        return false;
    }
    return true;
}

void tls_finish(struct tls *tls) {
    if (tls->key != NULL) {
        explicit_bzero(tls->key, strlen(tls->key));
    }
    free(tls->key);
    free(tls->certificate);
    *tls = (struct tls){NULL, NULL};
}

static bool bytes_send(gnutls_session_t session, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t sent = gnutls_record_send(session, bytes, size);
        if (sent < 0 && !gnutls_error_is_fatal((int)sent)) {
            continue;
        }
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

static size_t bytes_receive(gnutls_session_t session, char *bytes, size_t capacity) {
    size_t used = 0;
    while (used < capacity) {
        ssize_t got = gnutls_record_recv(session, bytes + used, capacity - used);
        if (got == GNUTLS_E_INTERRUPTED) {
            continue;
        }
        if (got <= 0) { /* the end; EAGAIN is the socket's timeout */
            break;
        }
        used += (size_t)got;
    }
    return used;
}

static int handshake(gnutls_session_t session) {
    int error;
    do {
        error = gnutls_handshake(session);
    } while (error == GNUTLS_E_INTERRUPTED || error == GNUTLS_E_WARNING_ALERT_RECEIVED);
    return error;
}

bool tls_ask(int fd, const char *request, size_t size, char *answer, size_t capacity) {
    gnutls_certificate_credentials_t credentials = NULL;
    gnutls_session_t session = NULL;
    size_t used = 0;
    if (gnutls_certificate_allocate_credentials(&credentials) == 0 &&
        gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL) == 0 &&
        gnutls_set_default_priority(session) == 0 &&
        gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials) == 0) {
        gnutls_transport_set_int(session, fd);
        if (handshake(session) == 0 && bytes_send(session, request, size)) {
            used = bytes_receive(session, answer, capacity - 1);
        }
    }
    answer[used] = '\0';
    if (session != NULL) {
        gnutls_deinit(session);
    }
    gnutls_certificate_free_credentials(credentials);
    return used > 0;
}
