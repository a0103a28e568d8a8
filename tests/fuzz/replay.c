/*
 * replay.c: runs a fuzz target over its corpus and a fixed number of mutations of it.
 *
 *     fuzz_png [--mutations N] [--seconds T] [--seed S] [--only I] directory…
 *
 * The same inputs every time: mutation i depends on the seed and i alone. All files of the corpus
 * are run, then mutations until there were N of them or T seconds have passed: a busy machine
 * tries fewer, and says how many, but does not fail. Inputs run in child
 * processes, each doing as many as it can, so that a crash or an endless loop costs one input; the
 * parent reads from shared memory how far a child came, names the input and goes on behind it.
 * With libFuzzer this file is left out.
 */
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILES_MAX     4096
#define FILE_SIZE_MAX (1u << 20)
#define INPUT_MAX     (2u << 20)
#define FAILURES_MAX  20 /* then it is time to stop */
#define SECONDS_MAX   20 /* of the processor that one input may take */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct file {
    char *path;
    uint8_t *bytes;
    size_t size;
};

static struct file files[FILES_MAX];
static size_t file_count;
static uint64_t seed = 1;

/* splitmix64 */
static uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static size_t random_below(uint64_t *state, size_t limit) {
    return limit ? (size_t)(random_next(state) % limit) : 0;
}

static bool file_load(const char *directory, const char *name) {
    struct file *file = &files[file_count];
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *stream = fopen(path, "rb");
    if (stream == NULL || file_count == FILES_MAX) {
        return false;
    }
    file->path = strdup(path);
    file->bytes = malloc(FILE_SIZE_MAX);
    file->size = file->bytes != NULL ? fread(file->bytes, 1, FILE_SIZE_MAX, stream) : 0;
    fclose(stream);
    file_count += file->path != NULL && file->bytes != NULL;
    return file->path != NULL && file->bytes != NULL;
}

/* Loads a directory in the order of its names, so that it does not depend on the file system. */
static bool directory_load(const char *path) {
    struct dirent **entries;
    bool good = true;
    int count = scandir(path, &entries, NULL, alphasort);
    if (count < 0) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (entries[i]->d_name[0] != '.') {
            good &= file_load(path, entries[i]->d_name);
        }
        free(entries[i]);
    }
    free(entries);
    return good;
}

/* Replaces [at, at + removed) by bytes; the input never grows past INPUT_MAX. */
static void splice(uint8_t *input, size_t *size, size_t at, size_t removed, const uint8_t *bytes,
                   size_t added) {
    if (*size - removed + added > INPUT_MAX) {
        return;
    }
    memmove(input + at + added, input + at + removed, *size - at - removed);
    memcpy(input + at, bytes, added);
    *size = *size - removed + added;
}

/* One change somewhere in the input. */
static void mutate_once(uint8_t *input, size_t *size, uint64_t *state) {
    static const char *const words[] = {"0",
                                        "-1",
                                        "1e308",
                                        "1e999",
                                        "nan",
                                        "inf",
                                        "\"",
                                        "[",
                                        "{",
                                        "}",
                                        "]",
                                        ",",
                                        ":",
                                        "\\u0000",
                                        "\n",
                                        "\r\n",
                                        "#",
                                        " ",
                                        "\xff",
                                        "\x80",
                                        "\xef\xbb\xbf",
                                        "65535",
                                        "65536",
                                        "4294967295",
                                        "18446744073709551615",
                                        "IDAT",
                                        "IEND",
                                        "PLTE",
                                        "tRNS",
                                        "True",
                                        "'",
                                        "(",
                                        "|O",
                                        "<f8",
                                        "="};
    static const uint8_t numbers[] = {0, 1, 0x7f, 0x80, 0xff, 0x20, 0x0a};
    uint8_t noise[16];
    size_t at = random_below(state, *size + 1), left = *size - at;
    size_t length = 1 + random_below(state, 1 + random_below(state, 64));
    size_t removed = length < left ? length : left;
    const struct file *other = &files[random_below(state, file_count)];
    size_t from = random_below(state, other->size + 1);
    for (size_t i = 0; i < sizeof noise; i++) {
        noise[i] = (uint8_t)random_next(state);
    }
    const char *word = words[random_below(state, sizeof words / sizeof words[0])];
    switch (random_below(state, 9)) {
    case 0: /* one bit */
        if (left) {
            input[at] ^= (uint8_t)(1 << random_below(state, 8));
        }
        break;
    case 1: /* an edge value */
        if (left) {
            input[at] = numbers[random_below(state, sizeof numbers)];
        }
        break;
    case 2: /* noise over it */
        memcpy(input + at, noise, left < sizeof noise ? left : sizeof noise);
        break;
    case 3: /* noise into it */
        splice(input, size, at, 0, noise, 1 + random_below(state, sizeof noise));
        break;
    case 4: /* something away */
        splice(input, size, at, removed, noise, 0);
        break;
    case 5: /* something twice */
        if (removed <= sizeof noise) {
            memcpy(noise, input + at, removed);
            splice(input, size, at, 0, noise, removed);
        }
        break;
    case 6: /* a word */
        splice(input, size, at, random_below(state, 2) ? removed : 0, (const uint8_t *)word,
               strlen(word));
        break;
    case 7: /* a part of another file */
        splice(input, size, at, removed, other->bytes + from,
               length < other->size - from ? length : other->size - from);
        break;
    default: /* the rest away; rarely, since little is left to go wrong */
        if (random_below(state, 8) == 0) {
            *size = at;
        }
    }
}

