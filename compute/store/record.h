/*
 * record.h: the members of a job as a table, from which packets, SQL and exports are made.
 *
 * Threads: constant; the calls are reentrant.
 */
#ifndef KILN_COMPUTE_STORE_RECORD_H
#define KILN_COMPUTE_STORE_RECORD_H

#include "compute/core/text.h"
#include "compute/store/pack.h"
#include "compute/store/store.h"

enum record_kind { RECORD_ID, RECORD_HASH, RECORD_TRACE, RECORD_TEXT, RECORD_NUMBER, RECORD_REAL };

struct record_field {
    const char *name; /* also of the column */
    enum record_kind kind;
    size_t offset;  /* in struct store_job */
    size_t max;     /* TEXT: bytes */
    bool long_rows; /* left out of short rows */
};

extern const struct record_field record_fields[];
extern const size_t record_count;

/** A job with nothing in it: texts are "". */
extern const struct store_job record_empty;

/** Whether texts are as long as they may be and numbers can be of a job. */
bool record_valid(const struct store_job *job);
void record_pack(struct pack *pack, const struct store_job *job);
/** Texts point into the packet. */
void record_unpack(struct unpack *unpack, struct store_job *job);
/** One line of JSON with every member that is not empty. */
void record_print(struct text *text, const struct store_job *job);

bool hash_empty(const uint8_t hash[STORE_HASH]);
#define HASH_TEXT (2 * STORE_HASH + 1)
void hash_print(const uint8_t hash[STORE_HASH], char text[HASH_TEXT]);
/** 64 digits in lower case; false for anything else. */
bool hash_parse(const char *text, uint8_t hash[STORE_HASH]);

#endif
