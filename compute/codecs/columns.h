/*
 * columns.h: which columns of a table are which arrays of a job.
 *
 * A kind of job that takes tables owns an array of roles: for each of its arrays the names that
 * columns of it go by, in order of preference. Names are compared without case, units and
 * punctuation ("Flux (mJy)" is flux, "Mag Error" is mag_error, "HJD-2450000" is hjd). A column of
 * uncertainties is the one that is named after the column of the values ("mag_err", "e_mag").
 *
 * A header is understood wholly or refused: what cannot be told apart is asked for, by name.
 *
 * Threads: reentrant. Time: names × columns, of which there are COLUMNS_MAX at most.
 */
#ifndef KILN_COMPUTE_CODECS_COLUMNS_H
#define KILN_COMPUTE_CODECS_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COLUMNS_MAX     256 /* of a table */
#define COLUMN_ROLES    3   /* of a job, at most */
#define COLUMN_TEXT_MAX 64  /* bytes of a field that chooses a column, with the NUL */
#define COLUMN_NOWHERE  SIZE_MAX
#define COLUMN_NONE     "none" /* chooses no column, for a role that is optional */

struct column_role {
    const char *field;        /* array field of the job; NULL ends the roles */
    const char *choice;       /* its text field that chooses a column: a name, or a number from 1 */
    const char *const *names; /* normal names in order of preference, ended by NULL */
    /* Uncertainties: how a column is named after that of the role before, whose name stands for
       the %, or "values=uncertainties" where it takes both names; NULL: no uncertainties. Such a
       role is optional. */
    const char *const *patterns;
};

/** A name as it stands in the table: not ended by NUL. */
struct column_name {
    const char *text;
    size_t size;
};

struct column_table {
    struct column_name names[COLUMNS_MAX]; /* of the header, or of a comment that looks like one */
    size_t count;                          /* columns */
    bool header;                           /* the first line is one */
    bool comment;                          /* no header, but a comment with as many words */
};

/** What a request says of the columns, by role. */
struct column_choices {
    const char *texts[COLUMN_ROLES]; /* "" for nothing */
    bool given[COLUMN_ROLES];        /* the array itself was given: no column is looked for */
};

struct column_map {
    size_t at[COLUMN_ROLES]; /* column from 0, or COLUMN_NOWHERE */
};

/** Finds the columns. False where they cannot be told: `field` is then the field that would help
    and `why` what was found. */
bool columns_find(const struct column_role *roles, const struct column_table *table,
                  const struct column_choices *choices, struct column_map *map, const char **field,
                  char *why, size_t why_size);

/** The text by which column `at` (or COLUMN_NOWHERE) can be chosen: its name where that is UTF-8,
    short and its own, else its number. (No name of a header is a number or "none".) */
void column_print(const struct column_table *table, size_t at, char text[COLUMN_TEXT_MAX]);

#endif
