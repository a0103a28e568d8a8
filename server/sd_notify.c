/*
 * sd_notify.c: datagrams to a local socket.
 *
 * The name is a path, or begins with '@' for Linux's abstract names. The socket is connected once,
 * at the start, so that nothing has to be opened later. A manager that does not listen is no reason
 * to fail: the daemon serves all the same.
 */
#include "server/sd_notify.h"

#include "compute/core/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int manager = -1;
static uint64_t watchdog_ns;

static void manager_connect(const char *name) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = name != NULL ? strlen(name) : 0;
    if (size < 2 || size >= sizeof address.sun_path || (name[0] != '/' && name[0] != '@')) {
        return;
    }
    memcpy(address.sun_path, name, size);
    if (name[0] == '@') {
        address.sun_path[0] = '\0';
    }
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (manager < 0 || connect(manager, (const struct sockaddr *)&address, length) != 0) {
        log_warning("NOTIFY_SOCKET: %s", strerror(errno));
        if (manager >= 0) {
            close(manager);
        }
        manager = -1;
    }
}

/* WATCHDOG_PID: the variables may be inherited from another service. */
static uint64_t watchdog_read(const char *period, const char *pid) {
    char *end = NULL;
    if (period == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid())) {
        return 0;
    }
    errno = 0;
    unsigned long long us = strtoull(period, &end, 10);
    bool good = errno == 0 && end != period && *end == '\0' && period[0] != '-';
    return good && us < UINT64_MAX / 1000 ? us * 1000 : 0;
}

void sd_notify_open(void) {
    manager_connect(getenv("NOTIFY_SOCKET"));
    watchdog_ns = manager >= 0 ? watchdog_read(getenv("WATCHDOG_USEC"), getenv("WATCHDOG_PID")) : 0;
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

void sd_notify_send(const char *format, ...) {
    char text[512];
    va_list arguments;
    if (manager < 0) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (send(manager, text, strlen(text), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) {
        log_warning("NOTIFY_SOCKET: %s", strerror(errno));
    }
}

uint64_t sd_notify_watchdog_ns(void) {
    return watchdog_ns;
}
