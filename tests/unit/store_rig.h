/*
 * store_rig.h: what the tests of the store share: a folder, jobs, and changes that are committed.
 */
#ifndef KILN_TESTS_UNIT_STORE_RIG_H
#define KILN_TESTS_UNIT_STORE_RIG_H

#include "compute/store/record.h"
#include "compute/store/store.h"
#include "compute/store/tool.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static int rig_entry_remove(const char *path, const struct stat *status, int kind,
                            struct FTW *walk) {
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static inline void rig_folder_remove(const char *path) {
    nftw(path, rig_entry_remove, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void rig_folder_make(char path[64]) {
    snprintf(path, 64, "/tmp/kiln-store-XXXXXX");
    assert_non_null(mkdtemp(path));
}

/* Numbers that come again with their seed (splitmix64). */
static inline uint64_t rig_random(uint64_t *seed) {
    uint64_t value = *seed += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

static inline uint64_t rig_below(uint64_t *seed, uint64_t bound) {
    return rig_random(seed) % bound;
}

/* Ids that rise. */
static inline struct job_id rig_id(uint64_t number) {
    struct job_id id = {{0}};
    for (int i = 0; i < 8; i++) {
        id.bytes[i + 8] = (uint8_t)(number >> (56 - 8 * i));
    }
    id.bytes[0] = 1;
    return id;
}

static inline struct store_job rig_job(uint64_t number) {
    struct store_job job = record_empty;
    job.id = rig_id(number);
    job.type = "mandelbrot";
    job.version = 3;
    job.params = "{\"width\":16}";
    job.format = "png";
    job.retain = 3600000;
    job.reserved = 1000;
    return job;
}

static inline struct store *rig_open(const struct store_options *options) {
    char why[320];
    struct store *store = NULL;
    enum kiln_status status = store_open(options, &store, why, sizeof why);
    if (status != KILN_OK) {
        fail_msg("%s: %s", options->directory, why);
    }
    return store;
}

/* One change in a transaction of its own; the transaction's status where it fails. */
static inline enum kiln_status rig_accept(struct store *store, const struct store_accept *accept,
                                          struct store_accepted *accepted) {
    enum kiln_status status = store->engine->begin(store, false);
    if (status == KILN_OK) {
        enum kiln_status own = store->engine->accept(store, accept, accepted);
        status = store->engine->commit(store);
        status = status == KILN_OK ? own : status;
    }
    return status;
}

static inline enum kiln_status rig_change(struct store *store, const struct store_change *change,
                                          struct store_changed *changed) {
    enum kiln_status status = store->engine->begin(store, change->verb == STORE_START);
    if (status == KILN_OK) {
        enum kiln_status own = store->engine->change(store, change, changed);
        status = store->engine->commit(store);
        status = status == KILN_OK ? own : status;
    }
    return status;
}

static inline enum kiln_status rig_submit(struct store *store, uint64_t number, const char *owner,
                                          const void *input, size_t size) {
    struct store_job job = rig_job(number);
    const struct store_bytes bytes = {input, size};
    const struct store_accept accept = {
        .jobs = &job, .inputs = &bytes, .count = 1, .owner = owner, .key = ""};
    struct store_accepted accepted;
    return rig_accept(store, &accept, &accepted);
}

static inline struct store_change rig_verb(uint64_t number, enum store_verb verb, int64_t attempt) {
    return (struct store_change){
        .verb = verb, .id = rig_id(number), .attempt = attempt, .outcome = "", .node = "cpu:0"};
}

static inline enum kiln_status rig_do(struct store *store, uint64_t number, enum store_verb verb,
                                      int64_t attempt) {
    const struct store_change change = rig_verb(number, verb, attempt);
    struct store_changed changed;
    return rig_change(store, &change, &changed);
}

static inline enum kiln_status rig_finish(struct store *store, uint64_t number, int64_t attempt,
                                          int64_t state, const void *result, size_t size) {
    struct store_change change = rig_verb(number, STORE_FINISH, attempt);
    struct store_changed changed;
    change.state = state;
    change.result = (struct store_bytes){result, size};
    return rig_change(store, &change, &changed);
}

static inline int64_t rig_state(struct store *store, uint64_t number) {
    struct store_job job;
    const struct job_id id = rig_id(number);
    return store->engine->get(store, &id, &job) == KILN_OK ? job.state : -1;
}

/* Whether the result, or the input, of a job has these bytes. */
static inline bool rig_bytes(struct store *store, uint64_t number, bool input, const void *bytes,
                             size_t size) {
    struct store_content content;
    const struct job_id id = rig_id(number);
    if (store->engine->open(store, &id, input, &content) != KILN_OK || content.size != size) {
        return false;
    }
    if (content.fd < 0) {
        return memcmp(content.data, bytes, size) == 0;
    }
    char *read_back = malloc(size + 1);
    bool same = pread(content.fd, read_back, size + 1, 0) == (ssize_t)size &&
                memcmp(read_back, bytes, size) == 0;
    free(read_back);
    close(content.fd);
    return same;
}

#endif
