/*
 * tool.c: the commands of an operator (tool.h). Main thread.
 */
#include "compute/store/tool.h"

#include "compute/core/log.h"
#include "compute/store/process.h"
#include "compute/store/sqlite.h"
#include "compute/worker/capabilities.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define PATH_SIZE  1200
#define LINE_MAX_  (6 * (STORE_PARAMS_MAX + STORE_OUTCOME_MAX) + 16384)

static int usage(void) {
    fprintf(stderr,
            "usage: kilnd store check DIR          holds all jobs, inputs and results against one "
            "another\n"
            "       kilnd store backup DIR TARGET  copies them to a new directory\n"
            "       kilnd store export DIR         writes every job as a line of JSON\n"
            "       kilnd store bench DIR [JOBS]   measures this disk: syncs and jobs accepted a "
            "second\n"
            "DIR is the daemon's --state-dir. The first three want it for themselves: stop the "
            "daemon.\n");
    return EXIT_USAGE;
}

static struct store *inspect(const char *directory) {
    const struct store_options options = {.directory = directory, .inspect = true};
    struct store *store = NULL;
    char why[320], path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/store.db", directory);
    if (access(path, F_OK) != 0) {
        fprintf(stderr, "kilnd store: there is no %s\n", path);
    } else if (store_open(&options, &store, why, sizeof why) != KILN_OK) {
        fprintf(stderr, "kilnd store: %s\n", why);
    }
    return store;
}

/* ---- check ---- */

/* Calls `each` with every row of a query; the number of those that it calls wrong. -1: no answer.
 */
static int64_t rows_check(struct sqlite_store *store, const char *sql,
                          int64_t (*each)(struct sqlite_store *store, sqlite3_stmt *row)) {
    sqlite3_stmt *row = NULL;
    int64_t wrong = 0;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &row, NULL);
    while (code == SQLITE_OK || code == SQLITE_ROW) {
        code = sqlite3_step(row);
        wrong += code == SQLITE_ROW ? each(store, row) : 0;
    }
    sqlite3_finalize(row);
    if (code != SQLITE_DONE) {
        printf("store.db: %s\n", sqlite3_errmsg(store->db));
        wrong++;
    }
    return wrong;
}

static int64_t integrity_row(struct sqlite_store *store, sqlite3_stmt *row) {
    const char *text = (const char *)sqlite3_column_text(row, 0);
    (void)store;
    if (strcmp(text, "ok") == 0) {
        return 0;
    }
    printf("store.db: %s\n", text);
    return 1;
}

/* What is said of one blob, its bytes at hand: whether they are those of its name. */
static int64_t bytes_check(const uint8_t hash[STORE_HASH], int64_t wanted, const void *data,
                           int64_t size) {
    uint8_t found[STORE_HASH];
    char name[HASH_TEXT];
    files_hash(data != NULL ? data : "", (size_t)size, found);
    if (size == wanted && memcmp(found, hash, STORE_HASH) == 0) {
        return 0;
    }
    hash_print(hash, name);
    printf("blob %s: its bytes are not those that it is named by\n", name);
    return 1;
}

static int64_t file_check(struct sqlite_store *store, const uint8_t hash[STORE_HASH],
                          int64_t bytes) {
    char name[HASH_TEXT];
    uint64_t size = 0;
    int fd = store->files != NULL ? files_read(store->files, hash, &size) : -1;
    void *data = fd >= 0 && size > 0 ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    if (fd >= 0) {
        close(fd);
    }
    if (fd < 0 || data == MAP_FAILED) {
        hash_print(hash, name);
        printf("blob %s: its file is missing\n", name);
        return 1;
    }
    int64_t wrong = bytes_check(hash, bytes, data, (int64_t)size);
    if (data != NULL) {
        munmap(data, size);
    }
    return wrong;
}

static int64_t blob_row(struct sqlite_store *store, sqlite3_stmt *row) {
    uint8_t hash[STORE_HASH];
    int64_t bytes = sqlite3_column_int64(row, 1);
    column_bytes(row, 0, hash, sizeof hash);
    return sqlite3_column_type(row, 2) != SQLITE_NULL
               ? bytes_check(hash, bytes, sqlite3_column_blob(row, 2), sqlite3_column_bytes(row, 2))
               : file_check(store, hash, bytes);
}

