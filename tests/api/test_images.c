/*
 * test_images.c: broken PNG files and bombs through HTTP.
 *
 * Files whose header, chunks or size tell that they are broken are refused before anything of their
 * pixels is touched: within 50 ms of the processes' time, and without growth. Whose damage lies
 * behind the pixels must be decoded first: they cost no more than a good file of their size, which
 * --max-pixels bounds. Everything else is refused or taken, as the PNG specification has it.
 *
 * Every file is asked for by itself, so that the figures are those of the worst one. KILN_SOAK=1
 * asks for ten times as many mutations.
 */
#include "tests/api/lib_acceptance.h"
#include "tests/api/lib_forge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW     "broken PNGs and bombs"
#define TARGET  "4xx in < 50 ms, < 10 MB growth"
#define MB      1e6
#define SIDE    2048           /* of files that are decoded */
#define BOMB    ((size_t)64e6) /* bytes that a few thousand inflate to */
#define PATH    "/v1/laplacian?format=npy"
#define ANY     "application/octet-stream"
#define PALETTE "\xff\0\0\0\xff\0\0\0\xff\1\2\3"

static struct daemon daemon_;
static struct session *session;

static int setup(void **state) {
    static const char *const flags[] = {"--slots", "1",
                                        NULL}; /* one pool, which soon has its size */
    (void)state;
    daemon_start(&daemon_, flags);
    session = session_create(&daemon_);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    session_destroy(session);
    return daemon_stop(&daemon_);
}

/* Time's bound for the processes themselves; sanitizers take many times as long. */
static double bound_s(void) {
    return acceptance_is_sanitized() ? 5 : 0.05;
}

/* ---- good files, from which others are made ---- */

#define BASES 7

static void base_make(int number, struct bytes *png) {
    static const char rgba[] = "\0abcdefgh\2ijklmnop\1qrstuvwx";
    *png = (struct bytes){0};
    switch (number) {
    case 0: /* grey */
        png_start(png, 3, 3, 8, 0, 0);
        png_deflated(png, "IDAT", "", 0, "\0abc\1abc\2abc", 12);
        break;
    case 1: /* 16 bit with alpha */
        png_start(png, 1, 3, 16, 6, 0);
        png_deflated(png, "IDAT", "", 0, rgba, sizeof rgba - 1);
        break;
    case 2: /* a palette with transparent colours */
        png_start(png, 4, 1, 2, 3, 0);
        png_chunk(png, "PLTE", PALETTE, 12);
        png_chunk(png, "tRNS", "\x10\x20", 2);
        png_deflated(png, "IDAT", "", 0, "\0\x1b", 2);
        break;
    case 3: /* interlaced */
        png_start(png, 5, 5, 1, 0, 1);
        png_deflated(png, "IDAT", "", 0,
                     "\0\x80\0\x80\0\x80\0\x80\0\x80\0\x80\0\x80\0\x80\0\x80\0\x80\0\x80", 22);
        break;
    case 4: /* text around the pixels */
        png_start(png, 1, 1, 8, 0, 0);
        png_chunk(png, "gAMA", "\0\0\xb1\x8f", 4);
        png_chunk(png, "tEXt", "key\0value", 9);
        png_deflated(png, "IDAT", "", 0, "\0a", 2);
        png_chunk(png, "tIME", "\7\xe8\1\1\0\0\0", 7);
        break;
    case 5: /* a colour that is transparent */
        png_start(png, 2, 2, 8, 2, 0);
        png_chunk(png, "tRNS", "\0a\0b\0c", 6);
        png_deflated(png, "IDAT", "", 0, "\0abcdef\3ghijkl", 14);
        break;
    default: /* moving pictures, of which the first one is taken */
        png_start(png, 1, 1, 8, 0, 0);
        png_chunk(png, "acTL", "\0\0\0\2\0\0\0\0", 8);
        png_chunk(png, "fcTL", "\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0\0\0\1\0\1\0\0", 26);
        png_deflated(png, "IDAT", "", 0, "\0a", 2);
        png_chunk(png, "fcTL", "\0\0\0\1\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0\0\0\1\0\1\0\0", 26);
        png_deflated(png, "fdAT", "\0\0\0\2", 4, "\0b", 2);
    }
    png_end(png);
}

