/*
 * disk.c: the disk of disk.h: its own open, write, fsync … before the C library's.
 *
 * Syncs do not reach the real disk while a record is made: what they promise is kept there.
 */
#include "tests/faults/disk.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FDS    1024
#define NAMES  4096
#define NAME   96
#define SECTOR 512

enum kind { WRITE, SIZE, SYNC, LINK, UNLINK, SYNC_FOLDER };

struct moment {
    enum kind kind;
    int file, name; /* SYNC_FOLDER: `file` is 1 for the folder below */
    int64_t offset;
    size_t size;
    uint8_t *data;
};

static struct {
    char root[256];
    const int64_t *quota;
    bool record;
    struct moment *moments;
    size_t count, capacity;
    char names[NAMES][NAME];
    int current[NAMES]; /* the file of a name, -1 none */
    int name_count, file_count;
    int64_t sizes[NAMES * 2], used;
} disk;

/* What a descriptor is: 0 nothing of ours, 1 the root, 2 the folder below, else a file + 3. */
static int watched[FDS];

#define REAL(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

/* ---- names ---- */

/* The part of a path below the root; NULL for others. */
static const char *below(int folder, const char *path, char out[NAME]) {
    size_t size = strlen(disk.root);
    if (size == 0) {
        return NULL;
    }
    if (path[0] == '/') {
        if (strncmp(path, disk.root, size) != 0 || (path[size] != '/' && path[size] != '\0')) {
            return NULL;
        }
        snprintf(out, NAME, "%s", path[size] == '/' ? path + size + 1 : "");
        return out;
    }
    int what = folder >= 0 && folder < FDS ? watched[folder] : 0;
    if (what != 1 && what != 2) {
        return NULL;
    }
    snprintf(out, NAME, "%s%s", what == 2 ? "blobs/" : "", strcmp(path, ".") == 0 ? "" : path);
    return out;
}

static int name_find(const char *name) {
    for (int i = 0; i < disk.name_count; i++) {
        if (strcmp(disk.names[i], name) == 0) {
            return i;
        }
    }
    if (disk.name_count == NAMES) {
        abort();
    }
    snprintf(disk.names[disk.name_count], NAME, "%s", name);
    disk.current[disk.name_count] = -1;
    return disk.name_count++;
}

static void note(enum kind kind, int file, int name, int64_t offset, const void *data,
                 size_t size) {
    if (!disk.record) {
        return;
    }
    if (disk.count == disk.capacity) {
        disk.capacity = disk.capacity == 0 ? 1024 : 2 * disk.capacity;
        disk.moments = realloc(disk.moments, disk.capacity * sizeof *disk.moments);
    }
    struct moment *moment = &disk.moments[disk.count++];
    *moment = (struct moment){kind, file, name, offset, size, NULL};
    if (data != NULL) {
        moment->data = malloc(size + 1);
        memcpy(moment->data, data, size);
    }
}

static bool grow(int file, int64_t size) {
    int64_t more = size - disk.sizes[file];
    if (more > 0 && disk.quota != NULL && disk.used + more > *disk.quota) {
        errno = ENOSPC;
        return false;
    }
    if (more > 0) {
        disk.sizes[file] = size;
        disk.used += more;
    }
    return true;
}

static void name_set(int name, int file) {
    int before = disk.current[name];
    if (before >= 0 && file != before) {
        disk.used -= disk.sizes[before];
        disk.sizes[before] = 0;
    }
    disk.current[name] = file;
    note(file >= 0 ? LINK : UNLINK, file, name, 0, NULL, 0);
}

void disk_watch(const char *directory, const int64_t *quota, bool record) {
    disk_forget();
    snprintf(disk.root, sizeof disk.root, "%s", directory);
    disk.quota = quota;
    disk.record = record;
}

void disk_forget(void) {
    for (size_t i = 0; i < disk.count; i++) {
        free(disk.moments[i].data);
    }
    free(disk.moments);
    memset(&disk, 0, sizeof disk);
    memset(watched, 0, sizeof watched);
}

int64_t disk_used(void) {
    return disk.used;
}

size_t disk_moment(void) {
    return disk.count;
}

/* ---- in front of the C library ---- */

static int opened(int fd, int folder, const char *path, int flags) {
    char name[NAME];
    if (fd < 0 || fd >= FDS || below(folder, path, name) == NULL) {
        return fd;
    }
    if (name[0] == '\0' || strcmp(name, "blobs") == 0 || strcmp(name, "blobs/") == 0) {
        watched[fd] = name[0] == '\0' ? 1 : 2;
        return fd;
    }
    int place = name_find(name);
    if (disk.current[place] < 0) {
        name_set(place, disk.file_count++);
    }
    watched[fd] = 3 + disk.current[place];
    if ((flags & O_TRUNC) != 0) {
        disk.used -= disk.sizes[disk.current[place]];
        disk.sizes[disk.current[place]] = 0;
        note(SIZE, disk.current[place], 0, 0, NULL, 0);
    }
    return fd;
}

