/*
 * loader.h: threads for what would keep an event loop: reading large bodies, and copying large
 * results into the cache.
 *
 * A load is a part of what it works on. Somebody waits for a body and nobody for a copy, so copies
 * are taken when no body waits. One thread takes nothing but short bodies, so that these never wait
 * for long ones; the others take both as they come. The number of bodies is bounded by that of
 * connections; who pushes copies bounds them.
 *
 * Threads: push from any; the others the main thread.
 */
#ifndef KILN_SERVER_LOADER_H
#define KILN_SERVER_LOADER_H

#include "compute/status.h"

#include <stdbool.h>
#include <stdint.h>

#define LOADER_THREADS 3
/* Reading 64 KiB of text takes 1 ms on a slow core, hashing an image of 64 KiB a tenth of that. */
#define LOADER_BODY_MIN   (16u << 10) /* bytes; less text is read where it arrives */
#define LOADER_IMAGE_EASE 8u          /* as many bytes of an image count as one of text */
#define LOADER_LONG_MIN   (1u << 20)  /* bytes; from here on texts are LOAD_LONG */
#define LOADER_COPY_MIN   (64u << 10) /* smaller results are copied where they were sent */

enum load_kind {
    LOAD_BODY, /* that is read in some milliseconds */
    LOAD_LONG, /* a body that takes longer */
    LOAD_COPY,
    LOAD_KINDS
};

struct load {
    struct load *next;
    uint64_t number;                /* the loader's: order of arrival */
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
