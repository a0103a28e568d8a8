/*
 * notify.c: one datagram to a local socket.
 *
 * The name is a path, or begins with '@' for Linux's abstract names. A manager that does not listen
 * is no reason to fail: the daemon serves all the same.
 */
#include "server/notify.h"

#include "compute/log.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void notify_send(const char *state) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *name = getenv("NOTIFY_SOCKET");
    size_t size = name != NULL ? strlen(name) : 0;
    if (size < 2 || size >= sizeof address.sun_path || (name[0] != '/' && name[0] != '@')) {
        return;
    }
    memcpy(address.sun_path, name, size);
    if (name[0] == '@') {
        address.sun_path[0] = '\0';
    }
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL | MSG_DONTWAIT,
                         (const struct sockaddr *)&address, length) < 0) {
        log_warning("NOTIFY_SOCKET: %s", strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
}
