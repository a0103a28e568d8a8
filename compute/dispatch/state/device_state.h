/*
 * device_state.h: what a device is to those who look at it.
 *
 * Threads: constant.
 */
#ifndef KILN_COMPUTE_DISPATCH_STATE_DEVICE_STATE_H
#define KILN_COMPUTE_DISPATCH_STATE_DEVICE_STATE_H

enum device_state {
    DEVICE_UNAVAILABLE, /* cannot be used: see reason */
    DEVICE_OFF,         /* there, but not chosen by --device */
    DEVICE_STARTING,    /* worker warming up */
    DEVICE_READY,
    DEVICE_RESTARTING, /* worker died; a new one is coming */
    DEVICE_STATE_COUNT
};

/** Name of a state as in /v1/devices: "ready". */
const char *device_state_name(enum device_state state);

#endif
