/*
 * fuzz_wire.c: what a connection receives, by two readers.
 *
 * The wire takes the bytes at once, in pieces, and through wire_receive with little room; a reader
 * of this file's own takes them whole, by the grammar of RFC 9112, without states. All four must
 * understand the same requests, bodies and refusals, and what the wire writes must be canonical:
 * this file reads it with no leniency at all. The first byte chooses the pieces.
 */
#include "tests/fuzz/expect.h"

#include "server/http/wire/wire.h"

#include <stdio.h>
#include <strings.h>

#define INPUT_MOST 12000 /* below the wire's own bounds, which tests/api/test_framing.c tries */
#define BODY_MOST  1000
#define TEXT_MOST  (4 * INPUT_MOST + 4096)

/* What was understood, as a text. */
struct story {
    char bytes[TEXT_MOST];
    size_t size;
};

static void story_add(struct story *story, const char *bytes, size_t size) {
    EXPECT(story->size + size <= sizeof story->bytes);
    memcpy(story->bytes + story->size, bytes, size);
    story->size += size;
}

static void story_say(struct story *story, const char *text) {
    story_add(story, text, strlen(text));
}

static bool is_word(const char *text, size_t size) {
    static const char word[] = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '\0' || strchr(word, text[i]) == NULL) {
            return false;
        }
    }
    return size > 0;
}

static bool is_name(const char *text, size_t size, const char *name) {
    return size == strlen(name) && strncasecmp(text, name, size) == 0;
}

static bool is_text(unsigned char c) {
    return c == '\t' || (c >= ' ' && c != 127);
}

/* ---- the other reader ---- */

struct reader {
    const char *at, *end;
    struct story *story;
};

/* Headers of one request, as they matter. */
struct meaning {
    bool wrong, chunked, sized, hosted, modern, expects;
    uint64_t length;
    size_t cost; /* of the head as it is written, in memory */
};

static void value_mean(struct meaning *meaning, const char *name, size_t name_size,
                       const char *value, size_t size) {
    if (is_name(name, name_size, "content-length")) {
        meaning->wrong |= meaning->sized || size == 0 || size > 18;
        meaning->sized = true;
        for (size_t i = 0; i < size; i++) {
            meaning->wrong |= value[i] < '0' || value[i] > '9';
            meaning->length = meaning->length * 10 + (uint64_t)(value[i] - '0');
        }
    } else if (is_name(name, name_size, "transfer-encoding")) {
        meaning->wrong |= meaning->chunked || !is_name(value, size, "chunked");
        meaning->chunked = true;
    } else if (is_name(name, name_size, "host")) {
        meaning->wrong |= meaning->hosted;
        meaning->hosted = true;
        for (size_t i = 0; i < size; i++) {
            meaning->wrong |= strchr(" \t,/\\@?#<>\"", value[i]) != NULL;
        }
    } else if (is_name(name, name_size, "expect")) {
        meaning->wrong |= !is_name(value, size, "100-continue");
        meaning->expects = true;
    }
}

static void header_mean(struct story *story, struct meaning *meaning, const char *line,
                        size_t size) {
    const char *colon = memchr(line, ':', size);
    if (colon == NULL || !is_word(line, (size_t)(colon - line))) {
        meaning->wrong = true;
        return;
    }
    const char *value = colon + 1, *end = line + size;
    while (value < end && strchr(" \t", *value) != NULL) {
        value++;
    }
    while (end > value && strchr(" \t", end[-1]) != NULL) {
        end--;
    }
    size_t name_size = (size_t)(colon - line);
    if (is_name(line, name_size, "cookie")) {
        return;
    }
    meaning->cost += name_size + 1 + (value > colon + 1 && value < end) + (size_t)(end - value) +
                     2 + HEAD_FIELD_COST;
    value_mean(meaning, line, name_size, value, (size_t)(end - value));
    bool expect = is_name(line, name_size, "expect");
    if (!expect) {
        story_add(story, line, name_size + 1);
        story_add(story, value, (size_t)(end - value));
        story_say(story, "\n");
    }
}

static void request_mean(struct story *story, struct meaning *meaning, const char *line,
                         size_t size) {
    const char *end = line + size, *first = memchr(line, ' ', size);
    const char *second = first != NULL ? memchr(first + 1, ' ', (size_t)(end - first - 1)) : NULL;
    if (second == NULL || !is_word(line, (size_t)(first - line)) || second == first + 1 ||
        memchr(line, '\t', size) != NULL || end - second != 9 ||
        memcmp(second, " HTTP/1.", 8) != 0 || (second[8] != '0' && second[8] != '1')) {
        meaning->wrong = true;
        return;
    }
    meaning->wrong = first[1] == '?' || memchr(first, '#', (size_t)(second - first)) != NULL;
    meaning->modern = second[8] == '1';
    meaning->cost = size + 2;
    story_add(story, line, size);
    story_say(story, "\n");
}

