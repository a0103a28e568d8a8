/*
 * test_store.c: the contract of store.h, case by case, for every engine; and what only the one with
 * files has: starting again, migration, directories that it refuses.
 */
#include "tests/unit/store_rig.h"

#include "compute/store/files.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int64_t now_ms = 1000000;

static int64_t now(void) {
    return now_ms;
}

struct rig {
    char folder[64]; /* "" : in memory */
    struct store *store;
    struct store_options options;
};

static void rig_reopen(struct rig *rig) {
    store_close(rig->store);
    rig->store = rig_open(&rig->options);
}

static char large[100000];

/* ---- cases ---- */

static void a_job_goes_its_way(struct rig *rig) {
    struct store *store = rig->store;
    struct store_job job;
    const struct job_id id = rig_id(1);
    assert_int_equal(rig_submit(store, 1, "alice", "input", 5), KILN_OK);
    assert_int_equal(store->engine->get(store, &id, &job), KILN_OK);
    assert_string_equal(job.owner, "alice");
    assert_string_equal(job.params, "{\"width\":16}");
    assert_true(job.state == STORE_QUEUED && job.attempt == 1 && job.revision == 1);
    assert_true(job.created == now_ms && job.input_bytes == 5 && job.reserved == 1000);
    assert_true(rig_bytes(store, 1, true, "input", 5));
    now_ms += 10;
    assert_int_equal(rig_do(store, 1, STORE_START, 1), KILN_OK);
    assert_int_equal(rig_finish(store, 1, 1, STORE_SUCCEEDED, "result", 6), KILN_OK);
    assert_int_equal(store->engine->get(store, &id, &job), KILN_OK);
    assert_true(job.state == STORE_SUCCEEDED && job.bytes == 6 && job.reserved == 0);
    assert_true(job.started == now_ms && job.finished == now_ms && job.revision == 3);
    assert_true(job.discard == now_ms + 3600000 && hash_empty(job.input));
    assert_string_equal(job.node, "cpu:0");
    assert_true(rig_bytes(store, 1, false, "result", 6));
    struct store_content content;
    assert_int_equal(store->engine->open(store, &id, true, &content), KILN_GONE);
}

static void states_are_left_as_the_contract_says(struct rig *rig) {
    struct store *store = rig->store;
    assert_int_equal(rig_do(store, 1, STORE_START, 1), KILN_NOT_FOUND);
    assert_int_equal(rig_submit(store, 1, "alice", NULL, 0), KILN_OK);
    /* queued */
    assert_int_equal(rig_finish(store, 1, 1, STORE_SUCCEEDED, "x", 1), KILN_PRECONDITION);
    assert_int_equal(rig_do(store, 1, STORE_RETRY, 1), KILN_PRECONDITION);
    assert_int_equal(rig_do(store, 1, STORE_FORGET, 1), KILN_PRECONDITION);
    assert_int_equal(rig_do(store, 1, STORE_FETCHED, 1), KILN_PRECONDITION);
    assert_int_equal(rig_do(store, 1, STORE_START, 2), KILN_PRECONDITION);
    assert_int_equal(rig_finish(store, 1, 1, STORE_RUNNING, NULL, 0), KILN_INVALID);
    /* running */
    assert_int_equal(rig_do(store, 1, STORE_START, 1), KILN_OK);
    assert_int_equal(rig_finish(store, 1, 2, STORE_FAILED, NULL, 0), KILN_PRECONDITION);
    assert_int_equal(rig_finish(store, 1, 1, STORE_FAILED, NULL, 0), KILN_OK);
    /* terminal */
    for (enum store_verb verb = STORE_START; verb <= STORE_CANCEL; verb++) {
        struct store_change change = rig_verb(1, verb, 1);
        struct store_changed changed;
        change.state = STORE_SUCCEEDED;
        assert_int_equal(rig_change(store, &change, &changed), KILN_PRECONDITION);
        assert_int_equal(changed.state, STORE_FAILED);
    }
    assert_int_equal(rig_state(store, 1), STORE_FAILED);
}

