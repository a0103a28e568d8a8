/*
 * loader.h: threads for what would keep an event loop: reading large bodies, and copying large
 * results into the cache.
 *
 * A load is a part of what it works on. Somebody waits for a body and nobody for a copy, so copies
 * are taken when no body waits. The number of bodies is bounded by that of connections; who pushes
 * copies bounds them.
 *
 * Threads: push from any; the others the main thread.
 */
#ifndef KILN_SERVER_LOADER_H
#define KILN_SERVER_LOADER_H

#include "compute/status.h"

#include <stdbool.h>

#define LOADER_THREADS  2
#define LOADER_BODY_MIN (64u << 10) /* smaller bodies are read where they arrive */
#define LOADER_COPY_MIN (64u << 10) /* smaller results are copied where they were sent */

enum load_kind { LOAD_BODY, LOAD_COPY, LOAD_KINDS };

struct load {
    struct load *next;
    void (*run)(struct load *load); /* on a loader's thread; the load is its own from then on */
};

struct loader;

enum kiln_status loader_create(struct loader **loader);
/** Works off what is queued, then joins the threads: what is pushed later is not taken. NULL is
    allowed. */
void loader_stop(struct loader *loader);
/** Stops, and frees. Nobody may push any more. NULL is allowed. */
void loader_destroy(struct loader *loader);
/** Queues a load; false, and it stays the caller's, once stopped. */
bool loader_push(struct loader *loader, enum load_kind kind, struct load *load);

#endif
