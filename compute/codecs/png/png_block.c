/*
 * png_block.c: blocks of runs and literals (png_block.h).
 *
 * Four passes over a block, each a tight loop: which bytes repeat the one before (a bit each),
 * tokens out of that, their counts, and their codes. A token is a literal, or 256 + length - 3 of a
 * run, so that one table gives the bits of either, and the last pass has no branches. Thread: any.
 */
#include "compute/codecs/png/png_block.h"

#include "compute/codecs/png/png_huffman.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define RUN_MIN        3
#define RUN_MAX        258
#define END            256 /* the symbol that ends a block */
#define SYMBOLS        286
#define LENGTH_MAX     12 /* of a code: three tokens fit into a word of bits */
#define ENTRY_BITS     24 /* an entry: bits below, their number above */
#define STORED_MAX     65535
#define STORED_HEADER  5
#define LENGTH_SYMBOLS 19 /* of the code that the code lengths are written in */

/* How deflate writes a length: symbol, number of bits behind it, least length of the symbol. */
static const struct {
    uint8_t extra;
    uint16_t least;
} lengths_known[] = {{0, 3},   {0, 4},   {0, 5},   {0, 6},   {0, 7},   {0, 8},  {0, 9},  {0, 10},
                     {1, 11},  {1, 13},  {1, 15},  {1, 17},  {2, 19},  {2, 23}, {2, 27}, {2, 31},
                     {3, 35},  {3, 43},  {3, 51},  {3, 59},  {4, 67},  {4, 83}, {4, 99}, {4, 115},
                     {5, 131}, {5, 163}, {5, 195}, {5, 227}, {0, 258}, {0, 259}};

/* A block's codes and what they cost. */
struct codes {
    uint8_t lengths[SYMBOLS + 1]; /* the only distance's behind them */
    uint16_t bits[SYMBOLS];
    unsigned symbols; /* up to the last one used */
    uint8_t header_lengths[LENGTH_SYMBOLS];
    uint16_t header_bits[LENGTH_SYMBOLS];
    uint8_t header[2 * (SYMBOLS + 1)]; /* symbol, extra value, … */
    unsigned header_size, header_symbols;
    uint64_t cost; /* of the whole block, in bits */
};

/* Bit i: bytes[i] is equal to bytes[i - 1]. */
static inline uint64_t repeats_find(const uint8_t *bytes) {
    uint64_t found = 0;
#if defined(__SSE2__)
    for (unsigned i = 0; i < 64; i += 16) {
        __m128i here = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i));
        __m128i before = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i - 1));
        found |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(here, before)) << i;
    }
#else
    for (unsigned i = 0; i < 64; i++) {
        found |= (uint64_t)(bytes[i] == bytes[(ptrdiff_t)i - 1]) << i;
    }
#endif
    return found;
}

static void repeats_fill(const uint8_t *bytes, size_t size, bool first, uint64_t *repeats) {
    size_t words = (size + 63) / 64;
    for (size_t i = 0; i < words; i++) {
        repeats[i] = repeats_find(bytes + 64 * i);
    }
    repeats[words] = 0;
    if (size % 64) {
        repeats[words - 1] &= ~UINT64_C(0) >> (64 - size % 64);
    }
    if (first) {
        repeats[0] &= ~UINT64_C(1);
    }
}

/* First run at or after `at`, `size` if there is none. It takes six repeats to begin one: fewer are
   as cheap as literals, and the tokens come in longer stretches. */
static inline size_t run_find(const uint64_t *repeats, size_t at, size_t size) {
    for (size_t i = at / 64; 64 * i < size; i++) {
        uint64_t low = repeats[i], high = repeats[i + 1];
        if (i == at / 64) {
            low &= ~UINT64_C(0) << at % 64;
        }
        uint64_t two = low & (low >> 1 | high << 63), high_two = high & high >> 1;
        uint64_t four = two & (two >> 2 | high_two << 62);
        uint64_t six = four & (two >> 4 | high_two << 60);
        if (six) {
            return 64 * i + (size_t)__builtin_ctzll(six);
        }
    }
    return size;
}

static inline size_t run_end(const uint64_t *repeats, size_t at) {
    size_t i = at / 64;
    uint64_t others = ~repeats[i] & ~UINT64_C(0) << at % 64;
    while (others == 0) {
        others = ~repeats[++i];
    }
    return 64 * i + (size_t)__builtin_ctzll(others);
}

/* Widens `count` literals; up to 16 tokens too many are written. */
static inline uint16_t *literals_put(uint16_t *token, const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i += 16) {
        for (size_t k = 0; k < 16; k++) {
            token[i + k] = bytes[i + k];
        }
    }
    return token + count;
}

