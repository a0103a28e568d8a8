/*
 * sd_notify.h: telling a service manager how far the daemon is, and that it still turns (the
 * datagrams of systemd's Type=notify and WatchdogSec=).
 *
 * Threads: sd_notify_open the main thread, before others start; the others any.
 */
#ifndef KILN_SERVER_SD_NOTIFY_H
#define KILN_SERVER_SD_NOTIFY_H

#include <stdint.h>

/** Connects to the socket that NOTIFY_SOCKET names, if there is one, reads WATCHDOG_USEC and
    WATCHDOG_PID, and clears these variables: they are not for children. */
void sd_notify_open(void);
/** Sends lines such as "READY=1" (printf format); nothing where nobody listens. */
void sd_notify_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** Nanoseconds within which the manager wants a sign of life; 0: it wants none. */
uint64_t sd_notify_watchdog_ns(void);

#endif
