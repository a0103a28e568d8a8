/*
 * booking.c: the calendar, and who has booked.
 *
 * The calendar is a ring of seconds with the work that is booked in each. A booking is filled in
 * from the client's last place on (its own bookings are first come, first served), into half of
 * what is free of each second, and its time is where the last of it lies. Bookings are ordered by
 * that time: those whose time is near are held, those whose grace is over are missed.
 *
 * Threads: the caller's lock.
 */
#include "compute/schedule/booking.h"

#include "compute/schedule/order.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define RING   4096 /* a power of two above BOOKING_HORIZON */
#define USE    0.95 /* of the rate that is given away */
#define PART   0.5  /* of a second's room for one client */
#define EARLY  0.5  /* seconds before its time that a client may come */
#define LARGER 1.5  /* than what was booked: not the same work any more */
#define LATE   1.0  /* seconds after which another request of the client may have its place */
#define TRUST  8    /* bookings that a client may miss, besides three for each it came for */
#define LOOKS  64   /* at bookings of a client, to find the one that it has come for */
#define FEWEST 1e-6 /* seconds of work worth filling in */

struct client {
    uint64_t id;
    double edge; /* second of the calendar in which its last booking ends */
    double part; /* what it has of that second */
    uint32_t kept, missed;
    size_t bookings;
    struct client *chain;
    struct order_node idle; /* by when it was seen last, while it has no booking */
    struct booking *first, *last;
};

struct booking {
    struct order_node node; /* by time; in `waiting` before it is held, then in `held` */
    struct client *client;
    struct booking *next, *previous; /* of the client, or of the free ones */
    double due, seconds;
    uint64_t mark;
    bool held;
};

struct bookings {
    double ring[RING];
    double base; /* the second up to which the ring is empty */
    struct order waiting, held, idle;
    double seconds; /* of `held` */
    uint64_t ties;
    size_t left, buckets; /* left: of free bookings */
    struct client **table, *free_clients, *clients;
    struct booking *free_bookings, *all;
    struct booking_counts counts;
};

/* ---- clients ---- */