static size_t tokens_find(const uint8_t *bytes, size_t size, const uint64_t *repeats,
                          uint16_t *tokens) {
    uint16_t *token = tokens;
    for (size_t at = 0; at < size;) {
        size_t start = run_find(repeats, at, size);
        token = literals_put(token, bytes + at, start - at);
        if (start == size) {
            break;
        }
        at = run_end(repeats, start);
        size_t left = at - start;
        for (; left >= RUN_MAX; left -= RUN_MAX) {
            *token++ = 256 + RUN_MAX - RUN_MIN;
        }
        if (left >= RUN_MIN) {
            *token++ = (uint16_t)(256 + left - RUN_MIN);
            left = 0;
        }
        for (; left > 0; left--) {
            *token++ = bytes[at - 1];
        }
    }
    return (size_t)(token - tokens);
}

/* Counts into four tables in turn, as the same token tends to follow itself. */
static void tokens_count(const uint16_t *tokens, size_t count, uint32_t counts[4][512]) {
    memset(counts, 0, sizeof(uint32_t[4][512]));
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (size_t k = 0; k < 4; k++) {
            counts[k][tokens[i + k]]++;
        }
    }
    for (; i < count; i++) {
        counts[0][tokens[i]]++;
    }
    for (size_t token = 0; token < 512; token++) {
        counts[0][token] += counts[1][token] + counts[2][token] + counts[3][token];
    }
}

/* The code lengths as deflate writes them: repeats and stretches of zeros folded. */
static void header_fold(struct codes *codes, const uint8_t *lengths, unsigned count,
                        uint32_t *counts) {
    uint8_t *out = codes->header;
    for (unsigned i = 0; i < count;) {
        uint8_t length = lengths[i];
        unsigned same = 1, symbol = length, taken = 1, extra = 0;
        while (i + same < count && lengths[i + same] == length) {
            same++;
        }
        if (length == 0 && same >= 11) {
            taken = same < 138 ? same : 138;
            symbol = 18;
            extra = taken - 11;
        } else if (length == 0 && same >= 3) {
            taken = same;
            symbol = 17;
            extra = taken - 3;
        } else if (length != 0 && same >= 4) { /* the first stands for itself */
            *out++ = length;
            *out++ = 0;
            counts[length]++;
            taken = same - 1 < 6 ? same - 1 : 6;
            symbol = 16;
            extra = taken - 3;
            i++;
        }
        *out++ = (uint8_t)symbol;
        *out++ = (uint8_t)extra;
        counts[symbol]++;
        i += taken;
    }
    codes->header_size = (unsigned)(out - codes->header);
}

static const uint8_t header_order[LENGTH_SYMBOLS] = {16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
                                                     11, 4,  12, 3, 13, 2, 14, 1, 15};
static const uint8_t header_extra[LENGTH_SYMBOLS] = {[16] = 2, [17] = 3, [18] = 7};

static void header_make(struct codes *codes) {
    uint32_t counts[LENGTH_SYMBOLS] = {0};
    uint8_t lengths[SYMBOLS + 1];
    for (codes->symbols = SYMBOLS; codes->lengths[codes->symbols - 1] == 0; codes->symbols--) {
        continue;
    }
    memcpy(lengths, codes->lengths, codes->symbols);
    lengths[codes->symbols] = 1; /* distance 1, the only one */
    header_fold(codes, lengths, codes->symbols + 1, counts);
    huffman_lengths(counts, LENGTH_SYMBOLS, 7, codes->header_lengths);
    huffman_codes(codes->header_lengths, LENGTH_SYMBOLS, codes->header_bits);
    codes->header_symbols = LENGTH_SYMBOLS;
    while (codes->header_lengths[header_order[codes->header_symbols - 1]] == 0) {
        codes->header_symbols--;
    }
    codes->cost = 3 + 14 + 3 * codes->header_symbols;
    for (unsigned i = 0; i < LENGTH_SYMBOLS; i++) {
        codes->cost += counts[i] * ((uint64_t)codes->header_lengths[i] + header_extra[i]);
    }
}

/* Codes for these tokens, and the table that turns a token into its bits. */
static void codes_make(struct codes *codes, const uint32_t counts[512], uint32_t entries[512]) {
    uint32_t symbols[SYMBOLS] = {0};
    memcpy(symbols, counts, 256 * sizeof *counts);
    symbols[END] = 1;
    for (unsigned i = 0; i + 1 < sizeof lengths_known / sizeof *lengths_known; i++) {
        for (unsigned length = lengths_known[i].least; length < lengths_known[i + 1].least;
             length++) {
            symbols[END + 1 + i] += counts[256 - RUN_MIN + length];
        }
    }
    huffman_lengths(symbols, SYMBOLS, LENGTH_MAX, codes->lengths);
    huffman_codes(codes->lengths, SYMBOLS, codes->bits);
    header_make(codes);
    for (unsigned i = 0; i <= END; i++) {
        codes->cost += (uint64_t)symbols[i] * codes->lengths[i];
    }
    for (unsigned i = 0; i < 256; i++) {
        entries[i] = codes->bits[i] | (uint32_t)codes->lengths[i] << ENTRY_BITS;
    }
    for (unsigned i = 0; i + 1 < sizeof lengths_known / sizeof *lengths_known; i++) {
        unsigned symbol = END + 1 + i, size = codes->lengths[symbol],
                 extra = lengths_known[i].extra;
        codes->cost += (uint64_t)symbols[symbol] * (size + extra + 1);
        for (unsigned length = lengths_known[i].least; length < lengths_known[i + 1].least;
             length++) { /* code, rest of the length, one zero bit for the distance */
            entries[256 - RUN_MIN + length] = codes->bits[symbol] |
                                              (length - lengths_known[i].least) << size |
                                              (uint32_t)(size + extra + 1) << ENTRY_BITS;
        }
    }
}

