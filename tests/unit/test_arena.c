/*
 * test_arena.c: the allocator against a plain map of pages, its seals, and threads.
 */
#include "compute/core/arena.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
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

#define LOW   (PAGES / ARENA_RESERVE) /* pages for small blocks */
#define SMALL (ARENA_SMALL / ARENA_PAGE)

/* The longest run of free pages in a part of the map. */
static unsigned longest_free(const bool *taken, unsigned from, unsigned to) {
    unsigned best = 0, run = 0;
    for (unsigned i = from; i < to; i++) {
        run = taken[i] ? 0 : run + 1;
        best = run > best ? run : best;
    }
    return best;
}

/* Whether there is room for so many pages: small blocks may lie anywhere, others not below. */
static bool has_room(const bool *taken, unsigned pages) {
    return longest_free(taken, LOW, PAGES) >= pages ||
           (pages <= SMALL && longest_free(taken, 0, LOW) >= pages);
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
            assert_int_equal(status, has_room(taken, pages) ? KILN_OK : KILN_NO_MEMORY);
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
    assert_int_equal(arena_take(arena, (PAGES - LOW) * ARENA_PAGE, &all), KILN_OK);
    assert_int_equal(all.offset, LOW * ARENA_PAGE);
    arena_give(arena, &all);
    assert_int_equal(arena_take(arena, (PAGES - LOW) * ARENA_PAGE + 1, &all), KILN_JOB_TOO_LARGE);
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

/* Small blocks that are taken in turn with large ones, and stay, do not lie between them. */
static void small_blocks_lie_apart(void **state) {
    struct block small[8], large[8], all;
    struct arena *arena = open_arena(PAGES * ARENA_PAGE);
    (void)state;
    assert_int_equal(arena_large_from(arena), LOW * ARENA_PAGE);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(arena_take(arena, 40 * ARENA_PAGE, &large[i]), KILN_OK);
        assert_int_equal(arena_take(arena, ARENA_PAGE, &small[i]), KILN_OK);
        assert_int_equal(small[i].offset, (unsigned)i * ARENA_PAGE);
    }
    for (int i = 0; i < 8; i++) {
        arena_give(arena, &large[i]);
    }
    assert_int_equal(arena_take(arena, arena_most(arena), &all), KILN_OK);
    /* what grows large moves out */
    assert_true(arena_extend(arena, &small[7], ARENA_SMALL));
    assert_false(arena_extend(arena, &small[7], ARENA_SMALL + 1));
    arena_give(arena, &all);
    assert_false(arena_extend(arena, &small[7], ARENA_SMALL + 1));
    for (int i = 0; i < 8; i++) {
        arena_give(arena, &small[i]);
    }
    /* with no room left of their own they lie among the others */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(arena_take(arena, ARENA_SMALL, &small[i]), KILN_OK);
    }
    assert_true(small[1].offset < LOW * ARENA_PAGE && small[2].offset == LOW * ARENA_PAGE);
    for (int i = 0; i < 3; i++) {
        arena_give(arena, &small[i]);
    }
    arena_destroy(arena);
}

/* ---- shares ---- */

#define WHOLE (PAGES * (uint64_t)ARENA_PAGE)

static const struct holder alice = {{1, 1}, "alice"}, bob = {{2, 1}, "bob"};

/* Takes blocks of a page until it is refused; returns how many there were. */
static unsigned take_all(struct arena *arena, const struct holder *holder, struct block *blocks) {
    unsigned count = 0;
    while (arena_take_for(arena, holder, ARENA_PAGE, NULL, &blocks[count]) == KILN_OK) {
        count++;
    }
    return count;
}

static void give_all(struct arena *arena, struct block *blocks, unsigned count) {
    while (count > 0) {
        arena_give(arena, &blocks[--count]);
    }
}

/* Alone two thirds; the second one two thirds of the rest; and there is still room for a third. The
   daemon itself is not limited. */
