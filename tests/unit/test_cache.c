/*
 * test_cache.c: what is kept and what is dropped: room, references, scans, ages, threads.
 */
#include "server/cache/cache.h"
#include "server/core/offload.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOM     (UINT64_C(1) << 20)
#define SIZE     8000u /* two pages each */
#define PAGES    (2 * ARENA_PAGE)
#define FITTING  (ROOM / PAGES)
#define NO_LIMIT UINT64_MAX

static struct arena *arena;
static struct cache *cache;

static int setup(void **state) {
    (void)state;
    return arena_create(64 << 20, &arena) == KILN_OK && cache_create(ROOM, &cache) == KILN_OK ? 0
                                                                                              : -1;
}

/* Everything that was taken came back. */
static int teardown(void **state) {
    struct arena_stats stats;
    (void)state;
    cache_destroy(cache);
    arena_stats(arena, &stats);
    arena_destroy(arena);
    return stats.used == 0 ? 0 : -1;
}

/* Keys spread as hashes do. */
static struct digest key_of(uint64_t number) {
    uint64_t mixed = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (struct digest){.high = mixed ^ mixed >> 29,
                           .low = mixed * UINT64_C(0xbf58476d1ce4e5b9)};
}

/* The job that has made a result tells which one it is. */
static struct job_id id_of(uint64_t number) {
    struct job_id id = {{0}};
    memcpy(id.bytes, &number, sizeof number);
    return id;
}

static bool is_of(const struct result *result, uint64_t number) {
    const struct job_id id = id_of(number);
    return job_id_equal(&result->job, &id);
}

static struct result *result_of(uint64_t number, uint64_t size) {
    struct block block;
    assert_int_equal(arena_take(arena, size, &block), KILN_OK);
    memset(arena_at(arena, block.offset), (int)(number * 7 + 1), (size_t)size);
    struct result *result = result_create(arena, &block, size);
    assert_non_null(result);
    result->made_ns = clock_ns();
    result->job = id_of(number);
    return result;
}

static bool put_sized(uint64_t number, uint64_t size) {
    struct digest key = key_of(number);
    struct result *result = result_of(number, size);
    bool stored = cache_add(cache, &key, result);
    if (stored) {
        cache_settle(cache, &key, result);
    }
    result_drop(result);
    return stored;
}

static bool put(uint64_t number) {
    return put_sized(number, SIZE);
}

static struct result *get(uint64_t number) {
    struct digest key = key_of(number);
    return cache_find(cache, &key, clock_ns(), NO_LIMIT);
}

/* True if it is kept, with the right bytes. */
static bool kept(uint64_t number) {
    struct result *result = get(number);
    if (result == NULL) {
        return false;
    }
    const unsigned char *bytes = result_bytes(result);
    assert_true(is_of(result, number));
    for (uint64_t i = 0; i < result->size; i += 97) {
        assert_int_equal(bytes[i], (unsigned char)(number * 7 + 1));
    }
    result_drop(result);
    return true;
}

static struct cache_stats stats_now(void) {
    struct cache_stats stats;
    cache_stats(cache, &stats);
    return stats;
}

static void keeps_and_finds(void **state) {
    (void)state;
    assert_null(get(1));
    assert_true(put(1));
    assert_true(kept(1));
    assert_false(kept(2));
    struct cache_stats stats = stats_now();
    assert_int_equal(stats.entries, 1);
    assert_int_equal(stats.used, PAGES);
    struct arena_stats jobs;
    arena_stats(arena, &jobs);
    assert_int_equal(jobs.used, 0); /* no block of a job is held */
}

/* Before it is settled a result is found too, in the job's block. */
static void finds_before_settling(void **state) {
    (void)state;
    struct digest key = key_of(5);
    struct result *result = result_of(5, SIZE);
    assert_true(cache_add(cache, &key, result));
    struct result *found = get(5);
    assert_ptr_equal(found, result);
    cache_settle(cache, &key, result);
    struct result *settled = get(5);
    assert_ptr_not_equal(settled, result);
    assert_memory_equal(result_bytes(settled), result_bytes(result), SIZE);
    result_drop(settled);
    result_drop(found);
    result_drop(result);
}

