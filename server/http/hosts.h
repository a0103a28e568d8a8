/*
 * hosts.h: which names a daemon without keys answers to.
 *
 * A page in a browser can point a name of its own at the loopback address (DNS rebinding) and then
 * ask as if it came from here. Its requests carry that name as their Host: so a daemon that nobody
 * needs a key for answers to addresses, to localhost and to names it was told (--hosts), and to no
 * others. Threads: any.
 */
#ifndef KILN_SERVER_HTTP_HOSTS_H
#define KILN_SERVER_HTTP_HOSTS_H

#include <stdbool.h>

/** True if `host` (as in the header: a name or address, perhaps with a port; NULL for none, as in
    HTTP/1.0) is an address, localhost or below it, or in `list`: names with commas between, and
    blanks if need be, "*" for any. */
bool hosts_allow(const char *list, const char *host);

#endif
