/*
 * limits.c: what this machine's cores and memory can do at most, for the tables beside it.
 *
 * Prints one line a limit: name, unit, median and best of several rounds over all cores that the
 * process may use. Arithmetic runs in independent chains held in registers: fused multiply-adds
 * alone, and mixed with additions, since many cores have adders of their own beside the
 * multipliers. Copies count bytes read plus bytes written; `copy_memory` uses buffers far larger
 * than any cache and stores past the caches, `copy_cache` 128 KiB a core. The widest vectors that
 * the processor has are chosen at run time.
 *
 *   limits [SECONDS]      time of one round (0.2)
 */
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define CHAINS       12
#define STEPS        4096 /* of every chain between two looks at the clock */
#define ROUNDS       7
#define THREADS_MAX  1024
#define MEMORY_BYTES ((size_t)128 << 20) /* one buffer of one thread */
#define CACHE_BYTES  ((size_t)64 << 10)

struct buffers {
    char *from, *to;
    size_t size;
};

/** One bout of work by one thread; answers how much was done (operations or bytes). */
typedef double (*bout)(const struct buffers *buffers);

struct limit {
    const char *name, *unit;
    bout portable, avx2, avx512;
    size_t buffer; /* bytes of each of two buffers of a thread; 0: none */
};

struct worker {
    pthread_t thread;
    pthread_barrier_t *barrier;
    const struct limit *limit;
    bout bout;
    double seconds, rate[ROUNDS];
};

/* Keeps the chains' sums alive. */
static volatile double sink;

/* CHAINS chains of which every fourth, or every second, adds where the others multiply and add. */
#define ISSUE(NAME, TARGET, VECTOR, SCALAR, SPREAD, FUSED, ADD, ADDS, PER)                         \
    TARGET static double NAME(const struct buffers *buffers) {                                     \
        VECTOR x[CHAINS], a = SPREAD((SCALAR)0.9999), b = SPREAD((SCALAR)1e-7);                    \
        SCALAR out[sizeof(VECTOR) / sizeof(SCALAR)];                                               \
        (void)buffers;                                                                             \
        _Pragma("GCC unroll 12") for (int k = 0; k < CHAINS; k++) {                                \
            x[k] = SPREAD((SCALAR)k);                                                              \
        }                                                                                          \
        for (int i = 0; i < STEPS; i++) {                                                          \
            _Pragma("GCC unroll 12") for (int k = 0; k < CHAINS; k++) {                            \
                x[k] = k % 4 < (ADDS) ? ADD(x[k], b) : FUSED(x[k], a, b);                          \
            }                                                                                      \
        }                                                                                          \
        _Pragma("GCC unroll 12") for (int k = 1; k < CHAINS; k++) {                                \
            x[0] = ADD(x[0], x[k]);                                                                \
        }                                                                                          \
        memcpy(out, x, sizeof out);                                                                \
        sink = (double)out[0];                                                                     \
        return (double)STEPS * CHAINS * (double)(sizeof(VECTOR) / sizeof(SCALAR)) * (PER);         \
    }

