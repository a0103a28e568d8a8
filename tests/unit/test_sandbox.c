/*
 * test_sandbox.c: the written lists hold: every deed is done by a child of this program that has
 * confined itself first, and its end says what became of it.
 */
#include "compute/core/log.h"
#include "compute/worker/sandbox_private.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { OPEN = 1 << SANDBOX_OPENING, FRONT = 1 << SANDBOX_FRONT };
enum { SPAWNER = 1 << SANDBOX_SPAWNER, CPU = 1 << SANDBOX_CPU, CUDA = 1 << SANDBOX_CUDA };
enum { SHUT = 1 << SANDBOX_SHUT, STORE = 1 << SANDBOX_STORE };
enum { WIDE = CUDA | SPAWNER, ALL = OPEN | FRONT | CPU | SHUT | STORE | WIDE };

static const char *const names[SANDBOX_PROFILES] = {
    [SANDBOX_OPENING] = "opening", [SANDBOX_FRONT] = "front", [SANDBOX_SPAWNER] = "spawner",
    [SANDBOX_CPU] = "cpu",         [SANDBOX_SHUT] = "shut",   [SANDBOX_CUDA] = "cuda",
    [SANDBOX_STORE] = "store"};

/* What a child says with its exit code, besides an errno. */
enum { CODE_DONE = 0, CODE_ABSENT = 200 };

/* Runs the deed in a confined child; it returns 0 or an errno. Result: that, or minus the signal
   that ended the child, or CODE_ABSENT where there is no sandbox. */
static int confined(enum sandbox_profile profile, int (*deed)(const void *), const void *argument) {
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL); /* cmocka's handlers are not for children */
        signal(SIGSYS, SIG_DFL);
        prctl(PR_SET_DUMPABLE, 0);
        _exit(sandbox_enter(profile) == SANDBOX_ON ? deed(argument) : CODE_ABSENT);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static bool lacking; /* something that a test needs is not here: the program's exit code is 77 */

/* Skips the test where there is no sandbox: sanitizers, or a kernel without it. */
static int idle(const void *argument) {
    (void)argument;
    return CODE_DONE;
}

static void need_sandbox(void) {
    if (confined(SANDBOX_CPU, idle, NULL) == CODE_ABSENT) {
        print_message("  there is no sandbox here: skipped\n");
        lacking = true;
        skip();
    }
}

/* ---- one call ---- */

struct deed {
    const char *what;
    long number;
    long arguments[6];
    int allowed; /* profiles in which it works; in the others it is refused */
};

static int call(const void *argument) {
    const struct deed *deed = argument;
    const long *a = deed->arguments;
    return syscall(deed->number, a[0], a[1], a[2], a[3], a[4], a[5]) < 0 ? errno : CODE_DONE;
}

static const char text[] = "/dev/null";
#define PATH ((long)(uintptr_t)text)
#define PAGE 4096L
#define MAP  (MAP_PRIVATE | MAP_ANONYMOUS)

