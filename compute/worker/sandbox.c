/*
 * sandbox.c: from a written list to a program that the kernel runs before every system call.
 *
 * The program goes through the rows one by one: those that end the process, those that are missing
 * on purpose, those that are allowed. That is slow only to look at: the kernel works out once which
 * calls are allowed whatever their arguments, and does not run the program for them (5.11 on).
 *
 * Report: every call that is not on the list waits until a thread of ours has logged it, and then
 * goes on (SECCOMP_RET_USER_NOTIF with CONTINUE, Linux 5.7). That thread makes only calls that are
 * on the list, or it would wait for itself. A process with a filter that reports can have no other
 * such filter, nor can its children: the spawner and the front's first step have none then.
 *
 * Threads: see sandbox.h; the reporting thread starts here and never ends.
 */
#include "compute/worker/sandbox_private.h"

#include "compute/core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#define MACHINE AUDIT_ARCH_X86_64
#elif defined __aarch64__ && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define MACHINE AUDIT_ARCH_AARCH64
#else
#error "sandbox_list.c has to be checked for this machine"
#endif

#define PROGRAM_MAX 2048
#define CALLS_MAX   1024 /* system calls that there may be */

struct program {
    struct sock_filter code[PROGRAM_MAX];
    size_t size;
    int calls; /* allowed ones, each counted once */
};

static void emit(struct program *program, uint16_t code, uint8_t yes, uint8_t no, uint32_t value) {
    if (program->size < PROGRAM_MAX) {
        program->code[program->size++] = (struct sock_filter){code, yes, no, value};
    }
}

static void emit_load(struct program *program, size_t offset) {
    emit(program, BPF_LD | BPF_W | BPF_ABS, 0, 0, (uint32_t)offset);
}

static void emit_return(struct program *program, uint32_t action) {
    emit(program, BPF_RET | BPF_K, 0, 0, action);
}

/* The number is in the accumulator before and after. */
static void emit_row(struct program *program, const struct sandbox_call *call, uint32_t action) {
    uint32_t mask = call->self ? UINT32_MAX : call->mask;
    uint32_t value = call->self ? (uint32_t)getpid() : call->value;
    emit(program, BPF_JMP | BPF_JEQ | BPF_K, 0, call->argument ? 5 : 1, (uint32_t)call->number);
    if (call->argument) {
        emit_load(program, offsetof(struct seccomp_data, args) + 8u * (call->argument - 1u));
        emit(program, BPF_ALU | BPF_AND | BPF_K, 0, 0, mask);
        emit(program, BPF_JMP | BPF_JEQ | BPF_K, 0, 1, value);
    }
    emit_return(program, action);
    if (call->argument) {
        emit_load(program, offsetof(struct seccomp_data, nr));
    }
}

static void emit_list(struct program *program, const struct sandbox_call *list, uint32_t action) {
    for (; list->number != SANDBOX_END; list++) {
        emit_row(program, list, action);
    }
}

static int calls_count(const struct sandbox_call *const *lists) {
    bool seen[CALLS_MAX] = {false};
    int count = 0;
    for (; *lists; lists++) {
        for (const struct sandbox_call *call = *lists; call->number != SANDBOX_END; call++) {
            if (call->number < CALLS_MAX && !seen[call->number]) {
                seen[call->number] = true;
                count++;
            }
        }
    }
    return count;
}

static void program_make(struct program *program, enum sandbox_profile profile, bool report) {
    const struct sandbox_call *const *lists = sandbox_allowed[profile];
    const uint32_t hostile = report ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_KILL_PROCESS;
    const uint32_t other = report ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | EPERM;
    program->size = 0;
    program->calls = calls_count(lists);
    /* numbers mean other calls in programs of another kind of machine */
    emit_load(program, offsetof(struct seccomp_data, arch));
    emit(program, BPF_JMP | BPF_JEQ | BPF_K, 1, 0, MACHINE);
    emit_return(program, SECCOMP_RET_KILL_PROCESS);
    emit_load(program, offsetof(struct seccomp_data, nr));
    emit_list(program, sandbox_hostile, hostile);
    emit_list(program, sandbox_missing, SECCOMP_RET_ERRNO | ENOSYS);
    for (; *lists; lists++) {
        emit_list(program, *lists, SECCOMP_RET_ALLOW);
    }
    if (report) {
        emit_list(program, sandbox_reporting, SECCOMP_RET_ALLOW);
    }
    emit(program, BPF_JMP | BPF_JGT | BPF_K, 0, 1, (uint32_t)sandbox_newest);
    emit_return(program, SECCOMP_RET_ERRNO | ENOSYS);
    emit_return(program, other);
}

