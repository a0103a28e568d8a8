/*
 * gate.c: counters in lanes.
 *
 * Who enters counts first and looks at `closed` then, who closes sets `closed` first and looks at
 * the counters then; both in sequentially consistent order, so that one of them sees the other.
 */
#include "server/jobs/gate.h"

#include <time.h>

#define PAUSE_NS 100000

/* Number of this thread's lane, and 1; 0 before it has one. */
static _Thread_local unsigned own;

static _Atomic uint32_t *lane_own(struct gate *gate) {
    static _Atomic unsigned threads;
    if (own == 0) {
        own = atomic_fetch_add(&threads, 1) % GATE_LANES + 1;
    }
    return &gate->lanes[own - 1].inside;
}

bool gate_enter(struct gate *gate) {
    _Atomic uint32_t *inside = lane_own(gate);
    atomic_fetch_add(inside, 1);
    if (atomic_load(&gate->closed)) {
        atomic_fetch_sub(inside, 1);
        return false;
    }
    return true;
}

void gate_leave(struct gate *gate) {
    atomic_fetch_sub_explicit(lane_own(gate), 1, memory_order_release);
}

bool gate_close(struct gate *gate) {
    const struct timespec pause = {0, PAUSE_NS};
    bool was_closed = atomic_exchange(&gate->closed, true);
    for (int i = 0; i < GATE_LANES; i++) {
        while (atomic_load(&gate->lanes[i].inside) > 0) {
            nanosleep(&pause, NULL);
        }
    }
    return !was_closed;
}
