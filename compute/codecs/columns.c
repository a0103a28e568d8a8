/*
 * columns.c: headers of tables held against the names that a job knows (columns.h).
 *
 * Thread: any.
 */
#include "compute/codecs/columns.h"

#include "compute/core/text.h"
#include "compute/core/utf8.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define SHOWN_MAX 40 /* bytes of one name in a message */

struct finder {
    const struct column_role *roles;
    const struct column_table *table;
    const struct column_choices *choices;
    struct column_map *map;
    bool fixed[COLUMN_ROLES];        /* chosen by the request, or not to be looked for */
    char (*normal)[COLUMN_TEXT_MAX]; /* of each column */
    const char **field;
    char *why;
    size_t why_size;
};

static bool refuse(struct finder *finder, const char *field, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static bool refuse(struct finder *finder, const char *field, const char *format, ...) {
    va_list arguments;
    *finder->field = field;
    va_start(arguments, format);
    vsnprintf(finder->why, finder->why_size, format, arguments);
    va_end(arguments);
    return false;
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool is_gap(char c) {
    return c == ' ' || c == '\t' || c == '_' || c == '-' || c == '.' || c == '/' || c == '#';
}

/* Where a name ends: before its unit "(mJy)", "[d]" or its offset "-2450000", " + 2400000.5". */
static bool name_ends(const struct column_name *name, size_t at) {
    char c = name->text[at];
    if (c == '(' || c == '[' || c == ',') {
        return true;
    }
    if (c != '-' && c != '+') {
        return false;
    }
    for (at++; at < name->size && name->text[at] == ' ';) {
        at++;
    }
    return at < name->size && name->text[at] >= '0' && name->text[at] <= '9';
}

/* Lower case, gaps as one '_' inside and none around; "" for a name too long to be known. */
static void name_normalise(const struct column_name *name, char normal[COLUMN_TEXT_MAX]) {
    size_t size = 0;
    bool gap = false;
    for (size_t i = 0; i < name->size && !(size > 0 && name_ends(name, i)); i++) {
        char c = name->text[i];
        if (is_gap(c)) {
            gap = size > 0;
            continue;
        }
        if (size + gap + 2 > COLUMN_TEXT_MAX) {
            size = 0;
            break;
        }
        if (gap) {
            normal[size++] = '_';
        }
        gap = false;
        normal[size++] = lower(c);
    }
    normal[size] = '\0';
}

/* The name that `pattern` gives the uncertainties of `base`: the pattern with it in place of its
   '%', or, of "base=name", this name. False where there is none, or none as short as names are. */
static bool pattern_apply(const char *pattern, const char *base, char name[COLUMN_TEXT_MAX]) {
    size_t equals = strcspn(pattern, "="), before = strcspn(pattern, "%");
    if (pattern[equals] == '=' && (strncmp(base, pattern, equals) != 0 || base[equals] != '\0')) {
        return false;
    }
    int size = pattern[equals] == '=' ? snprintf(name, COLUMN_TEXT_MAX, "%s", pattern + equals + 1)
                                      : snprintf(name, COLUMN_TEXT_MAX, "%.*s%s%s", (int)before,
                                                 pattern, base, pattern + before + 1);
    return size < COLUMN_TEXT_MAX;
}

/* As much of a name as can be shown. */
static void name_show(struct text *out, const struct column_name *name) {
    size_t size = name->size < SHOWN_MAX ? name->size : SHOWN_MAX;
    text_string(out, "'");
    for (size_t i = 0; i < size;) {
        size_t length = utf8_length(name->text + i, name->size - i);
        bool plain = length > 0 && (unsigned char)name->text[i] >= ' ' && name->text[i] != 0x7f;
        text_bytes(out, plain ? name->text + i : "?", plain ? length : 1);
        i += plain ? length : 1;
    }
    text_string(out, size < name->size ? "…'" : "'");
}

/* The columns' names, as many as fit; for a message. */
static void names_list(const struct column_table *table, char *out, size_t size) {
    struct text text;
    text_init(&text, out, size);
    for (size_t i = 0; i < table->count; i++) {
        char one[4 * SHOWN_MAX];
        struct text shown;
        text_init(&shown, one, sizeof one);
        name_show(&shown, &table->names[i]);
        if (text.size + shown.size + sizeof ", …" + 2 > size) {
            text_string(&text, ", …");
            break;
        }
        text_format(&text, "%s%s", i > 0 ? ", " : "", one);
    }
}

static bool number_parse(const char *text, size_t *number) {
    size_t value = 0;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || value > 100000) {
            return false;
        }
        value = value * 10 + (size_t)(*c - '0');
    }
    *number = value;
    return *text != '\0';
}

