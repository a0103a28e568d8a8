/*
 * target.h: where requests go, and single requests outside of any measurement.
 *
 * Addresses: http://host:port[/prefix] (TCP), unix:/path/of/socket (HTTP over a Unix socket).
 * Threads: a target is read by all.
 */
#ifndef KILN_BENCH_LOAD_TARGET_H
#define KILN_BENCH_LOAD_TARGET_H

#include "bench/load/answer.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct target {
    struct sockaddr_storage address;
    socklen_t address_size;
    char host[256];   /* value of the Host header */
    char prefix[256]; /* put before every path; no slash at its end */
};

/** Reads an address and looks its host up. False with a sentence in `why`. */
bool target_read(struct target *target, const char *url, char *why, size_t why_size);

/** A non-blocking socket that connects or is connected; -1 with errno. */
int target_connect(const struct target *target);

/** Connects and closes again: is anybody there? False with a sentence in `why`. */
bool target_probe(const struct target *target, char *why, size_t why_size);

/** Sends `request` (head and body) on a connection of its own and waits at most `timeout_s` for the
    answer. The body, NUL-terminated, goes to `body` (may be NULL), cut at capacity - 1. False with
   a sentence in `why`. */
bool target_ask(const struct target *target, const char *request, size_t size, double timeout_s,
                struct load_answer *answer, char *body, size_t capacity, char *why,
                size_t why_size);

/** The same for a plain GET. */
bool target_get(const struct target *target, const char *path, struct load_answer *answer,
                char *body, size_t capacity, char *why, size_t why_size);

#endif
