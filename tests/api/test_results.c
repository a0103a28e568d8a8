/*
 * test_results.c: every job through HTTP, in every way in and every format out, against arithmetic
 * written out here.
 */
#include "tests/api/lib_decode.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct daemon daemon_;
static struct session *session;

static int setup(void **state) {
    (void)state;
    daemon_start(&daemon_, NULL);
    session = session_create(&daemon_);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    session_destroy(session);
    return daemon_stop(&daemon_);
}

static void post(const char *path, const char *type, const void *body, size_t size,
                 struct answer *answer) {
    const struct request request = {.path = path, .type = type, .body = body, .size = size};
    session_ask(session, &request, answer);
}

/* Equal status and bytes. */
static void assert_same(const struct answer *one, const struct answer *other) {
    assert_status(one, 200);
    assert_status(other, 200);
    assert_int_equal(one->size, other->size);
    assert_memory_equal(one->body, other->body, one->size);
}

/* The metadata that every result has. */
static void assert_metadata(const struct answer *answer, const char *media) {
    static const char *const phases[] = {"queue",    "upload", "kernel",
                                         "download", "encode", "total"};
    char value[512];
    assert_status(answer, 200);
    assert_header(answer, "Content-Type", media);
    assert_true(answer_header(answer, "Kiln-Device", value, sizeof value));
    assert_non_null(strchr(value, ':'));
    assert_true(answer_header(answer, "Kiln-Job", value, sizeof value));
    assert_int_equal(strspn(value, "0123456789abcdef-"), 36); /* a UUID */
    assert_true(answer_header(answer, "ETag", value, sizeof value));
    assert_int_equal(strncmp(value, "W/", 2) == 0, strcmp(media, "application/json") == 0);
    assert_true(answer_header(answer, "Server-Timing", value, sizeof value));
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        char name[32];
        snprintf(name, sizeof name, "%s;dur=", phases[i]);
        const char *found = strstr(value, name);
        assert_non_null(found);
        assert_true(strtod(found + strlen(name), NULL) >= 0);
    }
}

/* The step of kernels/mandelbrot.h in double. */
static int escape_count(double cx, double cy, double radius, int max_iter) {
    double x = 0, y = 0;
    for (int n = 1; n <= max_iter; n++) {
        double t = fma(-y, y, cx), u = x + x;
        y = fma(u, y, cy);
        x = fma(x, x, t);
        if (fma(x, x, y * y) > radius * radius) {
            return n;
        }
    }
    return -1;
}

static void mandelbrot_counts(void **state) {
    (void)state;
    const int width = 37, height = 23, max_iter = 300;
    struct answer answer;
    session_get(session,
                "/v1/mandelbrot?width=37&height=23&max_iter=300&precision=fp64&field=count&"
                "format=npy",
                &answer);
    assert_metadata(&answer, "application/x-npy");
    const int32_t *counts = npy_data(&answer, "<i4", "(23, 37)");
    double dx = 3.0 / width, dy = -2.5 / height;
    for (int j = 0; j < height; j++) {
        for (int i = 0; i < width; i++) {
            int32_t count;
            memcpy(&count, (const char *)counts + 4 * (j * width + i), 4);
            /* pixel centres; row 0 at ymax */
            int expected =
                escape_count(fma(i, dx, -2.25 + dx / 2), fma(j, dy, 1.25 + dy / 2), 1024, max_iter);
            assert_int_equal(count, expected);
        }
    }
    answer_free(&answer);
}

