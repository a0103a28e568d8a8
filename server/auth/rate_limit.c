/*
 * rate_limit.c: the arithmetic of buckets.
 */
#include "server/auth/rate_limit.h"

#define SECOND_NS UINT64_C(1000000000)

uint64_t bucket_step(double rate) {
    return (uint64_t)(1e9 / rate + 0.5);
}

static uint64_t seconds_up(uint64_t ns) {
    return ns / SECOND_NS + (ns % SECOND_NS != 0);
}

bool bucket_take(struct bucket *bucket, uint64_t step_ns, uint64_t burst, uint64_t now_ns,
                 struct quota *quota) {
    const uint64_t room = step_ns * burst; /* at most 10^18 */
    uint64_t full = atomic_load_explicit(&bucket->full_ns, memory_order_relaxed);
    for (;;) {
        uint64_t from = full > now_ns ? full : now_ns;
        from = from - now_ns > room ? now_ns + room : from; /* the bucket was larger before */
        uint64_t ahead = from + step_ns - now_ns;
        if (ahead > room) {
            uint64_t wait = seconds_up(ahead - room);
            *quota = (struct quota){.left = 0, .full_s = seconds_up(from - now_ns), .wait_s = wait};
            return false;
        }
        if (atomic_compare_exchange_weak(&bucket->full_ns, &full, from + step_ns)) {
            *quota = (struct quota){.left = (room - ahead) / step_ns, .full_s = seconds_up(ahead)};
            return true;
        }
    }
}

bool running_enter(_Atomic uint64_t *running, uint64_t limit) {
    if (atomic_fetch_add(running, 1) < limit) {
        return true;
    }
    atomic_fetch_sub(running, 1);
    return false;
}

void running_leave(_Atomic uint64_t *running) {
    atomic_fetch_sub(running, 1);
}
