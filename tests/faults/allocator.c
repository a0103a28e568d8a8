/*
 * allocator.c: malloc and its family for LD_PRELOAD, one chosen call of which fails.
 *
 * Which one is said in shared memory (control.h), so that a test chooses while the program runs.
 * Blocks that are not freed are counted. All real work is the C library's.
 */
#include "tests/faults/control.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static struct fault_block *block; /* NULL in programs that are not watched */

/* kilnd's role is its second argument; the front has none or a flag there. */
static enum fault_role role_read(void) {
    char line[512] = "";
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, line, sizeof line - 1) : 0;
    close(fd);
    const char *second = memchr(line, '\0', size > 0 ? (size_t)size : 1);
    if (second == NULL || strncmp(second + 1, "--", 2) == 0) {
        return FAULT_FRONT;
    }
    return strcmp(second + 1, "worker") == 0 ? FAULT_WORKER : FAULT_ROLES;
}

__attribute__((constructor)) static void attach(void) {
    const char *path = getenv("KILN_FAULTS");
    enum fault_role role = role_read();
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    size_t size = FAULT_ROLES * sizeof *block;
    void *place = fd >= 0 && role < FAULT_ROLES
                      ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                      : MAP_FAILED;
    if (fd >= 0) {
        close(fd);
    }
    if (place != MAP_FAILED) {
        block = (struct fault_block *)place + role;
    }
}

static bool fails(void) {
    if (block == NULL) {
        return false;
    }
    atomic_fetch_add_explicit(&block->calls, 1, memory_order_relaxed);
    int64_t left = atomic_load_explicit(&block->countdown, memory_order_relaxed);
    while (left > 0 && !atomic_compare_exchange_weak(&block->countdown, &left, left - 1)) {
    }
    if (left != 1) {
        return false;
    }
    atomic_fetch_add_explicit(&block->failed, 1, memory_order_relaxed);
    errno = ENOMEM;
    return true;
}

static void *counted(void *made) {
    if (made != NULL && block != NULL) {
        atomic_fetch_add_explicit(&block->live, 1, memory_order_relaxed);
    }
    return made;
}

void *malloc(size_t size) {
    return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t count, size_t size) {
    return fails() ? NULL : counted(__libc_calloc(count, size));
}

void *realloc(void *old, size_t size) {
    if (fails()) {
        return NULL;
    }
    void *made = __libc_realloc(old, size);
    return old == NULL ? counted(made) : made;
}

void *memalign(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size) {
    return fails() ? NULL : counted(__libc_memalign(alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size) {
    return memalign(alignment, size);
}

int posix_memalign(void **made, size_t alignment, size_t size) {
    void *place = memalign(alignment, size);
    if (place == NULL) {
        return ENOMEM;
    }
    *made = place;
    return 0;
}

void free(void *old) {
    if (old != NULL && block != NULL) {
        atomic_fetch_sub_explicit(&block->live, 1, memory_order_relaxed);
    }
    __libc_free(old);
}