static struct client **bucket_of(const struct bookings *bookings, uint64_t id) {
    uint64_t mixed = (id ^ id >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
    return &bookings->table[(mixed >> 32) & (bookings->buckets - 1)];
}

static struct client *client_find(const struct bookings *bookings, uint64_t id) {
    struct client *client = *bucket_of(bookings, id);
    while (client != NULL && client->id != id) {
        client = client->chain;
    }
    return client;
}

/* Forgets the client that has no booking and was not seen for longest. */
static void client_forget(struct bookings *bookings) {
    struct order_node *node = order_first(&bookings->idle);
    if (node == NULL) {
        return;
    }
    struct client *client = (struct client *)((char *)node - offsetof(struct client, idle));
    struct client **link = bucket_of(bookings, client->id);
    while (*link != client) {
        link = &(*link)->chain;
    }
    *link = client->chain;
    order_remove(&bookings->idle, node);
    client->chain = bookings->free_clients;
    bookings->free_clients = client;
}

static struct client *client_take(struct bookings *bookings, double now, uint64_t id) {
    struct client *client = client_find(bookings, id);
    if (client != NULL) {
        return client;
    }
    if (bookings->free_clients == NULL) {
        client_forget(bookings);
    }
    client = bookings->free_clients;
    if (client == NULL) {
        return NULL;
    }
    struct client **bucket = bucket_of(bookings, id);
    bookings->free_clients = client->chain;
    *client = (struct client){.id = id, .chain = *bucket};
    *bucket = client;
    order_insert(&bookings->idle, &client->idle, now, bookings->ties++);
    return client;
}

static bool client_trusted(const struct client *client) {
    return client->missed <= TRUST + 3 * client->kept;
}

/* ---- bookings ---- */

static struct booking *booking_of(struct order_node *node) {
    return node != NULL ? (struct booking *)((char *)node - offsetof(struct booking, node)) : NULL;
}

static void booking_free(struct bookings *bookings, struct booking *booking, double now) {
    struct client *client = booking->client;
    order_remove(booking->held ? &bookings->held : &bookings->waiting, &booking->node);
    if (booking->held) {
        bookings->seconds =
            bookings->held.root != NULL ? fmax(bookings->seconds - booking->seconds, 0) : 0;
    }
    *(booking->previous != NULL ? &booking->previous->next : &client->first) = booking->next;
    *(booking->next != NULL ? &booking->next->previous : &client->last) = booking->previous;
    if (--client->bookings == 0) {
        order_insert(&bookings->idle, &client->idle, now, bookings->ties++);
    }
    booking->next = bookings->free_bookings;
    bookings->free_bookings = booking;
    bookings->left++;
}

static void ring_advance(struct bookings *bookings, double now) {
    double second = floor(now);
    if (second - bookings->base >= RING) {
        for (size_t i = 0; i < RING; i++) {
            bookings->ring[i] = 0;
        }
        bookings->base = second;
    }
    for (; bookings->base < second; bookings->base++) {
        bookings->ring[(uint64_t)bookings->base & (RING - 1)] = 0;
    }
}

/* What is near is held, what is late is missed. */
static void bookings_advance(struct bookings *bookings, double now) {
    struct booking *booking;
    ring_advance(bookings, now);
    while ((booking = booking_of(order_first(&bookings->waiting))) != NULL &&
           booking->due - EARLY <= now) {
        order_remove(&bookings->waiting, &booking->node);
        order_insert(&bookings->held, &booking->node, booking->due, bookings->ties++);
        bookings->seconds += booking->seconds;
        booking->held = true;
    }
    while ((booking = booking_of(order_first(&bookings->held))) != NULL &&
           booking->due + BOOKING_GRACE < now) {
        booking->client->missed++;
        bookings->counts.missed++;
        booking_free(bookings, booking, now);
    }
}

struct bookings *bookings_create(size_t most) {
    assert(most > 0 && most < SIZE_MAX / 256);
    struct bookings *bookings = calloc(1, sizeof *bookings);
    if (bookings == NULL) {
        return NULL;
    }
    bookings->left = most;
    for (bookings->buckets = 1; bookings->buckets < most; bookings->buckets *= 2) {
    }
    bookings->table = calloc(bookings->buckets, sizeof(struct client *));
    bookings->clients = calloc(most, sizeof *bookings->clients);
    bookings->all = calloc(most, sizeof *bookings->all);
    if (bookings->table == NULL || bookings->clients == NULL || bookings->all == NULL) {
        bookings_destroy(bookings);
        return NULL;
    }
    for (size_t i = most; i-- > 0;) {
        bookings->clients[i].chain = bookings->free_clients;
        bookings->free_clients = &bookings->clients[i];
        bookings->all[i].next = bookings->free_bookings;
        bookings->free_bookings = &bookings->all[i];
    }
    return bookings;
}

void bookings_destroy(struct bookings *bookings) {
    if (bookings == NULL) {
        return;
    }
    free(bookings->table);
    free(bookings->clients);
    free(bookings->all);
    free(bookings);
}

/* Where `seconds` of the client's end in the calendar, from `from` on. With `fill` they are
   entered. INFINITY: beyond its horizon. */
static double ring_place(struct bookings *bookings, struct client *client, double from,
                         double seconds, double rate, bool fill) {
    double room = rate * USE, edge = client != NULL ? client->edge : -1;
    double first = fmax(floor(from), edge);
    for (double second = first; second < bookings->base + BOOKING_HORIZON; second++) {
        double *booked = &bookings->ring[(uint64_t)second & (RING - 1)];
        double part = second == edge ? client->part : 0;
        double late = second < from ? from - second : 0; /* of its first second, what is over */
        double left = room * (1 - late) - *booked;
        double take = fmin(fmax((left + part) * PART - part, 0), seconds);
        seconds -= take;
        if (fill) {
            *booked += take;
            client->edge = second;
            client->part = part + take;
        }
        if (seconds < FEWEST) {
            double at = fmin((*booked + (fill ? 0 : take)) / room, 1);
            return second + fmax(at, late);
        }
    }
    return INFINITY;
}

static unsigned whole_seconds(double seconds) {
    return seconds < 1 ? 1 : seconds > BOOKING_HORIZON ? BOOKING_HORIZON : (unsigned)ceil(seconds);
}

unsigned booking_make(struct bookings *bookings, double now, const struct booker *booker,
                      double rate, double behind) {
    bookings_advance(bookings, now);
    struct client *client = client_take(bookings, now, booker->client);
    struct booking *booking = bookings->free_bookings;
    double from = now + fmax(behind, 0) / rate;
    bool promise = client != NULL && booking != NULL && client_trusted(client) &&
                   client->bookings < bookings->left;
    double due = ring_place(bookings, client, from, booker->seconds, rate, false);
    if (!promise || due == INFINITY) {
        bookings->counts.loose++;
        return whole_seconds(due - now);
    }
    ring_place(bookings, client, from, booker->seconds, rate, true);
    bookings->free_bookings = booking->next;
    bookings->left--;
    unsigned after = whole_seconds(due - now);
    *booking = (struct booking){
        .client = client,
        .due = now + after,
        .seconds = booker->seconds,
        .mark = booker->mark,
        .previous = client->last,
    };
    *(client->last != NULL ? &client->last->next : &client->first) = booking;
    client->last = booking;
    client->bookings++;
    order_remove(&bookings->idle, &client->idle);
    order_insert(&bookings->waiting, &booking->node, booking->due, bookings->ties++);
    bookings->counts.made++;
    return after;
}

/* Whether `booker` may have this place, and how good it is for it: 0: not. */
static int booking_suits(const struct booking *booking, double now, const struct booker *booker) {
    if (!booking->held || booking->seconds * LARGER < booker->seconds) {
        return 0;
    }
    bool same = booking->mark == booker->mark;
    bool open = booking->mark == 0 || booker->mark == 0 || booking->due + LATE <= now;
    return same ? 2 : open;
}

/* The booking that it has come for, or the least that is enough, of the first few of the client:
   what is held stands at the head of its list. */
static struct booking *booking_match(struct bookings *bookings, double now,
                                     const struct booker *booker) {
    bookings_advance(bookings, now);
    struct client *client = client_find(bookings, booker->client);
    struct booking *best = NULL, *one = client != NULL ? client->first : NULL;
    int grade = 0;
    for (int looks = 0; one != NULL && looks < LOOKS; one = one->next, looks++) {
        int suits = booking_suits(one, now, booker);
        if (suits > grade || (suits > 0 && suits == grade && one->seconds < best->seconds)) {
            best = one;
            grade = suits;
        }
    }
    return best;
}

bool booking_find(struct bookings *bookings, double now, const struct booker *booker) {
    return booking_match(bookings, now, booker) != NULL;
}

void booking_end(struct bookings *bookings, double now, const struct booker *booker,
                 bool accepted) {
    struct booking *booking = booking_match(bookings, now, booker);
    assert(booking != NULL);
    booking->client->kept++; /* it came */
    *(accepted ? &bookings->counts.kept : &bookings->counts.broken) += 1;
    booking_free(bookings, booking, now);
}

double bookings_held(struct bookings *bookings, double now) {
    bookings_advance(bookings, now);
    return bookings->seconds;
}

struct booking_counts bookings_count(struct bookings *bookings, double now) {
    bookings_advance(bookings, now);
    return bookings->counts;
}