static void each_call_is_allowed_or_refused(void **state) {
    (void)state;
    const long parent = (long)getpid(); /* of the children */
    const struct deed deeds[] = {
        {"reading a file", SYS_openat, {AT_FDCWD, PATH, O_RDONLY}, ALL & ~SHUT},
        {"writing a file", SYS_openat, {AT_FDCWD, PATH, O_WRONLY}, OPEN | STORE | WIDE},
        {"reading and writing a file", SYS_openat, {AT_FDCWD, PATH, O_RDWR}, OPEN | STORE | WIDE},
        {"making a file", SYS_openat, {AT_FDCWD, PATH, O_RDONLY | O_CREAT}, OPEN | STORE | WIDE},
        {"emptying a file", SYS_openat, {AT_FDCWD, PATH, O_RDONLY | O_TRUNC}, OPEN | STORE | WIDE},
        {"a nameless file", SYS_memfd_create, {PATH, 0}, STORE | WIDE},
        {"memory", SYS_mmap, {0, PAGE, PROT_READ | PROT_WRITE, MAP, -1}, ALL},
        {"memory for code", SYS_mmap, {0, PAGE, PROT_READ | PROT_EXEC, MAP, -1}, WIDE},
        {"nobody's process", SYS_kill, {parent, 0}, SPAWNER},
        {"nobody's thread", SYS_tgkill, {parent, parent, 0}, SPAWNER},
        {"nobody's limits", SYS_prlimit64, {parent, RLIMIT_NOFILE}, 0},
        {"limits of our own", SYS_prlimit64, {0, RLIMIT_NOFILE}, ALL},
        {"a local socket", SYS_socket, {AF_UNIX, SOCK_DGRAM}, OPEN | FRONT | WIDE},
        {"an IPv4 socket", SYS_socket, {AF_INET, SOCK_STREAM}, OPEN},
        {"an IPv6 socket", SYS_socket, {AF_INET6, SOCK_DGRAM}, OPEN},
        {"a packet socket", SYS_socket, {AF_PACKET, SOCK_RAW}, 0},
        {"another process", SYS_clone, {SIGCHLD}, SPAWNER},
        {"a user namespace", SYS_clone, {CLONE_NEWUSER | SIGCHLD}, 0},
        {"names of threads", SYS_prctl, {PR_SET_NAME, PATH}, ALL},
        {"a seat for a debugger", SYS_prctl, {PR_SET_PTRACER, parent}, WIDE},
        {"a new program", SYS_execveat, {AT_FDCWD, PATH}, 0},
        {"another user", SYS_setuid, {0}, 0},
        {"a device node", SYS_mknodat, {AT_FDCWD, PATH, 0600}, 0},
    };
    need_sandbox();
    for (size_t i = 0; i < COUNT(deeds); i++) {
        for (int profile = 0; profile < SANDBOX_PROFILES; profile++) {
            int got = confined((enum sandbox_profile)profile, call, &deeds[i]);
            bool right = deeds[i].allowed & 1 << profile ? got != EPERM && got >= 0 : got == EPERM;
            if (!right) {
                fail_msg("%s: %s: %d (%s)", names[profile], deeds[i].what, got, strerror(got));
            }
        }
    }
    print_message("  %zu deeds in %d profiles\n", COUNT(deeds), SANDBOX_PROFILES);
}

/* Calls with a pointer, an instruction or a peer that one syscall() has not. */

static int run_program(const void *argument) {
    const char *const arguments[] = {"/bin/true", NULL};
    (void)argument;
    execv("/bin/true", (char *const *)(uintptr_t)arguments);
    return errno;
}

static int connect_somewhere(const void *argument) {
    static const char address[16];
    (void)argument;
    return connect(0, (const struct sockaddr *)(const void *)address, 16) < 0 ? errno : CODE_DONE;
}

static int push_to_terminal(const void *argument) {
    (void)argument;
    return ioctl(0, TIOCSTI, "x") < 0 ? errno : CODE_DONE;
}

static int make_code(const void *argument) {
    void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP, -1, 0);
    (void)argument;
    return mprotect(page, PAGE, PROT_READ | PROT_EXEC) < 0 ? errno : CODE_DONE;
}

static void *nothing(void *argument) {
    return argument;
}

static int thread(const void *argument) {
    pthread_t made;
    (void)argument;
    int error = pthread_create(&made, NULL, nothing, NULL);
    return error != 0 ? error : pthread_join(made, NULL);
}

static void more_is_allowed_or_refused(void **state) {
    static const struct {
        const char *what;
        int (*deed)(const void *);
        int allowed;
    } deeds[] = {
        {"another program", run_program, SPAWNER},
        {"a connection", connect_somewhere, OPEN | WIDE},
        {"typing for the user", push_to_terminal, WIDE}, /* needs a terminal as well */
        {"memory turned into code", make_code, WIDE},
        {"a thread", thread, OPEN | CPU | SHUT | WIDE},
    };
    (void)state;
    need_sandbox();
    for (size_t i = 0; i < COUNT(deeds); i++) {
        for (int profile = 0; profile < SANDBOX_PROFILES; profile++) {
            int got = confined((enum sandbox_profile)profile, deeds[i].deed, NULL);
            bool right = deeds[i].allowed & 1 << profile ? got != EPERM && got >= 0 : got == EPERM;
            if (!right) {
                fail_msg("%s: %s: %d (%s)", names[profile], deeds[i].what, got, strerror(got));
            }
        }
    }
}