/* How well a column's name agrees with a chosen one: 3 exactly, 2 but for case, 1 normalised. */
static int name_agrees(const struct finder *finder, size_t column, const char *chosen,
                       const char *normal) {
    const struct column_name *name = &finder->table->names[column];
    if (strlen(chosen) == name->size && strncasecmp(name->text, chosen, name->size) == 0) {
        return memcmp(name->text, chosen, name->size) == 0 ? 3 : 2;
    }
    return normal[0] && strcmp(finder->normal[column], normal) == 0;
}

/* The column that a request names. */
static bool choice_find(struct finder *finder, size_t role) {
    const struct column_table *table = finder->table;
    const char *chosen = finder->choices->texts[role], *field = finder->roles[role].choice;
    char normal[COLUMN_TEXT_MAX], list[96];
    size_t found = COLUMN_NOWHERE, number;
    int best = 0, same = 0;
    name_normalise(&(struct column_name){chosen, strlen(chosen)}, normal);
    for (size_t i = 0; (table->header || table->comment) && i < table->count; i++) {
        int agrees = name_agrees(finder, i, chosen, normal);
        same = agrees == best ? same + 1 : agrees > best ? 1 : same;
        if (agrees > best) {
            best = agrees;
            found = i;
        }
    }
    if (best > 0 && same > 1) {
        return refuse(finder, field, "%d columns are called %s; say which by its number, from 1",
                      same, chosen);
    }
    if (best == 0 && number_parse(chosen, &number) && number >= 1 && number <= table->count) {
        found = number - 1;
    }
    if (found == COLUMN_NOWHERE && !table->header && !table->comment) {
        return refuse(finder, field,
                      "must be a number from 1 to %zu: the table has that many columns and no "
                      "header",
                      table->count);
    }
    names_list(table, list, sizeof list);
    if (found == COLUMN_NOWHERE) {
        return refuse(finder, field, "is neither a column nor the number of one; there are %s",
                      list);
    }
    finder->map->at[role] = found;
    return true;
}

/* Puts the request's own choices into the map. */
static bool choices_find(struct finder *finder) {
    for (size_t i = 0; finder->roles[i].field != NULL; i++) {
        const struct column_role *role = &finder->roles[i];
        const char *text = finder->choices->texts[i];
        finder->map->at[i] = COLUMN_NOWHERE;
        finder->fixed[i] = *text || finder->choices->given[i];
        bool none = role->patterns != NULL && strcasecmp(text, COLUMN_NONE) == 0;
        if (*text && !none && finder->choices->given[i]) {
            return refuse(finder, role->choice, "cannot be given beside %s itself", role->field);
        }
        if (*text && !none && !choice_find(finder, i)) {
            return false;
        }
        for (size_t k = 0; k < i; k++) {
            if (finder->map->at[i] != COLUMN_NOWHERE && finder->map->at[k] == finder->map->at[i]) {
                return refuse(finder, role->choice, "is the same column as %s",
                              finder->roles[k].choice);
            }
        }
    }
    return true;
}

static bool column_taken(const struct finder *finder, size_t column) {
    for (size_t i = 0; finder->roles[i].field != NULL; i++) {
        if (finder->map->at[i] == column) {
            return true;
        }
    }
    return false;
}

/* Without names: the first columns in the order of the roles. */
static bool positions_take(struct finder *finder) {
    size_t count = finder->table->count;
    for (size_t i = 0; finder->roles[i].field != NULL; i++) {
        const struct column_role *role = &finder->roles[i];
        if (finder->fixed[i]) {
            continue;
        }
        bool fits = count <= COLUMN_ROLES && i < count && !column_taken(finder, i);
        if (fits) {
            finder->map->at[i] = i;
        } else if (role->patterns == NULL) {
            return refuse(finder, role->choice,
                          "is needed: there are %zu columns and no header that names them; give "
                          "their numbers, such as %s=1&%s=2",
                          count, finder->roles[0].choice, finder->roles[1].choice);
        }
    }
    return true;
}

/* Columns of this normal name; *found is the first. */
static size_t name_find(const struct finder *finder, const char *name, size_t *found) {
    size_t count = 0;
    for (size_t i = finder->table->count; i-- > 0;) {
        if (strcmp(finder->normal[i], name) == 0) {
            *found = i;
            count++;
        }
    }
    return count;
}

