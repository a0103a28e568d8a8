/*
 * shortage.c: one line every few seconds, however many blocks are refused meanwhile.
 */
#include "compute/core/shortage.h"

#include "compute/core/log.h"
#include "compute/core/text.h"
#include "compute/core/timing.h"

#include <stdatomic.h>

#define SHOWN 3

static void holders_print(struct arena *arena, struct text *text) {
    struct holding holdings[SHOWN];
    size_t count = arena_holders(arena, holdings, SHOWN);
    for (size_t i = 0; i < count; i++) {
        text_format(text, "%s%s %.1f MB in %u block%s", i > 0 ? ", " : "; most is held by ",
                    holdings[i].name[0] != '\0' ? holdings[i].name : "others",
                    (double)holdings[i].bytes * 1e-6, holdings[i].blocks,
                    holdings[i].blocks == 1 ? "" : "s");
    }
}

void shortage_log(struct arena *arena, const struct holder *holder, uint64_t bytes) {
    static _Atomic uint64_t last_ns, silent;
    uint64_t now = clock_ns(), before = atomic_load(&last_ns);
    if ((before != 0 && now - before < SHORTAGE_PERIOD_S * UINT64_C(1000000000)) ||
        !atomic_compare_exchange_strong(&last_ns, &before, now)) {
        atomic_fetch_add(&silent, 1);
        return;
    }
    struct arena_stats stats;
    struct text text;
    char line[640];
    uint64_t left_out = atomic_exchange(&silent, 0);
    arena_stats(arena, &stats);
    text_init(&text, line, sizeof line);
    text_format(&text,
                "memory is short: %.1f MB for %s had no room; %.1f of %.1f MB of the arena "
                "(--arena) are taken, %.1f MB are free in one piece",
                (double)bytes * 1e-6,
                holder != NULL && holder->name != NULL ? holder->name : "the daemon",
                (double)stats.used * 1e-6, (double)stats.size * 1e-6, (double)stats.largest * 1e-6);
    holders_print(arena, &text);
    if (left_out > 0) {
        text_format(&text, " (%llu more since the last such line)", (unsigned long long)left_out);
    }
    log_warning("%s", line);
}
