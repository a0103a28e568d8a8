/*
 * sandbox.h: the system calls that a process may still make once it has started, and the files that
 * it may still read.
 *
 * Each kind of process has a written list (sandbox_list.c). A call that is not on it answers EPERM,
 * so that libraries degrade; one that no part of the program could ever want, and an intruder
 * would, ends the process with SIGSYS. The kernel judges (seccomp), no code of ours runs.
 *
 * Front, store and workers on the CPU may open what a second list names and nothing else (Landlock,
 * Linux 5.13 on): figures of the system, and the folder of the key file. The kernel also keeps a
 * process in such a domain away from all outside it. Where it has no Landlock, a worker on the CPU
 * gives up opening files once it is ready (SANDBOX_SHUT).
 *
 * KILN_SANDBOX in the environment (--sandbox, which children inherit): "on", also where it is not
 * set; "off"; "report": nothing is refused, and every call that would have been is logged once.
 * Programs built with sanitizers are never confined: theirs need more.
 *
 * Threads: sandbox_enter confines all threads of the process, and all that it starts later; what it
 * says of files holds for the calling thread and those that it starts, so it is entered before
 * there are others.
 */
#ifndef KILN_COMPUTE_WORKER_SANDBOX_H
#define KILN_COMPUTE_WORKER_SANDBOX_H

#include <stdbool.h>

enum sandbox_profile {
    SANDBOX_OPENING, /* the front before it opens its port: no new processes, programs or code */
    SANDBOX_FRONT,   /* speaks HTTP: no new threads, sockets or files either */
    SANDBOX_SPAWNER, /* starts workers, which inherit this: what all of them need, and starting */
    SANDBOX_CPU,     /* worker on the CPU: reads figures, computes, answers */
    SANDBOX_SHUT,    /* the same without opening anything */
    SANDBOX_CUDA,    /* worker on a GPU: also what its driver needs */
    SANDBOX_STORE,   /* the store: files in its directory, and nothing else */
    SANDBOX_PROFILES
};

enum sandbox_state {
    SANDBOX_OFF,    /* as KILN_SANDBOX says, or this is a program with sanitizers */
    SANDBOX_ABSENT, /* the kernel cannot do it; logged as a warning */
    SANDBOX_ON,
    SANDBOX_REPORT
};

/** Confines this process for the rest of its life; logs what came of it. Only ever narrows what
    was allowed before. */
enum sandbox_state sandbox_enter(enum sandbox_profile profile);

/** Adds a file, or a folder with all in it, to what the next sandbox_enter lets be read; what is
    not there is left out. "" is allowed. At most SANDBOX_FILES of them. */
void sandbox_file(const char *path);
/** The same for the folder that a file lies in, and the one that it leads to as a link, so that
    another file may take its place; in the root folder for the file alone. */
void sandbox_folder_of(const char *path);
/** Lets the next sandbox_enter of the store read and write all in a folder, without making devices
    or programs of it. */
void sandbox_files_below(const char *folder);
/** Whether files are closed to this process but for those lists. */
bool sandbox_files_closed(void);

#define SANDBOX_FILES 8

#endif