/* What is made twice happens once. */
static void changes_can_be_made_twice(struct rig *rig) {
    struct store *store = rig->store;
    struct store_changed first, second;
    struct store_stats before, after;
    assert_int_equal(rig_submit(store, 1, "alice", "abc", 3), KILN_OK);
    assert_int_equal(rig_submit(store, 1, "alice", "abc", 3), KILN_OK);
    assert_int_equal(rig_submit(store, 1, "bob", "abc", 3), KILN_INVALID);
    static const enum store_verb verbs[] = {STORE_START, STORE_RETRY, STORE_START, STORE_CANCEL,
                                            STORE_FINISH};
    static const int64_t attempts[] = {1, 1, 2, 2, 2};
    for (size_t i = 0; i < 5; i++) {
        struct store_change change = rig_verb(1, verbs[i], attempts[i]);
        change.state = STORE_SUCCEEDED;
        change.result = (struct store_bytes){"r", 1};
        assert_int_equal(rig_change(store, &change, &first), KILN_OK);
        assert_int_equal(store->engine->stats(store, &before), KILN_OK);
        assert_int_equal(rig_change(store, &change, &second), KILN_OK);
        assert_int_equal(store->engine->stats(store, &after), KILN_OK);
        assert_true(!first.repeated && second.repeated && second.event == 0 && first.event > 0);
        assert_true(first.state == second.state && first.revision == second.revision);
        assert_memory_equal(&before, &after, sizeof before);
    }
    assert_int_equal(rig_do(store, 1, STORE_FORGET, 0), KILN_OK);
    assert_int_equal(rig_do(store, 1, STORE_FORGET, 0), KILN_OK);
    assert_int_equal(store->engine->stats(store, &after), KILN_OK);
    assert_int_equal(after.held, 0);
}

static void a_lost_run_is_queued_again_and_a_cancelled_one_is_not(struct rig *rig) {
    struct store *store = rig->store;
    struct store_job job;
    const struct job_id id = rig_id(1);
    struct store_change retry = rig_verb(1, STORE_RETRY, 1);
    struct store_changed changed;
    rig_submit(store, 1, "alice", NULL, 0);
    rig_do(store, 1, STORE_START, 1);
    retry.losses = 1;
    assert_int_equal(rig_change(store, &retry, &changed), KILN_OK);
    assert_int_equal(store->engine->get(store, &id, &job), KILN_OK);
    assert_true(job.state == STORE_QUEUED && job.attempt == 2 && job.losses == 1);
    assert_int_equal(rig_do(store, 1, STORE_START, 2), KILN_OK);
    assert_int_equal(rig_do(store, 1, STORE_CANCEL, 0), KILN_OK);
    assert_int_equal(rig_state(store, 1), STORE_RUNNING);
    assert_int_equal(rig_do(store, 1, STORE_RETRY, 2), KILN_OK);
    assert_int_equal(rig_state(store, 1), STORE_CANCELLED);
    rig_submit(store, 2, "alice", NULL, 0);
    assert_int_equal(rig_do(store, 2, STORE_CANCEL, 0), KILN_OK);
    assert_int_equal(rig_state(store, 2), STORE_CANCELLED);
}

static void a_key_names_one_request(struct rig *rig) {
    struct store *store = rig->store;
    struct store_job job = rig_job(1);
    struct store_accept accept = {.jobs = &job, .count = 1, .owner = "alice", .key = "k-1"};
    struct store_accepted accepted;
    struct store_stats stats;
    accept.fingerprint[0] = 7;
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_OK);
    assert_false(accepted.repeated);
    job = rig_job(2);
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_OK);
    assert_true(accepted.repeated);
    assert_memory_equal(&accepted.id, &(struct job_id[]){rig_id(1)}, JOB_ID_SIZE);
    accept.fingerprint[0] = 8;
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_MISMATCH);
    accept.owner = "bob"; /* keys are an owner's own */
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_OK);
    assert_false(accepted.repeated);
    store->engine->stats(store, &stats);
    assert_int_equal(stats.jobs[STORE_QUEUED], 2);
    /* twice in one transaction */
    job = rig_job(3);
    accept.key = "k-2";
    assert_int_equal(store->engine->begin(store, false), KILN_OK);
    assert_int_equal(store->engine->accept(store, &accept, &accepted), KILN_OK);
    job = rig_job(4);
    assert_int_equal(store->engine->accept(store, &accept, &accepted), KILN_OK);
    assert_true(accepted.repeated);
    assert_int_equal(store->engine->commit(store), KILN_OK);
}

static bool job_count(void *context, const struct store_job *job) {
    (void)job;
    return ++*(int *)context > 0;
}

static void a_batch_is_accepted_whole_or_not_at_all(struct rig *rig) {
    struct store *store = rig->store;
    static struct store_job jobs[300];
    static struct store_bytes inputs[300];
    struct store_accept accept = {
        .jobs = jobs, .inputs = inputs, .count = 300, .owner = "alice", .key = "batch"};
    struct store_accepted accepted;
    struct store_page page;
    struct store_stats stats;
    int count = 0;
    for (uint64_t i = 0; i < 300; i++) {
        jobs[i] = rig_job(i + 1);
        jobs[i].line = (int64_t)i;
        inputs[i] = (struct store_bytes){large, i % 3 == 0 ? 40000 : i};
    }
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_INVALID); /* without its id */
    accept.batch = rig_id(999);
    jobs[299].id = jobs[0].id;
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_INVALID);
    store->engine->stats(store, &stats);
    assert_true(stats.jobs[STORE_QUEUED] == 0 && stats.held == 0 && stats.reserved == 0);
    jobs[299].id = rig_id(300);
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_OK);
    assert_memory_equal(&accepted.id, &accept.batch, JOB_ID_SIZE);
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_OK);
    assert_true(accepted.repeated);
    const struct store_filter filter = {.batch = accept.batch, .limit = 1000};
    assert_int_equal(store->engine->list(store, &filter, job_count, &count, &page), KILN_OK);
    assert_int_equal(count, 300);
    assert_false(page.more);
}

