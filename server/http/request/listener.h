/*
 * listener.h: the HTTP library's daemon: sockets, event loops, limits, call-backs.
 *
 * Threads: created, quiesced and destroyed by the main thread; requests run on the
 * event loops (loop.h, `--http-threads`).
 */
#ifndef KILN_SERVER_HTTP_REQUEST_LISTENER_H
#define KILN_SERVER_HTTP_REQUEST_LISTENER_H

#include "server/http/connections/loop.h"
#include "server/http/request/request.h"

struct listener;

/** What is done with requests. The listener makes them, takes their bodies in and ends them. */
struct request_flow {
    /** The headers are there: STAGE_HEAD is over. Answers at once where the connection ends with
        that. */
    enum MHD_Result (*begin)(struct http_request *request, const char *method, const char *version);
    /** The body is complete, or the request came back. */
    enum MHD_Result (*proceed)(struct http_request *request);
    /** It has been answered and goes away; `cut`: before its answer had left. */
    void (*end)(struct http_request *request, bool cut, double seconds);
};

struct listener_options {
    struct service *service; /* with its connections */
    const struct request_flow *flow;
    struct loop_driven driven; /* by the first loop */
    bool spins;                /* as loop_options */
};

/** Serves on a socket that listens (socket.h), which it closes. False with `why`; what was made by
    then is in `listener`. */
bool listener_create(const struct listener_options *options, int fd, struct listener **listener,
                     char *why, size_t why_size);
/** Event loops that there will be. */
size_t listener_loops(const struct options *options);
/** Port that was bound; 0 for a socket of the local host. */
int listener_port(const struct listener *listener);
/** Where it listens: "http://127.0.0.1:8080", "unix:/run/kiln.sock". */
const char *listener_place(const struct listener *listener);
/** Whether every loop has made a turn since this was asked last. Main thread. */
bool listener_turns(struct listener *listener);
/** Stops accepting connections; those that are open go on. */
void listener_quiesce(struct listener *listener);
/** Ends all connections. No request may be suspended any more. NULL is allowed. */
void listener_destroy(struct listener *listener);

#endif
