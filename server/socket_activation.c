/*
 * socket_activation.c: LISTEN_PID, LISTEN_FDS, and what descriptor 3 is.
 */
#include "server/socket_activation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FIRST_FD 3

static int passed = -1;
static bool taken;

static long number_of(const char *name) {
    const char *text = getenv(name);
    char *end = NULL;
    errno = 0;
    long number = text != NULL ? strtol(text, &end, 10) : -1;
    return text != NULL && end != text && *end == '\0' && errno == 0 ? number : -1;
}

static int option_of(int fd, int name) {
    int value = -1;
    socklen_t size = sizeof value;
    return getsockopt(fd, SOL_SOCKET, name, &value, &size) == 0 ? value : -1;
}

/* NULL, or what is wrong with the socket. */
static const char *descriptor_check(int fd) {
    int domain = option_of(fd, SO_DOMAIN);
    if (option_of(fd, SO_TYPE) != SOCK_STREAM) {
        return "it is not a stream socket (ListenStream=)";
    }
    if (domain != AF_INET && domain != AF_INET6 && domain != AF_UNIX) {
        return "it is neither of IPv4 nor of IPv6 nor of the local host";
    }
    if (option_of(fd, SO_ACCEPTCONN) != 1) {
        return "it does not listen (Accept=no)";
    }
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        return "its flags cannot be set";
    }
    return NULL;
}

bool socket_activation_take(char *why, size_t why_size) {
    bool ours = number_of("LISTEN_PID") == (long)getpid();
    long count = number_of("LISTEN_FDS");
    bool said = getenv("LISTEN_FDS") != NULL;
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (!ours || !said || count == 0) {
        return true;
    }
    if (count != 1) {
        snprintf(why, why_size,
                 "socket activation: one listening socket is served on, and LISTEN_FDS says %ld",
                 count);
        return false;
    }
    const char *wrong = descriptor_check(FIRST_FD);
    if (wrong != NULL) {
        snprintf(why, why_size, "socket activation: descriptor %d: %s", FIRST_FD, wrong);
        return false;
    }
    passed = FIRST_FD;
    taken = true;
    return true;
}

int socket_activation_socket(void) {
    int fd = passed;
    passed = -1;
    return fd;
}

bool socket_activation_taken(void) {
    return taken;
}