struct seen {
    uint64_t numbers[1000];
    int count;
};

static bool job_see(void *context, const struct store_job *job) {
    struct seen *seen = context;
    seen->numbers[seen->count] = 0;
    for (int i = 8; i < 16; i++) {
        seen->numbers[seen->count] = seen->numbers[seen->count] << 8 | job->id.bytes[i];
    }
    seen->count++;
    return true;
}

static void pages_lose_nothing_and_repeat_nothing(struct rig *rig) {
    struct store *store = rig->store;
    for (uint64_t i = 1; i <= 90; i++) {
        struct store_job job = rig_job(i);
        struct store_accepted accepted;
        job.type = i % 3 == 0 ? "jacobi" : "mandelbrot";
        job.label = i % 5 == 0 ? "five" : "";
        const struct store_accept accept = {
            .jobs = &job, .count = 1, .owner = i % 2 == 0 ? "alice" : "bob", .key = ""};
        assert_int_equal(rig_accept(store, &accept, &accepted), KILN_OK);
        if (i % 4 == 0) {
            rig_do(store, i, STORE_CANCEL, 0);
        }
    }
    for (int which = 0; which < 64; which++) {
        struct store_filter filter = {.limit = 7,
                                      .owner = which & 1 ? "alice" : NULL,
                                      .type = which & 2 ? "jacobi" : NULL,
                                      .label = which & 4 ? "five" : NULL,
                                      .states = which & 8    ? 1u << STORE_QUEUED
                                                : which & 32 ? 1u << STORE_CANCELLED
                                                             : 0,
                                      .oldest_first = (which & 16) != 0};
        struct store_page page = {.more = true};
        struct seen seen = {.count = 0};
        int wanted = 0;
        for (int i = 1; i <= 90; i++) {
            bool queued = i % 4 != 0;
            wanted += (!(which & 1) || i % 2 == 0) && (!(which & 2) || i % 3 == 0) &&
                      (!(which & 4) || i % 5 == 0) &&
                      (which & 8 ? queued : !(which & 32) || !queued);
        }
        while (page.more) {
            assert_int_equal(store->engine->list(store, &filter, job_see, &seen, &page), KILN_OK);
            filter.after = page.next;
        }
        assert_int_equal(seen.count, wanted);
        for (int i = 1; i < seen.count; i++) {
            assert_true((seen.numbers[i] > seen.numbers[i - 1]) == filter.oldest_first);
            assert_true(seen.numbers[i] != seen.numbers[i - 1]);
        }
    }
}

struct happened {
    int64_t kinds[32], last;
    int count;
};

static bool event_see(void *context, const struct store_event *event) {
    struct happened *happened = context;
    assert_true(event->seq > happened->last);
    happened->last = event->seq;
    happened->kinds[happened->count++] = event->kind;
    return true;
}

static void events_tell_every_change_once_and_in_order(struct rig *rig) {
    struct store *store = rig->store;
    static const int64_t wanted[] = {STORE_QUEUED,  STORE_RUNNING,          STORE_EVENT_RETRYING,
                                     STORE_RUNNING, STORE_EVENT_CANCELLING, STORE_SUCCEEDED};
    struct happened all = {.count = 0}, later = {.count = 0}, own = {.count = 0};
    rig_submit(store, 1, "alice", NULL, 0);
    rig_submit(store, 2, "bob", NULL, 0);
    rig_do(store, 1, STORE_START, 1);
    rig_do(store, 1, STORE_RETRY, 1);
    rig_do(store, 2, STORE_CANCEL, 0);
    rig_do(store, 1, STORE_START, 2);
    rig_do(store, 1, STORE_CANCEL, 0);
    rig_finish(store, 1, 2, STORE_SUCCEEDED, "r", 1);
    struct store_events_filter filter = {.job = rig_id(1), .limit = 100};
    assert_int_equal(store->engine->events(store, &filter, event_see, &all), KILN_OK);
    assert_int_equal(all.count, 6);
    assert_memory_equal(all.kinds, wanted, sizeof wanted);
    filter = (struct store_events_filter){.owner = "bob", .limit = 100};
    assert_int_equal(store->engine->events(store, &filter, event_see, &own), KILN_OK);
    assert_true(own.count == 2 && own.kinds[1] == STORE_CANCELLED);
    filter = (struct store_events_filter){.after = own.last, .limit = 2};
    assert_int_equal(store->engine->events(store, &filter, event_see, &later), KILN_OK);
    assert_true(later.count == 2 && later.kinds[0] == STORE_RUNNING);
}

