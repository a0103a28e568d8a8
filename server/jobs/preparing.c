/*
 * preparing.c: the list of records that are being prepared, and what ends them. Any thread.
 */
#include "server/jobs/preparing.h"

#include <poll.h>
#include <string.h>

void preparing_init(struct preparing *preparing) {
    pthread_mutex_init(&preparing->lock, NULL);
    preparing->first = NULL;
    preparing->last = &preparing->first;
    preparing->count = 0;
}

void preparing_finish(struct preparing *preparing) {
    pthread_mutex_destroy(&preparing->lock);
}

void preparing_enter(struct preparing *preparing, struct preparation *preparation) {
    preparation->next = NULL;
    pthread_mutex_lock(&preparing->lock);
    preparation->previous = preparing->first != NULL
                                ? (struct preparation *)(void *)((char *)preparing->last -
                                                                 offsetof(struct preparation, next))
                                : NULL;
    *preparing->last = preparation;
    preparing->last = &preparation->next;
    preparing->count++;
    pthread_mutex_unlock(&preparing->lock);
}

static void leave_locked(struct preparing *preparing, const struct preparation *preparation) {
    struct preparation *next = preparation->next, *previous = preparation->previous;
    *(previous != NULL ? &previous->next : &preparing->first) = next;
    if (next != NULL) {
        next->previous = previous;
    } else {
        preparing->last = previous != NULL ? &previous->next : &preparing->first;
    }
    preparing->count--;
}

void preparing_leave(struct preparing *preparing, struct preparation *preparation) {
    pthread_mutex_lock(&preparing->lock);
    leave_locked(preparing, preparation);
    pthread_mutex_unlock(&preparing->lock);
}

bool preparing_move(struct preparing *preparing, struct preparation *preparation,
                    void (*move)(void *context), void *context) {
    pthread_mutex_lock(&preparing->lock);
    bool moves = !atomic_load(&preparation->revoked);
    if (moves) {
        leave_locked(preparing, preparation);
        move(context);
    }
    pthread_mutex_unlock(&preparing->lock);
    return moves;
}

static bool gone(int fd) {
    struct pollfd watched = {.fd = fd, .events = POLLRDHUP}; /* HUP and ERR always come */
    return fd >= 0 && poll(&watched, 1, 0) > 0 &&
           (watched.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

enum kiln_status preparing_ask(void *context) {
    const struct preparation *preparation = context;
    return atomic_load(preparation->draining)   ? KILN_DRAINING
           : atomic_load(&preparation->revoked) ? KILN_REVOKED
           : clock_ns() > preparation->until_ns ? KILN_DEADLINE
           : gone(preparation->fd)              ? KILN_CANCELLED
                                                : KILN_OK;
}

static void view_fill(const struct preparation *preparation, struct job_view *view) {
    uint64_t now = clock_ns();
    *view = (struct job_view){
        .id = preparation->id,
        .type = preparation->type->name,
        .preparing = true,
        .owner = preparation->owner,
        .age_s = now > preparation->since_ns ? (double)(now - preparation->since_ns) * 1e-9 : 0,
    };
    memcpy(view->request_id, preparation->request_id, sizeof view->request_id);
}

static bool filter_passes(const struct job_filter *filter, const struct preparation *one) {
    return (filter->state == JOBS_ALL || filter->state == JOBS_PREPARING) &&
           (filter->type == NULL || filter->type == one->type) &&
           (filter->request_id == NULL || ((filter->owner == 0 || filter->owner == one->owner) &&
                                           strcmp(filter->request_id, one->request_id) == 0));
}

size_t preparing_list(struct preparing *preparing, const struct job_filter *filter,
                      struct job_view *views, size_t capacity) {
    size_t count = 0;
    pthread_mutex_lock(&preparing->lock);
    for (const struct preparation *one = preparing->first; one != NULL; one = one->next) {
        if (!filter_passes(filter, one)) {
            continue;
        }
        if (count < capacity) {
            view_fill(one, &views[count]);
        }
        count++;
    }
    pthread_mutex_unlock(&preparing->lock);
    return count;
}

static struct preparation *find_locked(struct preparing *preparing, const struct job_id *id) {
    struct preparation *one = preparing->first;
    while (one != NULL && !job_id_equal(&one->id, id)) {
        one = one->next;
    }
    return one;
}

bool preparing_job(struct preparing *preparing, const struct job_id *id, struct job_view *view) {
    pthread_mutex_lock(&preparing->lock);
    const struct preparation *found = find_locked(preparing, id);
    if (found != NULL) {
        view_fill(found, view);
    }
    pthread_mutex_unlock(&preparing->lock);
    return found != NULL;
}

bool preparing_revoke(struct preparing *preparing, const struct job_id *id) {
    pthread_mutex_lock(&preparing->lock);
    struct preparation *found = find_locked(preparing, id);
    if (found != NULL) {
        atomic_store(&found->revoked, true);
    }
    pthread_mutex_unlock(&preparing->lock);
    return found != NULL;
}