static void mandelbrot_ways_in(void **state) {
    (void)state;
    static const char multipart[] =
        "--frontier\r\nContent-Disposition: form-data; name=\"width\"\r\n\r\n80\r\n"
        "--frontier\r\nContent-Disposition: form-data; name=\"height\"\r\n\r\n60\r\n"
        "--frontier\r\nContent-Disposition: form-data; name=\"colormap\"\r\n\r\nviridis\r\n"
        "--frontier\r\nContent-Disposition: form-data; name=\"xmin\"\r\n\r\n-2\r\n"
        "--frontier--\r\n";
    static const struct {
        const char *path, *type, *body;
    } ways[] = {
        {"/v1/mandelbrot", "application/json",
         "{\"width\":80,\"height\":60,\"colormap\":\"viridis\",\"xmin\":\"-2.0\"}"},
        {"/v1/mandelbrot", "application/json; charset=utf-8",
         " {\"format\": \"png\", \"width\": 8e1, \"height\": 60, \"colormap\": \"\\u0076iridis\", "
         "\"xmin\": -2, \"gamma\": null}"},
        {"/v1/mandelbrot", "application/x-www-form-urlencoded",
         "width=80&height=60&colormap=viridis&xmin=-2"},
        {"/v1/mandelbrot?width=80&height=60", "application/x-www-form-urlencoded",
         "colormap=%76iridis&xmin=-2e0"},
        {"/v1/mandelbrot", "application/x-www-form-urlencoded",
         "{\"width\":80,\"height\":60,\"colormap\":\"viridis\",\"xmin\":-2}"},
        {"/v1/mandelbrot", "multipart/form-data; boundary=frontier", multipart},
        {"/v1/mandelbrot", "multipart/form-data; boundary=\"frontier\"", multipart},
    };
    struct answer first, other;
    unsigned width, height, channels, depth;
    session_get(session, "/v1/mandelbrot?width=80&height=60&colormap=viridis&xmin=-2", &first);
    assert_metadata(&first, "image/png");
    assert_header(&first, "Cache-Control", "public, max-age=86400");
    free(png_pixels(&first, &width, &height, &channels, &depth));
    assert_int_equal(width, 80);
    assert_int_equal(height, 60);
    assert_int_equal(channels, 3);
    assert_int_equal(depth, 8);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        post(ways[i].path, ways[i].type, ways[i].body, 0, &other);
        assert_same(&first, &other);
        answer_free(&other);
    }
    answer_free(&first);
}

static void mandelbrot_formats(void **state) {
    (void)state;
    struct answer npy, raw, json;
    session_get(session, "/v1/mandelbrot?width=50&height=40&format=npy&field=count", &npy);
    session_get(session, "/v1/mandelbrot?width=50&height=40&format=raw&field=count", &raw);
    session_get(session, "/v1/mandelbrot?width=50&height=40&format=json", &json);
    assert_metadata(&raw, "application/octet-stream");
    assert_metadata(&json, "application/json");
    const char *counts = npy_data(&npy, "<i4", "(40, 50)");
    assert_int_equal(raw.size, 50 * 40 * 4);
    assert_memory_equal(raw.body, counts, raw.size);
    int inside = 0;
    for (int i = 0; i < 50 * 40; i++) {
        int32_t count;
        memcpy(&count, counts + 4 * i, 4);
        inside += count == -1;
    }
    cJSON *document = cJSON_Parse(json.body);
    assert_non_null(document);
    assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(document, "inside")),
                     inside);
    assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(document, "escaped")),
                     50 * 40 - inside);
    assert_non_null(cJSON_GetObjectItemCaseSensitive(document, "timing"));
    const cJSON *parameters = cJSON_GetObjectItemCaseSensitive(document, "parameters");
    assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(parameters, "width")),
                     50);
    cJSON_Delete(document);
    answer_free(&npy);
    answer_free(&raw);
    answer_free(&json);
}

static void mandelbrot_tiles(void **state) {
    (void)state;
    static const struct {
        const char *path;
        unsigned side;
    } tiles[] = {{"/v1/mandelbrot/tiles/2/1/1.png", 256},
                 {"/v1/mandelbrot/tiles/2/1/1@2x.png?colormap=magma", 512}};
    for (size_t i = 0; i < 2; i++) {
        struct answer answer;
        unsigned width, height, channels, depth;
        session_get(session, tiles[i].path, &answer);
        assert_metadata(&answer, "image/png");
        free(png_pixels(&answer, &width, &height, &channels, &depth));
        assert_int_equal(width, tiles[i].side);
        assert_int_equal(height, tiles[i].side);
        answer_free(&answer);
    }
}

#define WIDTH  9
#define HEIGHT 7