/* A descriptor with SECCOMP_FILTER_FLAG_NEW_LISTENER, else 0; -1 on failure. SPEC_ALLOW: kernels
   before 5.16 would otherwise slow the whole process down against code of its own that spies on it,
   and nothing foreign runs here; kernels that do not know the flag do not do that either. */
static int program_install(const struct program *program, unsigned flags) {
    const struct sock_fprog code = {(unsigned short)program->size,
                                    (struct sock_filter *)(uintptr_t)program->code};
    if (program->size == PROGRAM_MAX) {
        errno = E2BIG;
        return -1;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        return -1;
    }
    flags |= SECCOMP_FILTER_FLAG_TSYNC;
    long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                          flags | SECCOMP_FILTER_FLAG_SPEC_ALLOW, &code);
    if (result < 0 && errno == EINVAL) {
        result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &code);
    }
    if (result > 0 && !(flags & SECCOMP_FILTER_FLAG_NEW_LISTENER)) {
        errno = EBUSY; /* the id of a thread that has a filter of its own */
        return -1;
    }
    return (int)result;
}

/* ---- files ---- */

#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define WRITES                                                                                     \
    (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE |                              \
     LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_DIR)

/* Descriptors of what sandbox_file names, opened while it may be. */
static int file_fds[SANDBOX_FILES];
static size_t file_count;
static bool files_closed;
static int written_fd = -1; /* of sandbox_files_below */

void sandbox_file(const char *path) {
    int fd = path[0] != '\0' && file_count < SANDBOX_FILES ? open(path, O_PATH | O_CLOEXEC) : -1;
    if (fd >= 0) {
        file_fds[file_count++] = fd;
    }
}

/* The root folder would be everything: there it is the file alone. */
static void folder_add(const char *path) {
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t size = slash != NULL ? (size_t)(slash - path) : 1;
    if (size == 0) {
        sandbox_file(path);
    } else if (size < sizeof folder) {
        memcpy(folder, slash != NULL ? path : ".", size);
        folder[size] = '\0';
        sandbox_file(folder);
    }
}

void sandbox_folder_of(const char *path) {
    char target[PATH_MAX];
    if (path[0] != '\0') {
        folder_add(path);
    }
    if (path[0] != '\0' && realpath(path, target) != NULL) {
        folder_add(target);
    }
}

void sandbox_files_below(const char *folder) {
    written_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool sandbox_files_closed(void) {
    return files_closed;
}

static bool rule_add(int rules, int fd, uint64_t access) {
    struct stat status;
    struct landlock_path_beneath_attr rule = {.allowed_access = access, .parent_fd = fd};
    if (fd < 0 || fstat(fd, &status) != 0) {
        return true; /* it is not there: nothing to be allowed */
    }
    if (!S_ISDIR(status.st_mode)) {
        rule.allowed_access = LANDLOCK_ACCESS_FS_READ_FILE;
    }
    return syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

static bool rules_add(int rules, const char *const *paths, bool writes) {
    bool good = true;
    for (; *paths != NULL && good; paths++) {
        int fd = open(*paths, O_PATH | O_CLOEXEC);
        good = rule_add(rules, fd, READS);
        if (fd >= 0) {
            close(fd);
        }
    }
    for (; file_count > 0; file_count--) {
        good = rule_add(rules, file_fds[file_count - 1], READS) && good;
        close(file_fds[file_count - 1]);
    }
    if (written_fd >= 0 && writes) {
        good = rule_add(rules, written_fd, READS | WRITES) && good;
        close(written_fd);
        written_fd = -1;
    }
    return good;
}

/* Landlock beside the filter: no program of any file can be run and no device node be made, which
   could not be anyway; files are read from the profile's list, where it has one; and the kernel
   keeps a process in such a domain away from all outside it: it cannot open /proc/PID/mem of
   another. False where the kernel has no Landlock (before 5.13, or not enabled). */
static bool domain_enter(enum sandbox_profile profile) {
    const char *const *readable = sandbox_readable[profile];
    const struct landlock_ruleset_attr handled = {
        .handled_access_fs = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
                             LANDLOCK_ACCESS_FS_MAKE_BLOCK | (readable != NULL ? READS : 0) |
                             (profile == SANDBOX_STORE ? WRITES : 0)};
    int rules = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
    if (rules < 0) {
        return false;
    }
    bool done = (readable == NULL || rules_add(rules, readable, profile == SANDBOX_STORE)) &&
                prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                syscall(SYS_landlock_restrict_self, rules, 0) == 0;
    close(rules);
    files_closed = files_closed || (done && readable != NULL);
    return done;
}

/* ---- report ---- */

struct reporter {
    int pipe[2]; /* brings the listener's descriptor */
    struct seccomp_notif *call;
    struct seccomp_notif_resp *answer;
    struct seccomp_notif_sizes sizes;
};

static void report_call(const struct seccomp_data *data) {
    static bool seen[CALLS_MAX];
    if (data->nr >= 0 && data->nr < CALLS_MAX && !seen[data->nr]) {
        seen[data->nr] = true;
        log_warning("sandbox: system call %d is not on the list (arguments %#llx %#llx %#llx)",
                    data->nr, (unsigned long long)data->args[0], (unsigned long long)data->args[1],
                    (unsigned long long)data->args[2]);
    }
}

static void *report_run(void *argument) {
    struct reporter *reporter = argument;
    int listener;
    if (read(reporter->pipe[0], &listener, sizeof listener) != sizeof listener) {
        return NULL;
    }
    for (;;) {
        memset(reporter->call, 0, reporter->sizes.seccomp_notif);
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, reporter->call) != 0) {
            if (errno == EINTR || errno == ENOENT) { /* the caller was killed meanwhile */
                continue;
            }
            return NULL;
        }
        report_call(&reporter->call->data);
        memset(reporter->answer, 0, reporter->sizes.seccomp_notif_resp);
        reporter->answer->id = reporter->call->id;
        reporter->answer->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
        ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, reporter->answer);
    }
}