/* The i-th chunk's place: that of its length. `png->size` where there are not so many. */
static size_t chunk_at(const struct bytes *png, int i) {
    size_t at = 8;
    for (; i > 0 && at < png->size; i--) {
        const uint8_t *b = png->at + at;
        at += 12 + ((size_t)b[0] << 24 | (size_t)b[1] << 16 | (size_t)b[2] << 8 | b[3]);
    }
    return at;
}

static void good_files(struct watch *watch) {
    for (int i = 0; i < BASES; i++) {
        struct bytes png;
        base_make(i, &png);
        watch_ask(watch, "good", &png, FORGE_TAKEN);
        bytes_text(&png, "anything may follow");
        watch_ask(watch, "good, with something behind it", &png, FORGE_TAKEN);
        bytes_free(&png);
    }
}

/* ---- damage to good files ---- */

/* Ends at every byte; wrong lengths, names and checksums of every chunk; chunks away and twice. */
static void damage(struct watch *watch) {
    char name[96];
    for (int i = 0; i < BASES; i++) {
        struct bytes png, other = {0};
        base_make(i, &png);
        for (size_t size = 1; size < png.size; size++) {
            snprintf(name, sizeof name, "file %d ends after %zu bytes", i, size);
            watch_ask(watch, name, &(struct bytes){png.at, size, 0}, FORGE_REFUSED);
        }
        for (size_t k = 0; k < 8; k++) {
            snprintf(name, sizeof name, "file %d, byte %zu of the signature", i, k);
            png.at[k] ^= 0x20;
            watch_ask(watch, name, &png, FORGE_REFUSED);
            png.at[k] ^= 0x20;
        }
        for (int c = 0; chunk_at(&png, c) < png.size; c++) {
            size_t at = chunk_at(&png, c), next = chunk_at(&png, c + 1);
            bool needed = memcmp(png.at + at + 4, "IHDR", 4) == 0 ||
                          memcmp(png.at + at + 4, "IDAT", 4) == 0 ||
                          memcmp(png.at + at + 4, "IEND", 4) == 0;
            for (size_t bit = 0; bit < 32; bit++) {
                size_t byte = next - 4 + bit / 8;
                snprintf(name, sizeof name, "file %d, chunk %d: bit %zu of its checksum", i, c,
                         bit);
                png.at[byte] ^= (uint8_t)(1 << bit % 8);
                watch_ask(watch, name, &png, FORGE_REFUSED);
                png.at[byte] ^= (uint8_t)(1 << bit % 8);
                snprintf(name, sizeof name, "file %d, chunk %d: bit %zu of its length", i, c, bit);
                png.at[at + bit / 8] ^= (uint8_t)(1 << bit % 8);
                watch_ask(watch, name, &png, FORGE_REFUSED);
                png.at[at + bit / 8] ^= (uint8_t)(1 << bit % 8);
            }
            other.size = 0;
            bytes_put(&other, png.at, at);
            bytes_put(&other, png.at + next, png.size - next);
            snprintf(name, sizeof name, "file %d without chunk %d", i, c);
            watch_ask(watch, name, &other, needed ? FORGE_REFUSED : FORGE_EITHER);
            other.size = 0;
            bytes_put(&other, png.at, next);
            bytes_put(&other, png.at + at, png.size - at);
            snprintf(name, sizeof name, "file %d with chunk %d twice", i, c);
            watch_ask(watch, name, &other, c == 0 ? FORGE_REFUSED : FORGE_EITHER);
        }
        bytes_free(&other);
        bytes_free(&png);
    }
}

/* ---- headers ---- */

static bool depth_is_known(unsigned color, unsigned depth) {
    bool small = depth == 1 || depth == 2 || depth == 4, large = depth == 8 || depth == 16;
    return color == 0                               ? small || large
           : color == 3                             ? small || depth == 8
           : color == 2 || color == 4 || color == 6 ? large
                                                    : false;
}