/* A small picture with every border case: pixel = (31 i + 57 j) mod 256. */
static int pixel(int i, int j) {
    return i < 0 || j < 0 || i >= HEIGHT || j >= WIDTH ? 0 : (31 * i + 57 * j) % 256;
}

static int laplacian_at(int i, int j) {
    return pixel(i - 1, j) + pixel(i + 1, j) + pixel(i, j - 1) + pixel(i, j + 1) - 4 * pixel(i, j);
}

static size_t pgm_make(char *out, size_t capacity) {
    size_t size = (size_t)snprintf(out, capacity, "P5\n%d %d\n255\n", WIDTH, HEIGHT);
    for (int i = 0; i < HEIGHT; i++) {
        for (int j = 0; j < WIDTH; j++) {
            out[size++] = (char)pixel(i, j);
        }
    }
    return size;
}

static size_t base64_make(const char *bytes, size_t size, char *out) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t used = 0;
    for (size_t i = 0; i < size; i += 3) {
        uint32_t group = (uint32_t)(uint8_t)bytes[i] << 16;
        group |= i + 1 < size ? (uint32_t)(uint8_t)bytes[i + 1] << 8 : 0;
        group |= i + 2 < size ? (uint32_t)(uint8_t)bytes[i + 2] : 0;
        for (int k = 0; k < 4; k++) {
            bool pad = i + (size_t)k > size;
            out[used++] = pad ? '=' : digits[group >> (18 - 6 * k) & 63];
        }
    }
    out[used] = '\0';
    return used;
}

static void laplacian_ways_in(void **state) {
    (void)state;
    static const char *const types[] = {"image/x-portable-graymap", "image/x-portable-anymap",
                                        "application/octet-stream",
                                        "application/x-www-form-urlencoded"};
    char pgm[256], base64[512], body[2048];
    size_t size = pgm_make(pgm, sizeof pgm);
    struct answer first, other;
    post("/v1/laplacian", types[0], pgm, size, &first);
    assert_metadata(&first, "application/x-npy");
    const char *values = npy_data(&first, "<i4", "(7, 9)");
    for (int i = 0; i < HEIGHT; i++) {
        for (int j = 0; j < WIDTH; j++) {
            int32_t value;
            memcpy(&value, values + 4 * (i * WIDTH + j), 4);
            assert_int_equal(value, laplacian_at(i, j));
        }
    }
    for (size_t i = 1; i < sizeof types / sizeof types[0]; i++) {
        post("/v1/laplacian", types[i], pgm, size, &other);
        assert_same(&first, &other);
        answer_free(&other);
    }
    base64_make(pgm, size, base64);
    snprintf(body, sizeof body, "{\"scale\": 1, \"image\": \"%s\"}", base64);
    post("/v1/laplacian", "application/json", body, 0, &other);
    assert_same(&first, &other);
    answer_free(&other);
    size_t used = (size_t)snprintf(body, sizeof body,
                                   "--b\r\nContent-Disposition: form-data; name=\"scale\"\r\n\r\n"
                                   "1\r\n--b\r\nContent-Disposition: form-data; name=\"image\"; "
                                   "filename=\"in.pgm\"\r\nContent-Type: "
                                   "application/octet-stream\r\n\r\n");
    memcpy(body + used, pgm, size);
    used += size;
    used += (size_t)snprintf(body + used, sizeof body - used, "\r\n--b--\r\n");
    post("/v1/laplacian", "multipart/form-data; boundary=b", body, used, &other);
    assert_same(&first, &other);
    answer_free(&other);
    answer_free(&first);
}

