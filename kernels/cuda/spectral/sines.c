/*
 * sines.c: a small table of device memory under one lock (sines.h).
 *
 * The lock is held while a table is made, so that two streams never make the same; that is once for
 * a length, and the device itself works later. What cannot be kept is made in the stream's scratch,
 * matrices as lines, for this launch alone.
 */
#include "kernels/cuda/spectral/sines.h"

#define GRAIN  ((size_t)256)
#define WARPS  8
#define BLOCKS 8 /* a multiprocessor, at most */

static struct sines *sines_of(const struct device *device) {
    return device_kept(device, KERNEL_SPECTRAL);
}

static struct sines_entry **held_by(const struct stream *stream) {
    struct sines_held *held = stream_kept(stream, KERNEL_SPECTRAL).state;
    return held->entries;
}

void sines_init(struct device *device) {
    struct sines *sines = sines_of(device);
    pthread_mutex_init(&sines->lock, NULL);
    sines->budget = (size_t)(device->total_bytes / SINES_PART);
    sines->budget = sines->budget < SINES_MAXIMUM ? sines->budget : SINES_MAXIMUM;
}

static void entry_free(struct device *device, struct sines_entry *entry) {
    driver.cuMemFree(entry->memory);
    driver.cuEventDestroy(entry->ready);
    atomic_fetch_sub(&device->used, entry->bytes);
    sines_of(device)->bytes -= entry->bytes;
    *entry = (struct sines_entry){0};
}

void sines_finish(struct device *device) {
    struct sines *sines = sines_of(device);
    for (int i = 0; i < SINES_MAX; i++) {
        if (sines->entries[i].memory) {
            entry_free(device, &sines->entries[i]);
        }
    }
    pthread_mutex_destroy(&sines->lock);
}

static size_t round_up(size_t size) {
    return (size + GRAIN - 1) / GRAIN * GRAIN;
}

enum form { FORM_MATRIX, FORM_LINE, FORM_CHIRP };

static double *part_lay(uint8_t *base, size_t *size, size_t doubles) {
    double *part = base != NULL ? (double *)(void *)(base + *size) : NULL;
    *size += round_up(doubles * sizeof(double));
    return part;
}

static size_t chirp_lay(struct sine_table *table, int64_t length, uint8_t *base) {
    struct chirp_table *chirp = &table->chirp;
    size_t size = 0;
    *table = (struct sine_table){.length = length};
    chirp_table_init(chirp, length);
    chirp->twiddle = part_lay(base, &size, (size_t)chirp->plan.size);
    chirp->lead = part_lay(base, &size, 2 * CHIRP_LEAD((size_t)chirp->plan.size));
    chirp->filter = part_lay(base, &size, 4 * (size_t)chirp->plan.size);
    table->waves = part_lay(base, &size, (size_t)length);
    return size;
}

/* Describes a table at `base` and returns its size. Lengths are below 2^31. */
static size_t table_lay(struct sine_table *table, int64_t length, enum form form, uint8_t *base) {
    if (form == FORM_CHIRP) {
        return chirp_lay(table, length, base);
    }
    bool matrix = form == FORM_MATRIX;
    size_t n = (size_t)length, half = (n + 1) / 2, stride = (half + 1) / 2 * 2;
    size_t sines = round_up((matrix ? 2 * half * stride : 2 * (n + 1)) * sizeof(double));
    double *first = (double *)(void *)base;
    *table = (struct sine_table){
        .length = length,
        .half = (int64_t)half,
        .stride = (int64_t)stride,
        .matrix = matrix ? first : NULL,
        .line = matrix ? NULL : first,
    };
    if (base != NULL) {
        table->waves = (double *)(void *)(base + sines);
    }
    return sines + round_up(n * sizeof(double));
}

static enum kiln_status table_make(struct stream *stream, struct sine_table *table) {
    uint64_t elements = table->matrix != NULL ? 2 * (uint64_t)table->half * (uint64_t)table->stride
                                              : 2 * ((uint64_t)table->length + 1);
    uint64_t blocks = (elements + 32 * WARPS - 1) / (32 * WARPS);
    uint64_t most = (uint64_t)stream->device->multiprocessors * BLOCKS;
    struct shape shape = {
        .grid_x = (unsigned)(blocks < most ? blocks : most), .grid_y = 1, .warps = WARPS};
    enum kiln_status status =
        stream_launch(stream, KERNEL_SPECTRAL, SPECTRAL_SINES, &shape, table, "sines");
    if (status == KILN_OK && table->chirp.filter != NULL) {
        shape = (struct shape){
            .grid_x = 2, .grid_y = 1, .warps = (unsigned)table->chirp.plan.warps / 2};
        status = stream_launch(stream, KERNEL_SPECTRAL, SPECTRAL_FILTER, &shape, table, "filter");
    }
    return status;
}

static struct sines_entry *entry_find(struct sines *sines, int64_t length, bool chirp) {
    for (int i = 0; i < SINES_MAX; i++) {
        struct sines_entry *entry = &sines->entries[i];
        if (entry->memory && entry->table.length == length &&
            (entry->table.chirp.filter != NULL) == chirp) {
            return entry;
        }
    }
    return NULL;
}

