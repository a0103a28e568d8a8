/*
 * fair_queue.c: the tags of start-time fair queueing, and the lists that they order.
 *
 * Each class and each account has a start tag: the virtual time up to which it has had its share.
 * The least tag is next; taking raises it by seconds / weight; the virtual time of its level
 * becomes the tag of what was taken. Who begins to wait starts no earlier than that time, so that a
 * key cannot save up for a burst. A tag that fell behind because its jobs could not run (memory, a
 * device that is away) is raised to FAIR_LAG below the virtual time: else it would have a device
 * for itself when it can run again, for as long as it waited.
 *
 * An account with nothing to run keeps its tag while that is ahead of the virtual time (a debt). It
 * gives its place up when another key needs one, those without debt first.
 *
 * Threads: the caller's lock.
 */
#include "compute/schedule/fair_private.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static const double class_weights[FAIR_CLASSES] = {16, 4, 1};

/* ---- accounts ---- */

static size_t bucket_of(const struct fair_queue *queue, enum fair_class class, uint64_t key) {
    uint64_t mixed = (key ^ (uint64_t) class << 61) * UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)(mixed >> 32) & (queue->buckets - 1);
}

struct fair_line *fair_line_of(const struct fair_queue *queue, const struct fair_account *account,
                               int lane) {
    size_t row = (size_t)(account - queue->accounts) * (size_t)queue->lanes;
    return &queue->lines[row + (size_t)lane];
}

struct fair_account *fair_account_find(const struct fair_queue *queue, enum fair_class class,
                                       uint64_t key) {
    struct fair_account *account = queue->table[bucket_of(queue, class, key)];
    while (account != NULL && (account->key != key || account->class != class)) {
        account = account->chain;
    }
    return account;
}

static void account_free(struct fair_queue *queue, struct fair_account *account) {
    struct fair_account **link = &queue->table[bucket_of(queue, account->class, account->key)];
    while (*link != account) {
        link = &(*link)->chain;
    }
    *link = account->chain;
    order_remove(&queue->class[account->class].idle, &account->idle);
    account->used = false;
    account->chain = queue->free;
    queue->free = account;
}

/* Frees the idle account that has least debt, in seconds of its weight. */
static void account_evict(struct fair_queue *queue) {
    struct fair_account *least = NULL;
    double debt = INFINITY;
    for (int i = 0; i < FAIR_CLASSES; i++) {
        struct order_node *node = order_first(&queue->class[i].idle);
        if (node == NULL) {
            continue;
        }
        struct fair_account *account =
            (struct fair_account *)((char *)node - offsetof(struct fair_account, idle));
        if (account->start - queue->class[i].now < debt) {
            debt = account->start - queue->class[i].now;
            least = account;
        }
    }
    if (least != NULL) {
        account_free(queue, least);
    }
}

static struct fair_account *account_take(struct fair_queue *queue, enum fair_class class,
                                         uint64_t key) {
    struct fair_account *account = fair_account_find(queue, class, key);
    if (account != NULL) {
        return account;
    }
    if (queue->free == NULL) {
        account_evict(queue);
    }
    account = queue->free;
    if (account == NULL) {
        return NULL;
    }
    queue->free = account->chain;
    struct fair_account **bucket = &queue->table[bucket_of(queue, class, key)];
    *account = (struct fair_account){
        .key = key,
        .class = class,
        .start = queue->class[class].now,
        .chain = *bucket,
        .used = true,
    };
    *bucket = account;
    order_insert(&queue->class[class].idle, &account->idle, account->start, queue->ties++);
    return account;
}

/* Keeps it among the idle ones while it has no job, by its present tag. */
static void account_settle(struct fair_queue *queue, struct fair_account *account) {
    struct order *idle = &queue->class[account->class].idle;
    order_remove(idle, &account->idle);
    if (account->waiting + account->running == 0) {
        order_insert(idle, &account->idle, account->start, queue->ties++);
    }
}

/* ---- tags ---- */

/* Its lines take their places by the account's new tag. */
static void account_order(struct fair_queue *queue, struct fair_account *account) {
    struct fair_level *level = &queue->class[account->class];
    for (int lane = 0; account->waiting > 0 && lane < queue->lanes; lane++) {
        struct fair_line *line = fair_line_of(queue, account, lane);
        if (order_contains(&line->node)) {
            uint64_t tie = line->node.tie;
            order_remove(&level->lanes[lane], &line->node);
            order_insert(&level->lanes[lane], &line->node, account->start, tie);
        }
    }
}

/* Charges `seconds` to the account and its class; below 0 gives back. */
static void account_charge(struct fair_queue *queue, struct fair_account *account, double seconds) {
    struct fair_level *level = &queue->class[account->class];
    account->start += seconds / account->weight;
    level->start += seconds / level->weight;
    account_order(queue, account);
}

/* ---- lines ---- */

