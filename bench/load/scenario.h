/*
 * scenario.h: the requests that a run sends, mixed by weight.
 *
 * A file is JSON:
 *
 *   {"about": "what it is for",
 *    "requests": [{"name": "png", "weight": 3, "method": "GET", "path": "/v1/…?xmin=-2.25${i:12}",
 *                  "headers": {"Accept": "image/png"}, "body": "…" or "body_file": "lap.png",
 *                  "expect": 200, "conditional": false}]}
 *
 * Only `path` is required. Variables (template.h) stand in path, headers and body; a body file is
 * sent as it is and lies beside the scenario. A `conditional` request is asked once for its ETag
 * and then sent with If-None-Match, expecting 304.
 *
 * Threads: read by all once it is prepared. Ownership: owns its texts.
 */
#ifndef KILN_BENCH_LOAD_SCENARIO_H
#define KILN_BENCH_LOAD_SCENARIO_H

#include "bench/load/target.h"
#include "bench/load/template.h"

#define ITEMS_MAX         32
#define ITEM_NAME_MAX     40
#define ITEM_HEAD_MAX     6144 /* bytes of a request's head before variables are filled in */
#define ITEM_BODY_MAX     (64 << 20)
#define ITEM_RENDERED_MAX (64 << 10) /* of a body with variables */

struct item {
    char name[ITEM_NAME_MAX];
    double weight;
    int expect; /* status of a right answer; 0: any 2xx */
    bool bodyless, conditional;
    char *head; /* source of `head_template`: request line and headers, without the empty line */
    char *body;
    size_t body_size;
    struct template head_template, body_template; /* the latter only for a body that varies */
};

struct scenario {
    char about[200];
    size_t count;
    double weight; /* of all */
    struct item items[ITEMS_MAX];
};

/** A request before it is checked. Texts are NUL-terminated and stay the caller's. */
struct request_text {
    const char *name, *method, *path;
    const char *headers; /* lines, each ended by CR LF; may be empty */
    const char *body;    /* NULL: none */
    size_t body_size;
    bool body_fixed; /* bytes of a file: no variables in them */
    double weight;
    int expect;
    bool conditional;
};

struct scenario *scenario_create(void);
void scenario_destroy(struct scenario *scenario);

/** False with a sentence in `why`. */
bool scenario_add(struct scenario *scenario, const struct request_text *request, char *why,
                  size_t why_size);

/** Adds the requests of a file, or of its text (`folder` is where body files are looked for). */
bool scenario_load(struct scenario *scenario, const char *path, char *why, size_t why_size);
bool scenario_parse(struct scenario *scenario, const char *text, size_t size, const char *folder,
                    char *why, size_t why_size);

/** The whole file, NUL-terminated, to be freed; NULL with a sentence in `why`. */
char *file_load(const char *path, size_t size_max, size_t *size, char *why, size_t why_size);

/** Compiles heads for this target; asks for the ETags of conditional requests. Once. */
bool scenario_prepare(struct scenario *scenario, const struct target *target, char *why,
                      size_t why_size);

/** One of the items, by weight. */
size_t scenario_pick(const struct scenario *scenario, struct dice *dice);

/** Room that item_render needs for any item. */
size_t scenario_size_max(const struct scenario *scenario);

/** Head, and the body if it varies, to `out`; returns the size. The rest of the request is the
    item's own body if `*rest` says so. */
size_t item_render(const struct item *item, uint64_t number, struct dice *dice, char *out,
                   bool *rest);

#endif