/* For processors without a path of their own: plain C, one element a vector. */
#define SAME(x)        (x)
#define PLUS(x, y)     ((x) + (y))
#define TIMES(x, y, z) ((x) * (y) + (z))
#define PORTABLE       __attribute__((noinline))
#define AVX2           __attribute__((target("avx2,fma"), noinline))
#define AVX512         __attribute__((target("avx512f"), noinline))
#define PORTABLE_TRIO(NAME, SCALAR)                                                                \
    ISSUE(fused_##NAME, PORTABLE, SCALAR, SCALAR, SAME, TIMES, PLUS, 0, 2)                         \
    ISSUE(mixed31_##NAME, PORTABLE, SCALAR, SCALAR, SAME, TIMES, PLUS, 1, 1)                       \
    ISSUE(mixed11_##NAME, PORTABLE, SCALAR, SCALAR, SAME, TIMES, PLUS, 2, 1)
#define VECTOR_TRIO(NAME, TARGET, VECTOR, SCALAR, SUFFIX, P)                                       \
    ISSUE(fused_##NAME, TARGET, VECTOR, SCALAR, P##_set1_##SUFFIX, P##_fmadd_##SUFFIX,             \
          P##_add_##SUFFIX, 0, 2)                                                                  \
    ISSUE(mixed31_##NAME, TARGET, VECTOR, SCALAR, P##_set1_##SUFFIX, P##_fmadd_##SUFFIX,           \
          P##_add_##SUFFIX, 1, 1)                                                                  \
    ISSUE(mixed11_##NAME, TARGET, VECTOR, SCALAR, P##_set1_##SUFFIX, P##_fmadd_##SUFFIX,           \
          P##_add_##SUFFIX, 2, 1)

PORTABLE_TRIO(fp32, float)
PORTABLE_TRIO(fp64, double)

static double copy_plain(const struct buffers *buffers) {
    memcpy(buffers->to, buffers->from, buffers->size);
    sink = buffers->to[buffers->size / 2];
    return 2.0 * (double)buffers->size;
}

static double copy_cached(const struct buffers *buffers) {
    for (int i = 0; i < 64; i++) {
        memcpy(buffers->to, buffers->from, buffers->size);
        sink = buffers->to[(size_t)i * 64];
    }
    return 128.0 * (double)buffers->size;
}

#if defined(__x86_64__)
VECTOR_TRIO(fp32_avx2, AVX2, __m256, float, ps, _mm256)
VECTOR_TRIO(fp64_avx2, AVX2, __m256d, double, pd, _mm256)
VECTOR_TRIO(fp32_avx512, AVX512, __m512, float, ps, _mm512)
VECTOR_TRIO(fp64_avx512, AVX512, __m512d, double, pd, _mm512)

/* Stores past the caches, so that a line written is not read first. */
AVX2 static double copy_stream(const struct buffers *buffers) {
    for (size_t i = 0; i < buffers->size; i += 128) {
        const float *from = (const float *)(const void *)(buffers->from + i);
        float *to = (float *)(void *)(buffers->to + i);
        __m256 a = _mm256_load_ps(from), b = _mm256_load_ps(from + 8);
        __m256 c = _mm256_load_ps(from + 16), d = _mm256_load_ps(from + 24);
        _mm256_stream_ps(to, a);
        _mm256_stream_ps(to + 8, b);
        _mm256_stream_ps(to + 16, c);
        _mm256_stream_ps(to + 24, d);
    }
    _mm_sfence();
    return 2.0 * (double)buffers->size;
}
#define WIDE(NAME) NAME, NAME##_avx2, NAME##_avx512
#define STREAMED   copy_plain, copy_stream, copy_stream
#else
#define WIDE(NAME) NAME, NAME, NAME
#define STREAMED   copy_plain, copy_plain, copy_plain
#endif

static const struct limit limits[] = {
    {"fma_fp32", "FLOP/s", WIDE(fused_fp32), 0},
    {"fma_fp64", "FLOP/s", WIDE(fused_fp64), 0},
    {"issue31_fp32", "lane instructions/s", WIDE(mixed31_fp32), 0},
    {"issue31_fp64", "lane instructions/s", WIDE(mixed31_fp64), 0},
    {"issue11_fp32", "lane instructions/s", WIDE(mixed11_fp32), 0},
    {"issue11_fp64", "lane instructions/s", WIDE(mixed11_fp64), 0},
    {"copy_memory", "B/s", STREAMED, MEMORY_BYTES},
    {"copy_cache", "B/s", copy_cached, copy_cached, copy_cached, CACHE_BYTES},
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static const char *width_name(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        return "avx512";
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        return "avx2";
    }
#endif
    return "portable";
}

static bout bout_choose(const struct limit *limit) {
    const char *width = width_name();
    if (strcmp(width, "avx512") == 0) {
        return limit->avx512;
    }
    return strcmp(width, "avx2") == 0 ? limit->avx2 : limit->portable;
}

/* Every thread measures itself between barriers; the machine's rate is the sum. */
static void *worker_run(void *raw) {
    struct worker *worker = raw;
    struct buffers buffers = {NULL, NULL, worker->limit->buffer};
    if (buffers.size) {
        buffers.from = aligned_alloc(4096, buffers.size);
        buffers.to = aligned_alloc(4096, buffers.size);
        if (buffers.from == NULL || buffers.to == NULL) {
            fprintf(stderr, "limits: no memory\n");
            exit(1);
        }
        memset(buffers.from, 1, buffers.size);
        memset(buffers.to, 2, buffers.size);
    }
    for (int round = 0; round < ROUNDS; round++) {
        double done = 0, spent = 0;
        pthread_barrier_wait(worker->barrier);
        double start = now();
        do {
            done += worker->bout(&buffers);
            spent = now() - start;
        } while (spent < worker->seconds);
        worker->rate[round] = done / spent;
    }
    free(buffers.from);
    free(buffers.to);
    return NULL;
}

static int double_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int limit_measure(const struct limit *limit, int threads, double seconds) {
    static struct worker workers[THREADS_MAX];
    pthread_barrier_t barrier;
    double rates[ROUNDS] = {0};
    if (pthread_barrier_init(&barrier, NULL, (unsigned)threads) != 0) {
        return -1;
    }
    for (int i = 0; i < threads; i++) {
        workers[i] = (struct worker){
            .barrier = &barrier, .limit = limit, .bout = bout_choose(limit), .seconds = seconds};
        /* Too few threads would wait for ever at the barrier. */
        if (pthread_create(&workers[i].thread, NULL, worker_run, &workers[i]) != 0) {
            fprintf(stderr, "limits: no thread\n");
            exit(1);
        }
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(workers[i].thread, NULL);
        for (int round = 0; round < ROUNDS; round++) {
            rates[round] += workers[i].rate[round];
        }
    }
    pthread_barrier_destroy(&barrier);
    qsort(rates, ROUNDS, sizeof rates[0], double_compare);
    printf("%s\t%s\t%.6g\t%.6g\n", limit->name, limit->unit, rates[ROUNDS / 2], rates[ROUNDS - 1]);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv) {
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 0.2;
    cpu_set_t set;
    int threads = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    if (argc > 2 || !(seconds > 0 && seconds <= 10)) {
        fprintf(stderr, "usage: limits [SECONDS]\n");
        return 2;
    }
    if (threads > THREADS_MAX) {
        threads = THREADS_MAX;
    }
    printf("vectors\t%s\t0\t0\ncores\tcount\t%d\t%d\n", width_name(), threads, threads);
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        if (limit_measure(&limits[i], threads, seconds) != 0) {
            return 1;
        }
    }
    return 0;
}
