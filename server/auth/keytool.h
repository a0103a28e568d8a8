/*
 * keytool.h: `kilnd key new` and `kilnd key check`.
 *
 * Threads: the main thread.
 */
#ifndef KILN_SERVER_AUTH_KEYTOOL_H
#define KILN_SERVER_AUTH_KEYTOOL_H

/** new [--id ID] [--scopes LIST] [--rate R] [--burst N] [--concurrency N]: prints a key, which is
    kept nowhere, and the line for the key file. check FILE: reads a key file. Returns the exit
    code. */
int keytool_run(int argc, char **argv, int first);

#endif