static void one_pixel(struct watch *watch, const char *name, struct bytes *png,
                      enum forge_wanted wanted) {
    png_deflated(png, "IDAT", "", 0, "\0\0\0\0\0\0\0\0\0", 9);
    png_end(png);
    watch_ask(watch, name, png, wanted);
    bytes_free(png);
}

/* Few bytes that claim many pixels, and every kind of pixel that there is not. */
static void headers(struct watch *watch) {
    static const uint32_t sizes[][2] = {
        {0, 1},          {1, 0},       {0x7fffffff, 0x7fffffff}, {0x80000000, 1},
        {1, 0x80000000}, {1, 1 << 20}, {0xffffffff, 0xffffffff}, {0x7fffffff, 1},
        {1, 0x7fffffff}, {8192, 8192}, {65535, 65535},           {8193, 8192}};
    static const unsigned kinds[][2] = {{1, 0}, {8, 2}, {16, 6}, {8, 3}};
    char name[96];
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t k = 0; k < 8; k++) {
            struct bytes png = {0};
            png_start(&png, sizes[i][0], sizes[i][1], kinds[k / 2][0], kinds[k / 2][1], k % 2);
            if (k / 2 == 3) {
                png_chunk(&png, "PLTE", PALETTE, 12);
            }
            snprintf(name, sizeof name, "a few bytes of %u × %u, colour %u, interlace %zu",
                     sizes[i][0], sizes[i][1], kinds[k / 2][1], k % 2);
            one_pixel(watch, name, &png, FORGE_REFUSED);
        }
    }
    for (unsigned color = 0; color < 9; color++) {
        for (unsigned depth = 0; depth < 36; depth++) {
            struct bytes png = {0};
            png_start(&png, 1, 1, depth, color, 0);
            if (color == 3) {
                png_chunk(&png, "PLTE", PALETTE, 12);
            }
            snprintf(name, sizeof name, "colour %u of %u bits", color, depth);
            one_pixel(watch, name, &png,
                      depth_is_known(color, depth) ? FORGE_EITHER : FORGE_REFUSED);
        }
    }
    for (size_t byte = 26; byte < 29; byte++) { /* compression, filter, interlace */
        for (unsigned value = 1; value < 256; value += value < 4 ? 1 : 42) {
            struct bytes png = {0};
            png_start(&png, 1, 1, 8, 0, 0);
            png.at[byte] = (uint8_t)value;
            png_checksums(&png);
            snprintf(name, sizeof name, "byte %zu of the header is %u", byte, value);
            one_pixel(watch, name, &png, byte == 28 && value == 1 ? FORGE_EITHER : FORGE_REFUSED);
        }
    }
}

/* ---- chunks ---- */

struct odd {
    const char *name, *type, *data;
    size_t size;
    unsigned color;
    enum forge_wanted before, after; /* before the pixels, and after them */
};
#define DATA(text) text, sizeof(text) - 1

