/*
 * process.h: the process that has the store, `kilnd store --socket-fd …`, started by the daemon.
 *
 * It is confined (SANDBOX_STORE): no network, no devices, no programs, files in its directory only.
 * It ends when the other side of its socket does, and after an error of the disk, to be started
 * again: then it reads from the disk what really is there.
 *
 * Threads: it has one.
 */
#ifndef KILN_COMPUTE_STORE_PROCESS_H
#define KILN_COMPUTE_STORE_PROCESS_H

#include "compute/store/command.h"

/** Serves commands on `socket` until it closes; returns the exit code. */
int store_serve(const struct store_options *options, int socket, const struct store_arena *arena);

/** The role: reads the arguments that store_arguments wrote. */
int store_process(int argc, char **argv, int first);

#define STORE_ARGUMENTS_MAX 24
#define STORE_ARGUMENT_SIZE 24

/** Memory for the arguments of a child. */
struct store_arguments {
    const char *list[STORE_ARGUMENTS_MAX]; /* ends with NULL */
    char texts[STORE_ARGUMENTS_MAX][STORE_ARGUMENT_SIZE];
};

/** For who starts it: "kilnd store --socket-fd 3 --arena-fd 4 …", with the socket as PROGRAM_FD and
    the arena after it. `options` must outlive the arguments. */
void store_arguments_make(struct store_arguments *arguments, const struct store_options *options,
                          uint64_t arena_size);

#endif