/* ---- space ---- */

static void room_is_kept_from_acceptance_to_the_end(struct rig *rig) {
    struct store_stats stats;
    struct store_changed changed;
    rig->options.bytes = 10000;
    rig_reopen(rig);
    struct store *store = rig->store;
    for (uint64_t i = 1; i <= 9; i++) {
        assert_int_equal(rig_submit(store, i, "alice", "0123456789", 10), KILN_OK);
    }
    store->engine->stats(store, &stats);
    assert_true(stats.reserved == 9000 && stats.held == 10); /* one input nine times */
    assert_int_equal(rig_submit(store, 10, "bob", large, 500), KILN_STORE_FULL);
    for (uint64_t i = 1; i <= 9; i++) {
        rig_do(store, i, STORE_START, 1);
        memset(large, (int)i, 1000);
        assert_int_equal(rig_finish(store, i, 1, STORE_SUCCEEDED, large, 1000), KILN_OK);
    }
    store->engine->stats(store, &stats);
    assert_true(stats.reserved == 0 && stats.held == 9000);
    /* room for the next: what was fetched goes first, the oldest of it before others */
    now_ms += 1;
    rig_do(store, 5, STORE_FETCHED, 0);
    now_ms += 1;
    rig_do(store, 3, STORE_FETCHED, 0);
    assert_int_equal(rig_submit(store, 11, "bob", large, 500), KILN_OK);
    const struct store_change again = rig_verb(5, STORE_FORGET, 0);
    assert_int_equal(rig_change(store, &again, &changed), KILN_OK);
    assert_true(changed.repeated); /* it was let go */
    memset(large, 3, 1000);
    assert_true(rig_bytes(store, 3, false, large, 1000));
    struct store_content content;
    const struct job_id five = rig_id(5);
    assert_int_equal(store->engine->open(store, &five, false, &content), KILN_GONE);
    /* what can never fit throws nobody out */
    struct store_job job = rig_job(12);
    job.reserved = 1000000;
    const struct store_accept accept = {.jobs = &job, .count = 1, .owner = "bob", .key = ""};
    struct store_accepted accepted;
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_STORE_FULL);
    assert_true(rig_bytes(store, 3, false, large, 1000));
}

static void owners_have_bounds_of_their_own(struct rig *rig) {
    rig->options.owner_jobs = 2;
    rig->options.jobs = 3;
    rig_reopen(rig);
    struct store *store = rig->store;
    assert_int_equal(rig_submit(store, 1, "alice", NULL, 0), KILN_OK);
    assert_int_equal(rig_submit(store, 2, "alice", NULL, 0), KILN_OK);
    assert_int_equal(rig_submit(store, 3, "alice", NULL, 0), KILN_QUOTA);
    assert_int_equal(rig_submit(store, 3, "bob", NULL, 0), KILN_OK);
    assert_int_equal(rig_submit(store, 4, "carol", NULL, 0), KILN_BUSY);
    assert_int_equal(rig_do(store, 1, STORE_CANCEL, 0), KILN_OK);
    assert_int_equal(rig_submit(store, 4, "alice", NULL, 0), KILN_OK);
    rig->options.owner_jobs = rig->options.jobs = 0;
    rig->options.owner_bytes = 3000;
    rig_reopen(rig);
    store = rig->store;
    assert_int_equal(rig_submit(store, 5, "dave", large, 2500), KILN_QUOTA);
    assert_int_equal(rig_submit(store, 5, "dave", large, 1500), KILN_OK);
    assert_int_equal(rig_submit(store, 6, "dave", NULL, 0), KILN_QUOTA);
    assert_int_equal(rig_do(store, 5, STORE_CANCEL, 0), KILN_OK);
    assert_int_equal(rig_submit(store, 6, "dave", NULL, 0), KILN_OK);
}