static void line_enter(struct fair_queue *queue, struct fair_job *job, bool first) {
    struct fair_account *account = job->account;
    struct fair_level *level = &queue->class[account->class];
    struct fair_line *line = fair_line_of(queue, account, job->lane);
    if (level->waiting == 0) {
        level->start = fmax(level->start, queue->now);
    }
    if (account->waiting == 0 && account->start < level->now) {
        account->start = level->now;
    }
    struct fair_job *after = first ? line->head : NULL;
    job->next = after;
    job->previous = after != NULL ? NULL : line->tail;
    *(job->previous != NULL ? &job->previous->next : &line->head) = job;
    *(after != NULL ? &after->previous : &line->tail) = job;
    account->waiting++;
    account->seconds += job->estimate;
    level->waiting++;
    level->seconds += job->estimate;
    if (!order_contains(&line->node)) {
        order_insert(&level->lanes[job->lane], &line->node, account->start, queue->ties++);
    }
    order_remove(&level->idle, &account->idle);
    job->state = FAIR_WAITING;
}

static void line_leave(struct fair_queue *queue, struct fair_job *job) {
    struct fair_account *account = job->account;
    struct fair_level *level = &queue->class[account->class];
    struct fair_line *line = fair_line_of(queue, account, job->lane);
    *(job->previous != NULL ? &job->previous->next : &line->head) = job->next;
    *(job->next != NULL ? &job->next->previous : &line->tail) = job->previous;
    job->next = job->previous = NULL;
    account->waiting--;
    account->seconds = account->waiting > 0 ? fmax(account->seconds - job->estimate, 0) : 0;
    level->waiting--;
    level->seconds = level->waiting > 0 ? fmax(level->seconds - job->estimate, 0) : 0;
    if (line->head == NULL) {
        order_remove(&level->lanes[job->lane], &line->node);
    }
}

/* ---- the public calls ---- */

struct fair_queue *fair_queue_create(size_t accounts, int lanes) {
    assert(accounts > 0 && accounts < SIZE_MAX / 2 && lanes > 0 && lanes <= FAIR_LANES_MAX);
    struct fair_queue *queue = calloc(1, sizeof *queue);
    if (queue == NULL) {
        return NULL;
    }
    queue->lanes = lanes;
    queue->capacity = accounts;
    for (queue->buckets = 1; queue->buckets < accounts; queue->buckets *= 2) {
    }
    queue->table = calloc(queue->buckets, sizeof(struct fair_account *));
    queue->accounts = calloc(accounts, sizeof *queue->accounts);
    queue->lines = calloc(accounts * (size_t)lanes, sizeof *queue->lines);
    queue->orders = calloc((size_t)(FAIR_CLASSES * lanes), sizeof *queue->orders);
    if (queue->table == NULL || queue->accounts == NULL || queue->lines == NULL ||
        queue->orders == NULL) {
        fair_queue_destroy(queue);
        return NULL;
    }
    for (size_t i = accounts; i-- > 0;) {
        queue->accounts[i].chain = queue->free;
        queue->free = &queue->accounts[i];
        for (int lane = 0; lane < lanes; lane++) {
            fair_line_of(queue, &queue->accounts[i], lane)->account = &queue->accounts[i];
        }
    }
    for (int i = 0; i < FAIR_CLASSES; i++) {
        queue->class[i].weight = class_weights[i];
        queue->class[i].lanes = queue->orders + i * lanes;
    }
    return queue;
}

void fair_queue_destroy(struct fair_queue *queue) {
    if (queue == NULL) {
        return;
    }
    free(queue->table);
    free(queue->accounts);
    free(queue->lines);
    free(queue->orders);
    free(queue);
}

bool fair_queue_push(struct fair_queue *queue, struct fair_job *job, enum fair_class class,
                     uint64_t key, double weight, int lane) {
    assert(job->state == FAIR_OUT && job->estimate > 0 && weight > 0);
    assert(lane >= 0 && lane < queue->lanes);
    struct fair_account *account = account_take(queue, class, key);
    if (account == NULL) {
        return false;
    }
    account->weight = weight;
    job->account = account;
    job->lane = lane;
    job->charged = 0;
    job->before = account->pushed;
    job->index = account->pushes++;
    account->pushed += job->estimate;
    line_enter(queue, job, false);
    return true;
}

/* Lines of the lanes asked for, in the order of their tags. */
struct walk {
    struct order_node *at[FAIR_LANES_MAX];
    int count;
};

static void walk_start(struct walk *walk, const struct fair_queue *queue,
                       const struct fair_level *level, uint64_t mask) {
    walk->count = 0;
    for (int lane = 0; lane < queue->lanes; lane++) {
        struct order_node *first = mask >> lane & 1 ? order_first(&level->lanes[lane]) : NULL;
        if (first != NULL) {
            walk->at[walk->count++] = first;
        }
    }
}

