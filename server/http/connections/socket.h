/*
 * socket.h: the socket that the daemon listens on.
 *
 * Without --keys or --allow-open only a socket that this machine alone can reach is taken, whoever
 * opened it.
 *
 * Threads: the main thread.
 */
#ifndef KILN_SERVER_HTTP_CONNECTIONS_SOCKET_H
#define KILN_SERVER_HTTP_CONNECTIONS_SOCKET_H

#include "server/core/options.h"

#define SOCKET_PLACE_MAX 160

/** `passed`, a socket that listens already, or (-1) one that is bound to --listen; it listens. -1
    with `why`; then `passed` is closed. */
int socket_open(const struct options *options, int passed, char *why, size_t why_size);
/** Whether --listen names an address that this daemon may bind; binds nothing. False with `why`. */
bool socket_check(const struct options *options, char *why, size_t why_size);
/** Prints where it listens ("http://127.0.0.1:8080", "unix:/run/kiln.sock"); returns the port, 0
   for a socket of the local host. */
int socket_place(int fd, bool secure, char place[SOCKET_PLACE_MAX]);

#endif