/* Starts the thread, which waits for a descriptor. What it needs lives as long as the process. */
static bool reporter_start(struct reporter *reporter) {
    pthread_t thread;
    sigset_t all, before;
    if (syscall(SYS_seccomp, SECCOMP_GET_NOTIF_SIZES, 0, &reporter->sizes) != 0 ||
        pipe2(reporter->pipe, O_CLOEXEC) != 0) {
        return false;
    }
    reporter->call = malloc(reporter->sizes.seccomp_notif);
    reporter->answer = malloc(reporter->sizes.seccomp_notif_resp);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = reporter->call && reporter->answer
                    ? pthread_create(&thread, NULL, report_run, reporter)
                    : ENOMEM;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return error == 0;
}

static bool report_enter(const struct program *program) {
    static struct reporter reporter;
    if (!reporter_start(&reporter)) {
        return false;
    }
    int listener = program_install(program, SECCOMP_FILTER_FLAG_NEW_LISTENER |
                                                SECCOMP_FILTER_FLAG_TSYNC_ESRCH);
    if (listener < 0) {
        return false;
    }
    return write(reporter.pipe[1], &listener, sizeof listener) == sizeof listener;
}

/* ---- entering ---- */

static enum sandbox_state state_wanted(enum sandbox_profile profile) {
    const char *text = getenv("KILN_SANDBOX");
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    return SANDBOX_OFF;
#endif
    if (text && strcmp(text, "off") == 0) {
        return SANDBOX_OFF;
    }
    if (text && strcmp(text, "report") == 0) {
        /* of two steps one reports: a filter that does can have no other beside it */
        bool other =
            profile == SANDBOX_SPAWNER || profile == SANDBOX_OPENING || profile == SANDBOX_SHUT;
        return other ? SANDBOX_OFF : SANDBOX_REPORT;
    }
    return SANDBOX_ON;
}

enum sandbox_state sandbox_enter(enum sandbox_profile profile) {
    struct program program;
    enum sandbox_state state = state_wanted(profile);
    if (state == SANDBOX_OFF) {
        log_write(profile == SANDBOX_FRONT ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG, "sandbox off");
        return state;
    }
    program_make(&program, profile, state == SANDBOX_REPORT);
    bool domain = profile == SANDBOX_CPU || profile == SANDBOX_CUDA || profile == SANDBOX_OPENING ||
                  profile == SANDBOX_STORE;
    bool apart = state == SANDBOX_ON && domain && domain_enter(profile);
    bool done =
        state == SANDBOX_REPORT ? report_enter(&program) : program_install(&program, 0) == 0;
    if (!done) {
        log_warning("sandbox off: the kernel refuses it (%s)", strerror(errno));
        return SANDBOX_ABSENT;
    }
    log_write(profile == SANDBOX_OPENING ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO,
              "sandbox %s, %d system calls allowed%s",
              state == SANDBOX_REPORT ? "reports and refuses nothing" : "on", program.calls,
              files_closed ? ", apart from other processes and files"
              : apart      ? ", apart from other processes"
                           : "");
    return state;
}
