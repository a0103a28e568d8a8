/*
 * job_id.h: names of jobs: UUIDs of version 7 (RFC 9562).
 *
 * 48 bits of milliseconds since 1970 come first, so that ids sort by the time they were given, and
 * those of one daemon never go back with its clock. The 74 bits behind them are of a ChaCha20
 * generator (RFC 8439) which the kernel seeds once: who knows all ids of a daemon can tell nothing
 * of the next one, so an id is also what a client needs to know to ask for a job. No id comes again
 * after a restart. The generator forgets what it has given ("fast key erasure"): the first bytes of
 * every four blocks are the key of the next four, the rest makes 22 ids. It makes no system call.
 *
 * Text has 36 characters, "0198a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b", lower case.
 *
 * Threads: reentrant; a generator has one owner at a time.
 */
#ifndef KILN_COMPUTE_CORE_JOB_ID_H
#define KILN_COMPUTE_CORE_JOB_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JOB_ID_SIZE 16
#define JOB_ID_TEXT 37 /* characters and NUL */

/** All zero: none. */
struct job_id {
    uint8_t bytes[JOB_ID_SIZE];
};

#define JOB_IDS_KEY    8   /* words of 32 bits */
#define JOB_IDS_BLOCKS 4   /* of 64 bytes, made together */
#define JOB_IDS_RANDOM 224 /* bytes of these that are no key */

struct job_ids {
    uint32_t key[JOB_IDS_KEY];
    uint8_t random[JOB_IDS_RANDOM]; /* of the last blocks, handed out from the end */
    size_t left;                    /* bytes of them */
    uint64_t last_ms;
};

/** Seeds a generator; false if the kernel gives no random bytes. */
bool job_ids_init(struct job_ids *ids);
/** The next id, at `now_ms` since 1970 or the last one's time, whichever is later. */
struct job_id job_ids_next(struct job_ids *ids, uint64_t now_ms);
/** Milliseconds since 1970 by the system's clock. */
uint64_t job_ids_now(void);

bool job_id_equal(const struct job_id *one, const struct job_id *other);
bool job_id_empty(const struct job_id *id);
void job_id_print(const struct job_id *id, char text[JOB_ID_TEXT]);
/** Reads the text of an id of ours: `size` is 36, digits are lower case, version and variant those
    of a UUIDv7. False, and nothing written, for anything else. */
bool job_id_parse(const char *text, size_t size, struct job_id *id);

/** One block of ChaCha20 (RFC 8439, 2.3) with nonce 0; for the test vectors. */
void job_ids_block(const uint32_t key[JOB_IDS_KEY], uint32_t counter, uint32_t out[16]);

#endif