static void never_exceeds_its_room(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 5 * FITTING; i++) {
        put(i);
        put(i); /* a full cache takes it now */
        struct cache_stats stats = stats_now();
        assert_true(stats.used <= ROOM);
        assert_true(stats.entries <= FITTING + 1);
    }
    assert_true(stats_now().evicted >= 4 * FITTING - 1);
    assert_true(kept(5 * FITTING - 1));
}

/* What was dropped while it is being sent stays whole, and its room comes back afterwards. */
static void references_outlive_eviction(void **state) {
    (void)state;
    assert_true(put(1));
    struct result *held = get(1);
    assert_non_null(held);
    for (uint64_t i = 10; i < 10 + 8 * FITTING; i++) {
        put(i);
        put(i);
        kept(i); /* else they would not displace what was asked for */
    }
    struct digest key = key_of(1);
    assert_null(cache_find(cache, &key, clock_ns(), NO_LIMIT));
    const unsigned char *bytes = result_bytes(held);
    for (size_t i = 0; i < SIZE; i++) {
        assert_int_equal(bytes[i], 8);
    }
    uint64_t used = stats_now().used;
    result_drop(held);
    assert_int_equal(stats_now().used, used - PAGES);
}

/* Results that are asked for again and again survive a scan over many that are not. */
static void a_scan_does_not_flush(void **state) {
    (void)state;
    const uint64_t hot = FITTING / 2;
    for (uint64_t i = 0; i < hot; i++) {
        assert_true(put(i));
        assert_true(kept(i));
    }
    for (uint64_t i = 0; i < 20 * FITTING; i++) {
        put(1000000 + i);
        if (i % FITTING == 0) {
            for (uint64_t j = 0; j < hot; j++) {
                kept(j);
            }
        }
    }
    uint64_t left = 0;
    for (uint64_t i = 0; i < hot; i++) {
        left += kept(i);
    }
    assert_int_equal(left, hot);
}

/* Where there is no room, a result has to be asked for twice, and then displaces another. */
static void a_full_cache_is_choosy(void **state) {
    (void)state;
    for (uint64_t i = 0; i < FITTING; i++) {
        assert_true(put(i));
    }
    assert_false(put(5000));
    assert_int_equal(stats_now().evicted, 0);
    assert_true(put(5000));
    assert_true(kept(5000));
    assert_true(stats_now().evicted > 0);
    assert_false(kept(0)); /* the oldest of those that nobody asked for */
    assert_true(put(0));   /* it is remembered */
    assert_true(kept(0));
}

/* However small they are, there is a bound on how many there are. */
static void small_results(void **state) {
    (void)state;
    for (uint64_t i = 0; i < 4 * FITTING; i++) {
        put_sized(i, 1);
        put_sized(i, 1);
        assert_true(stats_now().entries <= FITTING + 1);
    }
    assert_true(kept(4 * FITTING - 1));
}

static void large_results(void **state) {
    (void)state;
    assert_false(put_sized(1, ROOM / CACHE_SHARE + 1)); /* more than its share */
    assert_false(put_sized(1, ROOM / CACHE_SHARE + 1));
    assert_true(put_sized(2, ROOM / CACHE_SHARE - 1));
    struct cache *other = cache, *wide;
    assert_int_equal(cache_create(64 * CACHE_EAGER, &wide), KILN_OK);
    cache = wide;
    assert_false(put_sized(3, CACHE_EAGER + 1)); /* at first sight */
    assert_true(put_sized(3, CACHE_EAGER + 1));
    assert_true(kept(3));
    cache = other;
    cache_destroy(wide);
}

static void ages(void **state) {
    (void)state;
    assert_true(put(1));
    struct digest key = key_of(1);
    struct result *result = get(1);
    uint64_t made = result->made_ns;
    result_drop(result);
    assert_null(cache_find(cache, &key, made + 5000, 4999));
    result = cache_find(cache, &key, made + 5000, 5000);
    assert_non_null(result);
    result_drop(result);
    assert_null(cache_find(cache, &key, made + CACHE_LIFE_NS, NO_LIMIT));
    assert_int_equal(stats_now().entries, 0);
}

