/*
 * test_arena.c: the allocator against a plain map of pages, its seals, and threads.
 */
#include "compute/arena.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PAGES 512

static uint32_t random_state = 1;

static uint32_t random_next(void) {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

static struct arena *open_arena(size_t size) {
    struct arena *arena;
    assert_int_equal(arena_create(size, &arena), KILN_OK);
    return arena;
}

/* The longest run of free pages in the map. */
static unsigned longest_free(const bool *taken) {
    unsigned best = 0, run = 0;
    for (unsigned i = 0; i < PAGES; i++) {
        run = taken[i] ? 0 : run + 1;
        best = run > best ? run : best;
    }
    return best;
}

static void map_set(bool *taken, const struct block *block, bool value) {
    for (uint64_t i = 0; i < block->size / ARENA_PAGE; i++) {
        assert_int_equal(taken[block->offset / ARENA_PAGE + i], !value); /* no overlap */
        taken[block->offset / ARENA_PAGE + i] = value;
    }
}

/* Random takes, trims and gives. A take may fail only when no run of pages is long enough: that is
   also the proof that neighbours are joined. */
static void it_agrees_with_a_map_of_pages(void **state) {
    enum { HELD = 200, STEPS = 60000 };
    struct block held[HELD] = {{0}};
    bool taken[PAGES] = {false};
    struct arena *arena = open_arena(PAGES * ARENA_PAGE);
    struct arena_stats stats;
    uint64_t used = 0, failures = 0;
    (void)state;
    for (int step = 0; step < STEPS; step++) {
        struct block *block = &held[random_next() % HELD];
        uint64_t before = block->size;
        if (block->size == 0) {
            uint64_t size = random_next() % (random_next() % 8 ? 5 * ARENA_PAGE : 90 * ARENA_PAGE);
            unsigned pages = size == 0 ? 1 : (unsigned)((size + ARENA_PAGE - 1) / ARENA_PAGE);
            enum kiln_status status = arena_take(arena, size, block);
            assert_int_equal(status, longest_free(taken) >= pages ? KILN_OK : KILN_NO_MEMORY);
            failures += status != KILN_OK;
            assert_int_equal(block->size, status == KILN_OK ? pages * ARENA_PAGE : 0);
            map_set(taken, block, true);
        } else if (random_next() % 4 == 0) {
            map_set(taken, block, false);
            uint64_t size = random_next() % (block->size + ARENA_PAGE);
            arena_trim(arena, block, size);
            assert_true(block->size >= size || block->size == before);
            assert_true(block->size < size + ARENA_PAGE || block->size == ARENA_PAGE);
            map_set(taken, block, true);
        } else {
            map_set(taken, block, false);
            arena_give(arena, block);
            assert_int_equal(block->size, 0);
            assert_int_equal(block->offset, 0);
        }
        used = used - before + block->size;
    }
    arena_stats(arena, &stats);
    assert_int_equal(stats.used, used);
    assert_int_equal(stats.failures, failures);
    assert_true(stats.peak >= used && stats.peak <= stats.size);
    assert_true(failures > 0);
    for (int i = 0; i < HELD; i++) {
        arena_give(arena, &held[i]);
    }
    struct block all;
    assert_int_equal(arena_take(arena, PAGES * ARENA_PAGE, &all), KILN_OK);
    arena_give(arena, &all);
    arena_destroy(arena);
}

static void it_takes_the_best_fit_and_the_lowest(void **state) {
    struct arena *arena = open_arena(64 * ARENA_PAGE);
    struct block blocks[8], small, again;
    (void)state;
    for (int i = 0; i < 8; i++) {
        assert_int_equal(arena_take(arena,
                                    (i == 1   ? 5u
                                     : i == 5 ? 3u
                                              : 4u) *
                                        ARENA_PAGE,
                                    &blocks[i]),
                         KILN_OK);
    }
    uint64_t five = blocks[1].offset, three = blocks[5].offset;
    arena_give(arena, &blocks[1]);
    arena_give(arena, &blocks[5]);
    assert_int_equal(arena_take(arena, 2 * ARENA_PAGE, &small), KILN_OK);
    assert_int_equal(small.offset, three); /* 3 pages fit better than 5 or the rest */
    arena_give(arena, &small);
    assert_int_equal(arena_take(arena, 4 * ARENA_PAGE, &again), KILN_OK);
    assert_int_equal(again.offset, five);
    arena_give(arena, &again);
    for (int i = 0; i < 8; i++) {
        arena_give(arena, &blocks[i]);
    }
    arena_destroy(arena);
}

static void it_refuses_what_can_never_be(void **state) {
    struct arena *arena = open_arena(10 * ARENA_PAGE + 1);
    struct block block, rest;
    struct arena_stats stats;
    (void)state;
    assert_int_equal(arena_size(arena), 11 * ARENA_PAGE);
    assert_int_equal(arena_take(arena, 11 * ARENA_PAGE + 1, &block), KILN_JOB_TOO_LARGE);
    assert_int_equal(arena_take(arena, UINT64_MAX, &block), KILN_JOB_TOO_LARGE);
    assert_int_equal(block.size, 0);
    assert_int_equal(arena_take(arena, 0, &block), KILN_OK);
    assert_int_equal(block.size, ARENA_PAGE);
    assert_int_equal(arena_take(arena, 11 * ARENA_PAGE, &rest), KILN_NO_MEMORY);
    assert_int_equal(rest.size, 0);
    arena_stats(arena, &stats);
    assert_int_equal(stats.failures, 3);
    assert_int_equal(stats.blocks, 1);
    arena_give(arena, &block);
    arena_give(arena, &rest); /* empty: allowed */
    arena_destroy(arena);
    arena_destroy(NULL);
    struct arena *none;
    assert_int_equal(arena_create(SIZE_MAX, &none), KILN_NO_MEMORY);
    assert_null(none);
}

static void its_memory_is_sealed_and_shared(void **state) {
    struct arena *arena = open_arena(4 * ARENA_PAGE);
    struct block block;
    (void)state;
    assert_int_equal(ftruncate(arena_fd(arena), ARENA_PAGE), -1);
    assert_int_equal(ftruncate(arena_fd(arena), 8 * ARENA_PAGE), -1);
    assert_null(arena_attach(arena_fd(arena), 5 * ARENA_PAGE));
    assert_null(arena_attach(arena_fd(arena), 0));
    assert_null(arena_attach(-1, ARENA_PAGE));
    uint8_t *other = arena_attach(arena_fd(arena), arena_size(arena));
    assert_non_null(other);
    assert_int_equal(arena_take(arena, 100, &block), KILN_OK);
    memcpy(arena_at(arena, block.offset), "shared", 7);
    assert_string_equal((const char *)other + block.offset, "shared");
    arena_give(arena, &block);
    munmap(other, arena_size(arena));
    arena_destroy(arena);
}

/* Each thread marks its blocks and finds its marks again. */
static void *churn(void *argument) {
    struct arena *arena = argument;
    unsigned seed = (unsigned)(uintptr_t)&arena;
    struct block held[8] = {{0}};
    for (int step = 0; step < 4000; step++) {
        seed = seed * 1664525u + 1013904223u;
        struct block *block = &held[seed >> 24 & 7];
        if (block->size == 0) {
            if (arena_take(arena, (seed >> 8) % 30000, block) == KILN_OK) {
                memset(arena_at(arena, block->offset), (int)(seed >> 24 & 7) + 1, block->size);
            }
            continue;
        }
        const uint8_t *bytes = arena_at(arena, block->offset);
        for (uint64_t i = 0; i < block->size; i++) {
            if (bytes[i] != (seed >> 24 & 7) + 1) {
                return argument;
            }
        }
        arena_give(arena, block);
    }
    for (int i = 0; i < 8; i++) {
        arena_give(arena, &held[i]);
    }
    return NULL;
}

static void threads_may_share_it(void **state) {
    struct arena *arena = open_arena(PAGES * ARENA_PAGE);
    struct arena_stats stats;
    pthread_t threads[4];
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, churn, arena), 0);
    }
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    arena_stats(arena, &stats);
    assert_int_equal(stats.used, 0);
    assert_int_equal(stats.blocks, 0);
    arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_agrees_with_a_map_of_pages),
        cmocka_unit_test(it_takes_the_best_fit_and_the_lowest),
        cmocka_unit_test(it_refuses_what_can_never_be),
        cmocka_unit_test(its_memory_is_sealed_and_shared),
        cmocka_unit_test(threads_may_share_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
