/*
 * account.c: how much of the arena each holder has.
 *
 * Accounts hang in buckets by their holder and last as long as there is a block of theirs.
 */
#include "compute/core/account.h"

#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024 /* a power of two */

struct account {
    uint64_t words[2];
    struct holding holding;
    uint16_t next; /* in its bucket, or of the free ones; 0: the last */
};

struct accounts {
    struct account account[ARENA_HOLDERS_MAX + 1]; /* number 0 is the daemon's own */
    uint16_t buckets[BUCKETS];
    uint16_t unused, touched; /* first account that was given back; how many were ever used */
    size_t count;
};

struct accounts *accounts_create(void) {
    return calloc(1, sizeof(struct accounts)); /* untouched pages of it do not exist */
}

void accounts_destroy(struct accounts *accounts) {
    free(accounts);
}

static uint16_t *bucket_of(struct accounts *accounts, const uint64_t words[2]) {
    uint64_t mixed = (words[0] ^ words[1] << 32 ^ words[1]) * UINT64_C(0x9e3779b97f4a7c15);
    return &accounts->buckets[mixed >> 32 & (BUCKETS - 1)];
}

bool holder_is_daemon(const struct holder *holder) {
    return holder == NULL || (holder->words[0] == 0 && holder->words[1] == 0);
}

uint16_t accounts_find(struct accounts *accounts, const struct holder *holder) {
    if (holder_is_daemon(holder)) {
        return 0;
    }
    uint16_t number = *bucket_of(accounts, holder->words);
    while (number != 0 && (accounts->account[number].words[0] != holder->words[0] ||
                           accounts->account[number].words[1] != holder->words[1])) {
        number = accounts->account[number].next;
    }
    return number;
}

uint16_t accounts_open(struct accounts *accounts, const struct holder *holder) {
    uint16_t number = accounts_find(accounts, holder);
    if (number != 0 || holder_is_daemon(holder)) {
        return number;
    }
    if (accounts->unused != 0) {
        number = accounts->unused;
        accounts->unused = accounts->account[number].next;
    } else if (accounts->touched < ARENA_HOLDERS_MAX) {
        number = ++accounts->touched;
    } else {
        return 0;
    }
    uint16_t *bucket = bucket_of(accounts, holder->words);
    struct account *account = &accounts->account[number];
    *account = (struct account){.words = {holder->words[0], holder->words[1]}, .next = *bucket};
    strncpy(account->holding.name, holder->name != NULL ? holder->name : "", ARENA_NAME_MAX - 1);
    *bucket = number;
    accounts->count++;
    return number;
}

static void account_close(struct accounts *accounts, uint16_t number) {
    struct account *account = &accounts->account[number];
    uint16_t *link = bucket_of(accounts, account->words);
    while (*link != number) {
        link = &accounts->account[*link].next;
    }
    *link = account->next;
    account->next = accounts->unused;
    accounts->unused = number;
    accounts->count--;
}

void accounts_book(struct accounts *accounts, uint16_t number, int64_t bytes, int blocks) {
    struct holding *holding = &accounts->account[number].holding;
    holding->bytes += (uint64_t)bytes;
    holding->blocks += (uint32_t)blocks;
    if (holding->blocks == 0 && number != 0) {
        account_close(accounts, number);
    }
}

uint32_t accounts_blocks(const struct accounts *accounts, uint16_t number) {
    return number != 0 ? accounts->account[number].holding.blocks : 0;
}

bool accounts_allow(const struct accounts *accounts, uint16_t number, bool alone, uint64_t more,
                    uint64_t unused, uint64_t size) {
    uint64_t bytes = number != 0 ? accounts->account[number].holding.bytes : 0;
    if (more > unused) {
        return false;
    }
    uint64_t left = unused - more;
    return bytes + more <= ARENA_SHARE * left || (alone && left >= size / ARENA_RESERVE);
}

size_t accounts_count(const struct accounts *accounts) {
    return accounts->count;
}

size_t accounts_largest(const struct accounts *accounts, struct holding *holdings, size_t count) {
    size_t found = 0;
    for (uint32_t i = 1; i <= accounts->touched; i++) {
        const struct holding *one = &accounts->account[i].holding;
        size_t at = found;
        while (at > 0 && holdings[at - 1].bytes < one->bytes) {
            at--;
        }
        if (one->blocks == 0 || at == count) {
            continue;
        }
        found += found < count;
        memmove(&holdings[at + 1], &holdings[at], (found - at - 1) * sizeof *holdings);
        holdings[at] = *one;
    }
    return found;
}
