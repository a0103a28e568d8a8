/*
 * test_store_model.c: random changes to an engine and to a model of a few lines, which is asked
 * after each what the engine should have said. Groups are committed or abandoned, stores closed and
 * opened.
 */
#include "tests/unit/store_rig.h"

#define JOBS   40
#define OWNERS 3
#define STEPS  1500

static const char *const owners[OWNERS] = {"alice", "bob", "carol"};

struct model_job {
    bool there, input, result, cancel;
    int owner, key; /* key: -1 none */
    int64_t state, attempt, losses, revision, boot;
    unsigned bytes; /* of the result, its content too */
};

struct model {
    struct model_job jobs[JOBS + 1];
    int keys[OWNERS][4]; /* the job that a key names; 0 none */
    int64_t events, boot;
};

/* Sizes on both sides of what lies in the database. */
static const size_t sizes[4] = {0, 10, STORE_SMALL, STORE_SMALL + 1};
static uint8_t content[4][STORE_SMALL + 1];

static enum kiln_status model_accept(struct model *model, int number, int owner, int key,
                                     bool input, int *id) {
    struct model_job *job = &model->jobs[number];
    *id = number;
    if (key >= 0 && model->keys[owner][key] != 0) {
        *id = model->keys[owner][key];
        return KILN_OK;
    }
    if (job->there) {
        return job->owner == owner ? KILN_OK : KILN_INVALID;
    }
    *job = (struct model_job){
        .there = true, .owner = owner, .key = key, .input = input, .attempt = 1, .revision = 1};
    if (key >= 0) {
        model->keys[owner][key] = number;
    }
    model->events++;
    return KILN_OK;
}

static void model_end(struct model *model, struct model_job *job, int64_t state) {
    job->state = state;
    job->cancel = job->input = false;
    job->revision++;
    model->events++;
}

static enum kiln_status model_finish(struct model *model, struct model_job *job,
                                     const struct store_change *change) {
    if (job->state == change->state && job->attempt == change->attempt) {
        return KILN_OK;
    }
    bool may = job->state == STORE_RUNNING ||
               (job->state == STORE_QUEUED && change->state != STORE_SUCCEEDED);
    if (!may || job->attempt != change->attempt) {
        return KILN_PRECONDITION;
    }
    model_end(model, job, change->state);
    job->result = change->state == STORE_SUCCEEDED;
    job->bytes = (unsigned)change->result.size;
    return KILN_OK;
}

static enum kiln_status model_retry(struct model *model, struct model_job *job,
                                    const struct store_change *change) {
    if ((job->state == STORE_QUEUED && job->attempt == change->attempt + 1) ||
        (job->state == STORE_CANCELLED && job->attempt == change->attempt)) {
        return KILN_OK;
    }
    if (job->state != STORE_RUNNING || job->attempt != change->attempt) {
        return KILN_PRECONDITION;
    }
    if (job->cancel) {
        model_end(model, job, STORE_CANCELLED);
        return KILN_OK;
    }
    job->state = STORE_QUEUED;
    job->attempt++;
    job->losses += change->losses;
    job->revision++;
    model->events++;
    return KILN_OK;
}

static enum kiln_status model_change(struct model *model, int number,
                                     const struct store_change *change) {
    struct model_job *job = &model->jobs[number];
    if (!job->there) {
        return KILN_NOT_FOUND;
    }
    switch (change->verb) {
    case STORE_START:
        if (job->state == STORE_RUNNING && job->attempt == change->attempt &&
            job->boot == model->boot) {
            return KILN_OK;
        }
        if (job->state != STORE_QUEUED || job->attempt != change->attempt) {
            return KILN_PRECONDITION;
        }
        job->state = STORE_RUNNING;
        job->boot = model->boot;
        job->revision++;
        model->events++;
        return KILN_OK;
    case STORE_FINISH:
        return model_finish(model, job, change);
    case STORE_RETRY:
        return model_retry(model, job, change);
    case STORE_CANCEL:
        if (job->state == STORE_CANCELLED || job->cancel) {
            return KILN_OK;
        }
        if (job->state == STORE_QUEUED) {
            model_end(model, job, STORE_CANCELLED);
            return KILN_OK;
        }
        if (job->state != STORE_RUNNING) {
            return KILN_PRECONDITION;
        }
        job->cancel = true;
        job->revision++;
        model->events++;
        return KILN_OK;
    case STORE_FORGET:
        if (job->state < STORE_SUCCEEDED) {
            return KILN_PRECONDITION;
        }
        job->revision += job->result;
        job->result = false;
        return KILN_OK;
    default:
        return job->state == STORE_SUCCEEDED ? KILN_OK : KILN_PRECONDITION;
    }
}

/* Another daemon. */
static void model_boot(struct model *model, int64_t boot) {
    model->boot = boot;
    for (int i = 1; i <= JOBS; i++) {
        struct model_job *job = &model->jobs[i];
        if (job->state == STORE_RUNNING && job->boot != boot) {
            const struct store_change retry = {.attempt = job->attempt};
            model_retry(model, job, &retry);
        }
    }
}

/* ---- one step on both sides ---- */