static void laplacian_pictures(void **state) {
    (void)state;
    char pgm[256];
    size_t size = pgm_make(pgm, sizeof pgm);
    struct answer png, grey;
    unsigned width, height, channels, depth;
    post("/v1/laplacian?format=png", "image/x-portable-graymap", pgm, size, &png);
    post("/v1/laplacian?format=pgm", "image/x-portable-graymap", pgm, size, &grey);
    assert_metadata(&png, "image/png");
    assert_metadata(&grey, "image/x-portable-graymap");
    uint8_t *pixels = png_pixels(&png, &width, &height, &channels, &depth);
    assert_int_equal(width, WIDTH);
    assert_int_equal(height, HEIGHT);
    assert_int_equal(channels, 1);
    assert_int_equal(depth, 16);
    const char *head = "P5\n# kiln:quantization offset=32768&scale=1&bits=8\n9 7\n65535\n";
    assert_int_equal(grey.size, strlen(head) + 2 * WIDTH * HEIGHT);
    assert_memory_equal(grey.body, head, strlen(head));
    for (int k = 0; k < WIDTH * HEIGHT; k++) {
        uint16_t value;
        memcpy(&value, pixels + 2 * k, 2);
        assert_int_equal(value, 32768 + laplacian_at(k / WIDTH, k % WIDTH));
        const uint8_t *big = (const uint8_t *)grey.body + strlen(head) + 2 * k;
        assert_int_equal(big[0] << 8 | big[1], value);
    }
    free(pixels);
    answer_free(&png);
    answer_free(&grey);
}

static void laplacian_colour(void **state) {
    (void)state;
    static const char ppm[] = "P6 2 1 255\n\x01\x02\x03\x0a\x14\x1e";
    static const int32_t expected[] = {10 - 4, 20 - 8, 30 - 12, 1 - 40, 2 - 80, 3 - 120};
    struct answer answer;
    post("/v1/laplacian", "application/octet-stream", ppm, sizeof ppm - 1, &answer);
    assert_metadata(&answer, "application/x-npy");
    assert_memory_equal(npy_data(&answer, "<i4", "(1, 2, 3)"), expected, sizeof expected);
    answer_free(&answer);
}

/* Literal sweeps in float, in the order of kernels/jacobi.h. */
static void sweeps_do(float x[HEIGHT][WIDTH], int iterations) {
    float b[HEIGHT][WIDTH], next[HEIGHT][WIDTH];
    memcpy(b, x, sizeof b);
    for (int n = 0; n < iterations; n++) {
        for (int i = 0; i < HEIGHT; i++) {
            for (int j = 0; j < WIDTH; j++) {
                float up = i > 0 ? x[i - 1][j] : 0, down = i + 1 < HEIGHT ? x[i + 1][j] : 0;
                float left = j > 0 ? x[i][j - 1] : 0, right = j + 1 < WIDTH ? x[i][j + 1] : 0;
                float vertical = up + down, horizontal = left + right;
                float sum = vertical + horizontal;
                next[i][j] = (sum - b[i][j]) * 0.25f;
            }
        }
        memcpy(x, next, sizeof next);
    }
}

static void jacobi_literal(void **state) {
    (void)state;
    float x[HEIGHT][WIDTH];
    char pgm[256];
    size_t size = pgm_make(pgm, sizeof pgm);
    struct answer npy, png, json;
    for (int i = 0; i < HEIGHT; i++) {
        for (int j = 0; j < WIDTH; j++) {
            x[i][j] = 0.5f * ((float)pixel(i, j) - 100);
        }
    }
    sweeps_do(x, 77);
    post("/v1/jacobi?iterations=77&offset=100&scale=0.5&format=npy", "image/x-portable-graymap",
         pgm, size, &npy);
    assert_metadata(&npy, "application/x-npy");
    assert_memory_equal(npy_data(&npy, "<f4", "(7, 9)"), x, sizeof x);
    post("/v1/jacobi?iterations=77&offset=100&scale=0.5", "image/x-portable-graymap", pgm, size,
         &png);
    assert_metadata(&png, "image/png");
    unsigned width, height, channels, depth;
    uint8_t *pixels = png_pixels(&png, &width, &height, &channels, &depth);
    assert_int_equal(width * height * channels, WIDTH * HEIGHT);
    assert_int_equal(depth, 8);
    for (int k = 0; k < WIDTH * HEIGHT; k++) {
        double value = nearbyint((double)x[k / WIDTH][k % WIDTH]); /* half to even */
        assert_int_equal(pixels[k], value < 0 ? 0 : value > 255 ? 255 : value);
    }
    free(pixels);
    post("/v1/jacobi?iterations=77&format=json", "image/x-portable-graymap", pgm, size, &json);
    assert_metadata(&json, "application/json");
    cJSON *document = cJSON_Parse(json.body);
    assert_non_null(document);
    assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(document, "sweeps")),
                     77);
    cJSON_Delete(document);
    answer_free(&npy);
    answer_free(&png);
    answer_free(&json);
}