/* ---- hostile calls ---- */

static void each_hostile_call_ends_the_process(void **state) {
    (void)state;
    size_t count = 0;
    need_sandbox();
    for (const struct sandbox_call *row = sandbox_hostile; row->number != SANDBOX_END; row++) {
        const struct deed deed = {.number = row->number};
        count++;
        for (int profile = 0; profile < SANDBOX_PROFILES; profile++) {
            int got = confined((enum sandbox_profile)profile, call, &deed);
            if (got != -SIGSYS) {
                fail_msg("%s: call %d: %d", names[profile], row->number, got);
            }
        }
    }
    print_message("  %zu calls in %d profiles\n", count, SANDBOX_PROFILES);
}

static void missing_and_future_calls_are_not_there(void **state) {
    const struct deed deeds[] = {
        {.number = SYS_clone3}, {.number = sandbox_newest + 1}, {.number = 9999}};
    (void)state;
    need_sandbox();
    for (size_t i = 0; i < COUNT(deeds); i++) {
        for (int profile = 0; profile < SANDBOX_PROFILES; profile++) {
            assert_int_equal(confined((enum sandbox_profile)profile, call, &deeds[i]), ENOSYS);
        }
    }
}

#ifdef __x86_64__
/* By the 32-bit door numbers mean other calls: 20 is getpid there, writev here. */
static int old_door(const void *argument) {
    long result = 20;
    (void)argument;
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return CODE_DONE;
}

static void the_other_door_is_shut(void **state) {
    (void)state;
    need_sandbox();
    for (int profile = 0; profile < SANDBOX_PROFILES; profile++) {
        int got = confined((enum sandbox_profile)profile, old_door, NULL);
        assert_true(got == -SIGSYS || got == -SIGSEGV); /* kernels without it */
    }
}
#endif

/* ---- what has to go on ---- */

static int work(const void *argument) {
    struct timespec moment = {.tv_nsec = 1000};
    struct epoll_event event = {.events = EPOLLIN};
    char line[64];
    uint64_t one = 1;
    int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), set = epoll_create1(EPOLL_CLOEXEC);
    const bool *opens = argument;
    char *memory = malloc((size_t)64 << 20);
    if (memory == NULL || (memory = realloc(memory, (size_t)96 << 20)) == NULL) {
        return 1;
    }
    memset(memory, 1, (size_t)96 << 20);
    free(memory);
    FILE *file = *opens ? fopen("/proc/self/statm", "re") : NULL;
    if (*opens && (file == NULL || fgets(line, sizeof line, file) == NULL || fclose(file) != 0)) {
        return 2;
    }
    if (epoll_ctl(set, EPOLL_CTL_ADD, bell, &event) != 0 || write(bell, &one, 8) != 8 ||
        epoll_wait(set, &event, 1, 1000) != 1 || read(bell, &one, 8) != 8) {
        return 3;
    }
    struct pollfd watched = {.fd = bell, .events = POLLIN};
    if (poll(&watched, 1, 1) != 0 || nanosleep(&moment, NULL) != 0 ||
        clock_nanosleep(CLOCK_MONOTONIC, 0, &moment, NULL) != 0 ||
        syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &moment) != 0) {
        return 4;
    }
    if (raise(0) != 0 || kill(getpid(), 0) != 0 || access("/proc/self/exe", F_OK) != 0 ||
        fcntl(bell, F_SETFL, O_NONBLOCK) != 0 || close(bell) != 0 || close(set) != 0) {
        return 5;
    }
    return CODE_DONE;
}

static int give_up(const void *argument) {
    (void)argument;
    abort();
}

static void common_work_goes_on(void **state) {
    (void)state;
    need_sandbox();
    for (int profile = 0; profile < SANDBOX_PROFILES; profile++) {
        bool opens = profile != SANDBOX_SHUT;
        assert_int_equal(confined((enum sandbox_profile)profile, work, &opens), CODE_DONE);
        assert_int_equal(confined((enum sandbox_profile)profile, give_up, NULL), -SIGABRT);
    }
}

