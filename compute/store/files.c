/*
 * files.c: the state directory (files.h). One thread.
 */
#include "compute/store/files.h"

#include "compute/core/log.h"
#include "compute/store/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#define CHUNK       ((size_t)256 << 10)
#define SWEEP_PIECE 256
#define TEMPORARY   ".tmp-"

struct files {
    int directory, blobs;
    DIR *sweep; /* NULL: done */
    uint8_t *chunk;
    uint64_t next; /* number of the next temporary file */
    bool renamed;  /* since the last sync */
};

/* Numbers of linux/magic.h and of file systems that have none there. */
bool files_local(int64_t type) {
    static const uint32_t remote[] = {
        0x6969,     /* NFS */
        0x517b,     /* SMB */
        0xfe534d42, /* SMB 2 */
        0xff534d42, /* CIFS */
        0x01021997, /* 9P */
        0x00c36400, /* Ceph */
        0x0bd00bd0, /* Lustre */
        0x5346414f, /* AFS */
        0x73757245, /* Coda */
        0x65735546, /* FUSE: sshfs and others; what it keeps is unknown */
        0x47504653, /* GPFS */
        0x19830326, /* BeeGFS */
        0x01161970, /* GFS2 */
        0x7461636f, /* OCFS2 */
    };
    for (size_t i = 0; i < sizeof remote / sizeof *remote; i++) {
        if ((uint32_t)type == remote[i]) {
            return false;
        }
    }
    return true;
}

static enum kiln_status failure(int error) {
    return error == ENOSPC || error == EDQUOT || error == EFBIG ? KILN_STORE_FULL : KILN_STORE;
}

/* ---- the directory ---- */

static int folder_open(int parent, const char *path, char *why, size_t why_size) {
    if (mkdirat(parent, path, 0700) != 0 && errno != EEXIST) {
        snprintf(why, why_size, "%.200s cannot be made: %s", path, strerror(errno));
        return -1;
    }
    int fd = openat(parent, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        snprintf(why, why_size, "%.200s: %s", path, strerror(errno));
    }
    return fd;
}

static bool directory_sound(int fd, const char *path, char *why, size_t why_size) {
    struct statfs system;
    struct stat status;
    if (fstatfs(fd, &system) != 0 || fstat(fd, &status) != 0) {
        snprintf(why, why_size, "%.200s: %s", path, strerror(errno));
        return false;
    }
    if (!files_local((int64_t)system.f_type)) {
        snprintf(why, why_size,
                 "%.200s lies on a network file system (type %#llx), where neither locks nor syncs "
                 "can be relied on; name a directory on a local disk",
                 path, (unsigned long long)system.f_type);
        return false;
    }
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        snprintf(why, why_size, "%.200s can be written by other users; chmod go-w it", path);
        return false;
    }
    return true;
}

enum kiln_status files_open(const char *directory, struct files **out, char *why, size_t why_size) {
    struct files *files = calloc(1, sizeof *files);
    if (files == NULL) {
        return KILN_NO_MEMORY;
    }
    files->directory = files->blobs = -1;
    files->chunk = malloc(CHUNK);
    if (files->chunk == NULL) {
        files_close(files);
        return KILN_NO_MEMORY;
    }
    files->directory = folder_open(AT_FDCWD, directory, why, why_size);
    if (files->directory < 0 || !directory_sound(files->directory, directory, why, why_size) ||
        (files->blobs = folder_open(files->directory, "blobs", why, why_size)) < 0) {
        files_close(files);
        return KILN_STORE;
    }
    if (fsync(files->directory) != 0) {
        snprintf(why, why_size, "%.200s cannot be synced: %s", directory, strerror(errno));
        files_close(files);
        return KILN_STORE;
    }
    *out = files;
    return KILN_OK;
}

void files_close(struct files *files) {
    if (files == NULL) {
        return;
    }
    if (files->sweep != NULL) {
        closedir(files->sweep);
    }
    if (files->blobs >= 0) {
        close(files->blobs);
    }
    if (files->directory >= 0) {
        close(files->directory);
    }
    free(files->chunk);
    free(files);
}

/* ---- one file ---- */

void files_hash(const void *data, size_t size, uint8_t hash[STORE_HASH]) {
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, data, size, hash) != 0) {
        log_error("SHA-256 is not to be had");
        abort(); /* a library without it cannot have started */
    }
}

