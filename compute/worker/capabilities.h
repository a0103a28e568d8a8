/*
 * capabilities.h: what is left of root's rights in a process that was started as root.
 *
 * Nothing here needs a capability once its port is bound. A process gives them up for good, the
 * bounding set included, so that no program that it starts gets them back; files are then read by
 * their permissions alone, as any user's. Where there are none, nothing happens. As with the
 * sandbox, programs built with sanitizers keep theirs: the leak check needs them.
 *
 * Threads: each thread has capabilities of its own, and new ones inherit them: call these before
 * the process has any.
 */
#ifndef KILN_COMPUTE_WORKER_CAPABILITIES_H
#define KILN_COMPUTE_WORKER_CAPABILITIES_H

/** Keeps the right to bind ports below 1024, for this process and not for its children. */
void capabilities_reduce(void);
/** Gives up all. */
void capabilities_drop(void);

#endif