/* An empty place with room in the budget for `bytes`; what nobody uses gives way, oldest first. */
static struct sines_entry *place(struct device *device, size_t bytes) {
    struct sines *sines = sines_of(device);
    if (bytes > sines->budget) {
        return NULL;
    }
    for (;;) {
        struct sines_entry *empty = NULL, *oldest = NULL;
        for (int i = 0; i < SINES_MAX; i++) {
            struct sines_entry *entry = &sines->entries[i];
            if (!entry->memory) {
                empty = entry;
            } else if (entry->users == 0 && (oldest == NULL || entry->last < oldest->last)) {
                oldest = entry;
            }
        }
        if (empty != NULL && sines->bytes + bytes <= sines->budget) {
            return empty;
        }
        if (oldest == NULL) {
            return NULL;
        }
        entry_free(device, oldest);
    }
}

static bool entry_allocate(struct device *device, struct sines_entry *entry, size_t bytes) {
    uint64_t before = atomic_fetch_add(&device->used, bytes);
    if (device->max_bytes == 0 || before + bytes <= device->max_bytes) {
        if (driver.cuMemAlloc(&entry->memory, bytes) == CUDA_SUCCESS) {
            if (driver.cuEventCreate(&entry->ready, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS) {
                entry->bytes = bytes;
                sines_of(device)->bytes += bytes;
                return true;
            }
            driver.cuMemFree(entry->memory);
        }
    }
    *entry = (struct sines_entry){0};
    atomic_fetch_sub(&device->used, bytes);
    return false;
}

/* Makes a table that is kept; NULL where there is no room, or with the stream's fault set. */
static struct sines_entry *entry_make(struct stream *stream, int64_t length, enum form form) {
    struct device *device = stream->device;
    struct sine_table table;
    size_t bytes = table_lay(&table, length, form, NULL);
    struct sines_entry *entry = place(device, bytes);
    if (entry == NULL || !entry_allocate(device, entry, bytes)) {
        return NULL;
    }
    table_lay(&entry->table, length, form, (uint8_t *)(uintptr_t)entry->memory);
    if (table_make(stream, &entry->table) != KILN_OK ||
        stream_check(stream, driver.cuEventRecord(entry->ready, stream->handle), "event") !=
            KILN_OK) {
        entry_free(device, entry);
        return NULL;
    }
    return entry;
}

/* Counts the stream as a user; false where it uses too many already. */
static bool entry_hold(struct stream *stream, struct sines_entry *entry) {
    struct sines_entry **held = held_by(stream);
    for (int i = 0; i < SINES_HELD; i++) {
        if (held[i] == entry) {
            return true;
        }
        if (held[i] == NULL) {
            held[i] = entry;
            entry->users++;
            stream_hold(stream, KERNEL_SPECTRAL);
            return true;
        }
    }
    return false;
}

/* Orders the stream after the making of the table. */
static enum kiln_status entry_await(struct stream *stream, struct sines_entry *entry) {
    if (!entry->settled && driver.cuEventQuery(entry->ready) == CUDA_SUCCESS) {
        entry->settled = true;
    }
    if (entry->settled) {
        return KILN_OK;
    }
    return stream_check(stream, driver.cuStreamWaitEvent(stream->handle, entry->ready, 0), "event");
}

static enum kiln_status kept_take(struct stream *stream, int64_t length, enum form form,
                                  struct sine_table *table) {
    struct sines *sines = sines_of(stream->device);
    struct sines_entry *entry = entry_find(sines, length, form == FORM_CHIRP);
    bool room = held_by(stream)[SINES_HELD - 1] == NULL;
    if (entry == NULL && room) {
        entry = entry_make(stream, length, form);
    }
    if (entry == NULL && room && form == FORM_MATRIX && stream->fault == KILN_OK) {
        entry = entry_make(stream, length, FORM_LINE);
    }
    if (entry == NULL || !entry_hold(stream, entry)) {
        return stream->fault != KILN_OK ? stream->fault : KILN_NO_MEMORY;
    }
    entry->last = ++sines->takes;
    *table = entry->table;
    return entry_await(stream, entry);
}

/* A table of its own for this launch. */
static enum kiln_status loose_take(struct stream *stream, int64_t length, enum form form,
                                   struct sine_table *table) {
    uint8_t *base = stream_reserve(stream, table_lay(table, length, form, NULL));
    if (base == NULL) {
        return stream->fault != KILN_OK ? stream->fault : KILN_NO_MEMORY;
    }
    table_lay(table, length, form, base);
    return table_make(stream, table);
}

static enum kiln_status take(struct stream *stream, int64_t length, enum form form,
                             struct sine_table *table) {
    struct sines *sines = sines_of(stream->device);
    pthread_mutex_lock(&sines->lock);
    enum kiln_status status = kept_take(stream, length, form, table);
    pthread_mutex_unlock(&sines->lock);
    form = form == FORM_MATRIX ? FORM_LINE : form;
    return status == KILN_NO_MEMORY ? loose_take(stream, length, form, table) : status;
}

enum kiln_status sines_take(struct stream *stream, int64_t length, struct sine_table *table) {
    return take(stream, length, FORM_MATRIX, table);
}

enum kiln_status sines_take_chirp(struct stream *stream, int64_t length, struct sine_table *table) {
    return take(stream, length, FORM_CHIRP, table);
}

void sines_give(struct stream *stream) {
    struct sines *sines = sines_of(stream->device);
    struct sines_entry **held = held_by(stream);
    pthread_mutex_lock(&sines->lock);
    for (int i = 0; i < SINES_HELD && held[i] != NULL; i++) {
        held[i]->users--;
        held[i] = NULL;
    }
    pthread_mutex_unlock(&sines->lock);
}
