/*
 * lib_forge.h: hostile files made by code: a buffer that grows, PNG chunks, mutations, and asking
 * the daemon about them while its time and memory are watched.
 *
 * Threads: one at a time.
 */
#ifndef KILN_TESTS_API_LIB_FORGE_H
#define KILN_TESTS_API_LIB_FORGE_H

#include "tests/api/lib_daemon.h"

/** Bytes that grow; all zero is an empty one. The owner calls bytes_free. */
struct bytes {
    uint8_t *at;
    size_t size, room;
};

void bytes_put(struct bytes *bytes, const void *data, size_t size);
void bytes_text(struct bytes *bytes, const char *text);
/** `count` times the same byte. */
void bytes_fill(struct bytes *bytes, int value, size_t count);
void bytes_big32(struct bytes *bytes, uint32_t value);
void bytes_free(struct bytes *bytes);

/** The signature of a PNG and its IHDR. */
void png_start(struct bytes *png, uint32_t width, uint32_t height, unsigned depth, unsigned color,
               unsigned interlace);
/** One chunk with its right checksum. */
void png_chunk(struct bytes *png, const char *type, const void *data, size_t size);
/** One chunk of what zlib makes of `data`, behind `prefix`. */
void png_deflated(struct bytes *png, const char *type, const char *prefix, size_t prefix_size,
                  const void *data, size_t size);
/** The same of `count` zeros, which never lie in memory. */
void png_zeros(struct bytes *png, const char *type, const char *prefix, size_t prefix_size,
               size_t count);
void png_end(struct bytes *png);
/** Puts the checksum of every whole chunk right. */
void png_checksums(struct bytes *png);

/** splitmix64. */
uint64_t forge_random(uint64_t *state);
/** One small change where the number is even, else up to six, which depend on the number alone. */
void forge_mutate(struct bytes *bytes, uint64_t number);

/** What the answer must be: a problem with 4xx, 200, or one of both. */
enum forge_wanted { FORGE_REFUSED, FORGE_TAKEN, FORGE_EITHER };

/** What has been seen since `watch_start`. */
struct watch {
    struct session *session;
    const char *path, *type;
    pid_t front, worker;
    size_t asked, refused, taken, wrong, largest;
    double wall_s, cpu_s; /* of the slowest request; each the best of its repetitions */
    char slowest[96];
    long held_kib, peak_kib; /* front and worker at the start: anonymous memory, highest resident */
};

void watch_start(struct watch *watch, struct session *session, const struct daemon *daemon,
                 const char *path, const char *type);
/** Posts the file, up to five times where it takes longer than 50 ms, and notes what was seen. A
    wrong answer is printed and counted in `wrong`. */
void watch_ask(struct watch *watch, const char *name, const struct bytes *file,
               enum forge_wanted wanted);
/** Growth since the start in bytes: of anonymous memory; of the highest resident size. */
double watch_held(const struct watch *watch);
double watch_peak(const struct watch *watch);
/** The daemon's next good request is answered, by the same worker, and no answer was wrong. */
void watch_assert_fine(const struct watch *watch);

#endif