static bool write_all(int fd, const uint8_t *data, size_t size) {
    while (size > 0) {
        ssize_t written = write(fd, data, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        data += written;
        size -= (size_t)written;
    }
    return true;
}

/* Through a chunk of our own: others may write to the bytes meanwhile. 0, or an errno. */
static int write_hashed(struct files *files, int fd, const struct store_bytes *bytes,
                        uint8_t hash[STORE_HASH]) {
    gnutls_hash_hd_t digest;
    const uint8_t *data = bytes->data;
    size_t left = bytes->size;
    int error = 0;
    if (gnutls_hash_init(&digest, GNUTLS_DIG_SHA256) != 0) {
        return ENOMEM;
    }
    while (left > 0 && error == 0) {
        size_t piece = left < CHUNK ? left : CHUNK;
        memcpy(files->chunk, data, piece);
        gnutls_hash(digest, files->chunk, piece);
        error = write_all(fd, files->chunk, piece) ? 0 : errno;
        data += piece;
        left -= piece;
    }
    gnutls_hash_deinit(digest, hash);
    return error;
}

enum kiln_status files_write(struct files *files, const struct store_bytes *bytes,
                             files_known *known, void *context, uint8_t hash[STORE_HASH]) {
    char temporary[32], name[HASH_TEXT];
    snprintf(temporary, sizeof temporary, TEMPORARY "%llu", (unsigned long long)files->next++);
    int fd = openat(files->blobs, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return failure(errno);
    }
    int error = write_hashed(files, fd, bytes, hash);
    bool kept = error == 0 && !known(context, hash);
    if (kept && fdatasync(fd) != 0) {
        error = errno;
    }
    close(fd);
    hash_print(hash, name);
    if (kept && error == 0 && renameat(files->blobs, temporary, files->blobs, name) != 0) {
        error = errno;
    }
    if (!kept || error != 0) {
        unlinkat(files->blobs, temporary, 0);
    }
    files->renamed = files->renamed || (kept && error == 0);
    return error == 0 ? KILN_OK : failure(error);
}

enum kiln_status files_sync(struct files *files) {
    if (files->renamed && fsync(files->blobs) != 0) {
        return failure(errno);
    }
    files->renamed = false;
    return KILN_OK;
}

int files_read(const struct files *files, const uint8_t hash[STORE_HASH], uint64_t *size) {
    char name[HASH_TEXT];
    struct stat status;
    hash_print(hash, name);
    int fd = openat(files->blobs, name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && fstat(fd, &status) != 0) {
        close(fd);
        return -1;
    }
    *size = fd >= 0 ? (uint64_t)status.st_size : 0;
    return fd;
}

void files_remove(struct files *files, const uint8_t hash[STORE_HASH]) {
    char name[HASH_TEXT];
    hash_print(hash, name);
    if (unlinkat(files->blobs, name, 0) != 0 && errno != ENOENT) {
        log_warning("store: blobs/%s cannot be removed: %s", name, strerror(errno));
    }
}

/* ---- all files ---- */

static DIR *listing_open(const struct files *files) {
    int fd = openat(files->blobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = fd >= 0 ? fdopendir(fd) : NULL;
    if (listing == NULL && fd >= 0) {
        close(fd);
    }
    return listing;
}

bool files_sweep(struct files *files, files_known *known, void *context) {
    uint8_t hash[STORE_HASH];
    const struct dirent *entry;
    if (files->sweep == NULL && (files->sweep = listing_open(files)) == NULL) {
        return true;
    }
    for (int i = 0; i < SWEEP_PIECE; i++) {
        if ((entry = readdir(files->sweep)) == NULL) {
            closedir(files->sweep);
            files->sweep = NULL;
            return true;
        }
        /* between transactions no file is being written */
        bool temporary = strncmp(entry->d_name, TEMPORARY, strlen(TEMPORARY)) == 0;
        if (temporary || (hash_parse(entry->d_name, hash) && !known(context, hash))) {
            unlinkat(files->blobs, entry->d_name, 0);
        }
    }
    return false;
}

void files_each(struct files *files, void (*each)(void *context, const uint8_t hash[STORE_HASH]),
                void *context) {
    uint8_t hash[STORE_HASH];
    const struct dirent *entry;
    DIR *listing = listing_open(files);
    while (listing != NULL && (entry = readdir(listing)) != NULL) {
        if (hash_parse(entry->d_name, hash)) {
            each(context, hash);
        }
    }
    if (listing != NULL) {
        closedir(listing);
    }
}

/* ---- room ---- */

int64_t files_free(const struct files *files) {
    struct statvfs system;
    if (fstatvfs(files->directory, &system) != 0) {
        return 0;
    }
    return (int64_t)(system.f_bavail * system.f_frsize);
}

bool files_ballast_take(struct files *files) {
    int fd = openat(files->directory, "ballast", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    int error = posix_fallocate(fd, 0, FILES_BALLAST);
    close(fd);
    if (error != 0) {
        files_ballast_give(files);
    }
    return error == 0;
}

void files_ballast_give(struct files *files) {
    unlinkat(files->directory, "ballast", 0);
}
