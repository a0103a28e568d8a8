/*
 * fair_view.c: what waits, and what comes before a job, computed when it is asked.
 *
 * In fluid terms: a job is taken when its class's and its key's virtual times have reached its tag.
 * What the others have got by then, as far as they have work, comes before it. That costs one pass
 * over the accounts instead of one over the jobs, and is exact to about a job of each key.
 *
 * Threads: the caller's lock.
 */
#include "compute/schedule/fair_private.h"

#include <math.h>

/* What an account with waiting jobs gets until the virtual time of its class is `until`. */
static struct fair_ahead share_until(double start, double weight, double seconds, size_t jobs,
                                     double until) {
    double share = fmin(seconds, fmax(0, until - start) * weight);
    double mean = seconds / (double)jobs;
    double count = floor(share / mean + 0.5);
    return (struct fair_ahead){.jobs = (size_t)fmin(count, (double)jobs), .seconds = share};
}

/* Of its own key: what was pushed before it and has not left. The head of a line tells how far that
   has got; jobs that left from the middle are still counted, so it is never too little. */
static struct fair_ahead own_ahead(const struct fair_queue *queue, const struct fair_job *job) {
    const struct fair_account *account = job->account;
    double seconds = job->before;
    uint64_t index = job->index;
    for (int lane = 0; lane < queue->lanes; lane++) {
        const struct fair_job *head = fair_line_of(queue, account, lane)->head;
        if (head != NULL && head->index < index) {
            index = head->index;
            seconds = head->before;
        }
    }
    size_t jobs = (size_t)(job->index - index);
    size_t most = account->waiting - 1;
    return (struct fair_ahead){
        .jobs = jobs < most ? jobs : most,
        .seconds = fmin(job->before - seconds, fmax(account->seconds - job->estimate, 0)),
    };
}

struct fair_ahead fair_queue_ahead(const struct fair_queue *queue, const struct fair_job *job) {
    const struct fair_account *own = job->account;
    const struct fair_level *level = &queue->class[own->class];
    struct fair_ahead ahead = own_ahead(queue, job);
    double until = own->start + ahead.seconds / own->weight;
    for (size_t i = 0; i < queue->capacity; i++) {
        const struct fair_account *other = &queue->accounts[i];
        if (other == own || !other->used || other->waiting == 0 || other->class != own->class) {
            continue;
        }
        struct fair_ahead share =
            share_until(other->start, other->weight, other->seconds, other->waiting, until);
        ahead.jobs += share.jobs;
        ahead.seconds += share.seconds;
    }
    until = level->start + ahead.seconds / level->weight;
    for (int i = 0; i < FAIR_CLASSES; i++) {
        const struct fair_level *other = &queue->class[i];
        if (other == level || other->waiting == 0) {
            continue;
        }
        struct fair_ahead share =
            share_until(other->start, other->weight, other->seconds, other->waiting, until);
        ahead.jobs += share.jobs;
        ahead.seconds += share.seconds;
    }
    return ahead;
}

struct fair_total fair_queue_waiting(const struct fair_queue *queue, enum fair_class class) {
    struct fair_total total = {0};
    for (int i = 0; i < FAIR_CLASSES; i++) {
        if (class == FAIR_CLASSES || (int)class == i) {
            total.jobs += queue->class[i].waiting;
            total.seconds += queue->class[i].seconds;
        }
    }
    return total;
}

struct fair_total fair_queue_waiting_of(const struct fair_queue *queue, uint64_t key) {
    struct fair_total total = {0};
    for (int i = 0; i < FAIR_CLASSES; i++) {
        const struct fair_account *account = fair_account_find(queue, (enum fair_class)i, key);
        if (account != NULL) {
            total.jobs += account->waiting;
            total.seconds += account->seconds;
        }
    }
    return total;
}
