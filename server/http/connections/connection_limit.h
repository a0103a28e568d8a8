/*
 * connection_limit.h: how many connections there are, in all and by client address, over all event
 * loops.
 *
 * A table of fixed size from address to count, with one lock that is taken when a connection is
 * accepted and when it closes.
 *
 * Threads: any.
 */
#ifndef KILN_SERVER_HTTP_CONNECTIONS_CONNECTION_LIMIT_H
#define KILN_SERVER_HTTP_CONNECTIONS_CONNECTION_LIMIT_H

#include "server/core/address.h"

#include <stdbool.h>

struct connection_limit;

/** Limits in connections; `each` 0 for none. NULL if memory ran out. */
struct connection_limit *connection_limit_create(uint64_t total, uint64_t each);
/** NULL is allowed. */
void connection_limit_destroy(struct connection_limit *addresses);

/** Counts one more; false, and not counted, where a limit is reached. */
bool connection_limit_take(struct connection_limit *addresses, struct address address);
void connection_limit_give(struct connection_limit *addresses, struct address address);
/** The limit of all together. */
uint64_t connection_limit_most(const struct connection_limit *addresses);
/** Connections now, and those refused so far for the total and for their address. */
void connection_limit_count(struct connection_limit *addresses, uint64_t *open, uint64_t *total,
                            uint64_t *each);

#endif
