/*
 * listener.h: the HTTP library's daemon: sockets, event loops, limits, call-backs.
 *
 * Threads: created, quiesced and destroyed by the main thread; requests run on the
 * event loops (loop.h, `--http-threads`).
 */
#ifndef KILN_SERVER_LISTENER_H
#define KILN_SERVER_LISTENER_H

#include "server/service.h"

struct listener;

/** Binds, listens and serves. The service must have its clients. False with `why`; what was
    made by then is in `listener`. */
bool listener_create(struct service *service, struct listener **listener, char *why,
                     size_t why_size);
/** Port that was bound. */
int listener_port(const struct listener *listener);
/** Stops accepting connections; those that are open go on. */
void listener_quiesce(struct listener *listener);
/** Ends all connections. No exchange may be suspended any more. NULL is allowed. */
void listener_destroy(struct listener *listener);

#endif