static void large_bytes_come_back_and_equal_ones_are_kept_once(struct rig *rig) {
    struct store *store = rig->store;
    struct store_stats stats;
    memset(large, 7, sizeof large);
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(rig_submit(store, i, "alice", large, sizeof large), KILN_OK);
        rig_do(store, i, STORE_START, 1);
    }
    store->engine->stats(store, &stats);
    assert_int_equal(stats.held, sizeof large);
    assert_true(rig_bytes(store, 2, true, large, sizeof large));
    assert_int_equal(rig_finish(store, 1, 1, STORE_SUCCEEDED, large, sizeof large), KILN_OK);
    assert_int_equal(rig_finish(store, 2, 1, STORE_SUCCEEDED, large, 0), KILN_OK);
    assert_int_equal(rig_finish(store, 3, 1, STORE_FAILED, NULL, 0), KILN_OK);
    assert_true(rig_bytes(store, 1, false, large, sizeof large));
    assert_true(rig_bytes(store, 2, false, "", 0));
    /* dropped and kept again in one transaction */
    struct store_change forget = rig_verb(1, STORE_FORGET, 0);
    struct store_changed changed;
    struct store_job job = rig_job(4);
    const struct store_bytes input = {large, sizeof large};
    const struct store_accept accept = {
        .jobs = &job, .inputs = &input, .count = 1, .owner = "bob", .key = ""};
    struct store_accepted accepted;
    assert_int_equal(store->engine->begin(store, false), KILN_OK);
    assert_int_equal(store->engine->change(store, &forget, &changed), KILN_OK);
    assert_int_equal(store->engine->accept(store, &accept, &accepted), KILN_OK);
    assert_int_equal(store->engine->commit(store), KILN_OK);
    assert_true(rig_bytes(store, 4, true, large, sizeof large));
    /* and kept, but undone */
    assert_int_equal(rig_do(store, 4, STORE_CANCEL, 0), KILN_OK);
    store->engine->stats(store, &stats);
    assert_int_equal(stats.held, 0);
    job = rig_job(5);
    assert_int_equal(store->engine->begin(store, false), KILN_OK);
    assert_int_equal(store->engine->accept(store, &accept, &accepted), KILN_OK);
    store->engine->abandon(store);
    store->engine->stats(store, &stats);
    assert_int_equal(stats.held, 0);
    assert_int_equal(rig_state(store, 5), -1);
}

/* ---- time ---- */

static void ticks(struct store *store) {
    bool more = true;
    while (more) {
        assert_int_equal(store->engine->tick(store, &more), KILN_OK);
    }
}

static void time_ends_what_it_should(struct rig *rig) {
    struct store *store = rig->store;
    struct store_job job = rig_job(1);
    struct store_accept accept = {.jobs = &job, .count = 1, .owner = "alice", .key = "k"};
    struct store_accepted accepted;
    struct store_content content;
    const struct job_id one = rig_id(1), two = rig_id(2);
    job.expires = now_ms + 100;
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_OK);
    rig_submit(store, 2, "alice", NULL, 0);
    rig_do(store, 2, STORE_START, 1);
    rig_finish(store, 2, 1, STORE_SUCCEEDED, "r", 1);
    ticks(store);
    assert_int_equal(rig_state(store, 1), STORE_QUEUED);
    now_ms += 100;
    ticks(store);
    assert_int_equal(rig_state(store, 1), STORE_EXPIRED);
    assert_true(rig_bytes(store, 2, false, "r", 1));
    now_ms += 3600000;
    ticks(store);
    assert_int_equal(store->engine->open(store, &two, false, &content), KILN_GONE);
    assert_int_equal(rig_state(store, 2), STORE_SUCCEEDED);
    now_ms += INT64_C(86400000); /* the record goes, its name stays known */
    ticks(store);
    assert_int_equal(store->engine->get(store, &one, &job), KILN_GONE);
    assert_string_equal(job.owner, "alice");
    assert_int_equal(job.state, STORE_EXPIRED);
    assert_int_equal(store->engine->open(store, &two, false, &content), KILN_GONE);
    job = rig_job(3); /* and its key is free */
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_OK);
    assert_false(accepted.repeated);
    now_ms += INT64_C(31) * 86400000;
    ticks(store);
    assert_int_equal(store->engine->get(store, &one, &job), KILN_NOT_FOUND);
}

static void time_does_not_go_back(struct rig *rig) {
    struct store_job job;
    const struct job_id two = rig_id(2);
    int64_t before = now_ms;
    rig_submit(rig->store, 1, "alice", NULL, 0);
    now_ms -= 500000;
    rig_submit(rig->store, 2, "alice", NULL, 0);
    assert_int_equal(rig->store->engine->get(rig->store, &two, &job), KILN_OK);
    assert_int_equal(job.created, before);
    now_ms = before;
}

/* ---- webhooks, calibration ---- */

static bool delivery_see(void *context, const struct store_delivery *delivery) {
    *(struct store_delivery *)context = *delivery;
    return true;
}