/* picture → Laplacian as 16-bit PNG → sweeps → the picture again, for every way back. */
static void round_trip(void **state) {
    (void)state;
    char pgm[256];
    size_t size = pgm_make(pgm, sizeof pgm);
    struct answer laplacian, back;
    post("/v1/laplacian?format=png", "image/x-portable-graymap", pgm, size, &laplacian);
    assert_metadata(&laplacian, "image/png");
    post("/v1/jacobi?offset=32768&iterations=4000&format=pgm", "image/png", laplacian.body,
         laplacian.size, &back);
    assert_metadata(&back, "image/x-portable-graymap");
    assert_int_equal(back.size, size);
    assert_memory_equal(back.body, pgm, size);
    answer_free(&back);
    post("/v1/jacobi?offset=32768&iterations=4000&format=pgm", "application/x-www-form-urlencoded",
         laplacian.body, laplacian.size, &back);
    assert_memory_equal(back.body, pgm, size);
    answer_free(&back);
    answer_free(&laplacian);
}

static bool header_is(const struct answer *answer, const char *name, const char *wanted) {
    char value[64];
    return answer_header(answer, name, value, sizeof value) && strcmp(value, wanted) == 0;
}

/* Without a word about offset, scale, depth and method, as PNG and PGM; and what is lost where the
   request knows better, or stops too early, is told in headers. */
static void round_trip_by_itself(void **state) {
    (void)state;
    static const char *const formats[] = {"png", "pgm"};
    static const char *const media[] = {"image/png", "image/x-portable-graymap"};
    char pgm[256], path[64];
    size_t size = pgm_make(pgm, sizeof pgm);
    struct answer laplacian, back;
    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "/v1/laplacian?format=%s", formats[i]);
        post(path, "image/x-portable-graymap", pgm, size, &laplacian);
        assert_metadata(&laplacian, media[i]);
        assert_header(&laplacian, "Kiln-Clamped", "0");
        assert_header(&laplacian, "Kiln-Scale", "1");
        post("/v1/jacobi?format=pgm", media[i], laplacian.body, laplacian.size, &back);
        assert_metadata(&back, "image/x-portable-graymap");
        assert_int_equal(back.size, size);
        assert_memory_equal(back.body, pgm, size);
        assert_header(&back, "Kiln-Clamped", "0");
        assert_header(&back, "Kiln-Converged", "true");
        assert_header(&back, "Kiln-Convergence", "0");
        answer_free(&back);
        post("/v1/jacobi?format=pgm&offset=0", media[i], laplacian.body, laplacian.size, &back);
        assert_metadata(&back, "image/x-portable-graymap");
        assert_false(header_is(&back, "Kiln-Clamped", "0"));
        answer_free(&back);
        post("/v1/jacobi?format=npy&iterations=3", media[i], laplacian.body, laplacian.size, &back);
        assert_metadata(&back, "application/x-npy");
        assert_header(&back, "Kiln-Converged", "false");
        assert_false(header_is(&back, "Kiln-Convergence", "0"));
        assert_null(strstr(back.headers, "Kiln-Clamped"));
        answer_free(&back);
        answer_free(&laplacian);
        /* A scale that no double has exactly is told as it was given. */
        snprintf(path, sizeof path, "/v1/laplacian?format=%s&scale=0.004", formats[i]);
        post(path, "image/x-portable-graymap", pgm, size, &laplacian);
        assert_header(&laplacian, "Kiln-Scale", "0.004");
        answer_free(&laplacian);
    }
}

#define SAMPLES 80
#define GRID    "minimum_frequency=0.02&maximum_frequency=0.3"

static double sample_time(int k) {
    return 1.25 * k + 0.5 * (k % 3);
}

static double sample_value(int k) {
    return 3 + sin(2 * 3.14159265358979 / 11 * sample_time(k)) + 0.125 * (k % 5);
}