static const struct odd odds[] = {
    {"palette of no colours", "PLTE", "", 0, 3, FORGE_REFUSED, FORGE_REFUSED},
    {"palette of 4 bytes", "PLTE", DATA("abcd"), 3, FORGE_REFUSED, FORGE_REFUSED},
    {"palette for grey", "PLTE", DATA("abc"), 0, FORGE_EITHER, FORGE_EITHER},
    {"palette for grey with alpha", "PLTE", DATA("abc"), 4, FORGE_EITHER, FORGE_EITHER},
    {"palette as a hint", "PLTE", DATA("abc"), 2, FORGE_TAKEN, FORGE_EITHER},
    {"no palette", "tEXt", DATA("a\0b"), 3, FORGE_REFUSED, FORGE_REFUSED},
    {"transparency of nothing", "tRNS", "", 0, 0, FORGE_REFUSED, FORGE_EITHER},
    {"transparency of 1 byte", "tRNS", DATA("a"), 0, FORGE_REFUSED, FORGE_EITHER},
    {"transparency of 5 bytes", "tRNS", DATA("abcde"), 2, FORGE_REFUSED, FORGE_EITHER},
    {"transparency beside alpha", "tRNS", DATA("\0\0\0\0\0\0"), 6, FORGE_EITHER, FORGE_EITHER},
    {"transparency before the palette", "tRNS", DATA("a"), 3, FORGE_REFUSED, FORGE_REFUSED},
    {"unknown critical chunk", "ABCD", DATA("x"), 0, FORGE_REFUSED, FORGE_EITHER},
    {"Apple's chunk", "CgBI", DATA("\0\0\0\0"), 0, FORGE_REFUSED, FORGE_EITHER},
    {"name of digits", "1234", DATA("x"), 0, FORGE_REFUSED, FORGE_REFUSED},
    {"name of NULs", "\0\0\0\0", DATA("x"), 0, FORGE_REFUSED, FORGE_REFUSED},
    {"name in UTF-8", "\xc3\xa9\xc3\xa9", DATA("x"), 0, FORGE_REFUSED, FORGE_REFUSED},
    {"lower-case IDAT", "iDAT", DATA("x"), 0, FORGE_EITHER, FORGE_EITHER},
    {"IDAT of no bytes", "IDAT", "", 0, 0, FORGE_EITHER, FORGE_EITHER},
    {"IDAT of noise", "IDAT", DATA("noise"), 0, FORGE_REFUSED, FORGE_EITHER},
    {"IEND with data", "IEND", DATA("x"), 0, FORGE_REFUSED, FORGE_EITHER},
    {"second header", "IHDR", DATA("\0\0\0\2\0\0\0\2\10\0\0\0\0"), 0, FORGE_REFUSED, FORGE_REFUSED},
    {"header of no bytes", "IHDR", "", 0, 0, FORGE_REFUSED, FORGE_REFUSED},
    {"gamma of 0", "gAMA", DATA("\0\0\0\0"), 0, FORGE_EITHER, FORGE_EITHER},
    {"gamma of 1 byte", "gAMA", DATA("\1"), 0, FORGE_EITHER, FORGE_EITHER},
    {"histogram without palette", "hIST", DATA("\0\1"), 0, FORGE_EITHER, FORGE_EITHER},
    {"significant bits 255", "sBIT", DATA("\xff"), 0, FORGE_EITHER, FORGE_EITHER},
    {"background outside", "bKGD", DATA("\xff"), 3, FORGE_REFUSED, FORGE_REFUSED},
    {"text without key", "tEXt", DATA("\0\0\0"), 0, FORGE_EITHER, FORGE_EITHER},
    {"text that is no zlib", "zTXt", DATA("k\0\0noise"), 0, FORGE_EITHER, FORGE_EITHER},
    {"text packed otherwise", "zTXt", DATA("k\0\x7fnoise"), 0, FORGE_EITHER, FORGE_EITHER},
    {"international noise", "iTXt", DATA("k\0\1\0\0\0noise"), 0, FORGE_EITHER, FORGE_EITHER},
    {"profile that is no zlib", "iCCP", DATA("k\0\0noise"), 0, FORGE_EITHER, FORGE_EITHER},
    {"suggested palette of noise", "sPLT", DATA("k\0\x10noise"), 0, FORGE_EITHER, FORGE_EITHER},
    {"calibration of noise", "pCAL", DATA("k\0noise"), 0, FORGE_EITHER, FORGE_EITHER},
    {"scale of noise", "sCAL", DATA("\1-1\0x"), 0, FORGE_EITHER, FORGE_EITHER},
    {"Exif of noise", "eXIf", DATA("noise"), 0, FORGE_EITHER, FORGE_EITHER},
    {"physical size 2^32", "pHYs", DATA("\xff\xff\xff\xff\xff\xff\xff\xff\1"), 0, FORGE_EITHER,
     FORGE_EITHER},
};

