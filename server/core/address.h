/*
 * address.h: addresses of clients, as far as they tell clients apart.
 *
 * IPv6 clients are known by their /64, of which each has 2^64 addresses; IPv4 in IPv6 as IPv4;
 * whatever has no address (a socket of the local host) is one client.
 *
 * Threads: reentrant.
 */
#ifndef KILN_SERVER_CORE_ADDRESS_H
#define KILN_SERVER_CORE_ADDRESS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_TEXT_MAX 48

/** What counts as one client. */
struct address {
    uint64_t words[2]; /* the second is the family's number, 0 for none */
};

/** NULL is allowed for `socket`. */
struct address address_of(const struct sockaddr *socket);
/** "192.0.2.7", "2001:db8:1:2::/64", or "" for another kind. */
void address_text(struct address address, char *out, size_t size);

#endif
