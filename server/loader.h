/*
 * loader.h: threads that read large bodies, so that an event loop never parses megabytes.
 *
 * The exchange is suspended when it is handed over; `work` runs on a loader's thread and resumes
 * it, or passes it on to the dispatcher. The queue is bounded by the number of connections.
 *
 * Threads: push from any.
 */
#ifndef KILN_SERVER_LOADER_H
#define KILN_SERVER_LOADER_H

#include "compute/status.h"

#define LOADER_THREADS  2
#define LOADER_BODY_MIN (64u << 10) /* smaller bodies are read where they arrive */

struct exchange;
struct loader;

enum kiln_status loader_create(void (*work)(struct exchange *exchange), struct loader **loader);
/** Works off what is queued, then joins the threads. NULL is allowed. */
void loader_destroy(struct loader *loader);
void loader_push(struct loader *loader, struct exchange *exchange);

#endif
