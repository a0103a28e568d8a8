/*
 * signature.h: kinds of files that people send and that are not read here, told by their first
 * bytes or their media type, each with what to do instead.
 *
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_CODECS_SIGNATURE_H
#define KILN_COMPUTE_CODECS_SIGNATURE_H

#include <stddef.h>

/** "a FITS file, which is not read here; …" for a body that begins so, or NULL. */
const char *signature_of_bytes(const void *bytes, size_t size);

/** The same for a media type (parameters ignored; NULL for none), or NULL. */
const char *signature_of_media(const char *media);

#endif