/* ---- threads, nesting, states ---- */

static atomic_int go;

static void *run_program_later(void *result) {
    while (!atomic_load(&go)) {
        sched_yield();
    }
    *(int *)result = run_program(NULL);
    return NULL;
}

/* A thread that was there before is confined as well. */
static void older_threads_are_confined(void **state) {
    int status;
    (void)state;
    need_sandbox();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        pthread_t older;
        int result = -1;
        if (pthread_create(&older, NULL, run_program_later, &result) != 0 ||
            sandbox_enter(SANDBOX_FRONT) != SANDBOX_ON) {
            _exit(1);
        }
        atomic_store(&go, 1);
        pthread_join(older, NULL);
        _exit(result == EPERM ? 0 : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int enter_again(const void *argument) {
    const enum sandbox_profile *second = argument;
    const struct deed deeds[] = {{.number = SYS_socket, .arguments = {AF_UNIX, SOCK_DGRAM}},
                                 {.number = SYS_kill, .arguments = {getpid(), 0}}};
    if (sandbox_enter(*second) != SANDBOX_ON) {
        return CODE_ABSENT;
    }
    bool local = *second == SANDBOX_CUDA || *second == SANDBOX_FRONT; /* may have sockets */
    return call(&deeds[0]) == (local ? 0 : EPERM) ? call(&deeds[1]) : 1;
}

/* Workers are children of a confined spawner and confine themselves further; the front does so in
   two steps. */
static void the_second_step_narrows_the_first(void **state) {
    static const enum sandbox_profile workers[] = {SANDBOX_CPU, SANDBOX_CUDA, SANDBOX_STORE};
    static const enum sandbox_profile front = SANDBOX_FRONT, shut = SANDBOX_SHUT;
    (void)state;
    need_sandbox();
    for (size_t i = 0; i < COUNT(workers); i++) {
        assert_int_equal(confined(SANDBOX_SPAWNER, enter_again, &workers[i]), CODE_DONE);
    }
    assert_int_equal(confined(SANDBOX_OPENING, enter_again, &front), CODE_DONE);
    assert_int_equal(confined(SANDBOX_CPU, enter_again, &shut), CODE_DONE);
}

/* As root too, and whatever the machine says of debuggers. */
static int look_into_parent(const void *argument) {
    char path[64];
    (void)argument;
    snprintf(path, sizeof path, "/proc/%ld/mem", (long)getppid());
    return open(path, O_RDONLY | O_CLOEXEC) < 0 ? errno : CODE_DONE;
}

static void need_landlock(void) {
    need_sandbox();
    if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) < 1) {
        print_message("  this kernel has no Landlock: skipped\n");
        lacking = true;
        skip();
    }
}

/* ---- files ---- */

static char folder[] = "/tmp/kiln-sandbox-XXXXXX";

static int open_at(const char *path) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0) {
        close(fd);
    }
    return error;
}

static int in_folder(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return open_at(path);
}

/* Of a worker: figures, and nothing else. */
static int open_figures(const void *argument) {
    (void)argument;
    bool figures = open_at("/proc/meminfo") == 0 && open_at("/proc/cpuinfo") == 0 &&
                   open_at("/proc/self/statm") == 0 && open_at("/sys/devices/system/cpu") == 0;
    bool others = in_folder("keys") == EACCES && open_at(folder) == EACCES &&
                  open_at("/etc/passwd") == EACCES && open_at("/") == EACCES &&
                  open_at("/proc") == EACCES && open_at("/proc/1/status") == EACCES &&
                  open_at("/proc/self/root/etc/passwd") == EACCES &&
                  open_at("/proc/self/cwd") == EACCES;
    return figures && others && sandbox_files_closed() ? CODE_DONE : 1;
}

