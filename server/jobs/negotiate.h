/*
 * negotiate.h: choosing a representation from an Accept header (RFC 9110 section 12.5.1).
 *
 * Threads: reentrant.
 */
#ifndef KILN_SERVER_JOBS_NEGOTIATE_H
#define KILN_SERVER_JOBS_NEGOTIATE_H

#include "compute/codecs/format.h"

/** The acceptable format of highest quality; among equals the one that is named more exactly, then
    the one named first, then the first of `formats` (ended by FORMAT_NONE). `accept` NULL or
   without a readable range: the first. FORMAT_NONE if none is acceptable. */
enum format negotiate(const char *accept, const enum format *formats);

#endif