static int64_t count_row(struct sqlite_store *store, sqlite3_stmt *row) {
    int64_t count = sqlite3_column_int64(row, 1);
    (void)store;
    if (count > 0) {
        printf("%lld %s\n", (long long)count, (const char *)sqlite3_column_text(row, 0));
    }
    return count;
}

static const char references_sql[] =
    "WITH used(hash, n) AS (SELECT h, count(*) FROM (SELECT input AS h FROM job WHERE input IS NOT "
    "NULL UNION ALL SELECT result FROM job WHERE result IS NOT NULL) GROUP BY h) "
    "SELECT 'blobs with a wrong number of references', count(*) FROM blob LEFT JOIN used "
    "USING(hash) WHERE blob.refs IS NOT used.n "
    "UNION ALL SELECT 'inputs or results without a blob', count(*) FROM used LEFT JOIN blob "
    "USING(hash) WHERE blob.refs IS NULL";

static const char accounts_sql[] =
    "WITH s(owner, u, h, r) AS (SELECT owner, sum(state < 2), sum(input_bytes + iif(result IS NULL,"
    " 0, bytes)), sum(reserved) FROM job GROUP BY owner) "
    "SELECT 'owners whose account is wrong', count(*) FROM s LEFT JOIN account a USING(owner) "
    "WHERE a.unfinished IS NOT s.u OR a.held IS NOT s.h OR a.reserved IS NOT s.r "
    "UNION ALL SELECT 'accounts of nobody that are not empty', count(*) FROM account a "
    "LEFT JOIN s USING(owner) "
    "WHERE s.u IS NULL AND (a.unfinished <> 0 OR a.held <> 0 OR a.reserved <> 0)";

static const char states_sql[] =
    "SELECT 'jobs in a state that their times deny', count(*) FROM job "
    "WHERE (state >= 2) <> (finished > 0) OR (state = 2) < (result IS NOT NULL) "
    "OR (state >= 2 AND reserved <> 0)";

int64_t store_check(struct store *base) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    int64_t wrong = rows_check(store, "PRAGMA integrity_check(20)", integrity_row);
    wrong += rows_check(store, "SELECT hash, bytes, data FROM blob LEFT JOIN small USING(hash)",
                        blob_row);
    wrong += rows_check(store, references_sql, count_row);
    wrong += rows_check(store, accounts_sql, count_row);
    return wrong + rows_check(store, states_sql, count_row);
}

struct strays {
    struct sqlite_store *store;
    int64_t files, strays;
};

static void stray_count(void *context, const uint8_t hash[STORE_HASH]) {
    struct strays *strays = context;
    strays->files++;
    strays->strays += !blob_known(strays->store, hash);
}