static void chunks(struct watch *watch) {
    for (size_t i = 0; i < sizeof odds / sizeof odds[0]; i++) {
        const struct odd *odd = &odds[i];
        char name[96];
        for (int after = 0; after < 2; after++) {
            struct bytes png = {0};
            png_start(&png, 1, 1, 8, odd->color, 0);
            if (!after) {
                png_chunk(&png, odd->type, odd->data, odd->size);
            }
            png_deflated(&png, "IDAT", "", 0, "\0abcd",
                         1 + (size_t[]){1, 0, 3, 1, 2, 0, 4}[odd->color]);
            if (after) {
                png_chunk(&png, odd->type, odd->data, odd->size);
            }
            png_end(&png);
            snprintf(name, sizeof name, "%s, %s the pixels", odd->name, after ? "after" : "before");
            watch_ask(watch, name, &png, after ? odd->after : odd->before);
            bytes_free(&png);
        }
    }
    for (size_t colors = 1; colors <= 300; colors += colors == 1 ? 255 : 1 + colors / 8) {
        struct bytes png = {0}, palette = {0};
        bytes_fill(&palette, 7, 3 * colors);
        png_start(&png, 1, 1, 8, 3, 0);
        png_chunk(&png, "PLTE", palette.at, palette.size);
        png_chunk(&png, "tRNS", palette.at, colors + 1);
        png_deflated(&png, "IDAT", "", 0, "\0\xff", 2);
        png_end(&png);
        watch_ask(watch, "a palette, and more transparency than colours", &png,
                  colors > 256 ? FORGE_REFUSED : FORGE_EITHER);
        bytes_free(&palette);
        bytes_free(&png);
    }
}

/* ---- the stream of pixels ---- */

static void stream_ask(struct watch *watch, const char *name, const void *data, size_t size) {
    struct bytes png = {0};
    png_start(&png, 4, 4, 8, 0, 0);
    png_chunk(&png, "IDAT", data, size);
    png_end(&png);
    watch_ask(watch, name, &png, FORGE_REFUSED);
    bytes_free(&png);
}

static void streams(struct watch *watch) {
    char rows[21] = {0}, name[96];
    struct bytes good = {0};
    png_deflated(&good, "IDAT", "", 0, rows, 20);
    const uint8_t *stream = good.at + 8;
    size_t size = good.size - 12;
    for (size_t part = 0; part < size - 4; part++) { /* the last four are its checksum */
        snprintf(name, sizeof name, "the stream ends after %zu bytes", part);
        stream_ask(watch, name, stream, part);
    }
    static const struct {
        const char *name, *data;
        size_t size;
    } broken[] = {
        {"not deflate", DATA("\x79\x9c\x63\0\0\0\0\xff\xff")},
        {"a window of 64 KiB", DATA("\x88\x1c\x63\0\0\0\0\xff\xff")},
        {"a preset dictionary", DATA("\x78\xbb\0\0\0\1\x63\0\0\0\0\xff\xff")},
        {"a reserved block", DATA("\x78\x9c\x07\0\0\0\0\0\0\0\0\0\0\0")},
        {"a stored block of two lengths", DATA("\x78\x9c\1\x14\0\x14\0aaaaaaaaaaaaaaaaaaaaaaaa")},
        {"a distance before the start", DATA("\x78\x9c\x4b\x04\x12\0\0\0\0\0\0\0")},
        {"too many codes", DATA("\x78\x9c\xfd\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")},
        {"empty blocks for ever", DATA("\x78\x9c\0\0\0\xff\xff\0\0\0\xff\xff\0\0\0\xff\xff")},
    };
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        stream_ask(watch, broken[i].name, broken[i].data, broken[i].size);
    }
    for (int filter = 5; filter < 256; filter += 25) {
        struct bytes png = {0};
        rows[15] = (char)filter;
        png_start(&png, 4, 4, 8, 0, 0);
        png_deflated(&png, "IDAT", "", 0, rows, 20);
        png_end(&png);
        watch_ask(watch, "a filter that there is not", &png, FORGE_REFUSED);
        bytes_free(&png);
    }
    rows[15] = 0;
    for (size_t less = 0; less < 20; less++) {
        struct bytes png = {0};
        png_start(&png, 4, 4, 8, 0, less % 2);
        png_deflated(&png, "IDAT", "", 0, rows, less);
        png_end(&png);
        watch_ask(watch, "fewer rows than there are", &png, FORGE_REFUSED);
        bytes_free(&png);
    }
    bytes_free(&good);
}

/* ---- bombs ---- */

