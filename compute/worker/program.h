/*
 * program.h: starting a program of our own as a child.
 *
 * posix_spawn, because who starts it may have threads and large mappings: nothing of either is
 * copied. A child has no signals blocked or ignored, keeps standard output and error and the
 * descriptors that it is given; all others are closed.
 *
 * Threads: any; a child that asked for PR_SET_PDEATHSIG dies with the one that started it.
 */
#ifndef KILN_COMPUTE_WORKER_PROGRAM_H
#define KILN_COMPUTE_WORKER_PROGRAM_H

#include <sys/types.h>

/** The first descriptor that a child is given; the others follow. */
#define PROGRAM_FD 3
/** Those to be given, fewer than five, lie from here on, so that putting one in its place cannot
   hit another. No higher than that: limits of open files may be low. */
#define PROGRAM_HIGH_FD 8

/** Starts `path` with `count` descriptors as PROGRAM_FD, …, and `out` as standard output unless -1.
    `arguments` end with NULL; standard input is empty. 0, with the id in `pid`, or an errno. */
int program_start(pid_t *pid, const char *path, const char *const *arguments, const int *fds,
                  int count, int out);
/** Sends a signal to the process behind a pidfd. */
void program_signal(int pidfd, int signal);

#endif
