/*
 * sandbox.h: the system calls that a process may still make once it has started.
 *
 * Each kind of process has a written list (sandbox_list.c). A call that is not on it answers EPERM,
 * so that libraries degrade; one that no part of the program could ever want, and an intruder
 * would, ends the process with SIGSYS. The kernel judges (seccomp), no code of ours runs.
 *
 * KILN_SANDBOX in the environment (--sandbox, which children inherit): "on", also where it is not
 * set; "off"; "report": nothing is refused, and every call that would have been is logged once.
 * Programs built with sanitizers are never confined: theirs need more.
 *
 * Threads: sandbox_enter confines all threads of the process, and all that it starts later.
 */
#ifndef KILN_COMPUTE_SANDBOX_H
#define KILN_COMPUTE_SANDBOX_H

enum sandbox_profile {
    SANDBOX_OPENING, /* the front before it opens its port: no new processes, programs or code */
    SANDBOX_FRONT,   /* speaks HTTP: no new threads, sockets or files either */
    SANDBOX_SPAWNER, /* starts workers, which inherit this: what all of them need, and starting */
    SANDBOX_CPU,     /* worker on the CPU: reads files, computes, answers */
    SANDBOX_CUDA,    /* worker on a GPU: also what its driver needs */
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

#endif