/* A newer result of the same key takes the place of the older one. */
static void replaces(void **state) {
    (void)state;
    assert_true(put(1));
    struct digest key = key_of(1);
    struct result *newer = result_of(1, 3 * SIZE);
    assert_true(cache_add(cache, &key, newer));
    cache_settle(cache, &key, newer);
    result_drop(newer);
    struct result *found = get(1);
    assert_int_equal(found->size, 3 * SIZE);
    result_drop(found);
    assert_int_equal(stats_now().entries, 1);
    assert_int_equal(stats_now().used, 6 * ARENA_PAGE);
}

/* Where all room is being sent, a new result is not kept, and what is there is not dropped for it
   without end. */
static void no_room(void **state) {
    (void)state;
    struct result *held[FITTING];
    for (uint64_t i = 0; i < FITTING; i++) {
        assert_true(put(i));
        held[i] = get(i);
        assert_non_null(held[i]);
    }
    put(FITTING + 1);
    put(FITTING + 1);
    assert_false(kept(FITTING + 1));
    assert_true(stats_now().used <= ROOM);
    for (uint64_t i = 0; i < FITTING; i++) {
        result_drop(held[i]);
    }
}

/* ---- threads ---- */

#define THREADS 4
#define ROUNDS  20000

static void *thread_run(void *argument) {
    uint64_t seed = *(const uint64_t *)argument;
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t number = (seed >> 33) % (2 * FITTING);
        number = i % 3 == 0 ? number % 16 : number; /* some are popular */
        struct digest key = key_of(number);
        struct result *found = cache_find(cache, &key, clock_ns(), NO_LIMIT);
        if (found == NULL) {
            struct block block;
            if (arena_take(arena, SIZE, &block) != KILN_OK) {
                return "arena";
            }
            memset(arena_at(arena, block.offset), (int)(number * 7 + 1), SIZE);
            found = result_create(arena, &block, SIZE);
            found->made_ns = clock_ns();
            found->job = id_of(number);
            if (cache_add(cache, &key, found)) {
                cache_settle(cache, &key, found);
            }
        }
        const unsigned char *bytes = result_bytes(found);
        bool right = is_of(found, number) && bytes[0] == (unsigned char)(number * 7 + 1) &&
                     bytes[SIZE - 1] == bytes[0];
        result_drop(found);
        if (!right) {
            return "bytes";
        }
    }
    return NULL;
}