static size_t csv_make(char *out, size_t capacity) {
    size_t size = (size_t)snprintf(out, capacity, "# a light curve\ntime,flux\n");
    for (int k = 0; k < SAMPLES; k++) {
        size += (size_t)snprintf(out + size, capacity - size, "%.17g,%.17g\n", sample_time(k),
                                 sample_value(k));
    }
    return size;
}

static size_t json_make(char *out, size_t capacity) {
    size_t size = (size_t)snprintf(out, capacity, "{\"minimum_frequency\":0.02,\"t\":[");
    for (int k = 0; k < SAMPLES; k++) {
        size += (size_t)snprintf(out + size, capacity - size, "%s%.17g", k > 0 ? "," : "",
                                 sample_time(k));
    }
    size += (size_t)snprintf(out + size, capacity - size, "],\"maximum_frequency\":0.3,\"y\":[");
    for (int k = 0; k < SAMPLES; k++) {
        size += (size_t)snprintf(out + size, capacity - size, "%s%.17g", k > 0 ? ", " : "",
                                 sample_value(k));
    }
    return size + (size_t)snprintf(out + size, capacity - size, "],\"format\":\"npy\"}");
}

/* 2×N, or N×2 where `across`. */
static size_t npy_make(char *out, bool across) {
    char header[118];
    snprintf(header, sizeof header, "{'descr': '<f8', 'fortran_order': False, 'shape': %s, }",
             across ? "(80, 2)" : "(2, 80)");
    size_t length = strlen(header);
    memset(header + length, ' ', sizeof header - length);
    header[sizeof header - 1] = '\n';
    memcpy(out, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(out + 10, header, sizeof header);
    for (int k = 0; k < SAMPLES; k++) {
        double t = sample_time(k), y = sample_value(k);
        memcpy(out + 128 + 8 * (across ? 2 * k : k), &t, 8);
        memcpy(out + 128 + 8 * (across ? 2 * k + 1 : SAMPLES + k), &y, 8);
    }
    return 128 + 16 * SAMPLES;
}

static void lombscargle_ways_in(void **state) {
    (void)state;
    char csv[8192], body[12288];
    size_t size = csv_make(csv, sizeof csv);
    struct answer first, other;
    post("/v1/lombscargle?format=npy&" GRID, "text/csv", csv, size, &first);
    assert_metadata(&first, "application/x-npy");
    static const char *const types[] = {"application/octet-stream",
                                        "application/x-www-form-urlencoded"};
    for (size_t i = 0; i < 2; i++) {
        post("/v1/lombscargle?format=npy&" GRID, types[i], csv, size, &other);
        assert_same(&first, &other);
        answer_free(&other);
    }
    for (int across = 0; across < 2; across++) {
        size_t bytes = npy_make(body, across);
        post("/v1/lombscargle?format=npy&" GRID, across ? "application/x-npy" : types[1], body,
             bytes, &other);
        assert_same(&first, &other);
        answer_free(&other);
    }
    post("/v1/lombscargle", "application/json", body, json_make(body, sizeof body), &other);
    assert_same(&first, &other);
    answer_free(&other);
    size_t used = (size_t)snprintf(body, sizeof body,
                                   "--b\r\nContent-Disposition: form-data; name=\"file\"; "
                                   "filename=\"curve.csv\"\r\nContent-Type: text/csv\r\n\r\n");
    memcpy(body + used, csv, size);
    used += size;
    used += (size_t)snprintf(body + used, sizeof body - used, "\r\n--b--\r\n");
    post("/v1/lombscargle?format=npy&" GRID, "multipart/form-data; boundary=b", body, used, &other);
    assert_same(&first, &other);
    answer_free(&other);
    answer_free(&first);
}

static void lombscargle_formats(void **state) {
    (void)state;
    char csv[8192];
    size_t size = csv_make(csv, sizeof csv);
    struct answer json, table, plot;
    unsigned width, height, channels, depth;
    post("/v1/lombscargle?false_alarm=baluev&" GRID, "text/csv", csv, size, &json);
    assert_metadata(&json, "application/json");
    cJSON *document = cJSON_Parse(json.body);
    assert_non_null(document);
    const cJSON *peaks = cJSON_GetObjectItemCaseSensitive(document, "peaks");
    const cJSON *best = cJSON_GetArrayItem(peaks, 0);
    double period = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(best, "period"));
    assert_true(fabs(period - 11) < 0.2);
    int points = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(document, "power"));
    assert_true(points > 10);
    cJSON_Delete(document);
    post("/v1/lombscargle?format=csv&" GRID, "text/csv", csv, size, &table);
    assert_metadata(&table, "text/csv");
    int lines = 0;
    for (size_t i = 0; i < table.size; i++) {
        lines += table.body[i] == '\n';
    }
    assert_int_equal(lines, points + 1);
    post("/v1/lombscargle?format=png&plot_width=640&plot_height=360&" GRID, "text/csv", csv, size,
         &plot);
    assert_metadata(&plot, "image/png");
    free(png_pixels(&plot, &width, &height, &channels, &depth));
    assert_int_equal(width, 640);
    assert_int_equal(height, 360);
    answer_free(&plot);
    post("/v1/lombscargle?format=svg&plot_width=640&plot_height=360&" GRID, "text/csv", csv, size,
         &plot);
    assert_metadata(&plot, "image/svg+xml");
    assert_non_null(strstr(plot.body, "viewBox=\"0 0 640 360\""));
    assert_non_null(strstr(plot.body, ">Best period "));
    answer_free(&json);
    answer_free(&table);
    answer_free(&plot);
}