/* Of the front: what was named, and what takes its place. */
static int open_named(const void *argument) {
    char old[128], new[128];
    (void)argument;
    snprintf(old, sizeof old, "%s/keys.new", folder);
    snprintf(new, sizeof new, "%s/keys", folder);
    if (in_folder("keys") != 0 || in_folder("sub/certificate") != 0 || in_folder("link") != 0) {
        return 1;
    }
    if (rename(old, new) != 0 || in_folder("keys") != 0 || in_folder("keys.new") != ENOENT) {
        return 2;
    }
    if (in_folder("../kiln-sandbox-none") == 0 || open_at("/etc/passwd") != EACCES ||
        open_at("/") != EACCES || open_at("/proc/1/status") != EACCES) {
        return 3;
    }
    return open_at("/proc/self/statm");
}

static void file_make(const char *name) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fclose(file);
}

static void files_are_read_from_a_list(void **state) {
    (void)state;
    char path[128], target[128];
    need_landlock();
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/sub", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    file_make("keys"), file_make("keys.new"), file_make("sub/certificate");
    snprintf(target, sizeof target, "%s/sub/certificate", folder);
    snprintf(path, sizeof path, "%s/link", folder);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(confined(SANDBOX_CPU, open_figures, NULL), CODE_DONE);
    snprintf(path, sizeof path, "%s/keys", folder);
    sandbox_folder_of(path);
    sandbox_folder_of(""); /* none */
    sandbox_file("");
    sandbox_file("/no/such/file");
    assert_int_equal(confined(SANDBOX_OPENING, open_named, NULL), CODE_DONE);
    snprintf(path, sizeof path, "rm -r '%s'", folder);
    assert_int_equal(system(path), 0);
}

/* Of the store: its own folder, to be read and written, and none beside it. */
static int write_below(const void *argument) {
    static const char *const others[] = {"/tmp/kiln-sandbox-other", "/etc/kiln", "/dev/null"};
    const char *own = argument;
    char path[128];
    snprintf(path, sizeof path, "%s/file", own);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || pwrite(fd, "x", 1, 0) != 1 || fdatasync(fd) != 0) {
        return 1;
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        if (open(others[i], O_RDWR | O_CREAT | O_CLOEXEC, 0600) >= 0 || errno != EACCES) {
            return 2;
        }
    }
    if (open_at("/etc/passwd") != EACCES || open_at("/proc/1/status") != EACCES) {
        return 3;
    }
    snprintf(path, sizeof path, "%s/device", own);
    if (mknod(path, S_IFCHR | 0600, 0x103) == 0) {
        return 4;
    }
    snprintf(path, sizeof path, "%s/file", own);
    return unlink(path) == 0 ? CODE_DONE : errno;
}

static void the_store_writes_in_its_folder_only(void **state) {
    char own[] = "/tmp/kiln-sandbox-XXXXXX";
    (void)state;
    need_landlock();
    assert_non_null(mkdtemp(own));
    sandbox_files_below(own);
    assert_int_equal(confined(SANDBOX_STORE, write_below, own), CODE_DONE);
    assert_int_equal(confined(SANDBOX_STORE, look_into_parent, NULL), EACCES);
    assert_int_equal(rmdir(own), 0);
}

static void workers_cannot_look_into_others(void **state) {
    (void)state;
    need_landlock();
    assert_int_equal(confined(SANDBOX_CPU, look_into_parent, NULL), EACCES);
    assert_int_equal(confined(SANDBOX_CUDA, look_into_parent, NULL), EACCES);
}

/* A kernel that does not offer filters: the daemon says so and serves all the same. */
static void without_the_kernel_there_is_no_sandbox(void **state) {
    struct sock_filter code[] = {
        {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)},
        {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_seccomp},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
    };
    const struct sock_fprog old_kernel = {COUNT(code), code};
    int status;
    (void)state;
    need_sandbox();
    pid_t child = fork();
    if (child == 0) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &old_kernel) != 0) {
            _exit(1);
        }
        _exit(sandbox_enter(SANDBOX_FRONT) == SANDBOX_ABSENT ? run_program(NULL) : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0); /* of the program that was run */
}

static void off_means_off(void **state) {
    int status;
    (void)state;
    setenv("KILN_SANDBOX", "off", 1);
    pid_t child = fork();
    if (child == 0) {
        bool off = sandbox_enter(SANDBOX_CPU) == SANDBOX_OFF;
        _exit(off && prctl(PR_GET_SECCOMP) == 0 ? run_program(NULL) : 1);
    }
    unsetenv("KILN_SANDBOX");
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0); /* of the program that was run */
}