/* The column of uncertainties named after column `base`: the one that is chosen, or any. */
static size_t partner_find(const struct finder *finder, size_t role, size_t base) {
    const char *const *patterns = finder->roles[role].patterns;
    char name[COLUMN_TEXT_MAX];
    for (; *patterns != NULL && finder->normal[base][0]; patterns++) {
        if (!pattern_apply(*patterns, finder->normal[base], name)) {
            continue;
        }
        for (size_t i = 0; i < finder->table->count; i++) {
            if (strcmp(finder->normal[i], name) == 0 &&
                (finder->fixed[role] ? finder->map->at[role] == i : !column_taken(finder, i))) {
                return i;
            }
        }
    }
    return COLUMN_NOWHERE;
}

/* A role by its names. Where the next role holds its uncertainties, a column that has some goes
   before one that has none. `candidates` receives how many columns could have been meant. */
static bool role_find(struct finder *finder, size_t role, size_t *candidates) {
    const struct column_role *self = &finder->roles[role], *next = self + 1;
    bool pairs = next->field != NULL && next->patterns != NULL;
    size_t best = COLUMN_NOWHERE, found = 0;
    bool paired = false;
    *candidates = 0;
    for (const char *const *name = self->names; *name != NULL; name++) {
        size_t count = name_find(finder, *name, &found);
        if (count == 0 || column_taken(finder, found)) {
            continue;
        }
        *candidates += 1;
        bool pair = pairs && partner_find(finder, role + 1, found) != COLUMN_NOWHERE;
        if (best != COLUMN_NOWHERE && (paired || !pair)) {
            continue;
        }
        if (count > 1) {
            return refuse(finder, self->choice,
                          "is needed: %zu columns are called %s; say which by its number, from 1",
                          count, *name);
        }
        best = found;
        paired = pair;
    }
    finder->map->at[role] = best;
    return true;
}

static bool ends_with(const char *name, const char *end) {
    size_t size = strlen(name), length = strlen(end);
    return size >= length && strcmp(name + size - length, end) == 0;
}

