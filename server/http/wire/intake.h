/*
 * intake.h: every byte that the HTTP library receives goes through the connection's wire.
 *
 * The library reads sockets with recv() and TLS sessions with gnutls_record_recv(), and offers no
 * place between. The program defines both names itself, which the dynamic linker prefers over the C
 * library's and GnuTLS's: for descriptors that are registered here they convert what they read
 * (wire.h), for all others they do what the originals do.
 *
 * Should a library one day read otherwise, its requests would carry numbers that no wire has let
 * through, and all of them would be refused (request.c).
 *
 * Threads: a descriptor is registered, read and taken back by its event loop; the calls for other
 * descriptors come from any thread.
 */
#ifndef KILN_SERVER_HTTP_WIRE_INTAKE_H
#define KILN_SERVER_HTTP_WIRE_INTAKE_H

#include "server/http/wire/wire.h"

/** Makes room for every descriptor that this process may have. False: no memory. */
bool intake_create(void);
/** From now on what is received on `fd`, or on the TLS session over it, goes through `wire`. False
    if there is no place for it. */
bool intake_begin(int fd, struct wire *wire, bool tls);
/** Before the descriptor is closed. */
void intake_end(int fd);

#endif