static mode_t mode_of(int flags, va_list more) {
    return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(more, mode_t) : 0;
}

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...) {                                                   \
        va_list more;                                                                              \
        va_start(more, flags);                                                                     \
        mode_t mode = mode_of(flags, more);                                                        \
        va_end(more);                                                                              \
        return opened(REAL(name)(path, flags, mode), AT_FDCWD, path, flags);                       \
    }
OPEN(open)
OPEN(open64)

int openat(int folder, const char *path, int flags, ...) {
    va_list more;
    va_start(more, flags);
    mode_t mode = mode_of(flags, more);
    va_end(more);
    return opened(REAL(openat)(folder, path, flags, mode), folder, path, flags);
}

int close(int fd) {
    if (fd >= 0 && fd < FDS) {
        watched[fd] = 0;
    }
    return REAL(close)(fd);
}

static int file_of(int fd) {
    return fd >= 0 && fd < FDS ? watched[fd] - 3 : -1;
}

ssize_t write(int fd, const void *bytes, size_t size) {
    int file = file_of(fd);
    int64_t offset = file >= 0 ? lseek(fd, 0, SEEK_CUR) : 0;
    if (file >= 0 && !grow(file, offset + (int64_t)size)) {
        return -1;
    }
    if (file >= 0) {
        note(WRITE, file, 0, offset, bytes, size);
    }
    return REAL(write)(fd, bytes, size);
}

#define PWRITE(name)                                                                               \
    ssize_t name(int fd, const void *bytes, size_t size, off_t offset) {                           \
        int file = file_of(fd);                                                                    \
        if (file >= 0 && !grow(file, offset + (int64_t)size)) {                                    \
            return -1;                                                                             \
        }                                                                                          \
        if (file >= 0) {                                                                           \
            note(WRITE, file, 0, offset, bytes, size);                                             \
        }                                                                                          \
        return REAL(name)(fd, bytes, size, offset);                                                \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define FTRUNCATE(name)                                                                            \
    int name(int fd, off_t size) {                                                                 \
        int file = file_of(fd);                                                                    \
        if (file >= 0 && !grow(file, size)) {                                                      \
            return -1;                                                                             \
        }                                                                                          \
        if (file >= 0) {                                                                           \
            disk.used -= disk.sizes[file] - size;                                                  \
            disk.sizes[file] = size;                                                               \
            note(SIZE, file, 0, size, NULL, 0);                                                    \
        }                                                                                          \
        return REAL(name)(fd, size);                                                               \
    }
FTRUNCATE(ftruncate)
FTRUNCATE(ftruncate64)

/* The ballast counts and has no bytes. */
int posix_fallocate(int fd, off_t offset, off_t size) {
    int file = file_of(fd);
    if (file < 0) {
        return REAL(posix_fallocate)(fd, offset, size);
    }
    return grow(file, offset + size) ? 0 : ENOSPC;
}

static bool synced(int fd) {
    int what = fd >= 0 && fd < FDS ? watched[fd] : 0;
    if (what >= 3) {
        note(SYNC, what - 3, 0, 0, NULL, 0);
    } else if (what > 0) {
        note(SYNC_FOLDER, what == 2, 0, 0, NULL, 0);
    }
    return what > 0;
}

int fsync(int fd) {
    return synced(fd) || disk.record ? 0 : REAL(fsync)(fd);
}

int fdatasync(int fd) {
    return synced(fd) || disk.record ? 0 : REAL(fdatasync)(fd);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    char one[NAME], other[NAME];
    int result = REAL(renameat)(from_folder, from, to_folder, to);
    if (result == 0 && below(from_folder, from, one) != NULL &&
        below(to_folder, to, other) != NULL) {
        int before = name_find(one), after = name_find(other), file = disk.current[before];
        name_set(after, file);
        disk.current[before] = -1;
        note(UNLINK, -1, before, 0, NULL, 0);
    }
    return result;
}

static int unlinked(int result, int folder, const char *path) {
    char name[NAME];
    if (result == 0 && below(folder, path, name) != NULL) {
        name_set(name_find(name), -1);
    }
    return result;
}

int unlink(const char *path) {
    return unlinked(REAL(unlink)(path), AT_FDCWD, path);
}

int unlinkat(int folder, const char *path, int flags) {
    return unlinked(REAL(unlinkat)(folder, path, flags), folder, path);
}

int fstatvfs(int fd, struct statvfs *system) {
    int result = REAL(fstatvfs)(fd, system);
    if (result == 0 && fd >= 0 && fd < FDS && watched[fd] > 0 && disk.quota != NULL) {
        int64_t left = *disk.quota - disk.used;
        system->f_frsize = 1;
        system->f_bavail = left > 0 ? (fsblkcnt_t)left : 0;
    }
    return result;
}

/* ---- a cut ---- */

struct image {
    uint8_t *data;
    size_t size, capacity;
};

static void image_size(struct image *image, size_t size) {
    if (size > image->capacity) {
        image->capacity = 2 * size;
        image->data = realloc(image->data, image->capacity);
    }
    if (size > image->size) {
        memset(image->data + image->size, 0, size - image->size);
    }
    image->size = size;
}

static uint64_t random_next(uint64_t *seed) {
    uint64_t value = *seed += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return value ^ value >> 31;
}

/* Carries a write out, of each sector with one chance in two where it is not to be whole. */
static void moment_apply(struct image *image, const struct moment *moment, bool whole,
                         uint64_t *seed) {
    if (moment->kind == SIZE) {
        if (whole || (random_next(seed) & 1) != 0) {
            image_size(image, (size_t)moment->offset);
        }
        return;
    }
    for (size_t at = 0; at < moment->size;) {
        size_t place = (size_t)moment->offset + at, piece = SECTOR - place % SECTOR;
        piece = piece < moment->size - at ? piece : moment->size - at;
        if (whole || (random_next(seed) & 1) != 0) {
            if (place + piece > image->size) {
                image_size(image, place + piece);
            }
            memcpy(image->data + place, moment->data + at, piece);
        }
        at += piece;
    }
}

static void file_write(const char *target, const char *name, const struct image *image) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", target, name);
    int fd = REAL(open)(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || (image->size > 0 && REAL(write)(fd, image->data, image->size) < 0)) {
        abort();
    }
    REAL(close)(fd);
}

