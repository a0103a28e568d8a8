/*
 * answer.h: reads one HTTP/1.1 answer after another from the bytes of a connection.
 *
 * Keeps the head (at most ANSWER_HEAD_MAX bytes) and counts the body without keeping it. Bodies by
 * Content-Length, chunked, or until the peer closes; interim answers (1xx) are skipped. Anything
 * ambiguous or out of bounds is broken: a measuring client must not guess where an answer ends.
 *
 * Threads: one owner at a time. No allocation.
 */
#ifndef KILN_BENCH_LOAD_ANSWER_H
#define KILN_BENCH_LOAD_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ANSWER_HEAD_MAX 8192

enum answer_state {
    ANSWER_HEAD,
    ANSWER_LENGTH,     /* body of known length */
    ANSWER_CHUNK_SIZE, /* a chunk's size line */
    ANSWER_CHUNK,      /* its bytes */
    ANSWER_CHUNK_END,  /* CR LF behind them */
    ANSWER_TRAILER,
    ANSWER_UNTIL_CLOSE,
    ANSWER_DONE,
    ANSWER_BROKEN
};

struct load_answer {
    enum answer_state state;
    int status;
    bool bodyless; /* the request was HEAD */
    bool closing;  /* the peer closes after this answer */
    bool body_started;
    uint64_t left; /* of the body or chunk */
    uint64_t body; /* bytes of body so far */
    size_t line;   /* length of the current size or trailer line */
    size_t head_size;
    char head[ANSWER_HEAD_MAX + 1]; /* NUL-terminated once complete */
};

void answer_begin(struct load_answer *answer, bool bodyless);

/** Reads on; returns how many of the bytes belong to this answer. All of them, unless the answer
    became DONE or BROKEN. */
size_t answer_feed(struct load_answer *answer, const char *bytes, size_t size);

/** The peer closed: true if that completes the answer (state DONE). */
bool answer_close(struct load_answer *answer);

/** Copies the value of a header, without blanks around it; false where there is none. Only the
   first of several. */
bool answer_header(const struct load_answer *answer, const char *name, char *value,
                   size_t capacity);

/** One metric of a Server-Timing value that has a duration. */
struct timing_entry {
    char name[24];
    double ms;
};

/** Walks a Server-Timing value; start with `cursor` at its first byte. False at the end. Metrics
    without `dur` are passed over. */
bool timing_next(const char **cursor, struct timing_entry *entry);

#endif
