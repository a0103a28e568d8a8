/*
 * words.h: words with commas between, as options, headers and the kernel's files have them.
 *
 * Blanks and tabs around a word are not part of it. An empty text has one empty word, "a," has
 * "a" and an empty one.
 *
 * Threads: reentrant. Ownership: words lie in the text, which stays the caller's.
 */
#ifndef KILN_COMPUTE_CORE_WORDS_H
#define KILN_COMPUTE_CORE_WORDS_H

#include <stdbool.h>
#include <stddef.h>

struct words {
    const char *word; /* after words_next; not terminated */
    size_t size;      /* bytes of the word */
    const char *rest; /* NULL: nothing is left */
    const char *end;
};

/** A list before its first word. */
struct words words_of(const char *text, size_t size);
/** Goes to the next word; false where there is none. */
bool words_next(struct words *words);
/** Is it `word`, byte by byte? */
bool words_at(const struct words *words, const char *word);
/** Is `word` one of the words of the whole text? */
bool words_have(const char *text, size_t size, const char *word);

#endif