/* A table with foreign columns in every way that says the same; the choice of columns may come
   after the file. Its ETag depends on it alone, not on what the memory held before. */
static void lombscargle_tables(void **state) {
    static const struct {
        const char *path, *type, *body;
    } ways[] = {
        {"/v1/lombscargle?format=npy&" GRID, "text/csv",
         "id,hjd,mag,magerr\na,1,2,.1\nb,2,3,.2\nc,3.5,4,.1\nd,4,1,.2\n"},
        {"/v1/lombscargle?format=npy&" GRID, "text/plain",
         "  id hjd mag magerr\r\n a 1 2 .1\r\nb 2 3 .2\r\nc 3.5 4 .1\r\nd 4 1 .2\r\n"},
        {"/v1/lombscargle?format=npy&" GRID, "text/tab-separated-values",
         "hjd\tmag\tmagerr\tid\n1\t2\t.1\t\n2\t3\t.2\t\n3.5\t4\t.1\t\n4\t1\t.2\t\n"},
        {"/v1/lombscargle?format=npy&t_column=HJD&y_column=3&" GRID, "application/octet-stream",
         "hjd;flux;mag;flux_err;magerr\n1;7;2;7;.1\n2;7;3;7;.2\n3.5;7;4;7;.1\n4;7;1;7;.2\n"},
        {"/v1/lombscargle?format=npy&" GRID, "multipart/form-data; boundary=b",
         "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.dat\"\r\n\r\n"
         "hjd,flux,flux_err,mag,magerr\n1,7,7,2,.1\n,7,7,2,\n2,7,7,3,.2\n3.5,7,7,4,.1\n"
         "4,7,7,1,.2\r\n"
         "--b\r\nContent-Disposition: form-data; name=\"y_column\"\r\n\r\nmag\r\n"
         "--b\r\nContent-Disposition: form-data; name=\"missing\"\r\n\r\ndrop\r\n--b--\r\n"},
    };
    struct answer first, other;
    char tag[64], again[64];
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        bool drops = strstr(ways[i].body, "missing") != NULL;
        post(ways[i].path, ways[i].type, ways[i].body, 0, &other);
        assert_status(&other, 200);
        assert_header(&other, "Kiln-Input",
                      drops ? "t=\"hjd\", y=\"mag\", dy=\"magerr\", weighted, dropped=1"
                            : "t=\"hjd\", y=\"mag\", dy=\"magerr\", weighted, dropped=0");
        if (i == 0) {
            first = other;
            continue;
        }
        assert_same(&first, &other);
        assert_true(answer_header(&first, "ETag", tag, sizeof tag));
        assert_true(answer_header(&other, "ETag", again, sizeof again));
        assert_int_equal(strcmp(tag, again) == 0, !drops); /* what it says of itself differs */
        answer_free(&other);
    }
    for (int i = 0; i < 8; i++) { /* fills the arena with other numbers */
        char csv[8192];
        size_t size = csv_make(csv, sizeof csv);
        post("/v1/lombscargle?format=npy&" GRID, "text/csv", csv + i, size - (size_t)i, &other);
        answer_free(&other);
        post(ways[0].path, ways[0].type, ways[0].body, 0, &other);
        assert_true(answer_header(&other, "ETag", again, sizeof again));
        assert_string_equal(tag, again);
        answer_free(&other);
    }
    answer_free(&first);
}

