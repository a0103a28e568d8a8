/*
 * descriptors.c: RLIMIT_NOFILE, and what is kept back of it.
 */
#include "server/descriptors.h"

#include "server/http/connections/connections.h"

#include <dirent.h>
#include <sys/resource.h>

#define LOOP_NEEDS   8  /* epoll sets, wake-ups, the listening socket, one that is being accepted */
#define WORKER_NEEDS 3  /* two sockets and a pidfd */
#define START_NEEDS  6  /* the far ends, a pipe, a pidfd that comes, while a worker is started */
#define FILES_NEED   10 /* key file, /proc, a listing: a few at a time */
#define FEWEST       2  /* connections */
#define SOFT_LEAST   65536

uint64_t descriptors_raise(uint64_t connections) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return 1024;
    }
    rlim_t wanted = connections + CLIENT_LINGERS + 1024;
    wanted = wanted > SOFT_LEAST ? wanted : SOFT_LEAST;
    if (limit.rlim_cur < limit.rlim_max && limit.rlim_cur < wanted) {
        rlim_t before = limit.rlim_cur;
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            limit.rlim_cur = before;
        }
    }
    return limit.rlim_cur;
}

bool descriptors_plan(uint64_t limit, uint64_t open, uint64_t loops, uint64_t devices,
                      uint64_t connections, struct descriptors *plan) {
    *plan = (struct descriptors){.limit = limit};
    plan->kept = open + loops * LOOP_NEEDS + devices * WORKER_NEEDS + START_NEEDS + FILES_NEED;
    if (limit < plan->kept + FEWEST) {
        return false;
    }
    uint64_t left = limit - plan->kept;
    plan->lingers = left / 8 < CLIENT_LINGERS ? left / 8 : CLIENT_LINGERS;
    left -= plan->lingers;
    plan->connections = connections < left ? connections : left;
    return true;
}

uint64_t descriptors_open(void) {
    DIR *folder = opendir("/proc/self/fd");
    uint64_t count = 0;
    if (folder == NULL) {
        return 16;
    }
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count > 3 ? count - 3 : 0; /* ".", "..", and the folder itself */
}
