/* test_columns.c: headers of tables and what the periodogram takes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute/codecs/csv.h"
#include "compute/codecs/signature.h"
#include "compute/jobs/job.h"

#include <stdio.h>
#include <string.h>

extern const struct job_type lombscargle_job;

#define NO COLUMN_NOWHERE

struct found {
    bool good;
    size_t t, y, dy;
    const char *field;
    char why[192];
};

/* The columns of a table that begins so. */
static struct found find(const char *text, const char *t, const char *y, const char *dy) {
    struct found found = {.field = ""};
    struct csv csv;
    struct column_map map;
    const struct column_choices choices = {.texts = {t, y, dy}};
    if (csv_open(&csv, text, strlen(text), found.why, sizeof found.why) != KILN_OK) {
        fail_msg("%s: %s", text, found.why);
    }
    found.good = columns_find(lombscargle_job.table->columns, &csv.table, &choices, &map,
                              &found.field, found.why, sizeof found.why);
    found.t = map.at[0];
    found.y = map.at[1];
    found.dy = map.at[2];
    return found;
}

static void test_conventions(void **state) {
    static const struct {
        const char *header;
        size_t t, y, dy;
    } cases[] = {
        {"t,y,dy", 0, 1, 2},
        {"mag,magerr,mjd", 2, 0, 1},
        {"TIME,FLUX,FLUX_ERR", 0, 1, 2},
        {"time,flux", 0, 1, NO},
        {"time,flux_err,flux", 0, 2, 1},
        {"jd,mag,e_mag", 0, 1, 2},
        {"jd,e_mag,mag", 0, 2, 1},
        {"BJD_TDB,rv,rv_error", 0, 1, 2},
        {"oid,hjd,mjd,mag,magerr,catflags,filtercode", 1, 3, 4},
        {"mjd,mag,magerr,bjd", 3, 1, 2},
        {"HJD,UT Date,Camera,FWHM,Limit,mag,mag_err,flux(mJy),flux_err,Filter", 0, 5, 6},
        {"HJD,mag,flux,flux_err", 0, 2, 3}, /* the one with uncertainties */
        {"source_id,band,time,mag,flux,flux_error,flux_over_error", 2, 4, 5},
        {"TIME,SAP_FLUX,SAP_FLUX_ERR,PDCSAP_FLUX,PDCSAP_FLUX_ERR", 0, 3, 4},
        {"time,pdcsap_flux,sap_flux,sap_flux_err", 0, 2, 3},
        {"NUMBER,MJD,MAG_AUTO,MAGERR_AUTO,FLUX_AUTO,FLUXERR_AUTO", 1, 2, 3},
        {"jd,magpsf,sigmapsf", 0, 1, 2},
        {"midpointMjdTai,band,psfFlux,psfFluxErr", 0, 2, 3},
        {"\"Time (BTJD)\",\"Flux [e-/s]\",\"Flux Err\"", 0, 1, 2},
        {"BJD - 2457000,Flux,Error", 0, 1, 2},
        {"time,ra_err,ra,mag", 0, 3, NO}, /* whose uncertainty it is stands there */
        {"time,time_err,flux", 0, 2, NO},
        {"YEAR,SUNACTIVITY", 0, 1, NO},
        {"1,2", 0, 1, NO},
        {"1,2,3", 0, 1, 2},
        {"# mag err mjd\n1,2,3", 2, 0, 1},
        {"# days counted here\n1,2,3", 0, 1, 2},
        {"# the flux it\n1,2,3", 0, 1, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct found found = find(cases[i].header, "", "", "");
        if (!found.good) {
            fail_msg("%s: %s: %s", cases[i].header, found.field, found.why);
        }
        if (found.t != cases[i].t || found.y != cases[i].y || found.dy != cases[i].dy) {
            fail_msg("%s: %zd, %zd, %zd", cases[i].header, found.t, found.y, found.dy);
        }
    }
}

static void test_choices(void **state) {
    static const struct {
        const char *header, *choices[3];
        size_t t, y, dy;
    } cases[] = {
        {"time,flux,flux_err,mag", {"", "mag", ""}, 0, 3, NO},
        {"time,flux,flux_err,mag,mag_err", {"", "flux", ""}, 0, 1, 2},
        {"time,flux,flux_err", {"", "", "none"}, 0, 1, NO},
        {"time,flux,flux_err", {"3", "1", "2"}, 2, 0, 1},
        {"time,flux,flux_err,fe", {"", "", "FE"}, 0, 1, 3},
        {"a,b,c,d", {"d", "a", ""}, 3, 0, NO},
        {"obs,vmag,e_vmag", {"obs", "vmag", ""}, 0, 1, 2},
        {"time,SAP_FLUX,sap_flux", {"", "sap_flux", ""}, 0, 2, NO},
        {"time,Mag Error,Mag", {"", "", "mag_error"}, 0, 2, 1},
        {"1,2,3,4,5", {"5", "1", "3"}, 4, 0, 2},
        {"1,2,3,4,5", {"5", "1", ""}, 4, 0, NO},
        {"1,2,3", {"2", "1", ""}, 1, 0, 2},
        {"1,2,3", {"", "3", ""}, 0, 2, NO},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const *choices = cases[i].choices;
        struct found found = find(cases[i].header, choices[0], choices[1], choices[2]);
        if (!found.good) {
            fail_msg("%s: %s: %s", cases[i].header, found.field, found.why);
        }
        if (found.t != cases[i].t || found.y != cases[i].y || found.dy != cases[i].dy) {
            fail_msg("%s: %zd, %zd, %zd", cases[i].header, found.t, found.y, found.dy);
        }
    }
}

static void test_refusals(void **state) {
    static const struct {
        const char *header, *choices[3], *field, *why;
    } cases[] = {
        {"time,temperature", {"", "", ""}, "y_column", "'time', 'temperature'"},
        {"date,flux", {"", "", ""}, "t_column", "'date', 'flux'"},
        {"a,b,c", {"", "", ""}, "t_column", "'a', 'b', 'c'"},
        {"time,flux,noise_error", {"", "", ""}, "dy_column", "'noise_error' looks like"},
        {"time,flux,flux_total_err", {"", "", ""}, "dy_column", "dy_column=3 uses it"},
        {"time,mag,flux,err", {"", "", ""}, "y_column", "'err' may belong to any of 2"},
        {"time,mag,mag", {"", "", ""}, "y_column", "2 columns are called mag"},
        {"time,flux", {"", "mag", ""}, "y_column", "'time', 'flux'"},
        {"time,flux", {"", "3", ""}, "y_column", "neither a column nor the number"},
        {"time,flux", {"", "0", ""}, "y_column", "neither a column nor the number"},
        {"time,flux", {"flux", "flux", ""}, "y_column", "is the same column as t_column"},
        {"time,flux", {"", "none", ""}, "y_column", "neither"}, /* only dy can be none */
        {"1,2,3,4", {"", "", ""}, "t_column", "4 columns and no header"},
        {"1,2,3,4", {"1", "", ""}, "y_column", "4 columns and no header"},
        {"1,2", {"", "mag", ""}, "y_column", "a number from 1 to 2"},
        {"1,2", {"2", "", ""}, "y_column", "is needed"},
        {"# mag err date\n1,2,3", {"", "", ""}, "t_column", "'mag', 'err', 'date'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *const *choices = cases[i].choices;
        struct found found = find(cases[i].header, choices[0], choices[1], choices[2]);
        if (found.good) {
            fail_msg("%s was taken: %zd, %zd, %zd", cases[i].header, found.t, found.y, found.dy);
        }
        if (strcmp(found.field, cases[i].field) != 0 || strstr(found.why, cases[i].why) == NULL) {
            fail_msg("%s: %s: %s", cases[i].header, found.field, found.why);
        }
    }
}

/* A hostile header: its names are shown cut and clean, and each column can be told by a text. */
static void test_printed(void **state) {
    char text[COLUMN_TEXT_MAX], wide[4096];
    (void)state;
    struct csv csv;
    char why[192];
    const char header[] = "time,\xff\x01,7x,a,A,"
                          "a-name-that-is-longer-than-any-field-that-could-choose-it-would-ever-be,"
                          "\xc3\xa9"
                          "clat\n";
    static const char *const wanted[] = {"time",
                                         "2",
                                         "7x",
                                         "4",
                                         "5",
                                         "6",
                                         "\xc3\xa9"
                                         "clat"};
    assert_int_equal(csv_open(&csv, header, sizeof header - 1, why, sizeof why), KILN_OK);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        column_print(&csv.table, i, text);
        assert_string_equal(text, wanted[i]);
    }
    column_print(&csv.table, NO, text);
    assert_string_equal(text, "none");
    struct found found = find(header, "", "", "");
    assert_false(found.good);
    for (const char *c = found.why; *c; c++) {
        assert_true((unsigned char)*c >= ' ');
    }

    for (size_t i = 0; i < 200; i++) {
        snprintf(wide + 20 * i, 21, "column-%011zu%s", i, i + 1 < 200 ? ", " : "\n ");
    }
    found = find(wide, "", "", "");
    assert_false(found.good);
    assert_non_null(strstr(found.why, "\xe2\x80\xa6"));
}

static void test_signatures(void **state) {
    static const struct {
        const char *bytes;
        size_t size;
        const char *word;
    } cases[] = {
#define BYTES(text) text, sizeof(text) - 1
        {BYTES("SIMPLE  =                    T"), "FITS"},
        {BYTES("<?xml version=\"1.0\"?>\n<VOTABLE version=\"1.3\">"), "VOTable"},
        {BYTES("<votable>"), "VOTable"},
        {BYTES("<!doctype html><html>"), "web page"},
        {BYTES("<?xml version=\"1.0\"?><a/>"), "XML"},
        {BYTES("\x1f\x8b\x08\x00"), "gzip"},
        {BYTES("PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x05\0\0\0t.npy"), ".npz"},
        {BYTES("PK\x03\x04\x14\0\0\0\0\0\0\0\0\0[Content_Types].xml"), "Excel"},
        {BYTES("PK\x03\x04\x14\0\0\0curve.csv"), "ZIP"},
        {BYTES("\x89HDF\r\n\x1a\n\0\0"), "HDF5"},
        {BYTES("PAR1\x15\x04"), "Parquet"},
        {BYTES("BZh91AY"), "compressed"},
        {BYTES("\xff\xfet\0,\0"), "UTF-16"},
        {BYTES("1,2\n3,4\n"), NULL},
        {BYTES("time,flux\n"), NULL},
        {BYTES("PK"), NULL},
        {BYTES(""), NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *sentence = signature_of_bytes(cases[i].bytes, cases[i].size);
        if ((sentence == NULL) != (cases[i].word == NULL) ||
            (sentence != NULL && strstr(sentence, cases[i].word) == NULL)) {
            fail_msg("case %zu: %s", i, sentence != NULL ? sentence : "nothing");
        }
    }
    assert_non_null(strstr(signature_of_media("application/fits"), "FITS"));
    assert_non_null(strstr(signature_of_media("Application/GZIP; x=1"), "gzip"));
    assert_null(signature_of_media("text/csv"));
    assert_null(signature_of_media(NULL));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_conventions), cmocka_unit_test(test_choices),
        cmocka_unit_test(test_refusals),    cmocka_unit_test(test_printed),
        cmocka_unit_test(test_signatures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
