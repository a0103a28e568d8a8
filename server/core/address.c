/*
 * address.c: socket addresses to addresses and back to text.
 */
#include "server/core/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

struct address address_of(const struct sockaddr *socket) {
    struct address address = {{0, 0}};
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (socket != NULL && socket->sa_family == AF_INET) {
        memcpy(&v4, socket, sizeof v4);
        address = (struct address){{v4.sin_addr.s_addr, 4}};
    } else if (socket != NULL && socket->sa_family == AF_INET6) {
        memcpy(&v6, socket, sizeof v6);
        uint32_t mapped;
        memcpy(&mapped, v6.sin6_addr.s6_addr + 12, sizeof mapped);
        memcpy(&address.words[0], v6.sin6_addr.s6_addr, sizeof address.words[0]);
        address.words[1] = 6;
        if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
            address = (struct address){{mapped, 4}};
        }
    }
    return address;
}

void address_text(struct address address, char *out, size_t size) {
    struct in_addr v4 = {.s_addr = (in_addr_t)address.words[0]};
    struct in6_addr v6 = {.s6_addr = {0}};
    char text[INET6_ADDRSTRLEN] = "";
    memcpy(v6.s6_addr, &address.words[0], sizeof address.words[0]);
    if (address.words[1] == 4) {
        inet_ntop(AF_INET, &v4, text, sizeof text);
    } else if (address.words[1] == 6) {
        inet_ntop(AF_INET6, &v6, text, sizeof text);
    }
    snprintf(out, size, "%s%s", text, address.words[1] == 6 ? "/64" : "");
}
