/*
 * files.h: the state directory: large inputs and results as files named by their SHA-256, and the
 * ballast.
 *
 *   DIR/store.db, store.db-wal    the database (sqlite.c)
 *   DIR/blobs/<64 digits>         one input or result each, never changed
 *   DIR/blobs/.tmp-<number>       one that is being written
 *   DIR/ballast                   bytes to be given up when the disk is full, so that there is room
 *                                 for deleting
 *
 * A file is written under another name, synced, renamed; files_sync then makes the names of a whole
 * group durable. Files of nobody are found by files_sweep. Temporary files lie beside the others
 * because some kernels let a confined process rename within a folder only.
 *
 * Threads: one. Bytes may be shared memory that others change meanwhile: what is hashed is what is
 * written.
 */
#ifndef KILN_COMPUTE_STORE_FILES_H
#define KILN_COMPUTE_STORE_FILES_H

#include "compute/store/store.h"

#define FILES_BALLAST ((int64_t)16 << 20)

struct files;

/** Whether a name belongs to somebody. */
typedef bool files_known(void *context, const uint8_t hash[STORE_HASH]);

/** Makes what is missing of the directory; its parent must be there. STORE with the reason: not a
    directory, of others' to write, on a network. */
enum kiln_status files_open(const char *directory, struct files **files, char *why,
                            size_t why_size);
void files_close(struct files *files);

/** Whether SQLite's locks and log hold on this kind of file system (statfs f_type). */
bool files_local(int64_t type);

/** SHA-256 of bytes in private memory. */
void files_hash(const void *data, size_t size, uint8_t hash[STORE_HASH]);
/** Writes a file and tells its name; where it is `known`, nothing stays. Durable after files_sync.
    STORE_FULL, STORE. */
enum kiln_status files_write(struct files *files, const struct store_bytes *bytes,
                             files_known *known, void *context, uint8_t hash[STORE_HASH]);
/** Makes the names of all files written since the last call durable. */
enum kiln_status files_sync(struct files *files);
/** A descriptor for reading, the caller's; -1 where there is no such file. */
int files_read(const struct files *files, const uint8_t hash[STORE_HASH], uint64_t *size);
void files_remove(struct files *files, const uint8_t hash[STORE_HASH]);

/** Looks at some more files and removes those that nobody knows; true once all were looked at
    since the start. */
bool files_sweep(struct files *files, files_known *known, void *context);
/** Calls for each file of the directory; for checks. */
void files_each(struct files *files, void (*each)(void *context, const uint8_t hash[STORE_HASH]),
                void *context);

/** Bytes that a user without privileges could still write. */
int64_t files_free(const struct files *files);
/** Takes the ballast's place on the disk; false if there is none. */
bool files_ballast_take(struct files *files);
void files_ballast_give(struct files *files);

#endif
