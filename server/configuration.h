/*
 * configuration.h: whether a daemon could start with these options, without starting one.
 *
 * `kilnd --check-config` reads what serving would read (key file, certificate, lists) and resolves
 * the address, but binds nothing, starts no process and probes no device: it can be asked while a
 * daemon serves, before that one is reloaded or restarted.
 *
 * Threads: the main thread.
 */
#ifndef KILN_SERVER_CONFIGURATION_H
#define KILN_SERVER_CONFIGURATION_H

#include "server/core/options.h"

/** False with a sentence in `why`. */
bool configuration_check(const struct options *options, char *why, size_t why_size);

#endif
