/*
 * lib_forge.c: hostile files, and what they cost.
 *
 * Time is that of the clock and that of the two processes' threads; the second one is what is held
 * against a bound, because a busy machine does not change it. Memory is read from
 * /proc/PID/status, which needs no rights over the process.
 */
#include "tests/api/lib_forge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

#define SLOW_S 0.05
#define TRIES  5

/* ---- bytes ---- */

static uint8_t *bytes_grow(struct bytes *bytes, size_t size) {
    if (bytes->room - bytes->size < size) {
        bytes->room = 2 * (bytes->size + size) + 64;
        bytes->at = realloc(bytes->at, bytes->room);
        assert_non_null(bytes->at);
    }
    bytes->size += size;
    return bytes->at + bytes->size - size;
}

void bytes_put(struct bytes *bytes, const void *data, size_t size) {
    uint8_t *out = bytes_grow(bytes, size);
    if (size > 0) {
        memcpy(out, data, size);
    }
}

void bytes_text(struct bytes *bytes, const char *text) {
    bytes_put(bytes, text, strlen(text));
}

void bytes_fill(struct bytes *bytes, int value, size_t count) {
    memset(bytes_grow(bytes, count), value, count);
}

static void big32_write(uint8_t *out, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        out[i] = (uint8_t)(value >> (24 - 8 * i));
    }
}

static uint32_t big32_read(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

void bytes_big32(struct bytes *bytes, uint32_t value) {
    big32_write(bytes_grow(bytes, 4), value);
}

void bytes_free(struct bytes *bytes) {
    free(bytes->at);
    *bytes = (struct bytes){0};
}

/* ---- PNG ---- */

void png_chunk(struct bytes *png, const char *type, const void *data, size_t size) {
    bytes_big32(png, (uint32_t)size);
    size_t at = png->size;
    bytes_put(png, type, 4);
    bytes_put(png, data, size);
    bytes_big32(png, (uint32_t)crc32(0, png->at + at, (uInt)(size + 4)));
}

void png_start(struct bytes *png, uint32_t width, uint32_t height, unsigned depth, unsigned color,
               unsigned interlace) {
    uint8_t header[13] = {0};
    big32_write(header, width);
    big32_write(header + 4, height);
    header[8] = (uint8_t)depth;
    header[9] = (uint8_t)color;
    header[12] = (uint8_t)interlace;
    bytes_put(png, "\x89PNG\r\n\x1a\n", 8);
    png_chunk(png, "IHDR", header, 13);
}

/* zlib's stream of `data`, or of zeros where it is NULL. */
static void deflate_put(struct bytes *out, const void *data, size_t size) {
    static uint8_t zeros[1 << 16], piece[1 << 14];
    z_stream stream = {0};
    assert_int_equal(deflateInit(&stream, 9), Z_OK);
    for (size_t done = 0; done <= size;) {
        size_t now = size - done < sizeof zeros ? size - done : sizeof zeros;
        bool last = done + now == size;
        stream.next_in = data != NULL ? (Bytef *)(uintptr_t)data + done : zeros;
        stream.avail_in = (uInt)now;
        do {
            stream.next_out = piece;
            stream.avail_out = sizeof piece;
            deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
            bytes_put(out, piece, sizeof piece - stream.avail_out);
        } while (stream.avail_out == 0);
        done += now + last;
    }
    deflateEnd(&stream);
}

void png_deflated(struct bytes *png, const char *type, const char *prefix, size_t prefix_size,
                  const void *data, size_t size) {
    struct bytes packed = {0};
    bytes_put(&packed, prefix, prefix_size);
    deflate_put(&packed, data, size);
    png_chunk(png, type, packed.at, packed.size);
    bytes_free(&packed);
}

void png_zeros(struct bytes *png, const char *type, const char *prefix, size_t prefix_size,
               size_t count) {
    png_deflated(png, type, prefix, prefix_size, NULL, count);
}

void png_end(struct bytes *png) {
    png_chunk(png, "IEND", NULL, 0);
}

void png_checksums(struct bytes *png) {
    for (size_t at = 8; at + 12 <= png->size;) {
        size_t length = big32_read(png->at + at);
        if (length > png->size - at - 12) {
            return;
        }
        big32_write(png->at + at + 8 + length,
                    (uint32_t)crc32(0, png->at + at + 4, (uInt)(length + 4)));
        at += 12 + length;
    }
}

/* ---- mutations ---- */

uint64_t forge_random(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A bit, a byte, an edge value, a piece away, a piece twice. */
static void mutate_once(struct bytes *bytes, uint64_t *state) {
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, '-', '9', ' '};
    size_t at = bytes->size > 0 ? forge_random(state) % bytes->size : 0;
    size_t length = 1 + forge_random(state) % 12, left = bytes->size - at;
    length = length < left ? length : left;
    if (bytes->size == 0) {
        return;
    }
    switch (forge_random(state) % 5) {
    case 0:
        bytes->at[at] ^= (uint8_t)(1 << forge_random(state) % 8);
        break;
    case 1:
        bytes->at[at] = (uint8_t)forge_random(state);
        break;
    case 2:
        bytes->at[at] = edges[forge_random(state) % sizeof edges];
        break;
    case 3:
        memmove(bytes->at + at, bytes->at + at + length, left - length);
        bytes->size -= length;
        break;
    default:
        bytes_fill(bytes, 0, length);
        memmove(bytes->at + at + length, bytes->at + at, left);
    }
}

void forge_mutate(struct bytes *bytes, uint64_t number) {
    uint64_t state = number * UINT64_C(0xd1342543de82ef95);
    for (uint64_t n = 1 + forge_random(&state) % (number % 2 == 0 ? 1 : 6); n > 0; n--) {
        mutate_once(bytes, &state);
    }
}

/* ---- watching ---- */

static double cpu_s(pid_t pid) {
    clockid_t clock;
    struct timespec time = {0};
    return clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &time) == 0
               ? (double)time.tv_sec + (double)time.tv_nsec * 1e-9
               : 0;
}

