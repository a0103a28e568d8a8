/*
 * gate.h: being inside something that may end at any time.
 *
 * Every thread counts itself in and out in a lane of its own, as far as there are lanes, so that
 * threads that come and go all the time share no line of the processor's cache. Closing is slow: it
 * waits until all lanes are empty.
 *
 * Threads: gate_enter and gate_leave any, both of a pair the same one, which may be inside more
 * than once; gate_close one.
 */
#ifndef KILN_SERVER_JOBS_GATE_H
#define KILN_SERVER_JOBS_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GATE_LANES 64
#define GATE_LINE  64 /* bytes of a cache line */

/** Zeroed: open. */
struct gate {
    _Atomic bool closed;
    struct {
        _Alignas(GATE_LINE) _Atomic uint32_t inside;
    } lanes[GATE_LANES];
};

/** True, and inside until gate_leave; false once closed. */
bool gate_enter(struct gate *gate);
void gate_leave(struct gate *gate);
/** Lets nobody in any more and waits until nobody is inside. False if it was closed before. */
bool gate_close(struct gate *gate);

#endif