static struct fair_line *walk_next(struct walk *walk) {
    int least = 0;
    for (int i = 1; i < walk->count; i++) {
        if (order_before(walk->at[i], walk->at[least])) {
            least = i;
        }
    }
    if (walk->count == 0) {
        return NULL;
    }
    struct order_node *node = walk->at[least], *next = order_next(node);
    walk->at[least] = next != NULL ? next : walk->at[--walk->count];
    return (struct fair_line *)((char *)node - offsetof(struct fair_line, node));
}

/* The job to take of a class. `looks` counts down; `stop` says that none else may be taken. */
static struct fair_job *level_look(struct fair_queue *queue, struct fair_level *level,
                                   uint64_t mask, fair_judge *judge, void *context, int *looks) {
    struct walk walk;
    struct fair_line *line;
    walk_start(&walk, queue, level, mask);
    while (*looks > 0 && (line = walk_next(&walk)) != NULL) {
        int depth = FAIR_DEPTH;
        for (struct fair_job *job = line->head; job != NULL && depth > 0 && *looks > 0;
             job = job->next, depth--) {
            enum fair_verdict verdict = judge(context, job);
            if (verdict == FAIR_TAKE) {
                return job;
            }
            *looks = verdict == FAIR_STOP ? 0 : *looks - 1;
        }
    }
    return NULL;
}

/* Classes by their tags. */
static void classes_sort(const struct fair_queue *queue, int *classes) {
    for (int i = 0; i < FAIR_CLASSES; i++) {
        int at = i;
        while (at > 0 && queue->class[classes[at - 1]].start > queue->class[i].start) {
            classes[at] = classes[at - 1];
            at--;
        }
        classes[at] = i;
    }
}

static void job_run(struct fair_queue *queue, struct fair_job *job) {
    struct fair_account *account = job->account;
    struct fair_level *level = &queue->class[account->class];
    line_leave(queue, job);
    account->running++;
    job->state = FAIR_RUNNING;
    job->charged = job->estimate;
    queue->now = fmax(queue->now, level->start);
    level->now = fmax(level->now, account->start);
    level->start = fmax(level->start, queue->now - FAIR_LAG / level->weight);
    account->start = fmax(account->start, level->now - FAIR_LAG / account->weight);
    account_charge(queue, account, job->estimate);
}

struct fair_job *fair_queue_take(struct fair_queue *queue, uint64_t mask, fair_judge *judge,
                                 void *context) {
    int classes[FAIR_CLASSES], looks = FAIR_LOOKS;
    classes_sort(queue, classes);
    for (int i = 0; i < FAIR_CLASSES; i++) {
        struct fair_level *level = &queue->class[classes[i]];
        struct fair_job *job =
            level->waiting > 0 ? level_look(queue, level, mask, judge, context, &looks) : NULL;
        if (job != NULL) {
            job_run(queue, job);
            return job;
        }
    }
    return NULL;
}

void fair_queue_used(struct fair_queue *queue, struct fair_job *job, double seconds) {
    assert(job->state == FAIR_RUNNING);
    if (seconds > job->charged) {
        account_charge(queue, job->account, seconds - job->charged);
        job->charged = seconds;
    }
}

/* What a job was charged becomes what it used; it runs no longer. */
static void job_stop(struct fair_queue *queue, struct fair_job *job, double seconds) {
    assert(job->state == FAIR_RUNNING);
    account_charge(queue, job->account, seconds - job->charged);
    job->charged = seconds;
    job->account->running--;
    job->state = FAIR_OUT;
}

void fair_queue_end(struct fair_queue *queue, struct fair_job *job, double seconds) {
    job_stop(queue, job, seconds);
    order_remove(&queue->clock, &job->clock);
    account_settle(queue, job->account);
    job->account = NULL;
}

void fair_queue_return(struct fair_queue *queue, struct fair_job *job) {
    job_stop(queue, job, 0);
    line_enter(queue, job, true);
}

void fair_queue_remove(struct fair_queue *queue, struct fair_job *job) {
    assert(job->state == FAIR_WAITING);
    line_leave(queue, job);
    order_remove(&queue->clock, &job->clock);
    account_settle(queue, job->account);
    job->state = FAIR_OUT;
    job->account = NULL;
}

void fair_queue_limit(struct fair_queue *queue, struct fair_job *job, double time) {
    assert(job->state != FAIR_OUT);
    order_remove(&queue->clock, &job->clock);
    job->limit = time;
    if (time < INFINITY) {
        order_insert(&queue->clock, &job->clock, time, queue->ties++);
    }
}

struct fair_job *fair_queue_earliest(const struct fair_queue *queue) {
    struct order_node *node = order_first(&queue->clock);
    return node != NULL ? (struct fair_job *)((char *)node - offsetof(struct fair_job, clock))
                        : NULL;
}