static void header_write(struct bits *bits, const struct codes *codes, bool last) {
    bits_put(bits, last | 2 << 1, 3);
    bits_put(bits, codes->symbols - 257, 5);
    bits_put(bits, 0, 5); /* one distance */
    bits_put(bits, codes->header_symbols - 4, 4);
    for (unsigned i = 0; i < codes->header_symbols; i++) {
        bits_put(bits, codes->header_lengths[header_order[i]], 3);
    }
    for (unsigned i = 0; i < codes->header_size; i += 2) {
        unsigned symbol = codes->header[i];
        bits_put(bits, codes->header_bits[symbol], codes->header_lengths[symbol]);
        bits_put(bits, codes->header[i + 1], header_extra[symbol]);
    }
}

static void tokens_write(struct bits *bits, const uint16_t *tokens, size_t count,
                         const uint32_t entries[512]) {
    const uint64_t mask = (1u << ENTRY_BITS) - 1;
    struct bits local = *bits;
    size_t i = 0;
    for (; i + 3 <= count; i += 3) { /* at most 3 × 18 bits, and 7 that wait */
        uint32_t a = entries[tokens[i]], b = entries[tokens[i + 1]], c = entries[tokens[i + 2]];
        unsigned to_b = a >> ENTRY_BITS, to_c = to_b + (b >> ENTRY_BITS);
        uint64_t all = (a & mask) | (b & mask) << to_b | (c & mask) << to_c;
        local.word |= all << local.count;
        local.count += to_c + (c >> ENTRY_BITS);
        bits_store(&local);
    }
    for (; i < count; i++) {
        bits_put(&local, entries[tokens[i]] & mask, entries[tokens[i]] >> ENTRY_BITS);
    }
    *bits = local;
}

/* A block without compression, 65535 bytes at most. */
static void stored_write(struct bits *bits, const uint8_t *bytes, size_t size, bool last) {
    bits_put(bits, last, 3);
    bits_align(bits);
    bits_put(bits, (uint64_t)size | (uint64_t)(~size & 0xffff) << 16, 32);
    memcpy(bits->at, bytes, size);
    bits->at += size;
}

uint64_t blocks_bound(uint64_t size) {
    /* Any block costs at most what storing it costs, with up to 7 bits before; one more is empty.
     */
    uint64_t blocks = size / STORED_MAX + 1;
    return size + blocks * (STORED_HEADER + 1) + STORED_HEADER + 1 + BITS_SLACK;
}

static bool block_write(struct bits *bits, const uint8_t *bytes, size_t size, bool first, bool last,
                        struct block_scratch *scratch, const uint8_t *end) {
    struct codes codes;
    repeats_fill(bytes, size, first, scratch->repeats);
    size_t count = tokens_find(bytes, size, scratch->repeats, scratch->tokens);
    tokens_count(scratch->tokens, count, scratch->counts);
    codes_make(&codes, scratch->counts[0], scratch->entries);
    bool stored = codes.cost >= 8 * ((uint64_t)size + STORED_HEADER);
    uint64_t need = stored ? size + STORED_HEADER + 1 : (codes.cost + 7) / 8 + 1;
    if ((uint64_t)(end - bits->at) < need + BITS_SLACK) {
        return false;
    }
    if (stored) {
        stored_write(bits, bytes, size, last);
        return true;
    }
    header_write(bits, &codes, last);
    tokens_write(bits, scratch->tokens, count, scratch->entries);
    bits_put(bits, codes.bits[END], codes.lengths[END]);
    return true;
}

size_t blocks_write(const uint8_t *bytes, size_t size, bool last, struct block_scratch *scratch,
                    uint8_t *out, size_t room) {
    struct bits bits = {.at = out};
    const uint8_t *end = out + room;
    for (size_t at = 0; at < size; at += STORED_MAX) {
        size_t part = size - at < STORED_MAX ? size - at : STORED_MAX;
        bool ends = last && part == size - at;
        if (!block_write(&bits, bytes + at, part, at == 0, ends, scratch, end)) {
            return 0;
        }
    }
    if (last) {
        bits_align(&bits);
        return (size_t)(bits.at - out);
    }
    if (end - bits.at < STORED_HEADER + 1 + BITS_SLACK) {
        return 0;
    }
    stored_write(&bits, bytes, 0, false);
    return (size_t)(bits.at - out);
}