static void a_holder_has_no_more_than_its_share(void **state) {
    static struct block a[PAGES], b[PAGES], c[PAGES];
    struct arena *arena = open_arena(WHOLE);
    struct arena_stats stats;
    struct block one;
    (void)state;
    unsigned first = take_all(arena, &alice, a);
    assert_int_equal(first, PAGES * 2 / 3);
    unsigned second = take_all(arena, &bob, b);
    assert_int_equal(second, (PAGES - first) * 2 / 3);
    const struct holder carol = {{3, 1}, NULL};
    assert_int_equal(arena_take_for(arena, &carol, 8 * ARENA_PAGE, NULL, &one), KILN_OK);
    assert_int_equal(arena_probe(arena, &alice, 1), KILN_NO_MEMORY);
    assert_int_equal(arena_probe(arena, &carol, 1), KILN_OK);
    arena_stats(arena, &stats);
    assert_int_equal(stats.holders, 3);
    assert_int_equal(stats.over_share, 3); /* all of them found room */
    assert_int_equal(stats.used, (first + second + 8) * ARENA_PAGE);
    arena_give(arena, &one);
    unsigned rest = 0;
    while (arena_take(arena, 1, &c[rest]) == KILN_OK) {
        rest++;
    }
    assert_int_equal(first + second + rest, PAGES);
    give_all(arena, c, rest);
    give_all(arena, b, second);
    give_all(arena, a, first);
    arena_stats(arena, &stats);
    assert_int_equal(stats.holders, 0);
    arena_destroy(arena);
}

/* What a holder has is counted until it is given back, whoever gives it, and less what is trimmed.
 */
static void blocks_stay_their_holders(void **state) {
    struct arena *arena = open_arena(WHOLE);
    struct holding holdings[3];
    struct block a, b, c, moved;
    (void)state;
    assert_int_equal(arena_take_for(arena, &alice, 100 * ARENA_PAGE, NULL, &a), KILN_OK);
    assert_int_equal(arena_take_for(arena, &bob, 20 * ARENA_PAGE, NULL, &b), KILN_OK);
    assert_int_equal(arena_take_for(arena, &bob, 30 * ARENA_PAGE, NULL, &c), KILN_OK);
    moved = a;
    arena_trim(arena, &moved, 40 * ARENA_PAGE);
    assert_int_equal(arena_holders(arena, holdings, 3), 2);
    assert_string_equal(holdings[0].name, "bob");
    assert_int_equal(holdings[0].bytes, 50 * ARENA_PAGE);
    assert_int_equal(holdings[0].blocks, 2);
    assert_string_equal(holdings[1].name, "alice");
    assert_int_equal(holdings[1].bytes, 40 * ARENA_PAGE);
    assert_int_equal(arena_holders(arena, holdings, 1), 1);
    assert_string_equal(holdings[0].name, "bob");
    arena_give(arena, &b);
    arena_give(arena, &c);
    assert_int_equal(arena_holders(arena, holdings, 3), 1);
    assert_string_equal(holdings[0].name, "alice");
    arena_give(arena, &moved);
    assert_int_equal(arena_holders(arena, holdings, 3), 0);
    arena_destroy(arena);
}

/* One job may be as large as the arena less the reserve, input and result together, but only while
   its holder has nothing else. */
static void one_large_thing_may_exceed_the_share(void **state) {
    struct arena *arena = open_arena(WHOLE);
    uint64_t most = arena_most(arena);
    struct block body, other, result;
    (void)state;
    assert_int_equal(most, WHOLE - WHOLE / ARENA_RESERVE);
    assert_int_equal(arena_take_for(arena, &alice, most + 1, NULL, &result), KILN_JOB_TOO_LARGE);
    assert_int_equal(arena_take_for(arena, &alice, most, NULL, &result), KILN_OK);
    assert_int_equal(arena_probe(arena, &bob, ARENA_PAGE), KILN_OK);
    arena_give(arena, &result);
    assert_int_equal(arena_take_for(arena, &alice, 64 * ARENA_PAGE, NULL, &body), KILN_OK);
    uint64_t left = most - 64 * ARENA_PAGE;
    assert_int_equal(arena_take_for(arena, &alice, left, NULL, &result), KILN_NO_MEMORY);
    assert_int_equal(arena_take_for(arena, &alice, left, &body, &result), KILN_OK);
    arena_give(arena, &result);
    assert_int_equal(arena_take_for(arena, &alice, left + 1, &body, &result), KILN_JOB_TOO_LARGE);
    assert_int_equal(arena_take_for(arena, &alice, 1, NULL, &other), KILN_OK);
    assert_int_equal(arena_take_for(arena, &alice, left - ARENA_PAGE, &body, &result),
                     KILN_NO_MEMORY);
    /* what is another's does not count as one's own */
    assert_int_equal(arena_take_for(arena, &bob, left - ARENA_PAGE, &body, &result),
                     KILN_NO_MEMORY);
    arena_give(arena, &other);
    arena_give(arena, &body);
    arena_destroy(arena);
}

