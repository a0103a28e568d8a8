/*
 * lombscargle_columns.c: the names that times, values and uncertainties go by in tables, and what
 * a result says of the columns that were used.
 *
 * Names are those of astropy and lightkurve (Kepler, TESS), of ZTF's, ASAS-SN's, Gaia's, ATLAS's
 * and Rubin's light curves, of SExtractor and of VizieR, in columns.h's normal form. Times whose
 * light travel is corrected go before those as observed; magnitudes before fluxes, where both have
 * uncertainties; a mission's corrected flux before its raw one.
 *
 * Threads: tables are constant; describing runs in the front, writing on a worker's slot thread.
 */
#include "compute/jobs/lombscargle/lombscargle.h"

#include <inttypes.h>
#include <string.h>

static const char *const time_names[] = {"t",           "time",     "times",          "bjd",
                                         "bjd_tdb",     "bjd_utc",  "btjd",           "bkjd",
                                         "hjd",         "hjd_utc",  "mjd_bary",       "jd",
                                         "jd_utc",      "mjd",      "midpointmjdtai", "expmidptmjd",
                                         "obstime",     "obs_time", "g_transit_time", "bp_obs_time",
                                         "rp_obs_time", NULL};

static const char *const value_names[] = {"y",
                                          "value",
                                          "values",
                                          "mag",
                                          "magnitude",
                                          "magpsf",
                                          "mag_auto",
                                          "mag_aper",
                                          "mag_iso",
                                          "psfmag",
                                          "flux",
                                          "pdcsap_flux",
                                          "kspsap_flux",
                                          "det_flux",
                                          "sap_flux",
                                          "flux_auto",
                                          "flux_aper",
                                          "psfflux",
                                          "forcediffimflux",
                                          "ujy",
                                          "m",
                                          "g_transit_flux",
                                          "g_transit_mag",
                                          "bp_flux",
                                          "bp_mag",
                                          "rp_flux",
                                          "rp_mag",
                                          "rate",
                                          "counts",
                                          "rv",
                                          "radial_velocity",
                                          NULL};

/* Uncertainties of whatever the values are. */
static const char *const error_names[] = {"dy",    "yerr", "err",         "error", "errors",
                                          "sigma", "unc",  "uncertainty", "e",     NULL};

/* The % is the name of the values. Names that follow no rule are ZTF's alerts' and SExtractor's. */
static const char *const error_patterns[] = {"%_err",
                                             "%err",
                                             "%_error",
                                             "%error",
                                             "e_%",
                                             "err_%",
                                             "error_%",
                                             "sigma_%",
                                             "sigma%",
                                             "%_sigma",
                                             "%_unc",
                                             "%unc",
                                             "%_uncertainty",
                                             "unc_%",
                                             "d%",
                                             "d_%",
                                             "%_std",
                                             "%_rms",
                                             "%_e",
                                             "magpsf=sigmapsf",
                                             "mag_auto=magerr_auto",
                                             "mag_aper=magerr_aper",
                                             "mag_iso=magerr_iso",
                                             "flux_auto=fluxerr_auto",
                                             "flux_aper=fluxerr_aper",
                                             NULL};

static const struct column_role roles[] = {
    {.field = "t", .choice = "t_column", .names = time_names},
    {.field = "y", .choice = "y_column", .names = value_names},
    {.field = "dy", .choice = "dy_column", .names = error_names, .patterns = error_patterns},
    {.field = NULL},
};

const struct table_shape lombscargle_table = {
    .columns = roles, .values = 1, .missing = "missing", .layout = "layout"};

static uint64_t dropped(const struct lombscargle_params *params) {
    return params->y.dropped;
}

/* By what the arrays were found: the columns of a table, or they came under their own names. NULL
   where there were no uncertainties, or they came by themselves beside a table. */
static void columns_name(const struct lombscargle_params *params, const char *names[3]) {
    static const char *const fields[] = {"t", "y", "dy"};
    const char *const columns[] = {params->t_column, params->y_column, params->dy_column};
    for (size_t i = 0; i < 3; i++) {
        names[i] =
            columns[i][0] != '\0' && strcmp(columns[i], COLUMN_NONE) != 0 ? columns[i] : fields[i];
    }
    if (params->dy.count == 0) {
        names[2] = NULL;
    }
}

void lombscargle_columns_write(struct text *text, const struct lombscargle_params *params) {
    static const char *const keys[] = {"t", "y", "dy"};
    const char *names[3];
    columns_name(params, names);
    text_string(text, ",\"columns\":{");
    for (size_t i = 0; i < 3; i++) {
        text_format(text, "%s\"%s\":", i ? "," : "", keys[i]);
        if (names[i] != NULL) {
            text_json_string(text, names[i], strnlen(names[i], COLUMN_TEXT_MAX));
        } else {
            text_string(text, "null");
        }
    }
    text_format(text, "},\"weighted\":%s,\"dropped\":%" PRIu64,
                params->dy.count > 0 ? "true" : "false", dropped(params));
}

/* A string of RFC 9651, or, where it is not ASCII, a display string. */
static void header_string(struct text *text, const char *string) {
    size_t size = strlen(string);
    bool ascii = true;
    for (size_t i = 0; i < size; i++) {
        ascii = ascii && (unsigned char)string[i] < 0x7f && (unsigned char)string[i] >= ' ';
    }
    text_string(text, ascii ? "\"" : "%\"");
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)string[i];
        if (ascii && (c == '"' || c == '\\')) {
            text_format(text, "\\%c", c);
        } else if (!ascii && (c >= 0x7f || c < ' ' || c == '"' || c == '%')) {
            text_format(text, "%%%02x", c);
        } else {
            text_bytes(text, string + i, 1);
        }
    }
    text_string(text, "\"");
}

void lombscargle_describe_input(const void *raw, struct text *text) {
    static const char *const keys[] = {"t=", ", y=", ", dy="};
    const struct lombscargle_params *params = raw;
    const char *names[3];
    columns_name(params, names);
    for (size_t i = 0; i < 3; i++) {
        if (names[i] == NULL) {
            continue;
        }
        text_string(text, keys[i]);
        header_string(text, names[i]);
    }
    text_format(text, ", weighted%s, dropped=%" PRIu64, params->dy.count > 0 ? "" : "=?0",
                dropped(params));
}
