/*
 * disk.h: a disk that forgets and fills up, in front of the C library's: a program that is linked
 * with disk.c has its files below one directory watched, SQLite's included.
 *
 * Recording keeps every write, size, name and sync. disk_cut then makes what a loss of power at
 * some moment may have left: what was synced is there; of what was not, any sectors, and any of the
 * names that a file had since its folder was synced.
 *
 * The quota is a number that may be shared with another process: what would make the files larger
 * than that fails with ENOSPC.
 *
 * Threads: one.
 */
#ifndef KILN_TESTS_FAULTS_DISK_H
#define KILN_TESTS_FAULTS_DISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Watches `directory`, with folders one deep. `quota` (bytes; NULL: none) is read at each write.
 */
void disk_watch(const char *directory, const int64_t *quota, bool record);
/** Forgets all. */
void disk_forget(void);
/** Bytes that all files have. */
int64_t disk_used(void);
/** Moments so far. */
size_t disk_moment(void);
/** Fills the empty directory `target` with what is left after a cut at `moment`. `honest` false: as
    if nothing had ever been synced but by chance. */
void disk_cut(size_t moment, bool honest, uint64_t *seed, const char *target);

#endif
