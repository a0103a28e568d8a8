/*
 * link.h: one connection: the request that it sends and the answer that it reads.
 *
 * Threads: that of its client. Ownership: the socket; `out` and `rest` belong to others.
 */
#ifndef KILN_BENCH_LOAD_LINK_H
#define KILN_BENCH_LOAD_LINK_H

#include "bench/load/answer.h"

#include <stddef.h>
#include <stdint.h>

enum link_state { LINK_CLOSED, LINK_CONNECTING, LINK_IDLE, LINK_BUSY };

enum link_event {
    LINK_MORE,     /* nothing to read now */
    LINK_ANSWERED, /* the answer is complete */
    LINK_LOST,     /* the peer closed before that */
    LINK_CONFUSED  /* what came is no answer */
};

struct link {
    int fd;
    enum link_state state;
    size_t item;               /* of the scenario */
    uint64_t due, sent, retry; /* nanoseconds on the clock */
    char *out;                 /* head, and a body that varies */
    const char *rest;          /* a body that does not */
    size_t out_size, rest_size, done;
    struct load_answer answer;
};

/** NULL descriptors (-1) are fine. */
void link_close(struct link *link);

/** After a first event: true once connected. CLOSED where that failed. */
bool link_connected(struct link *link);

/** Sends as much as the socket takes. False if the connection is lost. */
bool link_send(struct link *link);
bool link_is_sent(const struct link *link);

/** Reads what there is, into `input`, which is only a place to put it. */
enum link_event link_receive(struct link *link, char *input, size_t size);

#endif
