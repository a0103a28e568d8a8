/*
 * flow.h: what the daemon does with a request, for the listener.
 *
 * Threads: the event loops.
 */
#ifndef KILN_SERVER_FLOW_H
#define KILN_SERVER_FLOW_H

#include "server/http/request/listener.h"

extern const struct request_flow flow;

#endif