/* The moment of the last sync of each file before `end`, exclusive; all is kept before it. */
static void syncs_find(size_t end, bool honest, size_t *file_synced, size_t folder_synced[2]) {
    for (size_t i = 0; i < end && honest; i++) {
        const struct moment *moment = &disk.moments[i];
        if (moment->kind == SYNC) {
            file_synced[moment->file] = i;
        } else if (moment->kind == SYNC_FOLDER) {
            folder_synced[moment->file] = i;
        }
    }
}

static void names_write(size_t end, const size_t folder_synced[2], uint64_t *seed, int mode,
                        const struct image *images, const char *target) {
    for (int name = 0; name < disk.name_count; name++) {
        int choices[64] = {-1}, count = 1;
        size_t synced_at = folder_synced[strncmp(disk.names[name], "blobs/", 6) == 0];
        for (size_t i = 0; i < end; i++) {
            const struct moment *moment = &disk.moments[i];
            if ((moment->kind != LINK && moment->kind != UNLINK) || moment->name != name) {
                continue;
            }
            if (i < synced_at || count == 64) {
                count = 0; /* what was before is past */
            }
            choices[count++] = moment->kind == LINK ? moment->file : -1;
        }
        int file = choices[mode == 0   ? 0
                           : mode == 1 ? count - 1
                                       : (int)(random_next(seed) % (uint64_t)count)];
        if (file >= 0 && strcmp(disk.names[name], "ballast") != 0) {
            file_write(target, disk.names[name], &images[file]);
        }
    }
}

void disk_cut(size_t end, bool honest, uint64_t *seed, const char *target) {
    struct image *images = calloc((size_t)disk.file_count + 1, sizeof *images);
    size_t *file_synced = calloc((size_t)disk.file_count + 1, sizeof *file_synced);
    size_t folder_synced[2] = {0};
    int mode = (int)(random_next(seed) % 4); /* nothing more than synced, everything, or some */
    char blobs[512];
    snprintf(blobs, sizeof blobs, "%s/blobs", target);
    mkdir(blobs, 0700);
    syncs_find(end, honest, file_synced, folder_synced);
    for (size_t i = 0; i < end; i++) {
        const struct moment *moment = &disk.moments[i];
        if (moment->kind != WRITE && moment->kind != SIZE) {
            continue;
        }
        bool kept = i < file_synced[moment->file] || mode == 1;
        if (kept || mode > 1) {
            moment_apply(&images[moment->file], moment, kept, seed);
        }
    }
    names_write(end, folder_synced, seed, mode, images, target);
    for (int i = 0; i < disk.file_count; i++) {
        free(images[i].data);
    }
    free(images);
    free(file_synced);
}