/* A whole head without its empty line. */
static bool head_mean(struct story *story, const char *at, const char *end,
                      struct meaning *meaning) {
    size_t before = story->size;
    memset(meaning, 0, sizeof *meaning);
    for (bool first = true; at < end; first = false) {
        const char *stop = memmem(at, (size_t)(end - at), "\r\n", 2);
        if (first) {
            request_mean(story, meaning, at, (size_t)(stop - at));
        } else {
            header_mean(story, meaning, at, (size_t)(stop - at));
        }
        at = stop + 2;
    }
    if (meaning->wrong || (meaning->chunked && (meaning->sized || !meaning->modern)) ||
        (meaning->modern && !meaning->hosted) || meaning->cost + 2 > HEAD_SIZE_MAX) {
        story->size = before;
        return false;
    }
    if (meaning->expects && (meaning->chunked || meaning->length > 0)) {
        story_say(story, "expects\n");
    }
    story_say(story, "\n");
    return true;
}

/* First byte that cannot be in a head, or `end`. A carriage return at the end may become good. */
static const char *head_flaw(const char *at, const char *end) {
    for (const char *c = at; c < end; c++) {
        bool good = *c == '\r'   ? c + 1 == end || c[1] == '\n'
                    : *c == '\n' ? c > at && c[-1] == '\r'
                                 : is_text((unsigned char)*c);
        if (!good) {
            return *c == '\r' ? c + 1 : c;
        }
    }
    return end;
}

static bool head_take(struct reader *reader, struct meaning *meaning) {
    while (reader->end - reader->at >= 2 && memcmp(reader->at, "\r\n", 2) == 0) {
        reader->at += 2;
    }
    const char *empty = memmem(reader->at, (size_t)(reader->end - reader->at), "\r\n\r\n", 4);
    const char *stop = empty != NULL ? empty + 4 : reader->end;
    if (head_flaw(reader->at, stop) < stop) {
        story_say(reader->story, "refused");
        return false;
    }
    if (empty == NULL) {
        return false;
    }
    if (!head_mean(reader->story, reader->at, empty + 2, meaning)) {
        story_say(reader->story, "refused");
        return false;
    }
    reader->at = stop;
    return true;
}

/* A text that must follow: 1 it does, 0 it may yet, -1 it does not. */
static int follows(struct reader *reader, const char *text) {
    size_t size = strlen(text), here = (size_t)(reader->end - reader->at);
    size_t least = here < size ? here : size;
    if (memcmp(reader->at, text, least) != 0) {
        return -1;
    }
    reader->at += least;
    return least == size;
}

static size_t blanks(const char *at, const char *end) {
    size_t count = 0;
    while (at + count < end && (at[count] == ' ' || at[count] == '\t')) {
        count++;
    }
    return count;
}

static size_t word(const char *at, const char *end) {
    size_t count = 0;
    while (at + count < end && is_word(at + count, 1)) {
        count++;
    }
    return count;
}

/* The extensions between a size and its end. */
static bool extensions_good(const char *at, const char *end) {
    bool first = true;
    while (at < end) {
        size_t before = blanks(at, end);
        if ((first && before > 0) || at + before == end || at[before] != ';') {
            return false;
        }
        first = false;
        at += before + 1;
        at += blanks(at, end);
        size_t name = word(at, end);
        if (name == 0) {
            return false;
        }
        at += name;
        size_t after = blanks(at, end);
        if (at + after == end || at[after] != '=') {
            continue;
        }
        at += after + 1;
        at += blanks(at, end);
        if (at < end && *at == '"') {
            for (at++; at < end && *at != '"'; at++) {
                at += *at == '\\';
            }
            if (at >= end) {
                return false;
            }
            at++;
        } else if (word(at, end) > 0) {
            at += word(at, end);
        } else {
            return false;
        }
    }
    return true;
}

/* A chunk's size with its extensions: as follows(). */
static int size_take(struct reader *reader, uint64_t *size) {
    size_t digits = 0;
    *size = 0;
    for (; reader->at < reader->end; reader->at++, digits++) {
        static const char hex[] = "0123456789abcdef0123456789ABCDEF";
        const char *digit = *reader->at != '\0' ? strchr(hex, *reader->at) : NULL;
        if (digit == NULL) {
            break;
        }
        if (digits == 16) {
            return -1;
        }
        *size = *size * 16 + (uint64_t)((digit - hex) % 16);
    }
    if (reader->at == reader->end) {
        return 0;
    }
    if (digits == 0) {
        return -1;
    }
    const char *stop = reader->at;
    while (stop < reader->end && is_text((unsigned char)*stop)) {
        stop++;
    }
    if (stop > reader->at && *reader->at != ';') {
        return -1;
    }
    if ((size_t)(stop - reader->at) > WIRE_LINE_MAX) {
        return -1;
    }
    if (stop == reader->end) {
        return 0;
    }
    if (*stop != '\r' || !extensions_good(reader->at, stop)) {
        return -1;
    }
    reader->at = stop;
    return follows(reader, "\r\n");
}