/* A line of /proc/PID/status. */
static long status_kib(pid_t pid, const char *key) {
    char path[64], line[256];
    long value = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    while (file != NULL && value < 0 && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            value = strtol(line + strlen(key), NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    assert_true(value >= 0);
    return value;
}

static long both_kib(const struct watch *watch, const char *key) {
    return status_kib(watch->front, key) + status_kib(watch->worker, key);
}

void watch_start(struct watch *watch, struct session *session, const struct daemon *daemon,
                 const char *path, const char *type) {
    *watch = (struct watch){.session = session, .path = path, .type = type, .front = daemon->pid};
    watch->worker = worker_pid(session);
    watch->held_kib = both_kib(watch, "RssAnon:");
    watch->peak_kib = both_kib(watch, "VmHWM:");
}

double watch_held(const struct watch *watch) {
    return 1024.0 * (double)(both_kib(watch, "RssAnon:") - watch->held_kib);
}

double watch_peak(const struct watch *watch) {
    return 1024.0 * (double)(both_kib(watch, "VmHWM:") - watch->peak_kib);
}

static void answer_take(struct watch *watch, const char *name, const struct answer *answer,
                        enum forge_wanted wanted) {
    char type[64] = "";
    answer_header(answer, "Content-Type", type, sizeof type);
    bool refused = answer->status >= 400 && answer->status < 500 &&
                   strcmp(type, "application/problem+json") == 0;
    bool taken = answer->status == 200;
    if (!(refused && wanted != FORGE_TAKEN) && !(taken && wanted != FORGE_REFUSED)) {
        watch->wrong++;
        print_message("  %s: %d %s %.200s\n", name, answer->status, type,
                      taken ? "taken" : answer->body);
    }
    watch->asked++;
    watch->refused += refused;
    watch->taken += taken;
}

void watch_ask(struct watch *watch, const char *name, const struct bytes *file,
               enum forge_wanted wanted) {
    const struct request request = {
        .path = watch->path, .type = watch->type, .body = file->at, .size = file->size};
    double wall = 1e9, cpu = 1e9;
    if (file->size == 0) {
        return; /* lib_daemon takes 0 for a text's length */
    }
    for (int i = 0; i < TRIES && (i == 0 || wall > SLOW_S); i++) {
        struct answer answer;
        double began = now_s(), used = cpu_s(watch->front) + cpu_s(watch->worker);
        session_ask(watch->session, &request, &answer);
        double took = now_s() - began;
        used = cpu_s(watch->front) + cpu_s(watch->worker) - used;
        wall = took < wall ? took : wall;
        cpu = used < cpu ? used : cpu;
        if (i == 0) {
            answer_take(watch, name, &answer, wanted);
        }
        answer_free(&answer);
    }
    watch->largest = file->size > watch->largest ? file->size : watch->largest;
    watch->wall_s = wall > watch->wall_s ? wall : watch->wall_s;
    if (cpu > watch->cpu_s) {
        watch->cpu_s = cpu;
        snprintf(watch->slowest, sizeof watch->slowest, "%s", name);
    }
}

void watch_assert_fine(const struct watch *watch) {
    struct answer answer;
    session_get(watch->session, "/v1/mandelbrot?width=16&height=16&format=npy", &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    assert_int_equal(worker_pid(watch->session), watch->worker);
    assert_true(watch->asked > 0);
    assert_int_equal(watch->wrong, 0);
}
