/*
 * link.c: one connection's socket.
 */
#include "bench/load/link.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

void link_close(struct link *link) {
    if (link->fd >= 0) {
        close(link->fd);
    }
    link->fd = -1;
    link->state = LINK_CLOSED;
}

bool link_connected(struct link *link) {
    struct sockaddr_storage peer;
    socklen_t size = sizeof(int), peer_size = sizeof peer;
    int error = 0;
    getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
        link_close(link);
        return false;
    }
    return getpeername(link->fd, (struct sockaddr *)&peer, &peer_size) == 0;
}

bool link_is_sent(const struct link *link) {
    return link->done == link->out_size + link->rest_size;
}

bool link_send(struct link *link) {
    while (!link_is_sent(link)) {
        struct iovec parts[2];
        struct msghdr message = {.msg_iov = parts};
        size_t head = link->done < link->out_size ? link->done : link->out_size;
        size_t rest = link->done - head;
        parts[0] = (struct iovec){link->out + head, link->out_size - head};
        parts[1] = (struct iovec){(void *)(uintptr_t)(link->rest + rest), link->rest_size - rest};
        message.msg_iovlen = link->rest_size > 0 ? 2 : 1;
        ssize_t sent = sendmsg(link->fd, &message, MSG_NOSIGNAL);
        if (sent < 0) {
            return errno == EAGAIN;
        }
        link->done += (size_t)sent;
    }
    return true;
}

enum link_event link_receive(struct link *link, char *input, size_t size) {
    for (;;) {
        ssize_t got = recv(link->fd, input, size, 0);
        if (got < 0 && errno == EAGAIN) {
            return LINK_MORE;
        }
        if (got <= 0) {
            return got == 0 && answer_close(&link->answer) ? LINK_ANSWERED : LINK_LOST;
        }
        size_t used = answer_feed(&link->answer, input, (size_t)got);
        if (link->answer.state == ANSWER_BROKEN || used != (size_t)got) {
            return LINK_CONFUSED;
        }
        if (link->answer.state == ANSWER_DONE) {
            return LINK_ANSWERED;
        }
    }
}
