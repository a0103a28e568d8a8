/*
 * response.c: bytes with an owner each, and headers.
 */
#include "server/http/response.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static _Thread_local uint64_t made_size;

/* Keeps a block until the library has sent it. */
struct lease {
    struct arena *arena;
    struct block block;
};

static void lease_end(void *context) {
    struct lease *lease = context;
    arena_give(lease->arena, &lease->block);
    free(lease);
}

/* The library takes non-const pointers for buffers it only reads. */
static void *unconst(const void *bytes) {
    return (void *)(uintptr_t)bytes;
}

struct MHD_Response *response_constant(const void *bytes, size_t size) {
    made_size = size;
    return MHD_create_response_from_buffer(size, unconst(bytes), MHD_RESPMEM_PERSISTENT);
}

struct MHD_Response *response_copy(const void *bytes, size_t size) {
    made_size = size;
    return MHD_create_response_from_buffer(size, unconst(bytes), MHD_RESPMEM_MUST_COPY);
}

struct MHD_Response *response_owned(char *bytes, size_t size) {
    made_size = size;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(bytes);
    }
    return response;
}

struct MHD_Response *response_block(struct arena *arena, struct block *block, uint64_t size) {
    struct lease *lease = malloc(sizeof *lease);
    if (lease == NULL) {
        arena_give(arena, block);
        return NULL;
    }
    made_size = size;
    arena_trim(arena, block, size);
    *lease = (struct lease){arena, *block};
    *block = (struct block){0, 0};
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
        (size_t)size, arena_at(arena, lease->block.offset), lease_end, lease);
    if (response == NULL) {
        lease_end(lease);
    }
    return response;
}

struct MHD_Response *response_file(int fd, uint64_t offset, uint64_t size) {
    struct MHD_Response *response = MHD_create_response_from_fd_at_offset64(size, fd, offset);
    made_size = size;
    if (response == NULL) {
        close(fd);
    }
    return response;
}

void response_header(struct MHD_Response *response, const char *name, const char *format, ...) {
    char value[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    if (response != NULL) {
        MHD_add_response_header(response, name, value);
    }
}

void response_secure(struct MHD_Response *response, const char *policy) {
    response_header(response, "Content-Security-Policy", "%s", policy);
    response_header(response, "Referrer-Policy", "no-referrer");
}

uint64_t response_size_last(void) {
    return made_size;
}