/* Whether a name speaks of uncertainty in a way that no pattern knows. */
static bool looks_uncertain(const char *name) {
    static const char *const starts[] = {"e_", "err", "sigma", "unc"};
    static const char *const ends[] = {"err",    "error", "errors", "sigma", "unc", "uncertainty",
                                       "uncert", "_std",  "stddev", "_rms",  "_e"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        if (strncmp(name, starts[i], strlen(starts[i])) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (ends_with(name, ends[i])) {
            return true;
        }
    }
    return false;
}

/* Whether it is of a column other than `base`: begins or ends with its name. */
static bool belongs_elsewhere(const struct finder *finder, size_t column, size_t base) {
    const char *name = finder->normal[column];
    for (size_t i = 0; i < finder->table->count; i++) {
        const char *other = finder->normal[i];
        size_t size = strlen(other);
        if (i != column && i != base && size > 1 &&
            (strncmp(name, other, size) == 0 || ends_with(name, other))) {
            return true;
        }
    }
    return false;
}

/* Uncertainties, if there are any: named after the values, else by a name for any values. */
static bool uncertainties_find(struct finder *finder, size_t role, size_t candidates) {
    const struct column_role *self = &finder->roles[role];
    size_t base = finder->map->at[role - 1], found = 0;
    if (finder->fixed[role] || base == COLUMN_NOWHERE) {
        return true;
    }
    finder->map->at[role] = partner_find(finder, role, base);
    for (const char *const *name = self->names;
         *name != NULL && finder->map->at[role] == COLUMN_NOWHERE; name++) {
        if (name_find(finder, *name, &found) == 0 || column_taken(finder, found)) {
            continue;
        }
        if (candidates > 1) {
            return refuse(finder, (self - 1)->choice,
                          "is needed: '%s' may belong to any of %zu columns of values", *name,
                          candidates);
        }
        finder->map->at[role] = found;
    }
    if (finder->map->at[role] != COLUMN_NOWHERE) {
        return true;
    }
    for (size_t i = 0; i < finder->table->count; i++) {
        char shown[4 * SHOWN_MAX];
        struct text text;
        if (column_taken(finder, i) || !looks_uncertain(finder->normal[i]) ||
            belongs_elsewhere(finder, i, base)) {
            continue;
        }
        text_init(&text, shown, sizeof shown);
        name_show(&text, &finder->table->names[i]);
        return refuse(finder, self->choice,
                      "is needed: %s looks like an uncertainty; %s=%zu uses it, %s=" COLUMN_NONE
                      " does without",
                      shown, self->choice, i + 1, self->choice);
    }
    return true;
}

/* Whether no column has a name that any role knows. */
static bool nothing_known(const struct finder *finder, bool *in_place) {
    bool nothing = true;
    size_t found;
    *in_place = true;
    for (size_t i = 0; finder->roles[i].field != NULL; i++) {
        for (const char *const *name = finder->roles[i].names; *name != NULL; name++) {
            if (name_find(finder, *name, &found) > 0) {
                nothing = false;
                *in_place = *in_place && found == i;
            }
        }
    }
    for (size_t i = 0; i < finder->table->count; i++) {
        if (looks_uncertain(finder->normal[i])) {
            nothing = false;
            *in_place = *in_place && i == COLUMN_ROLES - 1;
        }
    }
    return nothing;
}

static bool anything_fixed(const struct finder *finder) {
    for (size_t i = 0; finder->roles[i].field != NULL; i++) {
        if (*finder->choices->texts[i]) {
            return true;
        }
    }
    return false;
}

/* What is said where a role has no column. */
static bool role_missing(struct finder *finder, size_t role) {
    char list[112];
    const struct column_role *self = &finder->roles[role];
    names_list(finder->table, list, sizeof list);
    return refuse(finder, self->choice, "is needed: no known name for %s is among the columns %s",
                  self->field, list);
}

static bool names_find(struct finder *finder) {
    size_t candidates[COLUMN_ROLES] = {0};
    for (size_t i = 0; finder->roles[i].field != NULL; i++) {
        if (!finder->fixed[i] && finder->roles[i].patterns == NULL &&
            !role_find(finder, i, &candidates[i])) {
            return false;
        }
    }
    for (size_t i = 0; finder->roles[i].field != NULL; i++) {
        if (finder->roles[i].patterns == NULL && finder->map->at[i] == COLUMN_NOWHERE &&
            !finder->choices->given[i]) {
            return role_missing(finder, i);
        }
    }
    for (size_t i = 1; finder->roles[i].field != NULL; i++) {
        if (finder->roles[i].patterns != NULL &&
            !uncertainties_find(finder, i, candidates[i - 1])) {
            return false;
        }
    }
    return true;
}

bool columns_find(const struct column_role *roles, const struct column_table *table,
                  const struct column_choices *choices, struct column_map *map, const char **field,
                  char *why, size_t why_size) {
    char normal[COLUMNS_MAX][COLUMN_TEXT_MAX]; /* filled as far as there are columns */
    struct finder finder = {.roles = roles,
                            .table = table,
                            .choices = choices,
                            .map = map,
                            .normal = normal,
                            .field = field,
                            .why = why,
                            .why_size = why_size};
    bool named = table->header || table->comment, in_place;
    for (size_t i = 0; named && i < table->count; i++) {
        name_normalise(&table->names[i], finder.normal[i]);
    }
    if (!choices_find(&finder)) {
        return false;
    }
    if (!named) {
        return positions_take(&finder);
    }
    bool nothing = nothing_known(&finder, &in_place);
    /* Two columns under foreign names can only be meant as they stand; a comment need not be a
       header, unless its words say so. */
    if (!anything_fixed(&finder) &&
        ((nothing && table->count == 2) ||
         (table->comment && (nothing || (in_place && table->count <= COLUMN_ROLES))))) {
        return positions_take(&finder);
    }
    return names_find(&finder);
}

void column_print(const struct column_table *table, size_t at, char text[COLUMN_TEXT_MAX]) {
    if (at == COLUMN_NOWHERE) {
        snprintf(text, COLUMN_TEXT_MAX, COLUMN_NONE);
        return;
    }
    const struct column_name *name = &table->names[at];
    bool own = (table->header || table->comment) && name->size > 0 && name->size < COLUMN_TEXT_MAX;
    for (size_t i = 0; own && i < name->size;) {
        size_t length = utf8_length(name->text + i, name->size - i);
        own = length > 0 && (unsigned char)name->text[i] >= ' ' && name->text[i] != 0x7f;
        i += length;
    }
    for (size_t i = 0; own && i < table->count; i++) {
        own = i == at || table->names[i].size != name->size ||
              strncasecmp(table->names[i].text, name->text, name->size) != 0;
    }
    if (own) {
        memcpy(text, name->text, name->size);
        text[name->size] = '\0';
    } else {
        snprintf(text, COLUMN_TEXT_MAX, "%zu", at + 1);
    }
}