/* Chunks that inflate to a hundred times the limit of any, before and after the pixels. */
static void bombs(struct watch *watch) {
    static const struct {
        const char *type, *prefix;
        size_t size;
    } kinds[] = {{"zTXt", "k\0", 3}, {"iTXt", "k\0\1\0\0", 6}, {"iCCP", "k\0", 3}, {"eXIf", "", 0}};
    char name[96];
    for (size_t i = 0; i < 8; i++) {
        struct bytes png = {0};
        png_start(&png, 1, 1, 8, 0, 0);
        if (i < 4) {
            png_zeros(&png, kinds[i].type, kinds[i].prefix, kinds[i].size, BOMB);
        }
        png_deflated(&png, "IDAT", "", 0, "\0a", 2);
        if (i >= 4) {
            png_zeros(&png, kinds[i - 4].type, kinds[i - 4].prefix, kinds[i - 4].size, BOMB);
        }
        png_end(&png);
        snprintf(name, sizeof name, "%s that inflates to %.0f MB, %s the pixels", kinds[i % 4].type,
                 (double)BOMB / MB, i < 4 ? "before" : "after");
        watch_ask(watch, name, &png, FORGE_EITHER);
        bytes_free(&png);
    }
    for (unsigned interlace = 0; interlace < 2; interlace++) {
        struct bytes png = {0};
        png_start(&png, 16, 16, 8, 0, interlace);
        png_zeros(&png, "IDAT", "", 0, BOMB);
        png_end(&png);
        watch_ask(watch, "16 × 16 pixels that inflate to 64 MB", &png, FORGE_REFUSED);
        bytes_free(&png);
    }
    for (int i = 0; i < 6; i++) { /* a multitude of chunks */
        static const char *const types[] = {"tEXt", "IDAT", "abCd"};
        struct bytes png = {0}, many = {0};
        png_start(&png, 1, 1, 8, 0, 0);
        for (int n = 0; n < 100000; n++) {
            png_chunk(&many, types[i % 3], "", 0);
        }
        if (i < 3) {
            bytes_put(&png, many.at, many.size);
        }
        png_deflated(&png, "IDAT", "", 0, "\0a", 2);
        if (i >= 3) {
            bytes_put(&png, many.at, many.size);
        }
        png_end(&png);
        snprintf(name, sizeof name, "100 000 empty chunks %s %s the pixels", types[i % 3],
                 i < 3 ? "before" : "after");
        watch_ask(watch, name, &png, i == 0 || i == 2 ? FORGE_REFUSED : FORGE_EITHER);
        bytes_free(&many);
        bytes_free(&png);
    }
    struct bytes png = {0}, text = {0};
    bytes_text(&text, "key");
    bytes_fill(&text, 0, 8000000);
    png_start(&png, 1, 1, 8, 0, 0);
    png_chunk(&png, "tEXt", text.at, text.size);
    png_deflated(&png, "IDAT", "", 0, "\0a", 2);
    png_end(&png);
    watch_ask(watch, "8 MB of text", &png, FORGE_EITHER);
    bytes_free(&text);
    bytes_free(&png);
    png_start(&png, 8193, 8192, 1, 0, 0); /* one column above the limit, and every row is there */
    png_zeros(&png, "IDAT", "", 0, (size_t)8192 * (1 + 1025));
    png_end(&png);
    watch_ask(watch, "more pixels than the limit, all of them there", &png, FORGE_REFUSED);
    bytes_free(&png);
}

/* Mutated good files, every other one with its checksums put right. */
static void mutations(struct watch *watch) {
    unsigned count = acceptance_is_long() ? 20000 : 2000;
    for (unsigned i = 0; i < count; i++) {
        char name[96];
        struct bytes png;
        base_make((int)(i % BASES), &png);
        forge_mutate(&png, i);
        if (i / BASES % 2 == 0) {
            png_checksums(&png);
        }
        snprintf(name, sizeof name, "mutation %u", i);
        watch_ask(watch, name, &png, FORGE_EITHER);
        bytes_free(&png);
    }
}