/* Arrays in a form, and times that are neither sorted nor distinct. */
static void lombscargle_odd_times(void **state) {
    (void)state;
    struct answer answer;
    post("/v1/lombscargle?f0=0.1&df=0.1&nf=3", "application/x-www-form-urlencoded",
         "t=3,1,2,2,5&y=1,2,+0.5,-1e0,4", 0, &answer);
    assert_metadata(&answer, "application/json");
    cJSON *document = cJSON_Parse(answer.body);
    assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(document, "samples")),
                     5);
    cJSON_Delete(document);
    answer_free(&answer);
}

/* Bodies above the size that an event loop reads itself. */
static void large_bodies(void **state) {
    (void)state;
    const unsigned side = 600;
    size_t size = 64 + side * side;
    char *pgm = malloc(size);
    struct answer first, other;
    size_t used = (size_t)snprintf(pgm, size, "P5 %u %u 255\n", side, side);
    for (unsigned k = 0; k < side * side; k++) {
        pgm[used++] = (char)(k * 2654435761u >> 24);
    }
    post("/v1/laplacian", "application/octet-stream", pgm, used, &first);
    assert_metadata(&first, "application/x-npy");
    const char *values = npy_data(&first, "<i4", "(600, 600)");
    const uint8_t *in = (const uint8_t *)pgm + used - side * side;
    for (unsigned k = side + 1; k < side * (side - 1); k += side + 1) {
        int32_t value;
        memcpy(&value, values + 4 * k, 4);
        int left = k % side > 0 ? in[k - 1] : 0, right = k % side < side - 1 ? in[k + 1] : 0;
        assert_int_equal(value, in[k - side] + in[k + side] + left + right - 4 * in[k]);
    }
    const struct request chunked = {.path = "/v1/laplacian",
                                    .type = "application/octet-stream",
                                    .body = pgm,
                                    .size = used,
                                    .chunked = true};
    session_ask(session, &chunked, &other);
    assert_same(&first, &other);
    answer_free(&other);
    answer_free(&first);
    free(pgm);
}

static void device_by_name(void **state) {
    (void)state;
    struct answer answer, again;
    char device[32], path[96];
    session_get(session, "/v1/mandelbrot?width=8&height=8", &answer);
    assert_true(answer_header(&answer, "Kiln-Device", device, sizeof device));
    snprintf(path, sizeof path, "/v1/mandelbrot?width=8&height=8&device=%s", device);
    session_get(session, path, &again);
    assert_same(&answer, &again);
    assert_header(&again, "Kiln-Device", device);
    answer_free(&answer);
    answer_free(&again);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mandelbrot_counts),
        cmocka_unit_test(mandelbrot_ways_in),
        cmocka_unit_test(mandelbrot_formats),
        cmocka_unit_test(mandelbrot_tiles),
        cmocka_unit_test(laplacian_ways_in),
        cmocka_unit_test(laplacian_pictures),
        cmocka_unit_test(laplacian_colour),
        cmocka_unit_test(jacobi_literal),
        cmocka_unit_test(round_trip),
        cmocka_unit_test(round_trip_by_itself),
        cmocka_unit_test(lombscargle_ways_in),
        cmocka_unit_test(lombscargle_formats),
        cmocka_unit_test(lombscargle_odd_times),
        cmocka_unit_test(lombscargle_tables),
        cmocka_unit_test(large_bodies),
        cmocka_unit_test(device_by_name),
    };
    return cmocka_run_group_tests_name("api.results", tests, setup, teardown);
}