static void a_block_grows_where_it_lies(void **state) {
    struct arena *arena = open_arena(WHOLE);
    struct holding holding;
    struct block block, behind;
    (void)state;
    assert_int_equal(arena_take_for(arena, &alice, 20 * ARENA_PAGE, NULL, &block), KILN_OK);
    assert_true(arena_extend(arena, &block, 23 * ARENA_PAGE + 1));
    assert_int_equal(block.offset, LOW * ARENA_PAGE);
    assert_int_equal(block.size, 24 * ARENA_PAGE);
    assert_true(arena_extend(arena, &block, 1)); /* nothing to do */
    assert_int_equal(arena_holders(arena, &holding, 1), 1);
    assert_int_equal(holding.bytes, 24 * ARENA_PAGE);
    assert_int_equal(arena_take(arena, 20 * ARENA_PAGE, &behind), KILN_OK);
    assert_false(arena_extend(arena, &block, 25 * ARENA_PAGE));
    arena_give(arena, &behind);
    assert_true(arena_extend(arena, &block, arena_most(arena))); /* it is all that alice has */
    assert_false(arena_extend(arena, &block, arena_most(arena) + ARENA_PAGE));
    assert_false(arena_extend(arena, &block, 2 * WHOLE));
    arena_trim(arena, &block, 20 * ARENA_PAGE);
    assert_int_equal(arena_take_for(arena, &alice, 20 * ARENA_PAGE, NULL, &behind), KILN_OK);
    arena_give(arena, &block);
    /* another of alice's: no more than the share now */
    assert_int_equal(arena_take_for(arena, &alice, ARENA_PAGE, NULL, &block), KILN_OK);
    assert_int_equal(block.offset, 0);
    assert_false(arena_extend(arena, &behind, arena_most(arena)));
    assert_true(arena_extend(arena, &behind, WHOLE / 2));
    arena_give(arena, &behind);
    arena_give(arena, &block);
    arena_destroy(arena);
}

/* More holders than there are accounts for count as the daemon's, and none of them is lost. */
static void there_may_be_many_holders(void **state) {
    enum { COUNT = ARENA_HOLDERS_MAX + 10 };
    struct arena *arena = open_arena((size_t)COUNT * 2 * ARENA_PAGE);
    struct block *blocks = calloc(COUNT, sizeof *blocks);
    struct arena_stats stats;
    (void)state;
    assert_non_null(blocks);
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 0; i < COUNT; i++) {
            const struct holder holder = {{i, 4}, "x"};
            assert_int_equal(arena_take_for(arena, &holder, 1, NULL, &blocks[i]), KILN_OK);
        }
        arena_stats(arena, &stats);
        assert_int_equal(stats.holders, ARENA_HOLDERS_MAX);
        assert_int_equal(stats.blocks, COUNT);
        for (uint64_t i = 0; i < COUNT; i++) {
            arena_give(arena, &blocks[(i * 7919) % COUNT]);
        }
        arena_stats(arena, &stats);
        assert_int_equal(stats.holders, 0);
        assert_int_equal(stats.used, 0);
    }
    free(blocks);
    arena_destroy(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_agrees_with_a_map_of_pages),
        cmocka_unit_test(it_takes_the_best_fit_and_the_lowest),
        cmocka_unit_test(it_refuses_what_can_never_be),
        cmocka_unit_test(its_memory_is_sealed_and_shared),
        cmocka_unit_test(threads_may_share_it),
        cmocka_unit_test(small_blocks_lie_apart),
        cmocka_unit_test(a_holder_has_no_more_than_its_share),
        cmocka_unit_test(blocks_stay_their_holders),
        cmocka_unit_test(one_large_thing_may_exceed_the_share),
        cmocka_unit_test(a_block_grows_where_it_lies),
        cmocka_unit_test(there_may_be_many_holders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
