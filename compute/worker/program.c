/*
 * program.c: one posix_spawn (program.h).
 */
#include "compute/worker/program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char **environ;

int program_start(pid_t *pid, const char *path, const char *const *arguments, const int *fds,
                  int count, int out) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    posix_spawnattr_init(&attributes); /* these only write into it */
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (error == 0 && out >= 0) {
        error = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    }
    for (int i = 0; error == 0 && i < count; i++) {
        error = posix_spawn_file_actions_adddup2(&actions, fds[i], PROGRAM_FD + i);
    }
    if (error == 0) {
        error = posix_spawn_file_actions_addclosefrom_np(&actions, PROGRAM_FD + count);
    }
    if (error == 0) {
        error = posix_spawn(pid, path, &actions, &attributes, (char *const *)(uintptr_t)arguments,
                            environ);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

void program_signal(int pidfd, int signal) {
    syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}
