/*
 * intake.c: recv() and gnutls_record_recv() of the program.
 */
#include "server/http/wire/intake.h"

#include <dlfcn.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define PLACES_MAX (1u << 20)

#define EXPORTED __attribute__((visibility("default")))

typedef ssize_t record_recv(gnutls_session_t session, void *bytes, size_t size);

/* By descriptor. A pointer's lowest bit tells that the wire is behind TLS. */
static _Atomic uintptr_t *places;
static size_t place_count;
static _Atomic uintptr_t original; /* GnuTLS's own gnutls_record_recv */

static record_recv *original_find(void) {
    uintptr_t found = atomic_load_explicit(&original, memory_order_relaxed);
    if (found == 0) {
        found = (uintptr_t)dlsym(RTLD_NEXT, "gnutls_record_recv");
        atomic_store(&original, found);
    }
    return (record_recv *)found;
}

bool intake_create(void) {
    struct rlimit limit;
    if (places == NULL && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        place_count = limit.rlim_cur < PLACES_MAX ? (size_t)limit.rlim_cur : PLACES_MAX;
        places = calloc(place_count, sizeof places[0]);
    }
    return places != NULL && original_find() != NULL;
}

bool intake_begin(int fd, struct wire *wire, bool tls) {
    if (fd < 0 || (size_t)fd >= place_count) {
        return false;
    }
    atomic_store(&places[fd], (uintptr_t)wire | tls);
    return true;
}

void intake_end(int fd) {
    if (fd >= 0 && (size_t)fd < place_count) {
        atomic_store(&places[fd], 0);
    }
}

static struct wire *place_find(int fd, bool tls) {
    if (fd < 0 || (size_t)fd >= place_count) {
        return NULL;
    }
    uintptr_t place = atomic_load_explicit(&places[fd], memory_order_acquire);
    return place != 0 && (place & 1) == tls ? (struct wire *)(place & ~(uintptr_t)1) : NULL;
}

static long socket_source(void *context, void *bytes, size_t size) {
    const int *fd = context;
    return recvfrom(*fd, bytes, size, 0, NULL, NULL);
}

static long session_source(void *context, void *bytes, size_t size) {
    return original_find()(context, bytes, size);
}

/* Names of our own in C, so that they do not meet what the headers make of the others. */
EXPORTED ssize_t intake_recv(int fd, void *bytes, size_t size, int flags) __asm__("recv");
EXPORTED ssize_t intake_record_recv(gnutls_session_t session, void *bytes,
                                    size_t size) __asm__("gnutls_record_recv");

ssize_t intake_recv(int fd, void *bytes, size_t size, int flags) {
    struct wire *wire = flags == 0 ? place_find(fd, false) : NULL;
    bool nothing;
    if (wire == NULL) {
        return recvfrom(fd, bytes, size, flags, NULL, NULL);
    }
    ssize_t got = wire_receive(wire, socket_source, &fd, true, bytes, size, &nothing);
    if (nothing) {
        errno = EAGAIN;
        return -1;
    }
    return got;
}

ssize_t intake_record_recv(gnutls_session_t session, void *bytes, size_t size) {
    struct wire *wire = place_find(gnutls_transport_get_int(session), true);
    bool nothing;
    if (wire == NULL) {
        return original_find()(session, bytes, size);
    }
    ssize_t got = wire_receive(wire, session_source, session, false, bytes, size, &nothing);
    return nothing ? GNUTLS_E_AGAIN : got;
}