static void an_end_leaves_a_delivery(struct rig *rig) {
    struct store *store = rig->store;
    struct store_job job = rig_job(1);
    const struct store_accept accept = {.jobs = &job, .count = 1, .owner = "alice", .key = ""};
    struct store_accepted accepted;
    struct store_delivery due = {.seq = 0};
    job.hook = "https://a.example/hook";
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_OK);
    assert_int_equal(store->engine->deliveries(store, now_ms, 10, delivery_see, &due), KILN_OK);
    assert_int_equal(due.seq, 0);
    rig_do(store, 1, STORE_CANCEL, 0);
    assert_int_equal(store->engine->deliveries(store, now_ms, 10, delivery_see, &due), KILN_OK);
    assert_true(due.seq > 0 && due.tries == 0);
    due.tries = 1;
    due.status = 503;
    due.due = now_ms + 5000;
    for (int i = 0; i < 2; i++) { /* later, and then never */
        assert_int_equal(store->engine->begin(store, false), KILN_OK);
        assert_int_equal(store->engine->delivered(store, &due), KILN_OK);
        assert_int_equal(store->engine->commit(store), KILN_OK);
        struct store_delivery got = {.seq = 0};
        store->engine->deliveries(store, now_ms, 10, delivery_see, &got);
        assert_int_equal(got.seq, 0);
        store->engine->deliveries(store, now_ms + 5000, 10, delivery_see, &got);
        assert_int_equal(got.seq, i == 0 ? due.seq : 0);
        due.due = 0;
    }
}

static bool rate_see(void *context, const struct store_calibration *row) {
    assert_string_equal(row->variant, "fp32/5");
    *(double *)context = row->b;
    return true;
}

static void costs_are_remembered(struct rig *rig) {
    struct store_calibration row = {"mandelbrot", "fp32/5", "cpu:0", 0.001, 2e-9, 4};
    double b = 0;
    for (int i = 0; i < 2; i++) {
        row.b *= 2;
        assert_int_equal(rig->store->engine->begin(rig->store, false), KILN_OK);
        assert_int_equal(rig->store->engine->calibrate(rig->store, &row), KILN_OK);
        assert_int_equal(rig->store->engine->commit(rig->store), KILN_OK);
    }
    assert_int_equal(rig->store->engine->calibrations(rig->store, rate_see, &b), KILN_OK);
    assert_true(b == 8e-9);
}

/* What is too long, or no number, is refused and nothing else. */
static void nonsense_is_refused(struct rig *rig) {
    struct store *store = rig->store;
    static char text[STORE_PARAMS_MAX + 2];
    struct store_job job = rig_job(1);
    const struct store_accept accept = {.jobs = &job, .count = 1, .owner = "alice", .key = ""};
    struct store_accepted accepted;
    memset(text, 'x', STORE_PARAMS_MAX + 1);
    job.params = text;
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_INVALID);
    job = rig_job(1);
    job.reserved = INT64_MAX;
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_INVALID);
    job = rig_job(1);
    job.retain = INT64_MAX - 5; /* it could never end */
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_INVALID);
    job = rig_job(1);
    job.expires = -1;
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_INVALID);
    job = rig_job(1);
    job.id = (struct job_id){{0}};
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_INVALID);
    text[STORE_PARAMS_MAX] = '\0';
    job = rig_job(1);
    job.params = text;
    assert_int_equal(rig_accept(store, &accept, &accepted), KILN_OK);
}

static const struct {
    const char *name;
    void (*run)(struct rig *rig);
} cases[] = {
#define CASE(name)                                                                                 \
    { #name, name }
    CASE(a_job_goes_its_way),
    CASE(states_are_left_as_the_contract_says),
    CASE(changes_can_be_made_twice),
    CASE(a_lost_run_is_queued_again_and_a_cancelled_one_is_not),
    CASE(a_key_names_one_request),
    CASE(a_batch_is_accepted_whole_or_not_at_all),
    CASE(pages_lose_nothing_and_repeat_nothing),
    CASE(events_tell_every_change_once_and_in_order),
    CASE(room_is_kept_from_acceptance_to_the_end),
    CASE(owners_have_bounds_of_their_own),
    CASE(large_bytes_come_back_and_equal_ones_are_kept_once),
    CASE(time_ends_what_it_should),
    CASE(time_does_not_go_back),
    CASE(an_end_leaves_a_delivery),
    CASE(costs_are_remembered),
    CASE(nonsense_is_refused),
#undef CASE
};

static void every_case(bool files) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rig rig = {.options = {.boot = 1, .now = now}};
        print_message("  %s\n", cases[i].name);
        if (files) {
            rig_folder_make(rig.folder);
        }
        rig.options.directory = rig.folder;
        rig.store = rig_open(&rig.options);
        assert_int_equal(rig.store->engine->durable, files);
        cases[i].run(&rig);
        assert_int_equal(store_check(rig.store), 0);
        store_close(rig.store);
        if (files) {
            rig.options.inspect = true; /* once more from the disk */
            rig.store = rig_open(&rig.options);
            assert_int_equal(store_check(rig.store), 0);
            store_close(rig.store);
            rig_folder_remove(rig.folder);
        }
    }
}

static void every_case_in_memory(void **state) {
    (void)state;
    every_case(false);
}

static void every_case_with_files(void **state) {
    (void)state;
    every_case(true);
}