/* Report refuses nothing and names each call once. */
static void report_names_what_is_not_listed(void **state) {
    char log[4096] = "";
    size_t used = 0;
    ssize_t got;
    int status, ends[2];
    (void)state;
    need_sandbox();
    assert_int_equal(pipe(ends), 0);
    setenv("KILN_SANDBOX", "report", 1);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        log_init(LOG_LEVEL_WARNING, "child");
        if (sandbox_enter(SANDBOX_CPU) != SANDBOX_REPORT) {
            _exit(CODE_ABSENT);
        }
        /* 0: the group's leader is not of this process's PID namespace */
        bool fine = getpgid(0) >= 0 && getpgid(0) >= 0 && unshare(0) == 0;
        _exit(fine ? 0 : 1);
    }
    unsetenv("KILN_SANDBOX");
    close(ends[1]);
    while ((got = read(ends[0], log + used, sizeof log - 1 - used)) > 0) {
        used += (size_t)got;
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    char wanted[32];
    const int numbers[] = {SYS_getpgid, SYS_unshare};
    for (size_t i = 0; i < COUNT(numbers); i++) {
        snprintf(wanted, sizeof wanted, "system call %d ", numbers[i]);
        const char *first = strstr(log, wanted);
        assert_non_null(first);
        assert_null(strstr(first + 1, wanted));
    }
}

/* ---- the lists themselves ---- */

static bool list_has(const struct sandbox_call *list, int number) {
    for (; list->number != SANDBOX_END; list++) {
        if (list->number == number) {
            return true;
        }
    }
    return false;
}

static bool profile_has(enum sandbox_profile profile, int number) {
    for (size_t i = 0; sandbox_allowed[profile][i] != NULL; i++) {
        if (list_has(sandbox_allowed[profile][i], number)) {
            return true;
        }
    }
    return false;
}

/* No row is without effect: not refused before it is allowed, not lost to an inherited filter. */
static void no_row_is_dead(void **state) {
    (void)state;
    for (int profile = 0; profile < SANDBOX_PROFILES; profile++) {
        for (size_t i = 0; sandbox_allowed[profile][i] != NULL; i++) {
            const struct sandbox_call *row = sandbox_allowed[profile][i];
            for (; row->number != SANDBOX_END; row++) {
                assert_true(row->number >= 0 && row->number <= sandbox_newest);
                assert_false(list_has(sandbox_hostile, row->number));
                assert_false(list_has(sandbox_missing, row->number));
                enum sandbox_profile first = profile == SANDBOX_FRONT  ? SANDBOX_OPENING
                                             : profile == SANDBOX_SHUT ? SANDBOX_CPU
                                                                       : SANDBOX_SPAWNER;
                if (profile != SANDBOX_OPENING) {
                    assert_true(profile_has(first, row->number));
                }
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_is_allowed_or_refused),
        cmocka_unit_test(more_is_allowed_or_refused),
        cmocka_unit_test(each_hostile_call_ends_the_process),
        cmocka_unit_test(missing_and_future_calls_are_not_there),
#ifdef __x86_64__
        cmocka_unit_test(the_other_door_is_shut),
#endif
        cmocka_unit_test(common_work_goes_on),
        cmocka_unit_test(older_threads_are_confined),
        cmocka_unit_test(the_second_step_narrows_the_first),
        cmocka_unit_test(files_are_read_from_a_list),
        cmocka_unit_test(the_store_writes_in_its_folder_only),
        cmocka_unit_test(workers_cannot_look_into_others),
        cmocka_unit_test(without_the_kernel_there_is_no_sandbox),
        cmocka_unit_test(off_means_off),
        cmocka_unit_test(report_names_what_is_not_listed),
        cmocka_unit_test(no_row_is_dead),
    };
    log_init(LOG_LEVEL_ERROR, "test");
    unsetenv("KILN_SANDBOX");
    int failed = cmocka_run_group_tests_name("sandbox", tests, NULL, NULL);
    return failed == 0 && lacking ? 77 : failed;
}
