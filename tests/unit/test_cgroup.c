/*
 * test_cgroup.c: limits of memory from trees of files as kernels, containers and service managers
 * make them.
 */
#include "compute/core/cgroup.h"

#include <errno.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

static char root[64];

static int open_root(void **state) {
    (void)state;
    snprintf(root, sizeof root, "/tmp/kiln-cgroup-XXXXXX");
    return mkdtemp(root) != NULL ? 0 : -1;
}

static int entry_remove(const char *path, const struct stat *status, int type, struct FTW *ftw) {
    (void)status, (void)type, (void)ftw;
    return remove(path);
}

static int close_root(void **state) {
    (void)state;
    return nftw(root, entry_remove, 16, FTW_DEPTH | FTW_PHYS);
}

/* Writes a file below the root, with the folders above it. */
static void put(const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static struct cgroup_memory read_all(void) {
    struct cgroup_memory memory;
    cgroup_memory_read(root, &memory);
    return memory;
}

#define MOUNT_2   "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define MOUNT_ANY "24 1 8:1 / / rw - ext4 /dev/sda1 rw\n"

static void nothing_limits_nothing(void **state) {
    (void)state;
    assert_int_equal(read_all().limit, UINT64_MAX);
    put("/proc/self/cgroup", "0::/user.slice\n");
    assert_int_equal(read_all().limit, UINT64_MAX);
    put("/proc/self/mountinfo", MOUNT_ANY MOUNT_2);
    assert_int_equal(read_all().limit, UINT64_MAX);
    put("/sys/fs/cgroup/user.slice/memory.max", "max\n");
    put("/sys/fs/cgroup/user.slice/memory.high", "max\n");
    assert_int_equal(read_all().limit, UINT64_MAX);
    assert_int_equal(read_all().free, UINT64_MAX);
}

/* systemd: MemoryMax= of the service, and of a slice around it. */
static void the_tightest_of_nested_groups(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/system.slice/kilnd.service\n");
    put("/proc/self/mountinfo", MOUNT_ANY MOUNT_2);
    put("/sys/fs/cgroup/system.slice/kilnd.service/memory.max", "2147483648\n");
    put("/sys/fs/cgroup/system.slice/kilnd.service/memory.current", "1073741824\n");
    put("/sys/fs/cgroup/system.slice/kilnd.service/memory.stat",
        "anon 5\nfile 6\ninactive_file 104857600\n");
    assert_int_equal(read_all().limit, 2048 * MIB);
    assert_int_equal(read_all().free, 1124 * MIB);
    put("/sys/fs/cgroup/system.slice/memory.max", "1073741824\n");
    assert_int_equal(read_all().limit, 1024 * MIB);
    assert_int_equal(read_all().free, 1024 * MIB); /* its use is not told */
    put("/sys/fs/cgroup/system.slice/memory.current", "2073741824\n");
    assert_int_equal(read_all().free, 0);
    put("/sys/fs/cgroup/system.slice/kilnd.service/memory.high", "536870912\n");
    assert_int_equal(read_all().limit, 512 * MIB);
    put("/sys/fs/cgroup/memory.max", "268435456\n");
    assert_int_equal(read_all().limit, 256 * MIB);
}

/* A container with a name space of its own sees its group as the root. */
static void a_container_of_its_own(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/\n");
    put("/proc/self/mountinfo",
        "900 899 0:26 / /sys/fs/cgroup ro,nosuid - cgroup2 cgroup rw,nsdelegate\n");
    put("/sys/fs/cgroup/memory.max", "1610612736\n");
    assert_int_equal(read_all().limit, 1536 * MIB);
}

/* Version 1, the host's name space: the path is the host's, and only its end is mounted. */
static void a_container_of_the_host(void **state) {
    (void)state;
    put("/proc/self/cgroup", "12:pids:/docker/abc\n5:cpu,cpuacct:/docker/abc\n"
                             "4:memory:/docker/abc\n0::/docker/abc\n");
    put("/proc/self/mountinfo",
        MOUNT_ANY "41 30 0:30 /docker/abc /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n"
                  "42 30 0:31 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "805306368\n");
    put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "205306368\n");
    put("/sys/fs/cgroup/cpu/memory.limit_in_bytes", "1\n"); /* of no meaning */
    assert_int_equal(read_all().limit, 768 * MIB);
    assert_int_equal(read_all().free, 600000000);
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_int_equal(read_all().limit, UINT64_MAX);
}

/* A path that lies outside what is mounted. */
static void a_path_that_is_not_there(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/../../elsewhere\n");
    put("/proc/self/mountinfo", MOUNT_2);
    put("/sys/fs/cgroup/memory.max", "1048576000\n");
    put("/elsewhere/memory.max", "5\n");
    assert_int_equal(read_all().limit, 1000 * MIB);
    put("/proc/self/cgroup", "0::/gone/with/the/wind\n");
    assert_int_equal(read_all().limit, 1000 * MIB);
    /* a name that begins with another's */
    put("/proc/self/mountinfo", "900 899 0:26 /docker/ab /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
    put("/proc/self/cgroup", "0::/docker/abc\n");
    put("/sys/fs/cgroup/c/memory.max", "5\n");
    assert_int_equal(read_all().limit, 1000 * MIB);
}

/* Both hierarchies, and files that make no sense. */
static void broken_files_limit_nothing(void **state) {
    static const char *const bad[] = {"", "\n", "-5\n", "many\n", "99999999999999999999999\n"};
    (void)state;
    put("/proc/self/cgroup", "nonsense\n::\n7:memory\n4:memory:/a\n0::/a\n");
    put("/proc/self/mountinfo",
        "\n - \n1 2 3 - cgroup2\n - cgroup2 a b\n" MOUNT_2
        "42 30 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576\n");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put("/sys/fs/cgroup/a/memory.max", bad[i]);
        assert_int_equal(read_all().limit, MIB);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_root, close_root)
    const struct CMUnitTest tests[] = {
        TEST(nothing_limits_nothing),   TEST(the_tightest_of_nested_groups),
        TEST(a_container_of_its_own),   TEST(a_container_of_the_host),
        TEST(a_path_that_is_not_there), TEST(broken_files_limit_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