/* ---- files only ---- */

static void what_ran_is_queued_again_under_another_boot(void **state) {
    char folder[64];
    struct store_job job;
    const struct job_id two = rig_id(2);
    (void)state;
    rig_folder_make(folder);
    struct store_options options = {.directory = folder, .boot = 1};
    struct store *store = rig_open(&options);
    for (uint64_t i = 1; i <= 4; i++) {
        rig_submit(store, i, "alice", large, sizeof large);
        rig_do(store, i, STORE_START, 1);
    }
    rig_do(store, 3, STORE_CANCEL, 0);
    rig_finish(store, 4, 1, STORE_SUCCEEDED, large, sizeof large);
    store_close(store);
    store = rig_open(&options); /* the store alone was started again: its jobs go on */
    assert_int_equal(rig_state(store, 2), STORE_RUNNING);
    store_close(store);
    options.boot = 2;
    store = rig_open(&options);
    assert_int_equal(store->engine->get(store, &two, &job), KILN_OK);
    assert_true(job.state == STORE_QUEUED && job.attempt == 2 && job.losses == 0);
    assert_int_equal(rig_state(store, 3), STORE_CANCELLED);
    assert_int_equal(rig_state(store, 4), STORE_SUCCEEDED);
    assert_true(rig_bytes(store, 2, true, large, sizeof large));
    assert_int_equal(store_check(store), 0);
    store_close(store);
    rig_folder_remove(folder);
}

static void file_write(const char *folder, const char *name, const char *bytes) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fputs(bytes, file);
    fclose(file);
}

