/*
 * words.c: taking words off a list (words.h). Thread: any.
 */
#include "compute/core/words.h"

#include <string.h>

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

struct words words_of(const char *text, size_t size) {
    return (struct words){.rest = text, .end = text + size};
}

bool words_next(struct words *words) {
    if (words->rest == NULL) {
        return false;
    }
    const char *word = words->rest, *comma = memchr(word, ',', (size_t)(words->end - word));
    const char *end = comma != NULL ? comma : words->end;
    words->rest = comma != NULL ? comma + 1 : NULL;
    while (word < end && is_blank(*word)) {
        word++;
    }
    while (word < end && is_blank(end[-1])) {
        end--;
    }
    words->word = word;
    words->size = (size_t)(end - word);
    return true;
}

bool words_at(const struct words *words, const char *word) {
    return strlen(word) == words->size && memcmp(word, words->word, words->size) == 0;
}

bool words_have(const char *text, size_t size, const char *word) {
    for (struct words words = words_of(text, size); words_next(&words);) {
        if (words_at(&words, word)) {
            return true;
        }
    }
    return false;
}
