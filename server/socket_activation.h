/*
 * socket_activation.h: a listening socket that a service manager has opened and passed on
 * (systemd's LISTEN_FDS).
 *
 * Connections that come before the daemon is ready, or while it is started anew, wait in that
 * socket instead of being refused.
 *
 * Threads: the main thread, at start.
 */
#ifndef KILN_SERVER_SOCKET_ACTIVATION_H
#define KILN_SERVER_SOCKET_ACTIVATION_H

#include <stdbool.h>
#include <stddef.h>

/** Takes over what was passed and clears the variables, which children must not see; before
    anything else opens files. False with `why` where something was passed that cannot be served
    on: more than one, or no listening stream socket of IPv4, IPv6 or the local host. */
bool socket_activation_take(char *why, size_t why_size);
/** The socket, which is the caller's from now on; -1 for none. */
int socket_activation_socket(void);
/** Whether a socket was passed. */
bool socket_activation_taken(void);

#endif
