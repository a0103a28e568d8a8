/*
 * connection_limit.h: how many connections there are, in all and by client address, over all event
 * loops.
 *
 * A table of fixed size from address to count, with one lock that is taken when a connection is
 * accepted and when it closes. IPv6 clients are counted by their /64, of which each has 2^64
 * addresses; IPv4 in IPv6 as IPv4; anything else is one address.
 *
 * Threads: any.
 */
#ifndef KILN_SERVER_HTTP_CONNECTIONS_CONNECTION_LIMIT_H
#define KILN_SERVER_HTTP_CONNECTIONS_CONNECTION_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define ADDRESS_TEXT_MAX 48

/** What is counted together. */
struct address {
    uint64_t words[2];
};

struct connection_limit;

/** Limits in connections; `each` 0 for none. NULL if memory ran out. */
struct connection_limit *connection_limit_create(uint64_t total, uint64_t each);
/** NULL is allowed. */
void connection_limit_destroy(struct connection_limit *addresses);

/** NULL is allowed for `socket`. */
struct address address_of(const struct sockaddr *socket);
/** "192.0.2.7", "2001:db8:1:2::/64", or "" for another kind. */
void address_text(struct address address, char *out, size_t size);
/** Counts one more; false, and not counted, where a limit is reached. */
bool connection_limit_take(struct connection_limit *addresses, struct address address);
void connection_limit_give(struct connection_limit *addresses, struct address address);
/** The limit of all together. */
uint64_t connection_limit_most(const struct connection_limit *addresses);
/** Connections now, and those refused so far for the total and for their address. */
void connection_limit_count(struct connection_limit *addresses, uint64_t *open, uint64_t *total,
                            uint64_t *each);

#endif
