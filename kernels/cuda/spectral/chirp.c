/* chirp.c: choice of a chirp convolution's length and passes (chirp.h). Thread: any. */
#include "kernels/cuda/spectral/chirp.h"

#include <math.h>
#include <stddef.h>

#define SIZE_MIN   32
#define SIZE_MAX_K 12288
#define EXTRA      512 /* bytes beside the elements */

/* Bytes of K elements with the gaps that keep banks apart. */
static int64_t bytes_of(int64_t size) {
    return (size + size / 8 + size / 64 + 2) * 16 + EXTRA;
}

/* Cuts `size` into radices; false where another prime is left or there are too many. */
static bool stages_cut(struct chirp_plan *plan, int64_t size) {
    static const int32_t radices[] = {16, 8, 5, 4, 3, 2};
    int64_t left = size / CHIRP_FIRST;
    *plan = (struct chirp_plan){.size = (int32_t)size, .stages = 1, .radix = {CHIRP_FIRST}};
    for (size_t i = 0; i < sizeof radices / sizeof *radices;) {
        if (left % radices[i] != 0) {
            i++;
        } else if (plan->stages == CHIRP_STAGES) {
            return false;
        } else {
            plan->radix[plan->stages++] = radices[i];
            left /= radices[i];
        }
    }
    return left == 1 && plan->stages >= 2;
}

/* Passes over the elements: each forward and backward, the last one both at once. */
static int64_t cost_of(const struct chirp_plan *plan) {
    return (2 * plan->stages - 1) * (int64_t)plan->size;
}

bool chirp_plan_make(struct chirp_plan *plan, int64_t length) {
    int64_t from = length > SIZE_MIN ? length : SIZE_MIN;
    from = (from + CHIRP_FIRST - 1) / CHIRP_FIRST * CHIRP_FIRST;
    *plan = (struct chirp_plan){0};
    for (int64_t size = from; size <= SIZE_MAX_K && size < 2 * from; size += CHIRP_FIRST) {
        struct chirp_plan trial;
        if (!stages_cut(&trial, size)) {
            continue;
        }
        trial.warps = 4;
        while (trial.warps < CHIRP_WARPS && bytes_of(size) > trial.warps * CHIRP_SHARED) {
            trial.warps *= 2;
        }
        if (plan->size == 0 || cost_of(&trial) < cost_of(plan)) {
            *plan = trial;
        }
    }
    return plan->size != 0;
}

bool chirp_table_init(struct chirp_table *table, int64_t length) {
    *table = (struct chirp_table){0};
    if (!chirp_plan_make(&table->plan, length)) {
        return false;
    }
    int64_t stride = table->plan.size / CHIRP_FIRST, period = length + 1;
    double growth = M_PI * (double)(2 * stride * stride % (2 * period)) / (double)period;
    double move = M_PI * (double)stride / (double)period;
    table->growth[0] = cos(growth);
    table->growth[1] = -sin(growth);
    table->move[0] = cos(move);
    table->move[1] = sin(move);
    return true;
}
