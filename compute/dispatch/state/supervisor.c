/*
 * supervisor.c: what the front knows of one device.
 */
#include "compute/dispatch/state/supervisor.h"

#include "compute/codecs/json.h"
#include "compute/core/log.h"
#include "compute/worker/command.h"
#include "compute/worker/program.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const state_names[DEVICE_STATE_COUNT] = {
    [DEVICE_UNAVAILABLE] = "unavailable", [DEVICE_OFF] = "off",
    [DEVICE_STARTING] = "starting",       [DEVICE_READY] = "ready",
    [DEVICE_RESTARTING] = "restarting",
};

const char *device_state_name(enum device_state state) {
    return (unsigned)state < DEVICE_STATE_COUNT ? state_names[state] : "unknown";
}

enum device_state supervisor_state(const struct supervisor *supervisor) {
    if (!supervisor->chosen) {
        return supervisor->present ? DEVICE_OFF : DEVICE_UNAVAILABLE;
    }
    if (!supervisor->present || supervisor->broken) {
        return DEVICE_UNAVAILABLE;
    }
    if (supervisor->phase == WORKER_SERVING) {
        return DEVICE_READY;
    }
    return supervisor->served ? DEVICE_RESTARTING : DEVICE_STARTING;
}

bool supervisor_matches(const struct supervisor *supervisor, const struct job *job) {
    return (job->plan.kernels & ~supervisor->kernels) == 0 &&
           device_kind_matches(supervisor->name, job->device);
}

bool supervisor_room(const struct supervisor *supervisor) {
    return supervisor->phase == WORKER_SERVING && !supervisor->held &&
           in_flight_room(&supervisor->flight);
}

bool supervisor_fits(const struct supervisor *supervisor, uint64_t bytes) {
    uint64_t total = supervisor->memory_bytes, used = supervisor->flight.memory_used;
    return total == 0 || (used <= total && bytes <= total - used);
}

/* The number at this name, or 0. */
static double number_of(const struct json_value *object, const char *name) {
    struct json_value value = json_member(object, name);
    return value.type == JSON_NUMBER ? json_number(&value) : 0;
}

void supervisor_describe(struct supervisor *supervisor, const char *text, size_t size,
                         uint64_t limit) {
    struct json_value description;
    char why[96];
    if (size >= NOTICE_TEXT_MAX ||
        json_check(text, size, &description, why, sizeof why) != KILN_OK ||
        description.type != JSON_OBJECT) {
        return;
    }
    memcpy(supervisor->description, text, size);
    supervisor->description[size] = '\0';
    supervisor->described_ns = clock_ns();
    struct json_value memory = json_member(&description, "memory");
    double total = number_of(&memory, "total"), power = number_of(&description, "power");
    uint64_t bytes = total > 0 && total < 0x1p63 ? (uint64_t)total : 0;
    supervisor->memory_bytes = limit > 0 && (bytes == 0 || limit < bytes) ? limit : bytes;
    supervisor->power_w = power > 0 && power < 1e6 ? power : 0;
}

void supervisor_kill(struct supervisor *supervisor, const char *reason) {
    if (supervisor->phase != WORKER_WARMING && supervisor->phase != WORKER_TESTING &&
        supervisor->phase != WORKER_SERVING) {
        return;
    }
    log_write(*reason ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG, "%s: worker %ld is replaced: %s",
              supervisor->name, (long)supervisor->pid, reason);
    snprintf(supervisor->reason, sizeof supervisor->reason, "%s", reason);
    supervisor->phase = WORKER_DYING;
    supervisor->dying_ns = clock_ns();
    program_signal(supervisor->pidfd, SIGKILL);
}

void supervisor_close_jobs(struct supervisor *supervisor) {
    if (supervisor->job_fd < 0) {
        return;
    }
    while (atomic_load(&supervisor->sending) > 0) {
        sched_yield(); /* they do not block */
    }
    close(supervisor->job_fd);
    supervisor->job_fd = -1;
}

void supervisor_canary_clear(struct supervisor *supervisor) {
    supervisor->canary_running = false;
    supervisor->canary.state = JOB_FREE;
    supervisor->canary.result = (struct block){0};
}