/* Input number i: the files, then the mutations. Returns the file that it comes from. */
static const struct file *input_make(uint64_t i, uint8_t *input, size_t *size) {
    uint64_t state = seed ^ i * UINT64_C(0xd1342543de82ef95);
    bool mutated = i >= file_count;
    const struct file *file = &files[mutated ? random_below(&state, file_count) : i];
    memcpy(input, file->bytes, file->size);
    *size = file->size;
    for (size_t n = mutated ? 1 + random_below(&state, 6) : 0; n > 0; n--) {
        mutate_once(input, size, &state);
    }
    return file;
}

/* Runs one input from memory that ends with it, so that the sanitizers see a step past it. */
static void input_run(uint64_t i, uint8_t *input) {
    size_t size;
    input_make(i, input, &size);
    uint8_t *exact = malloc(size ? size : 1);
    if (exact == NULL) {
        abort();
    }
    memcpy(exact, input, size);
    /* not by the clock: other programs' work is not this input's */
    setitimer(ITIMER_PROF, &(struct itimerval){.it_value.tv_sec = SECONDS_MAX}, NULL);
    LLVMFuzzerTestOneInput(exact, size);
    setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL);
    free(exact);
}

static double clock_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* What the children tell the parent. */
struct progress {
    volatile uint64_t at;
    volatile bool late; /* the time was over before the input `at` */
};

/* Runs [first, end) in a child, mutations only until `until`; returns where it stopped: `end`, or
   the input that broke it or was not begun. */
static uint64_t batch_run(uint64_t first, uint64_t end, double until, struct progress *progress,
                          uint8_t *input) {
    int status = 0;
    progress->at = first;
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        return first;
    }
    if (child == 0) {
        for (uint64_t i = first; i < end && !progress->late; i++) {
            progress->at = i;
            progress->late = i >= file_count && clock_seconds() > until;
            if (!progress->late) {
                input_run(i, input);
            }
        }
        progress->at = progress->late ? progress->at : end;
        exit(0); /* through the leak check */
    }
    if (waitpid(child, &status, 0) != child || status != 0) {
        progress->late = false;
        return progress->at < end ? progress->at : end - 1;
    }
    return progress->at;
}

static int replay(uint64_t first, uint64_t end, double seconds, uint8_t *input) {
    uint64_t failed = 0, at = first;
    double until = clock_seconds() + seconds;
    struct progress *progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (progress == MAP_FAILED) {
        return 2;
    }
    while (at < end && failed < FAILURES_MAX) {
        at = batch_run(at, end, until, progress, input);
        if (at == end) {
            break;
        }
        if (progress->late) {
            printf("%llu of %llu mutations in %.0f s\n", (unsigned long long)(at - file_count),
                   (unsigned long long)(end - file_count), seconds);
            break;
        }
        size_t size;
        const struct file *file = input_make(at, input, &size);
        fprintf(stderr, "FAILED: %s, %s; again with --seed %llu --only %llu\n", file->path,
                at < file_count ? "as it is" : "mutated", (unsigned long long)seed,
                (unsigned long long)at);
        failed++;
        at++;
    }
    printf("%llu passed, %llu failed\n", (unsigned long long)(at - first - failed),
           (unsigned long long)failed);
    return failed ? 1 : 0;
}

int main(int count, char **arguments) {
    uint64_t mutations = 0, only = UINT64_MAX;
    double seconds = 1e9;
    for (int i = 1; i < count; i++) {
        if (strcmp(arguments[i], "--mutations") == 0 && i + 1 < count) {
            mutations = strtoull(arguments[++i], NULL, 10);
        } else if (strcmp(arguments[i], "--seconds") == 0 && i + 1 < count) {
            seconds = strtod(arguments[++i], NULL);
        } else if (strcmp(arguments[i], "--seed") == 0 && i + 1 < count) {
            seed = strtoull(arguments[++i], NULL, 10);
        } else if (strcmp(arguments[i], "--only") == 0 && i + 1 < count) {
            only = strtoull(arguments[++i], NULL, 10);
        } else if (!directory_load(arguments[i])) {
            fprintf(stderr, "%s cannot be read\n", arguments[i]);
            return 2;
        }
    }
    uint8_t *input = malloc(INPUT_MAX + FILE_SIZE_MAX);
    if (file_count == 0 || input == NULL) {
        fprintf(stderr,
                "usage: %s [--mutations N] [--seconds T] [--seed S] [--only I] directory…\n",
                arguments[0]);
        return 2;
    }
    if (only != UINT64_MAX) {
        input_run(only, input);
        return 0;
    }
    int result = replay(0, file_count + mutations, seconds, input);
    for (size_t i = 0; i < file_count; i++) {
        free(files[i].path);
        free(files[i].bytes);
    }
    free(input);
    return result;
}
