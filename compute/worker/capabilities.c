/*
 * capabilities.c: capset(2) and the two sets that outlive it (capabilities.h).
 */
#include "compute/worker/capabilities.h"

#include "compute/core/log.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIND_BIT (UINT64_C(1) << CAP_NET_BIND_SERVICE)
#define SETS     2 /* of 32 bits each */

static bool sanitized(void) {
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    return true;
#else
    return false;
#endif
}

static bool sets_get(struct __user_cap_data_struct sets[SETS]) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capget, &header, sets) == 0;
}

/* Leaves those of `kept` that there are, permitted and in effect, and none to be inherited. */
static bool sets_limit(uint64_t kept) {
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[SETS];
    uint32_t any = 0;
    if (!sets_get(sets)) {
        return false;
    }
    for (int i = 0; i < SETS; i++) {
        uint32_t mask = (uint32_t)(kept >> (32 * i));
        any |= (sets[i].permitted & ~mask) | sets[i].inheritable;
        sets[i].permitted &= mask;
        sets[i].effective = sets[i].permitted;
        sets[i].inheritable = 0;
    }
    return any == 0 || syscall(SYS_capset, &header, sets) == 0;
}

/* A program that root starts gets what is in the bounding set; needs CAP_SETPCAP, as root has. */
static void bounds_drop(void) {
    for (unsigned long bit = 0; bit < 64 && prctl(PR_CAPBSET_READ, bit, 0, 0, 0) >= 0; bit++) {
        if (prctl(PR_CAPBSET_DROP, bit, 0, 0, 0) != 0) {
            return; /* no root: there is nothing that could come back from there */
        }
    }
}

void capabilities_reduce(void) {
    if (sanitized()) {
        return;
    }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    bounds_drop();
    if (!sets_limit(BIND_BIT)) {
        log_warning("capabilities could not be given up: %s", strerror(errno));
    }
}

void capabilities_drop(void) {
    if (sanitized()) {
        return;
    }
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    bounds_drop();
    if (!sets_limit(0)) {
        log_warning("capabilities could not be given up: %s", strerror(errno));
    }
}