static void step_accept(struct store *store, struct model *model, uint64_t *seed) {
    int number = 1 + (int)rig_below(seed, JOBS), owner = (int)rig_below(seed, OWNERS), id;
    int key = rig_below(seed, 3) == 0 ? (int)rig_below(seed, 4) : -1;
    size_t size = rig_below(seed, 4);
    char name[8];
    struct store_job job = rig_job((uint64_t)number);
    struct store_accepted accepted;
    const struct store_bytes input = {content[size], sizes[size]};
    snprintf(name, sizeof name, "key%d", key);
    const struct store_accept accept = {.jobs = &job,
                                        .inputs = &input,
                                        .count = 1,
                                        .owner = owners[owner],
                                        .key = key >= 0 ? name : ""};
    enum kiln_status wanted = model_accept(model, number, owner, key, sizes[size] > 0, &id);
    enum kiln_status got = store->engine->accept(store, &accept, &accepted);
    assert_int_equal(got, wanted);
    if (got == KILN_OK) {
        const struct job_id expected = rig_id((uint64_t)id);
        assert_memory_equal(&accepted.id, &expected, sizeof expected);
    }
}

static void step_change(struct store *store, struct model *model, uint64_t *seed) {
    int number = 1 + (int)rig_below(seed, JOBS);
    const struct model_job *job = &model->jobs[number];
    /* mostly what is about right */
    struct store_change change = rig_verb((uint64_t)number, (enum store_verb)rig_below(seed, 6),
                                          job->attempt + (rig_below(seed, 8) == 0));
    size_t size = rig_below(seed, 4);
    struct store_changed changed;
    change.state = STORE_SUCCEEDED + (int64_t)rig_below(seed, 3);
    change.losses = (int64_t)rig_below(seed, 2);
    if (change.state == STORE_SUCCEEDED) {
        change.result = (struct store_bytes){content[size], sizes[size]};
    }
    enum kiln_status wanted = model_change(model, number, &change);
    enum kiln_status got = store->engine->change(store, &change, &changed);
    if (got != wanted) {
        fail_msg("verb %d in state %d: %d, not %d", change.verb, (int)job->state, got, wanted);
    }
    if (wanted == KILN_OK) {
        assert_true(changed.state == job->state && changed.revision == job->revision);
        assert_int_equal(changed.attempt, job->attempt);
    }
}

/* ---- the whole ---- */

static bool event_count(void *context, const struct store_event *event) {
    (void)event;
    return ++*(int64_t *)context > 0;
}

static void compare(struct store *store, const struct model *model) {
    int64_t events = 0, seen = -1;
    struct store_events_filter filter = {.limit = 1000};
    for (int i = 1; i <= JOBS; i++) {
        const struct model_job *job = &model->jobs[i];
        const struct job_id id = rig_id((uint64_t)i);
        struct store_job got;
        enum kiln_status status = store->engine->get(store, &id, &got);
        assert_int_equal(status, job->there ? KILN_OK : KILN_NOT_FOUND);
        if (!job->there) {
            continue;
        }
        assert_true(got.state == job->state && got.attempt == job->attempt &&
                    got.losses == job->losses && got.revision == job->revision &&
                    got.cancel == job->cancel && strcmp(got.owner, owners[job->owner]) == 0);
        assert_true(hash_empty(got.input) != job->input && hash_empty(got.result) != job->result);
        if (job->result) {
            int size = 0;
            while (sizes[size] != job->bytes) {
                size++;
            }
            assert_true(rig_bytes(store, (uint64_t)i, false, content[size], job->bytes));
        }
    }
    while (seen != events) { /* by pages; each seq is larger than the last, from 1 in this store */
        seen = events;
        store->engine->events(store, &filter, event_count, &events);
        filter.after = events;
    }
    assert_int_equal(events, model->events);
    assert_int_equal(store_check(store), 0);
}

static void run(uint64_t seed, bool files) {
    char folder[64] = "";
    static struct model model, before;
    struct store_options options = {.directory = folder, .boot = 1};
    memset(&model, 0, sizeof model);
    model.boot = 1;
    if (files) {
        rig_folder_make(folder);
    }
    struct store *store = rig_open(&options);
    for (int step = 0; step < STEPS;) {
        before = model;
        int count = 1 + (int)rig_below(&seed, 12);
        assert_int_equal(store->engine->begin(store, false), KILN_OK);
        for (int i = 0; i < count; i++, step++) {
            (rig_below(&seed, 3) == 0 ? step_accept : step_change)(store, &model, &seed);
        }
        if (rig_below(&seed, 8) == 0) {
            store->engine->abandon(store);
            model = before;
        } else {
            assert_int_equal(store->engine->commit(store), KILN_OK);
        }
        if (files && rig_below(&seed, 25) == 0) {
            store_close(store);
            options.boot += (int64_t)rig_below(&seed, 2);
            store = rig_open(&options);
            model_boot(&model, options.boot);
        }
        if (rig_below(&seed, 25) == 0) {
            compare(store, &model);
        }
    }
    compare(store, &model);
    store_close(store);
    if (files) {
        rig_folder_remove(folder);
    }
}

static void engine_and_model_agree_in_memory(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        run(seed, false);
    }
}

static void engine_and_model_agree_with_files(void **state) {
    (void)state;
    for (uint64_t seed = 101; seed <= 106; seed++) {
        run(seed, true);
    }
}

int main(void) {
    for (int i = 0; i < 4; i++) {
        memset(content[i], 'a' + i, sizeof content[i]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(engine_and_model_agree_in_memory),
        cmocka_unit_test(engine_and_model_agree_with_files),
    };
    return cmocka_run_group_tests_name("store_model", tests, NULL, NULL);
}
