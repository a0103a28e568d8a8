/*
 * fuzz_csv.c: light curves as text: the header into columns, by their names and by what a request
 * chooses, and the rows into arrays of exactly the promised size.
 *
 * The first byte says what is chosen: low bits whether each of the three columns is, and whether by
 * number or by a name out of the header itself.
 */
#include "tests/fuzz/expect.h"

#include "compute/codecs/csv.h"
#include "compute/codecs/signature.h"
#include "compute/jobs/job.h"

extern const struct job_type lombscargle_job;

/* A choice: a column's number, or its own name cut to what a field holds. */
static void choice_make(const struct column_table *table, uint8_t how, size_t role,
                        char text[COLUMN_TEXT_MAX]) {
    size_t column = (how >> 4) + role;
    text[0] = '\0';
    if (!(how >> role & 1)) {
        return;
    }
    if ((how & 8) && column < table->count) {
        size_t size = table->names[column].size;
        size = size < COLUMN_TEXT_MAX ? size : COLUMN_TEXT_MAX - 1;
        memcpy(text, table->names[column].text, size);
        text[size] = '\0';
    } else {
        snprintf(text, COLUMN_TEXT_MAX, "%zu", column);
    }
}

static void rows_check(struct csv *csv, const struct column_map *map) {
    char why[192] = "";
    uint64_t bound = csv_rows_bound(csv->text + csv->at, csv->size - csv->at), rows = 0;
    uint64_t last = csv->line;
    double *values[COLUMN_ROLES];
    struct csv_missing missing;
    EXPECT(bound >= 1 && bound <= csv->size + 1);
    for (int i = 0; i < COLUMN_ROLES; i++) {
        EXPECT((values[i] = malloc(bound * sizeof(double))) != NULL);
    }
    enum kiln_status status = csv_read(csv, map, values, bound, &rows, &missing, why, sizeof why);
    EXPECT(status == KILN_OK || (status == KILN_MALFORMED && why_good(why, sizeof why)));
    EXPECT(rows <= bound && csv->line >= last);
    const char *reason = strchr(why, ':'); /* the rest of it, because text may be quoted there */
    EXPECT(reason == NULL || strcmp(reason, ": there are more rows than fit") != 0);
    bool any = false;
    for (uint64_t row = 0; row < rows; row++) {
        for (int i = 0; i < COLUMN_ROLES; i++) {
            any |= map->at[i] != COLUMN_NOWHERE && values[i][row] != values[i][row];
        }
    }
    /* what is missing is told, and nothing else is; what was read before an error may be */
    EXPECT(status != KILN_OK || any == (missing.line > 0));
    EXPECT(!missing.line || (missing.column < csv->table.count &&
                             memchr(missing.shown, '\0', sizeof missing.shown) != NULL));
    for (int i = 0; i < COLUMN_ROLES; i++) {
        free(values[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t how = size > 0 ? data[0] : 0;
    const char *text = (const char *)data + (size > 0);
    char why[192] = "", chosen[COLUMN_ROLES][COLUMN_TEXT_MAX], shown[COLUMN_TEXT_MAX];
    struct column_choices choices = {{NULL}, {false}};
    struct column_map map;
    const char *field = NULL;
    struct csv csv;
    size -= size > 0;
    signature_of_bytes(text, size);
    enum kiln_status status = csv_open(&csv, text, size, why, sizeof why);
    EXPECT(status == KILN_OK || (status == KILN_MALFORMED && why_good(why, sizeof why)));
    if (status != KILN_OK) {
        return 0;
    }
    EXPECT(csv.table.count >= 2 && csv.table.count <= COLUMNS_MAX);
    for (size_t i = 0; i < csv.table.count; i++) {
        column_print(&csv.table, i, shown);
        EXPECT(shown[0] && memchr(shown, '\0', sizeof shown) != NULL);
    }
    for (size_t i = 0; i < COLUMN_ROLES; i++) {
        choice_make(&csv.table, how, i, chosen[i]);
        choices.texts[i] = chosen[i];
    }
    if (!columns_find(lombscargle_job.table->columns, &csv.table, &choices, &map, &field, why,
                      sizeof why)) {
        EXPECT(field != NULL && why_good(why, sizeof why));
        map = (struct column_map){{0, 1, csv.table.count - 1}}; /* the rows are read all the same */
        if (csv.table.count == 2) {
            map.at[2] = COLUMN_NOWHERE;
        }
    }
    for (size_t i = 0; i < COLUMN_ROLES; i++) {
        EXPECT(map.at[i] == COLUMN_NOWHERE ? i == 2 : map.at[i] < csv.table.count);
        for (size_t k = 0; k < i; k++) {
            EXPECT(map.at[i] != map.at[k]);
        }
    }
    rows_check(&csv, &map);
    return 0;
}
