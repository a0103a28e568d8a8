/*
 * sandbox_list.c: the written lists of system calls, each group with its reason.
 *
 * To find what is missing from them after a change (a library, a driver, a C library): run with
 * `--sandbox report`, which logs the number of every call that would have been refused. Add it to
 * the narrowest list that needs it, with the reason.
 *
 * Data only.
 */
#include "compute/worker/sandbox_private.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <termios.h>

#define ANY(name)                                                                                  \
    { .number = SYS_##name }
#define SELF(name, place)                                                                          \
    { .number = SYS_##name, .argument = place, .self = 1 }
#define BITS(name, place, which, wanted)                                                           \
    { SYS_##name, place, 0, which, wanted }
#define IS(name, place, wanted) BITS(name, place, UINT32_MAX, wanted)
#define END                                                                                        \
    { .number = SANDBOX_END }

#define READ_ONLY (O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY))
#define NEW_SPACES                                                                                 \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |  \
     CLONE_NEWNET)

/* ---- what every process needs ---- */

static const struct sandbox_call common[] = {
    /* the allocator, and the C library's own tables */
    ANY(brk), ANY(munmap), ANY(mremap), ANY(madvise),
    /* threads that wait, begin and end */
    ANY(futex), ANY(set_robust_list), ANY(rseq), ANY(set_tid_address), ANY(membarrier),
    ANY(sched_yield), ANY(sched_getaffinity), ANY(getcpu), ANY(nanosleep), ANY(clock_nanosleep),
    ANY(exit), ANY(exit_group),
    /* signals that come; a call that a stop has interrupted goes on */
    ANY(rt_sigaction), ANY(rt_sigprocmask), ANY(rt_sigreturn), ANY(rt_sigtimedwait),
    ANY(sigaltstack), ANY(restart_syscall),
    /* the time, where the kernel's page for it is missing */
    ANY(clock_gettime), ANY(clock_getres), ANY(gettimeofday), ANY(times), ANY(getrusage),
    /* who and where we are */
    ANY(getpid), ANY(gettid), ANY(getppid), ANY(getuid), ANY(geteuid), ANY(getgid), ANY(getegid),
    ANY(uname), ANY(sysinfo), ANY(getrandom),
    /* limits of our own */
    IS(prlimit64, 1, 0),
    /* names of threads */
    IS(prctl, 1, PR_SET_NAME), IS(prctl, 1, PR_GET_NAME),
    /* bytes of files and sockets that are open already */
    ANY(read), ANY(write), ANY(readv), ANY(writev), ANY(pread64), ANY(lseek), ANY(close),
    ANY(fstat), ANY(recvfrom), ANY(recvmsg), ANY(sendto), ANY(sendmsg), ANY(getsockopt),
    ANY(shutdown), IS(ioctl, 2, FIONREAD), IS(ioctl, 2, FIONBIO),
    IS(ioctl, 2, TCGETS), /* does a stream lead to a terminal? */
    IS(fcntl, 2, F_GETFL), IS(fcntl, 2, F_SETFL), IS(fcntl, 2, F_GETFD), IS(fcntl, 2, F_SETFD),
    IS(fcntl, 2, F_DUPFD_CLOEXEC),
    /* waiting for them */
    ANY(ppoll), ANY(pselect6), ANY(epoll_create1), ANY(epoll_ctl), ANY(epoll_pwait), ANY(eventfd2),
    /* what files there are */
    ANY(newfstatat), ANY(statx), ANY(readlinkat), ANY(faccessat), END};

/* The same by the names that older machines have for it as well. */
static const struct sandbox_call common_old[] = {
#ifdef __x86_64__
    ANY(time), ANY(poll),  ANY(select),   ANY(epoll_wait),
    ANY(stat), ANY(lstat), ANY(readlink), ANY(access),
#endif
    END};

/* Files to be read: /proc and /sys for figures, keys on SIGHUP, the time zone. */
static const struct sandbox_call reading[] = {BITS(openat, 3, READ_ONLY, O_RDONLY),
#ifdef __x86_64__
                                              BITS(open, 2, READ_ONLY, O_RDONLY),
#endif
                                              END};

/* Memory, but no new code in it, neither from files nor made at run time. */
static const struct sandbox_call no_code[] = {BITS(mmap, 3, PROT_EXEC, 0),
                                              BITS(mprotect, 3, PROT_EXEC, 0), END};

/* Ending oneself: abort(), raise(). Nobody else can be meant. */
static const struct sandbox_call own_end[] = {SELF(kill, 1), SELF(tgkill, 1), END};

/* Threads, but no processes. */
static const struct sandbox_call threads[] = {
    BITS(clone, 1, CLONE_THREAD | NEW_SPACES, CLONE_THREAD), END};

/* ---- the front ---- */

static const struct sandbox_call front[] = {
    /* connections that come in; there is no connect() */
    ANY(accept), ANY(accept4), ANY(setsockopt), ANY(getsockname), ANY(getpeername), ANY(sendmmsg),
    ANY(recvmmsg),
    /* results that lie in files of the store, whose descriptors it hands over */
    ANY(sendfile),
    /* datagrams to the service manager, pairs with workers: nothing that leaves the machine */
    IS(socket, 1, AF_UNIX), IS(socketpair, 1, AF_UNIX), ANY(pipe2),
    /* the end of a worker, of the spawner, of this process */
    IS(pidfd_send_signal, 2, SIGKILL), ANY(waitid), END};

static const struct sandbox_call *const front_lists[] = {common,  common_old, reading, no_code,
                                                         own_end, front,      NULL};

/* Until it listens: addresses, the port, its threads, its certificate, the file for --port-file. */
static const struct sandbox_call opening[] = {IS(socket, 1, AF_INET),
                                              IS(socket, 1, AF_INET6),
                                              IS(socket, 1, AF_NETLINK),
                                              ANY(bind),
                                              ANY(listen),
                                              ANY(connect),
                                              ANY(openat),
                                              ANY(renameat2),
                                              ANY(unlinkat),
                                              ANY(fcntl),
                                              ANY(seccomp),
                                              IS(prctl, 1, PR_SET_NO_NEW_PRIVS),
                                              ANY(capget), /* giving up the right to bind */
                                              ANY(capset),
                                              END};

static const struct sandbox_call opening_old[] = {
#ifdef __x86_64__
    ANY(open), ANY(rename), ANY(unlink),
#endif
    END};

static const struct sandbox_call *const opening_lists[] = {
    common, common_old, reading, no_code, own_end, threads, front, opening, opening_old, NULL};

/* Of files, what it may read from then on. Names of hosts, for --listen; the C library and GnuTLS
   look into some of these at any time. The folder of the key file and the files of TLS come on top.
 */
static const char *const opening_files[] = {"/proc/self", /* figures of this process */
                                            "/etc/hosts",
                                            "/etc/host.conf",
                                            "/etc/nsswitch.conf",
                                            "/etc/resolv.conf",
                                            "/etc/gai.conf",
                                            "/etc/services",
                                            "/etc/localtime",
                                            "/usr/share/zoneinfo",
                                            "/etc/gnutls",
                                            "/etc/crypto-policies",
                                            NULL};

/* ---- the worker on the CPU: its arena and its two sockets are there before it starts ---- */

/* The last rows are for the next step, where the kernel has no Landlock. */
static const struct sandbox_call cpu_more[] = {ANY(seccomp), IS(prctl, 1, PR_SET_NO_NEW_PRIVS),
                                               END};

static const struct sandbox_call *const cpu_lists[] = {common,  common_old, reading,  no_code,
                                                       own_end, threads,    cpu_more, NULL};
static const struct sandbox_call *const shut_lists[] = {common,  common_old, no_code,
                                                        own_end, threads,    NULL};

/* Figures of the system, for /v1/devices and for how much memory there is. */
static const char *const cpu_files[] = {"/proc/self",
                                        "/proc/cpuinfo",
                                        "/proc/meminfo",
                                        "/proc/stat",
                                        "/sys/devices/system",
                                        "/sys/devices/virtual/thermal",
                                        "/sys/class/thermal",
                                        "/sys/fs/cgroup",
                                        "/etc/localtime",
                                        "/usr/share/zoneinfo",
                                        NULL};

/* ---- the worker on a GPU ----

   A driver is a closed program that differs from version to version. The first list is what one of
   them was seen to use: 580.159 on an H200, from start to end, jobs of every kind, NVML. The second
   is what others, or other settings, have reason to use; none of it reaches another process,
   program or machine. */

static const struct sandbox_call driver[] = {
    /* device files, and the many things that are asked of them */
    ANY(openat), ANY(ioctl), ANY(dup), ANY(getdents64),
    /* compiled kernels and queues in our space */
    ANY(mmap), ANY(mprotect),
    /* where memory lies and threads run */
    ANY(get_mempolicy), ANY(sched_get_priority_max), ANY(sched_get_priority_min),
    /* is MPS there? a door of its own for shared memory; both local */
    IS(socket, 1, AF_UNIX), ANY(connect), ANY(bind), ANY(listen), ANY(setsockopt), ANY(pipe2),
    /* its files below $HOME or --state-dir */
    ANY(mkdirat), ANY(unlinkat), ANY(symlinkat), END};

static const struct sandbox_call driver_old[] = {
#ifdef __x86_64__
    ANY(mkdir), ANY(unlink), ANY(symlink),
#endif
    END};

static const struct sandbox_call other_drivers[] = {
    /* the cache of kernels that were compiled at run time */
    ANY(renameat2), ANY(fchmod), ANY(fchmodat), ANY(umask), ANY(ftruncate), ANY(fallocate),
    ANY(fsync), ANY(fdatasync), ANY(flock), ANY(fcntl), ANY(utimensat), ANY(pwrite64), ANY(preadv),
    ANY(pwritev), ANY(fadvise64), ANY(statfs), ANY(fstatfs), ANY(getcwd), ANY(faccessat2),
    /* pages that stay, or lie on the GPU's node; memory shared by descriptor */
    ANY(mlock), ANY(mlock2), ANY(munlock), ANY(mlockall), ANY(munlockall), ANY(mbind),
    ANY(set_mempolicy), ANY(msync), ANY(mincore), ANY(memfd_create),
    /* threads beside the GPU, their urgency and their names */
    ANY(sched_setaffinity), ANY(sched_getscheduler), ANY(sched_setscheduler), ANY(sched_getparam),
    ANY(sched_getattr), ANY(getpriority), ANY(setpriority), ANY(get_robust_list), ANY(prctl),
    /* MPS where it is there, doors where somebody knocks */
    IS(socketpair, 1, AF_UNIX), ANY(accept), ANY(accept4), ANY(getsockname), ANY(getpeername),
    ANY(sendmmsg), ANY(recvmmsg), ANY(timerfd_create), ANY(timerfd_settime), ANY(epoll_pwait2),
    ANY(dup3), ANY(close_range),
    /* who it runs for; children that it could not start */
    ANY(getgroups), ANY(getresuid), ANY(getresgid), ANY(getpgid), ANY(getsid), ANY(capget),
    ANY(getxattr), ANY(waitid), ANY(wait4), END};

static const struct sandbox_call other_drivers_old[] = {
#ifdef __x86_64__
    ANY(open),    ANY(creat),    ANY(dup2),       ANY(pipe),     ANY(rmdir),
    ANY(rename),  ANY(renameat), ANY(chmod),      ANY(getdents), ANY(epoll_create),
    ANY(eventfd), ANY(getpgrp),  ANY(arch_prctl), ANY(utimes),
#endif
    END};

static const struct sandbox_call *const cuda_lists[] = {
    common,        common_old,        reading, driver,  driver_old,
    other_drivers, other_drivers_old, own_end, threads, NULL,
};

/* ---- the store: its socket and the arena are there before it starts ----

   SQLite would also give its log the owner of its database (fchown), as root: not needed. */

static const struct sandbox_call store[] = {
    /* its directory: a database with its log, files that are written, renamed, swept */
    ANY(openat), ANY(pwrite64), ANY(fsync), ANY(fdatasync), ANY(ftruncate), ANY(renameat),
    ANY(renameat2), ANY(unlinkat), ANY(mkdirat), ANY(getdents64), ANY(fchmod),
    /* locks of the database */
    ANY(fcntl),
    /* how much room there is, and the ballast */
    ANY(statfs), ANY(fstatfs), ANY(fallocate), ANY(getcwd),
    /* results that are handed over without a file */
    ANY(memfd_create), END};

static const struct sandbox_call store_old[] = {
#ifdef __x86_64__
    ANY(open), ANY(rename), ANY(unlink), ANY(mkdir),
#endif
    END};

static const struct sandbox_call *const store_lists[] = {common, common_old, no_code, own_end,
                                                         store,  store_old,  NULL};

/* Besides its directory: the time of log lines, seeds. */
static const char *const store_files[] = {"/proc/self", "/dev/urandom", "/etc/localtime",
                                          "/usr/share/zoneinfo", NULL};

/* ---- the spawner ----

   Children inherit its filter and can only narrow it further, so it holds all that a worker needs
   until it has confined itself. */

static const struct sandbox_call spawner[] = {
    /* starting programs, and looking after them: no namespaces */
    BITS(clone, 1, NEW_SPACES, 0), ANY(execve), ANY(pidfd_open), ANY(kill), ANY(tgkill),
    ANY(pidfd_send_signal),
    /* names of the store's files; the rest of what it needs drivers need as well */
    ANY(renameat),
    /* the worker's own list, on top of this one */
    ANY(seccomp), ANY(landlock_create_ruleset), ANY(landlock_add_rule), ANY(landlock_restrict_self),
    END};

static const struct sandbox_call spawner_old[] = {
#ifdef __x86_64__
    ANY(vfork), ANY(fork),
#endif
    END};

static const struct sandbox_call *const spawner_lists[] = {
    common,        common_old,        reading, driver,      driver_old,
    other_drivers, other_drivers_old, spawner, spawner_old, NULL,
};

const struct sandbox_call *const *const sandbox_allowed[SANDBOX_PROFILES] = {
    [SANDBOX_OPENING] = opening_lists, [SANDBOX_FRONT] = front_lists,
    [SANDBOX_SPAWNER] = spawner_lists, [SANDBOX_CPU] = cpu_lists,
    [SANDBOX_SHUT] = shut_lists,       [SANDBOX_CUDA] = cuda_lists,
    [SANDBOX_STORE] = store_lists,
};

const char *const *const sandbox_readable[SANDBOX_PROFILES] = {
    [SANDBOX_OPENING] = opening_files, /* and so the front: a domain stays */
    [SANDBOX_CPU] = cpu_files,
    [SANDBOX_STORE] = store_files,
};

/* ---- what nothing here would ever do ---- */

const struct sandbox_call sandbox_hostile[] = {
    /* into other processes */
    ANY(ptrace), ANY(process_vm_readv), ANY(process_vm_writev), ANY(pidfd_getfd),
    /* into the kernel: its programs, modules, keys, and the parts that were broken most often */
    ANY(bpf), ANY(perf_event_open), ANY(init_module), ANY(finit_module), ANY(delete_module),
    ANY(kexec_load), ANY(keyctl), ANY(add_key), ANY(request_key), ANY(userfaultfd),
    ANY(io_uring_setup), ANY(io_uring_enter), ANY(io_uring_register), ANY(open_by_handle_at),
    ANY(fanotify_init), ANY(syslog),
    /* another view of the machine */
    ANY(unshare), ANY(setns), ANY(mount), ANY(umount2), ANY(pivot_root), ANY(chroot),
    ANY(move_mount), ANY(open_tree), ANY(fsopen), ANY(fsconfig), ANY(fsmount), ANY(fspick),
    ANY(mount_setattr), ANY(personality),
    /* the machine itself */
    ANY(reboot), ANY(swapon), ANY(swapoff), ANY(acct), ANY(quotactl), ANY(sethostname),
    ANY(setdomainname), ANY(settimeofday), ANY(clock_settime), ANY(clock_adjtime), ANY(adjtimex),
    ANY(vhangup),
#ifdef __x86_64__
    ANY(iopl), ANY(ioperm), ANY(modify_ldt),
#endif
#ifdef SYS_kexec_file_load
    ANY(kexec_file_load),
#endif
    END};

/* Its flags lie in memory, where a filter cannot look; without it the C library takes clone(). */
const struct sandbox_call sandbox_missing[] = {ANY(clone3), END};

/* What `report` speaks with the kernel. */
const struct sandbox_call sandbox_reporting[] = {IS(ioctl, 2, (uint32_t)SECCOMP_IOCTL_NOTIF_RECV),
                                                 IS(ioctl, 2, (uint32_t)SECCOMP_IOCTL_NOTIF_SEND),
                                                 END};

const int16_t sandbox_newest = 449; /* futex_waitv, Linux 5.16 */
