/*
 * fuzz_submission.c: three lines (kind and captured segments, media type, query), the rest a body,
 * read for any kind of the daemon and for one of two pictures. What is told of it is told in words;
 * inputs and arrays lie in the job's block; no block is lost; the same bytes once more are the same
 * job. What no field complains of is checked and planned as the daemon would.
 */
#include "tests/fuzz/expect.h"

#include "compute/submission/submission.h"

#define ARENA_SIZE    (8u << 20)
#define CAPTURES_MAX  4
#define NUMBERS_BOUND 4096

static const struct field pair_fields[] = {
    {.name = "image", .type = FIELD_BLOB, .help = "The first."},
    {.name = "mask", .type = FIELD_BLOB, .flags = FIELD_OPTIONAL, .help = "The second."},
    {.name = NULL},
};

static const enum format pictures[] = {FORMAT_PNG, FORMAT_PGM, FORMAT_NPY, FORMAT_NONE};

static const struct job_type pair_job = {
    .name = "pair", .input = INPUT_IMAGE, .fields = pair_fields, .accepts = pictures};

static const struct limits limits = {1u << 20,      EXPECT_PIXELS_MAX, 1000000,
                                     NUMBERS_BOUND, NUMBERS_BOUND,     ARENA_SIZE};

struct sent {
    char line[256], media[256], query[4096];
    const char *captures[CAPTURES_MAX];
    size_t words;
    const uint8_t *body;
    size_t body_size;
};

/* The next line, cut to what `out` holds; false where there is none. */
static bool line_take(const uint8_t **data, size_t *size, char *out, size_t out_size) {
    const uint8_t *end = *size > 0 ? memchr(*data, '\n', *size) : NULL;
    if (end == NULL) {
        return false;
    }
    size_t length = (size_t)(end - *data);
    size_t kept = length < out_size ? length : out_size - 1;
    memcpy(out, *data, kept);
    out[kept] = '\0';
    *size -= length + 1;
    *data = end + 1;
    return true;
}

static size_t captures_of(const char *pattern) {
    size_t count = 0;
    for (; *pattern != '\0'; pattern++) {
        count += *pattern == '{';
    }
    return count;
}

static void job_look(const struct submission *submission) {
    struct job *job = submission->job;
    struct arena *arena = submission->arena;
    uint64_t room = job->body.size;
    for (size_t i = 0; i < INPUTS_MAX; i++) {
        EXPECT(job->inputs[i].size <= room && job->inputs[i].offset <= room - job->inputs[i].size);
    }
    for (const struct field *field = job->type->fields; field->name != NULL; field++) {
        struct array_ref array;
        if (field->type != FIELD_ARRAY) {
            continue;
        }
        memcpy(&array, job->params + field->offset, sizeof array);
        if (array.count > 0 && submission->complaints->count == 0) {
            EXPECT(array.offset + (array.count + array.rows) * sizeof(double) <= room);
        }
    }
    if (submission->complaints->count == 0 && job->type->check != NULL) {
        const uint8_t *bytes = room > 0 ? arena_at(arena, job->body.offset) : NULL;
        job->type->check(job->params, job->inputs, bytes, job->type->formats[0], &limits,
                         submission->complaints);
        if (submission->complaints->count == 0) {
            job->type->plan(job->params, job->inputs, job->type->formats[0], &job->plan);
        }
    }
}

/* The job's block is the caller's to give back. */
static enum kiln_status sent_read(const struct sent *sent, const struct job_type *type,
                                  struct arena *arena, struct complaints *complaints,
                                  struct job *job) {
    char query[sizeof sent->query];
    const struct job_path *path =
        type->paths != NULL && sent->words == captures_of(type->paths->pattern) ? type->paths
                                                                                : NULL;
    strcpy(query, sent->query);
    *job = (struct job){.type = type};
    complaints->count = 0;
    struct submission submission = {
        .type = type,
        .path = path,
        .captures = path != NULL ? sent->captures : NULL,
        .limits = &limits,
        .arena = arena,
        .query = query,
        .query_end = query + strlen(query),
        .media = sent->media,
        .body_size = sent->body_size,
        .job = job,
        .complaints = complaints,
    };
    if (sent->body_size > 0) {
        EXPECT(arena_take(arena, sent->body_size + 1, &submission.body) == KILN_OK);
        memcpy(arena_at(arena, submission.body.offset), sent->body, sent->body_size);
    }
    enum kiln_status status = submission_read(&submission);
    EXPECT(submission.body.size == 0 && (unsigned)status < KILN_STATUS_COUNT);
    EXPECT(status == KILN_OK || why_good(submission.detail, sizeof submission.detail));
    EXPECT(memchr(submission.format, '\0', sizeof submission.format) != NULL);
    for (size_t i = 0; i < complaints->count && i < COMPLAINTS_MAX; i++) {
        EXPECT(why_good(complaints->rows[i].reason, sizeof complaints->rows[i].reason));
    }
    if (status == KILN_OK) {
        job_look(&submission);
    }
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct complaints complaints, others;
    static struct job job, again;
    struct sent sent = {.words = 0};
    static struct arena *arena; /* of this process: making one takes longer than most inputs */
    struct arena_stats stats;
    if (!line_take(&data, &size, sent.line, sizeof sent.line) ||
        !line_take(&data, &size, sent.media, sizeof sent.media) ||
        !line_take(&data, &size, sent.query, sizeof sent.query) || size > limits.max_body) {
        return 0;
    }
    char *rest = sent.line, *name = strsep(&rest, " "), *word;
    while (sent.words < CAPTURES_MAX && (word = strsep(&rest, " ")) != NULL) {
        sent.captures[sent.words++] = word;
    }
    sent.body = data;
    sent.body_size = size;
    const struct job_type *type =
        strcmp(name, pair_job.name) == 0 ? &pair_job : job_type_find(name);
    if (type == NULL) {
        return 0;
    }
    EXPECT(arena != NULL || arena_create_private(ARENA_SIZE, &arena) == KILN_OK);
    enum kiln_status status = sent_read(&sent, type, arena, &complaints, &job);
    EXPECT(sent_read(&sent, type, arena, &others, &again) == status);
    EXPECT(complaints.count == others.count);
    if (status == KILN_OK && complaints.count == 0) {
        EXPECT(memcmp(job.params, again.params, sizeof job.params) == 0);
        EXPECT(memcmp(job.inputs, again.inputs, sizeof job.inputs) == 0);
        for (size_t i = 0; i < INPUTS_MAX && job.body.size > 0; i++) {
            EXPECT(memcmp((char *)arena_at(arena, job.body.offset) + job.inputs[i].offset,
                          (char *)arena_at(arena, again.body.offset) + job.inputs[i].offset,
                          job.inputs[i].size) == 0);
        }
    }
    arena_give(arena, &job.body);
    arena_give(arena, &again.body);
    arena_stats(arena, &stats);
    EXPECT(stats.blocks == 0);
    return 0;
}