static int check(const char *directory) {
    struct store_stats stats = {.held = 0};
    struct store *store = inspect(directory);
    if (store == NULL) {
        return EXIT_FAILURE;
    }
    struct strays strays = {.store = (struct sqlite_store *)store};
    int64_t wrong = store_check(store);
    store->engine->stats(store, &stats);
    files_each(strays.store->files, stray_count, &strays);
    for (int i = 0; i < STORE_STATES; i++) {
        printf("%s%" PRId64 " %s", i > 0 ? ", " : "jobs: ", stats.jobs[i], store_state_name(i));
    }
    printf("\nbytes: %" PRId64 " of inputs and results, %" PRId64 " kept free for results to come\n"
           "files: %" PRId64 ", of which %" PRId64 " of nobody (the daemon removes them)\n",
           stats.held, stats.reserved, strays.files, strays.strays);
    printf(wrong == 0 ? "nothing is wrong\n" : "wrong: %" PRId64 "\n", wrong);
    store_close(store);
    return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- backup ---- */

struct copying {
    struct sqlite_store *store;
    const char *from, *to;
    int64_t files;
    bool failed;
};

static bool bytes_copy(int from, int to) {
    static char bytes[1 << 16];
    ssize_t size;
    while ((size = read(from, bytes, sizeof bytes)) > 0) {
        if (write(to, bytes, (size_t)size) != size) {
            return false;
        }
    }
    return size == 0 && fsync(to) == 0;
}

/* A second name on the same disk is as good: files never change. */
static void file_copy(void *context, const uint8_t hash[STORE_HASH]) {
    struct copying *copying = context;
    char name[HASH_TEXT], from[PATH_SIZE], to[PATH_SIZE];
    if (copying->failed || !blob_known(copying->store, hash)) {
        return;
    }
    hash_print(hash, name);
    snprintf(from, sizeof from, "%s/blobs/%s", copying->from, name);
    snprintf(to, sizeof to, "%s/blobs/%s", copying->to, name);
    copying->files++;
    if (link(from, to) == 0) {
        return;
    }
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    copying->failed = in < 0 || out < 0 || !bytes_copy(in, out);
    if (in >= 0) {
        close(in);
    }
    if (out >= 0) {
        close(out);
    }
}

static bool folder_sync(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool done = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return done;
}

static int backup(const char *directory, const char *target) {
    char blobs[PATH_SIZE], sql[PATH_SIZE + 64];
    umask(077);
    snprintf(blobs, sizeof blobs, "%s/blobs", target);
    if (mkdir(target, 0700) != 0 || mkdir(blobs, 0700) != 0) {
        fprintf(stderr, "kilnd store: %s: %s\n", target, strerror(errno));
        return EXIT_FAILURE;
    }
    struct store *store = inspect(directory);
    if (store == NULL) {
        return EXIT_FAILURE;
    }
    struct copying copying = {(struct sqlite_store *)store, directory, target, 0, false};
    sqlite3_snprintf(sizeof sql, sql, "VACUUM INTO '%q/store.db'", target);
    bool done = sql_once(copying.store, sql) == SQLITE_OK;
    if (!done) {
        fprintf(stderr, "kilnd store: %s\n", sqlite3_errmsg(copying.store->db));
    } else {
        files_each(copying.store->files, file_copy, &copying);
        done = !copying.failed && folder_sync(blobs) && folder_sync(target);
        if (!done) {
            fprintf(stderr, "kilnd store: %s cannot be written: %s\n", target, strerror(errno));
        }
    }
    store_close(store);
    if (done) {
        printf("store.db and %" PRId64 " files are in %s\n", copying.files, target);
    }
    return done ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* ---- export ---- */

static bool job_print(void *context, const struct store_job *job) {
    struct text text;
    text_init(&text, context, LINE_MAX_);
    record_print(&text, job);
    return fwrite(text.data, 1, text.size, stdout) == text.size;
}

static int export(const char *directory) {
    struct store_filter filter = {.oldest_first = true, .limit = STORE_PAGE_MAX};
    struct store_page page = {.more = true};
    struct store *store = inspect(directory);
    char *line = malloc(LINE_MAX_);
    enum kiln_status status = store != NULL && line != NULL ? KILN_OK : KILN_STORE;
    while (status == KILN_OK && page.more && ferror(stdout) == 0) {
        status = store->engine->list(store, &filter, job_print, line, &page);
        filter.after = page.next;
    }
    free(line);
    store_close(store);
    return status == KILN_OK && fflush(stdout) == 0 && ferror(stdout) == 0 ? EXIT_SUCCESS
                                                                           : EXIT_FAILURE;
}

/* ---- the role ---- */

int store_role(int argc, char **argv, int first) {
    const char *what = first < argc ? argv[first] : "";
    int count = argc - first - 1;
    if (strncmp(what, "--", 2) == 0) {
        return store_process(argc, argv, first);
    }
    log_init(LOG_LEVEL_WARNING, "store");
    capabilities_drop();
    if (strcmp(what, "check") == 0 && count == 1) {
        return check(argv[first + 1]);
    }
    if (strcmp(what, "backup") == 0 && count == 2) {
        return backup(argv[first + 1], argv[first + 2]);
    }
    if (strcmp(what, "export") == 0 && count == 1) {
        return export(argv[first + 1]);
    }
    if (strcmp(what, "bench") == 0 && (count == 1 || count == 2)) {
        int jobs = count == 2 ? atoi(argv[first + 2]) : 10000;
        return jobs < 100 || jobs > 1000000 ? usage() : store_bench(argv[first + 1], jobs);
    }
    return usage();
}
