/*
 * sines.h: the tables of sines that `spectral` multiplies with, kept by the device by length.
 *
 * A table is made on the device when a length is seen first, on the stream that asked; other
 * streams wait for it in stream order. All tables together stay within a budget; then those unused
 * longest give way. Where a matrix is too large for it, the table is a line that the kernels gather
 * from. Chirps (chirp.h) are kept beside them, as tables of their own.
 *
 * Threads: any; a stream by its own. Ownership: a table that a stream took stays until the stream's
 * begin or finish has waited for the device.
 */
#ifndef KILN_KERNELS_CUDA_SPECTRAL_SINES_H
#define KILN_KERNELS_CUDA_SPECTRAL_SINES_H

#include "kernels/cuda/device/stream.h"
#include "kernels/cuda/spectral/spectral_grid.h"

#include <pthread.h>

#define SINES_MAX     64
#define SINES_HELD    8  /* lengths of one stream's job */
#define SINES_PART    16 /* of the device's memory at most one in so many bytes */
#define SINES_MAXIMUM ((size_t)2 << 30)

struct sines_entry {
    struct sine_table table;
    CUdeviceptr memory; /* 0: an empty place */
    size_t bytes;
    CUevent ready;
    bool settled;  /* `ready` is known to be past */
    int users;     /* streams */
    uint64_t last; /* when it was taken, in takes */
};

/** What `spectral` keeps with a device. */
struct sines {
    pthread_mutex_t lock;
    uint64_t takes;
    size_t bytes, budget;
    struct sines_entry entries[SINES_MAX];
};

/** What it keeps with a stream. */
struct sines_held {
    struct sines_entry *entries[SINES_HELD]; /* in use, NULL after the last */
};

/** Hooks of the kernel's kept_row: `finish` frees all tables, `give` lets go of those that the
    stream took. */
void sines_init(struct device *device);
void sines_finish(struct device *device);
void sines_give(struct stream *stream);

/** The table of a length, ready in stream order. Errors as of stream functions. */
enum kiln_status sines_take(struct stream *stream, int64_t length, struct sine_table *table);
/** Likewise the chirps of a length that has a plan. */
enum kiln_status sines_take_chirp(struct stream *stream, int64_t length, struct sine_table *table);

#endif