static int trailers_take(struct reader *reader) {
    for (;;) {
        if (reader->at == reader->end) {
            return 0;
        }
        if (*reader->at == '\r') {
            return follows(reader, "\r\n");
        }
        const char *colon = reader->at + word(reader->at, reader->end);
        if (colon == reader->at) {
            return -1;
        }
        if (colon == reader->end) {
            return 0;
        }
        if (*colon != ':') {
            return -1;
        }
        for (reader->at = colon + 1;
             reader->at < reader->end && is_text((unsigned char)*reader->at); reader->at++) {
        }
        int ended = follows(reader, "\r\n");
        if (ended != 1) {
            return ended;
        }
    }
}

static int chunks_take(struct reader *reader) {
    uint64_t taken = 0, size;
    for (;;) {
        int found = size_take(reader, &size);
        if (found != 1 || size == 0) {
            return found != 1 ? found : trailers_take(reader);
        }
        if (size > BODY_MOST - taken) {
            return -1;
        }
        size_t here = (size_t)(reader->end - reader->at);
        size_t now = here < size ? here : (size_t)size;
        story_add(reader->story, reader->at, now);
        reader->at += now;
        taken += now;
        if (now < size) {
            return 0;
        }
        found = follows(reader, "\r\n");
        if (found != 1) {
            return found;
        }
    }
}

static void other_read(const char *bytes, size_t size, struct story *story) {
    struct reader reader = {bytes, bytes + size, story};
    struct meaning meaning;
    while (head_take(&reader, &meaning)) {
        size_t here = (size_t)(reader.end - reader.at);
        int whole = 1;
        if (meaning.chunked) {
            whole = chunks_take(&reader);
        } else {
            size_t now = here < meaning.length ? here : (size_t)meaning.length;
            story_add(story, reader.at, now);
            reader.at += now;
            whole = now == meaning.length;
        }
        story_say(story, whole > 0 ? "\n|\n" : whole == 0 ? "..." : "refused");
        if (whole <= 0) {
            return;
        }
    }
}

/* ---- what the wire has written, read without leniency ---- */

/* A chunk of the wire's own; true while there are more. */
static bool chunk_story(struct reader *reader) {
    char *end;
    EXPECT(*reader->at != '0' || reader->end - reader->at >= 5);
    if (memcmp(reader->at, "0\r\n\r\n", 5) == 0) {
        reader->at += 5;
        return false;
    }
    unsigned long size = strtoul(reader->at, &end, 16);
    EXPECT(size > 0 && end[0] == '\r' && end[1] == '\n');
    EXPECT((size_t)(reader->end - end) >= size + 4);
    EXPECT(end[2 + size] == '\r' && end[3 + size] == '\n');
    story_add(reader->story, end + 2, size);
    reader->at = end + size + 4;
    return true;
}

/* A head; false at the end or for the one that stands for a refused one. */
static bool head_story(struct reader *reader, struct meaning *meaning) {
    struct story *story = reader->story;
    char line[INPUT_MOST + 64];
    size_t from = story->size;
    if (reader->at == reader->end) {
        return false;
    }
    const char *empty = memmem(reader->at, (size_t)(reader->end - reader->at), "\r\n\r\n", 4);
    EXPECT(empty != NULL && head_flaw(reader->at, empty) == empty);
    const char *first = memmem(reader->at, (size_t)(empty + 2 - reader->at), "\r\n", 2);
    size_t size = (size_t)(first - reader->at);
    memcpy(line, reader->at, size);
    char *blank = memchr(line, ' ', size);
    EXPECT(blank != NULL);
    char *mark = memchr(blank, HEAD_QUERY, (size_t)(line + size - blank));
    if (mark == blank + 1) {
        EXPECT(empty + 4 == reader->end);
        EXPECT(memchr(line, '?', size) == NULL || memchr(line, '?', size) < (void *)blank);
        story_say(story, "refused");
        return false;
    }
    if (mark != NULL) {
        *mark = '?';
        EXPECT(memchr(blank, '?', (size_t)(mark - blank)) == NULL);
    } else {
        EXPECT(memchr(blank, '?', (size_t)(line + size - blank)) == NULL);
    }
    static char whole[INPUT_MOST + 64];
    memcpy(whole, line, size);
    memcpy(whole + size, first, (size_t)(empty + 2 - first));
    size_t whole_size = size + (size_t)(empty + 2 - first);
    EXPECT(head_mean(story, whole, whole + whole_size, meaning));
    EXPECT(!meaning->expects || meaning->chunked || meaning->length > 0);
    EXPECT(memmem(story->bytes + from, story->size - from, "\nCookie:", 8) == NULL);
    reader->at = empty + 4;
    return true;
}