static void threads(void **state) {
    (void)state;
    pthread_t running[THREADS];
    uint64_t seeds[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        seeds[i] = i + 1;
        assert_int_equal(pthread_create(&running[i], NULL, thread_run, &seeds[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(running[i], &wrong);
        assert_null(wrong);
    }
    assert_true(stats_now().used <= ROOM);
}

/* ---- settling on other threads than those that add ---- */

struct move {
    struct offload_task load;
    struct digest key;
    struct result *result;
    bool forget;
};

static _Atomic uint64_t moving;

static void move_run(struct offload_task *load) {
    struct move *move = (struct move *)(void *)load;
    if (move->forget) {
        cache_forget(cache, &move->key, move->result);
    } else {
        cache_settle(cache, &move->key, move->result);
    }
    result_drop(move->result);
    moving--;
    free(move);
}

static struct offload *movers;

/* As thread_run, but its copies are made elsewhere while others find, replace and drop the same
   results; now and then one is not kept after all, or put again over one that is being moved. */
static void *pusher_run(void *argument) {
    uint64_t seed = *(const uint64_t *)argument;
    for (int i = 0; i < ROUNDS; i++) {
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        uint64_t number = (seed >> 33) % (2 * FITTING);
        number = i % 3 == 0 ? number % 8 : number;
        struct digest key = key_of(number);
        struct result *found = cache_find(cache, &key, clock_ns(), NO_LIMIT);
        if (found == NULL || (seed >> 20) % 16 == 0) {
            struct block block;
            result_drop(found);
            while (arena_take(arena, SIZE, &block) != KILN_OK) {
                sched_yield(); /* the loader has it all */
            }
            memset(arena_at(arena, block.offset), (int)(number * 7 + 1), SIZE);
            found = result_create(arena, &block, SIZE);
            found->made_ns = clock_ns();
            found->job = id_of(number);
            if (cache_add(cache, &key, found)) {
                struct move *move = malloc(sizeof *move);
                *move = (struct move){.load = {.run = move_run},
                                      .key = key,
                                      .result = result_hold(found),
                                      .forget = (seed >> 24) % 16 == 0};
                moving++;
                if (!offload_push(movers, OFFLOAD_COPY, &move->load)) {
                    return "push";
                }
            }
        }
        const unsigned char *bytes = result_bytes(found);
        bool right = is_of(found, number) && bytes[0] == (unsigned char)(number * 7 + 1) &&
                     bytes[SIZE - 1] == bytes[0];
        result_drop(found);
        if (!right) {
            return "bytes";
        }
    }
    return NULL;
}

static void settles_elsewhere(void **state) {
    (void)state;
    pthread_t running[THREADS];
    uint64_t seeds[THREADS];
    struct arena_stats stats;
    assert_int_equal(offload_create(&movers), KILN_OK);
    for (uint64_t i = 0; i < THREADS; i++) {
        seeds[i] = i + 100;
        assert_int_equal(pthread_create(&running[i], NULL, pusher_run, &seeds[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(running[i], &wrong);
        assert_null(wrong);
    }
    offload_destroy(movers);
    assert_int_equal(moving, 0);
    arena_stats(arena, &stats);
    assert_int_equal(stats.used, 0); /* everything that is kept lies in the cache's memory */
    assert_true(stats_now().used <= ROOM);
    assert_true(stats_now().entries > 0);
}

/* Between being added and being moved anything may happen to a result. */
static void late_moves_change_nothing(void **state) {
    (void)state;
    struct digest key = key_of(1);
    struct result *first = result_of(1, SIZE), *second = result_of(1, SIZE);
    assert_true(cache_add(cache, &key, first));
    assert_true(cache_add(cache, &key, second)); /* replaced */
    cache_forget(cache, &key, first);
    struct result *found = get(1);
    assert_ptr_equal(found, second);
    result_drop(found);
    cache_settle(cache, &key, first);
    found = get(1);
    assert_ptr_equal(found, second);
    result_drop(found);
    cache_forget(cache, &key, second); /* not kept after all */
    assert_null(get(1));
    cache_settle(cache, &key, second); /* dropped before it was moved */
    cache_forget(cache, &key, second);
    assert_null(get(1));
    assert_int_equal(stats_now().used, 0);
    assert_int_equal(stats_now().entries, 0);
    result_drop(first);
    result_drop(second);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps_and_finds, setup, teardown),
        cmocka_unit_test_setup_teardown(finds_before_settling, setup, teardown),
        cmocka_unit_test_setup_teardown(never_exceeds_its_room, setup, teardown),
        cmocka_unit_test_setup_teardown(references_outlive_eviction, setup, teardown),
        cmocka_unit_test_setup_teardown(a_scan_does_not_flush, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_cache_is_choosy, setup, teardown),
        cmocka_unit_test_setup_teardown(small_results, setup, teardown),
        cmocka_unit_test_setup_teardown(large_results, setup, teardown),
        cmocka_unit_test_setup_teardown(ages, setup, teardown),
        cmocka_unit_test_setup_teardown(replaces, setup, teardown),
        cmocka_unit_test_setup_teardown(no_room, setup, teardown),
        cmocka_unit_test_setup_teardown(threads, setup, teardown),
        cmocka_unit_test_setup_teardown(settles_elsewhere, setup, teardown),
        cmocka_unit_test_setup_teardown(late_moves_change_nothing, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
