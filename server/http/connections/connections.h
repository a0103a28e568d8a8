/*
 * connections.h: the open connections, and the thread that cuts those that crawl.
 *
 * The library's timeout only counts silence: a client that sends or takes one byte now and then
 * would hold its place for ever. Every connection has a record here with its phase; once a second
 * the reaper looks at how many bytes the kernel has moved for it and shuts down the ones that move
 * fewer than CLIENT_RATE a second over a whole idle-timeout, and those whose client has left in
 * the middle of a request. Who makes the daemon hold much has to be faster, in proportion: what is
 * held moves within a transfer-timeout, after which a body or an answer is cut in any case.
 *
 * It also lingers: a connection that is closed before its request was read whole (413, 400 …)
 * would be reset by the kernel, and the client might never see the answer. A duplicate of the
 * descriptor keeps such a socket open for a moment while what still arrives is thrown away.
 *
 * Threads: any. Ownership: records belong to this module between opened and closed.
 */
#ifndef KILN_SERVER_HTTP_CONNECTIONS_CONNECTIONS_H
#define KILN_SERVER_HTTP_CONNECTIONS_CONNECTIONS_H

#include "compute/core/status.h"
#include "server/http/connections/connection_limit.h"
#include "server/http/wire/wire.h"

#include <stdbool.h>
#include <stdint.h>

#define CLIENT_RATE    512 /* bytes a second */
#define CLIENT_LINGERS 256

enum client_phase {
    CLIENT_WAITING, /* for a request line */
    CLIENT_READING, /* headers and body */
    CLIENT_WORKING, /* the daemon's turn: never cut */
    CLIENT_SENDING  /* the answer is on its way */
};

struct client;
struct connections;

/** Starts the reaper's thread. `lingers`: descriptors that may linger at a time, at most
    CLIENT_LINGERS. */
enum kiln_status connections_create(double idle_timeout_s, double transfer_timeout_s,
                                    size_t lingers, struct connections **connections);
/** Ends the thread and closes what lingers. Every record must be closed. NULL is allowed. */
void connections_destroy(struct connections *connections);

/** What the clients of a daemon have in common. */
struct client_terms {
    uint64_t body_max; /* bytes that a body may have */
    bool tls;
};

/** NULL if memory ran out; the other calls take NULL, but for client_address. From here on what is
    received on `fd` goes through the record's wire. */
struct client *client_opened(struct connections *connections, int fd, struct address address,
                             const struct client_terms *terms);
/** As it was given. */
struct address client_address(const struct client *client);
/** The address as a text, "local" where there is none; as long as the record. */
const char *client_name(const struct client *client);
/** Bytes that the daemon holds because of this client now: what has come of a body, or an answer.
    They decide how fast it has to be. */
void client_holds(struct client *client, uint64_t bytes);
/** Before the library closes the descriptor. */
void client_closed(struct connections *connections, struct client *client);
void client_phase_set(struct client *client, enum client_phase phase);
/** Asks for lingering when the connection closes. */
void client_linger(struct client *client);
int client_fd(const struct client *client);
/** Number of a request that has begun on the connection, from 1. */
uint64_t client_request(struct client *client);
/** Whether the wire has let it through, and whether it refuses it (wire_passed). */
bool client_passed(const struct client *client, uint64_t number, struct rejection *rejection);
/** Connections open now, and cut so far. */
void connections_count(struct connections *connections, uint64_t *open, uint64_t *cut);

#endif