static void broken(void **state) {
    static void (*const parts[])(struct watch * watch) = {headers, chunks, streams,
                                                          damage,  bombs,  mutations};
    struct watch watch;
    (void)state;
    watch_start(&watch, session, &daemon_, PATH, ANY);
    good_files(&watch); /* pools reach their size */
    bombs(&watch);
    watch_start(&watch, session, &daemon_, PATH, ANY);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        parts[i](&watch);
    }
    double held = watch_held(&watch) / MB, peak = watch_peak(&watch) / MB;
    if (acceptance_is_sanitized()) { /* which takes time, and keeps what was freed */
        acceptance_print(watch.wrong == 0, ROW, "0 reports, next request fine",
                         "%zu files, %zu refused with 4xx, %zu taken, %zu others; with sanitizers",
                         watch.asked, watch.refused, watch.taken, watch.wrong);
    } else {
        acceptance_print(watch.wrong == 0 && watch.cpu_s < 0.05 && held < 10 && peak < 10, ROW,
                         TARGET,
                         "%zu files, %zu refused with 4xx, %zu taken, %zu others; the slowest %.1f "
                         "ms, %.1f ms of "
                         "the processes (%s); growth %.1f MB, %.1f MB at its peak",
                         watch.asked, watch.refused, watch.taken, watch.wrong, watch.wall_s * 1e3,
                         watch.cpu_s * 1e3, watch.slowest, held, peak);
    }
    watch_assert_fine(&watch);
    assert_true(watch.refused > 1000);
    assert_true(watch.cpu_s < bound_s());
    assert_true(acceptance_is_sanitized() || held < 10);
}

/* ---- damage that only decoding finds ---- */

static void late_make(struct bytes *png, int damage) {
    size_t row = 1 + SIDE, size = row * SIDE;
    uint8_t *rows = calloc(size, 1);
    assert_non_null(rows);
    *png = (struct bytes){0};
    png_start(png, SIDE, SIDE, 8, 0, damage == 4);
    if (damage == 1) {
        rows[size - row] = 77; /* the last row's filter */
    }
    png_deflated(png, "IDAT", "", 0, rows, damage == 2 ? size - 1 : size);
    free(rows);
    if (damage == 3) {
        png->at[png->size - 1] ^= 1;
    }
    if (damage != 5) {
        png_end(png);
    }
}

/* Each costs as much as the good file of its size, and leaves as little behind. */
static void late(void **state) {
    static const char *const names[] = {"good",
                                        "a wrong filter in the last row",
                                        "a pixel too few",
                                        "a wrong checksum of all",
                                        "interlaced, but stored in rows",
                                        "no end"};
    struct watch good, late;
    struct bytes png;
    (void)state;
    late_make(&png, 0);
    watch_start(&good, session, &daemon_, PATH, ANY);
    watch_ask(&good, names[0], &png, FORGE_TAKEN);
    watch_ask(&good, names[0], &png, FORGE_TAKEN);
    bytes_free(&png);
    watch_start(&late, session, &daemon_, PATH, ANY);
    for (int damage = 1; damage < 6; damage++) {
        late_make(&png, damage);
        watch_ask(&late, names[damage], &png, FORGE_REFUSED);
        bytes_free(&png);
    }
    double held = watch_held(&late) / MB, peak = watch_peak(&late) / MB;
    if (!acceptance_is_sanitized()) {
        acceptance_print(
            late.wrong == 0 && late.cpu_s < 2 * good.cpu_s && held < 10 && peak < 10, ROW,
            "no more than a good file of that size",
            "%d × %d pixels, broken behind the last one: %.1f ms of the processes (%s), "
            "the good one %.1f ms; growth %.1f MB, %.1f MB at its peak",
            SIDE, SIDE, late.cpu_s * 1e3, late.slowest, good.cpu_s * 1e3, held, peak);
    }
    watch_assert_fine(&late);
    assert_true(acceptance_is_sanitized() || late.cpu_s < 4 * good.cpu_s + 0.05);
    assert_true(acceptance_is_sanitized() || held < 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken),
        cmocka_unit_test(late),
    };
    return cmocka_run_group_tests_name("api.images", tests, setup, teardown);
}
