/*
 * routes.h: the addresses of this daemon, and who answers them.
 *
 * Addresses of jobs come from the job registry, all others from one constant table.
 *
 * Threads: the main thread, before serving.
 */
#ifndef KILN_SERVER_ROUTES_H
#define KILN_SERVER_ROUTES_H

/** Builds the table and gives it to the router. */
void routes_init(void);

#endif