static void wire_read(const struct wire *wire, const char *bytes, size_t size,
                      struct story *story) {
    struct reader reader = {bytes, bytes + size, story};
    struct meaning meaning;
    uint64_t number = 0;
    while (head_story(&reader, &meaning)) {
        bool last = ++number == wire->refused;
        size_t here = (size_t)(reader.end - reader.at);
        if (meaning.chunked) {
            while (reader.at < reader.end && chunk_story(&reader)) {
            }
            bool ended = size >= 5 && memcmp(reader.at - 5, "0\r\n\r\n", 5) == 0 &&
                         (last || number < wire->passed || wire->state != WIRE_OVER);
            bool whole = number < wire->passed || wire->state == WIRE_HEAD;
            EXPECT(!last || (ended && reader.at == reader.end));
            story_say(story, last ? "refused" : whole ? "\n|\n" : "...");
            if (last || !whole) {
                return;
            }
            continue;
        }
        size_t now = here < meaning.length ? here : (size_t)meaning.length;
        story_add(story, reader.at, now);
        reader.at += now;
        story_say(story, now == meaning.length ? "\n|\n" : "...");
        if (now < meaning.length) {
            return;
        }
    }
}

/* ---- the ways in ---- */

static char output[2 * TEXT_MOST];

static uint32_t chance(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static void feed_pieces(const char *bytes, size_t size, uint32_t seed, struct story *story) {
    struct wire wire;
    struct sink sink = {output, sizeof output, 0};
    wire_init(&wire, BODY_MOST);
    for (size_t at = 0; at < size;) {
        size_t piece = seed == 0 ? size : 1 + chance(&seed) % (seed % 3 == 0 ? 300 : 5);
        piece = piece < size - at ? piece : size - at;
        wire_feed(&wire, bytes + at, piece, &sink);
        at += piece;
    }
    EXPECT(wire.spill == NULL && wire.stash_size <= HEAD_SIZE_MAX);
    story->size = 0;
    wire_read(&wire, output, sink.used, story);
    wire_finish(&wire);
}

struct script {
    const char *bytes;
    size_t left;
    uint32_t seed;
};

static long script_read(void *context, void *bytes, size_t size) {
    struct script *script = context;
    size_t most = size < script->left ? size : script->left;
    size_t now = most > 0 ? 1 + chance(&script->seed) % (most < 40 ? most : 40) : 0;
    memcpy(bytes, script->bytes, now);
    script->bytes += now;
    script->left -= now;
    return (long)now;
}

static void receive_pieces(const char *bytes, size_t size, uint32_t seed, bool whole,
                           struct story *story) {
    struct script script = {bytes, size, seed};
    struct wire wire;
    size_t used = 0;
    bool nothing = false;
    wire_init(&wire, BODY_MOST);
    for (long got = 1; got > 0 || (nothing && wire.state != WIRE_OVER);) {
        size_t room = 1 + chance(&seed) % 50;
        EXPECT(used + room <= sizeof output);
        got = wire_receive(&wire, script_read, &script, whole, output + used, room, &nothing);
        EXPECT(got <= (long)room);
        EXPECT(!nothing || whole || wire.state == WIRE_OVER);
        used += got > 0 && !nothing ? (size_t)got : 0;
    }
    EXPECT(wire.spill == NULL && (script.left == 0 || wire.state == WIRE_OVER));
    story->size = 0;
    wire_read(&wire, output, used, story);
    wire_finish(&wire);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct story expected, story;
    if (size < 1 || size > INPUT_MOST) {
        return 0;
    }
    const char *bytes = (const char *)data + 1;
    uint32_t seed = data[0] * 2u + 1;
    size--;
    expected.size = 0;
    other_read(bytes, size, &expected);
    for (int way = 0; way < 4; way++) {
        if (way < 2) {
            feed_pieces(bytes, size, way == 0 ? 0 : seed, &story);
        } else {
            receive_pieces(bytes, size, seed, way == 2, &story);
        }
        EXPECT(story.size == expected.size && memcmp(story.bytes, expected.bytes, story.size) == 0);
    }
    return 0;
}