static bool file_there(const char *folder, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

static void files_of_nobody_are_swept_and_damage_is_found(void **state) {
    static const char nobody[] =
        "blobs/00000000000000000000000000000000000000000000000000000000000000ff";
    char folder[64], name[HASH_TEXT + 8] = "blobs/";
    struct store_job job;
    const struct job_id one = rig_id(1);
    (void)state;
    rig_folder_make(folder);
    const struct store_options options = {.directory = folder, .boot = 1};
    struct store *store = rig_open(&options);
    memset(large, 9, sizeof large);
    rig_submit(store, 1, "alice", large, sizeof large);
    store->engine->get(store, &one, &job);
    hash_print(job.input, name + 6);
    store_close(store);
    file_write(folder, nobody, "x");
    file_write(folder, "blobs/.tmp-7", "x");
    file_write(folder, "blobs/README", "x"); /* not ours to remove */
    store = rig_open(&options);
    ticks(store);
    assert_false(file_there(folder, nobody));
    assert_false(file_there(folder, "blobs/.tmp-7"));
    assert_true(file_there(folder, "blobs/README"));
    assert_true(file_there(folder, name));
    assert_int_equal(store_check(store), 0);
    file_write(folder, name, "something else");
    assert_int_equal(store_check(store), 1);
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
    assert_int_equal(store_check(store), 1);
    struct store_content content;
    assert_int_equal(store->engine->open(store, &one, true, &content), KILN_GONE);
    store_close(store);
    rig_folder_remove(folder);
}

/* Written back when it has grown, and whole once nothing happens. */
static void the_log_stays_short(void **state) {
    char folder[64], path[80];
    struct stat log;
    int64_t longest = 0;
    (void)state;
    rig_folder_make(folder);
    snprintf(path, sizeof path, "%s/store.db-wal", folder);
    const struct store_options options = {.directory = folder, .boot = 1};
    struct store *store = rig_open(&options);
    for (uint64_t i = 0; i < 60; i++) {
        assert_int_equal(store->engine->begin(store, false), KILN_OK);
        for (uint64_t k = 0; k < 50; k++) {
            struct store_job job = rig_job(i * 50 + k + 1);
            struct store_accepted accepted;
            memcpy(large, &job.id, sizeof job.id);
            const struct store_bytes input = {large, STORE_SMALL};
            const struct store_accept accept = {
                .jobs = &job, .inputs = &input, .count = 1, .owner = "alice", .key = ""};
            assert_int_equal(store->engine->accept(store, &accept, &accepted), KILN_OK);
        }
        assert_int_equal(store->engine->commit(store), KILN_OK);
        assert_int_equal(stat(path, &log), 0);
        longest = log.st_size > longest ? log.st_size : longest;
    }
    print_message("  98 MB written, the log had %.1f MB\n", (double)longest * 1e-6);
    assert_true(longest > 8000000 && longest < 40000000);
    ticks(store);
    ticks(store);
    assert_int_equal(stat(path, &log), 0);
    assert_int_equal(log.st_size, 0);
    store_close(store);
    rig_folder_remove(folder);
}

static void expect_refused(const char *folder, const char *words) {
    const struct store_options options = {.directory = folder, .boot = 1};
    struct store *store = NULL;
    char why[320];
    assert_int_equal(store_open(&options, &store, why, sizeof why), KILN_STORE);
    if (strstr(why, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", why, words);
    }
}

static void other_directories_are_refused(void **state) {
    char folder[64];
    int status;
    (void)state;
    rig_folder_make(folder);
    chmod(folder, 0777);
    expect_refused(folder, "other users");
    chmod(folder, 0700);
    file_write(folder, "store.db", "this is no database, however long one looks at it\n");
    expect_refused(folder, "not a database");
    char path[80];
    snprintf(path, sizeof path, "%s/store.db", folder);
    unlink(path);
    expect_refused("/proc/self/status", "");
    expect_refused("/nowhere/at/all", "cannot be made");
    const struct store_options options = {.directory = folder, .boot = 1};
    struct store *store = rig_open(&options);
    pid_t child = fork(); /* locks are a process's own */
    if (child == 0) {
        struct store *second = NULL;
        char why[320];
        enum kiln_status got = store_open(&options, &second, why, sizeof why);
        _exit(got == KILN_STORE && strstr(why, "in use") != NULL ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    store_close(store);
    rig_folder_remove(folder);
    assert_false(files_local(0x6969));     /* NFS */
    assert_false(files_local(0xfe534d42)); /* SMB 2 */
    assert_true(files_local(0xef53));      /* ext4 */
    assert_true(files_local(0x58465342));  /* XFS */
    assert_true(files_local(0x01021994));  /* tmpfs */
}

/* ---- migration ---- */

static void rig_sql(const char *path, const char *sql) {
    sqlite3 *db = NULL;
    char *why = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) {
        fail_msg("%s", why);
    }
    sqlite3_close(db);
}

static void sql_file_run(const char *folder, const char *sql) {
    char command[1024];
    snprintf(command, sizeof command, "%s/unit/%s", KILN_TESTS, sql);
    FILE *file = fopen(command, "re");
    assert_non_null(file);
    static char text[65536];
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    snprintf(command, sizeof command, "%s/store.db", folder);
    rig_sql(command, text);
}

static void a_file_of_version_1_is_brought_forward(void **state) {
    char folder[64];
    struct store_job job;
    struct store_content content;
    (void)state;
    rig_folder_make(folder);
    sql_file_run(folder, "store_v1.sql");
    const struct store_options look = {.directory = folder, .inspect = true};
    struct store *store = NULL;
    char why[320];
    assert_int_equal(store_open(&look, &store, why, sizeof why), KILN_STORE);
    const struct store_options options = {.directory = folder, .boot = 9, .now = now};
    now_ms = INT64_C(1700000000000);
    store = rig_open(&options);
    assert_true(file_there(folder, "store.db.v1"));
    const struct job_id one = rig_id(1), two = rig_id(2), three = rig_id(3);
    assert_int_equal(store->engine->get(store, &one, &job), KILN_OK);
    assert_true(job.state == STORE_QUEUED && job.reserved == 1000);
    assert_string_equal(job.owner, "alice");
    assert_string_equal(job.label, "");
    assert_true(rig_bytes(store, 1, true, "input", 5));
    assert_int_equal(store->engine->get(store, &two, &job), KILN_OK);
    assert_true(job.state == STORE_QUEUED && job.attempt == 2); /* it ran under another boot */
    assert_int_equal(store->engine->get(store, &three, &job), KILN_OK);
    assert_int_equal(job.state, STORE_SUCCEEDED);
    assert_int_equal(store->engine->open(store, &three, false, &content), KILN_OK);
    assert_true(rig_bytes(store, 3, false, "result", 6));
    assert_int_equal(store_check(store), 0);
    assert_int_equal(rig_submit(store, 4, "alice", NULL, 0), KILN_OK);
    store_close(store);
    rig_folder_remove(folder);
}

static void a_newer_file_is_left_alone(void **state) {
    char folder[64], path[80];
    (void)state;
    rig_folder_make(folder);
    snprintf(path, sizeof path, "%s/store.db", folder);
    rig_sql(path,
            "PRAGMA application_id = 1802071150; PRAGMA user_version = 99; CREATE TABLE x(y)");
    expect_refused(folder, "start the newer one");
    unlink(path);
    rig_sql(path, "CREATE TABLE x(y)");
    expect_refused(folder, "another program");
    rig_folder_remove(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_in_memory),
        cmocka_unit_test(every_case_with_files),
        cmocka_unit_test(what_ran_is_queued_again_under_another_boot),
        cmocka_unit_test(files_of_nobody_are_swept_and_damage_is_found),
        cmocka_unit_test(the_log_stays_short),
        cmocka_unit_test(other_directories_are_refused),
        cmocka_unit_test(a_file_of_version_1_is_brought_forward),
        cmocka_unit_test(a_newer_file_is_left_alone),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
