/*
 * tool.h: `kilnd store check|backup|export|bench`: what an operator asks of a state directory.
 *
 * check, backup and export want it for themselves: nobody else can open it while a daemon has it.
 *
 * Threads: main thread of a process of their own.
 */
#ifndef KILN_COMPUTE_STORE_TOOL_H
#define KILN_COMPUTE_STORE_TOOL_H

#include <stdint.h>

/** The role `kilnd store`: with flags the daemon's own process (process.h), else a command. Returns
    the exit code: 0, 1 where something is wrong, 2 for arguments that make no sense. */
int store_role(int argc, char **argv, int first);

struct store;

/** Holds a store that was opened to be inspected against itself: the database, every input and
    result by its SHA-256, references, accounts. Writes what it finds to standard output and returns
    how many things are wrong. */
int64_t store_check(struct store *store);

/** `kilnd store bench DIR [JOBS]`: figures of this disk and this machine, in a folder of its own in
    DIR, which goes again. */
int store_bench(const char *directory, int jobs);

#endif
