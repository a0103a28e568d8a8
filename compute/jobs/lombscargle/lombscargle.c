/*
 * lombscargle.c: the generalised Lomb-Scargle periodogram of an unevenly sampled series.
 *
 * Names, defaults, grids and normalizations are astropy's. The files: _check (what may be asked
 * for), _columns (names in tables), _rows (one curve or several), _grid (which frequencies), _run
 * (weights, centring, device), _peaks, _alarm and _bootstrap (significance), _result
 * (representations).
 *
 * Threads: tables are constant; check and plan run in the front, run on a worker's slot thread.
 */
#include "compute/jobs/lombscargle/lombscargle.h"

#include "compute/jobs/result.h"
#include "compute/plot/plot.h"

#include <math.h>

#define AT(member) offsetof(struct lombscargle_params, member)
#define FREQUENCY  "cycles per unit of time"

static const char *const normalizations[] = {"standard", "model", "log", "psd", NULL};
static const char *const methods[] = {"auto", "direct", "nufft", NULL};
static const char *const precisions[] = {"fp64", "fp32", NULL};
static const char *const alarms[] = {"none", "naive", "davies", "baluev", "bootstrap", NULL};
static const char *const parts[] = {"all", "peaks", NULL};
static const char *const layouts[] = {"curve", "batch", NULL};
static const char *const missings[] = {"refuse", "drop", NULL};

const struct field lombscargle_fields[] = {
    {.name = "t",
     .type = FIELD_ARRAY,
     .flags = FIELD_ROWS | FIELD_GAPS,
     .offset = AT(t),
     .min = LOMBSCARGLE_SAMPLES_MIN,
     .max = INFINITY,
     .unit = "the client's unit of time",
     .help =
         "Times of the samples, in any order; equal times are allowed. An array of arrays where "
         "every series has its own."},
    {.name = "y",
     .type = FIELD_ARRAY,
     .flags = FIELD_ROWS | FIELD_GAPS,
     .offset = AT(y),
     .min = LOMBSCARGLE_SAMPLES_MIN,
     .max = INFINITY,
     .unit = "",
     .help = "Values, one for each time. An array of arrays for several series."},
    {.name = "dy",
     .type = FIELD_ARRAY,
     .flags = FIELD_OPTIONAL | FIELD_ROWS | FIELD_GAPS | FIELD_SCALAR,
     .offset = AT(dy),
     .min = LOMBSCARGLE_SAMPLES_MIN,
     .max = INFINITY,
     .unit = "unit of y",
     .help = "Standard errors of the values, above 0; the weights are 1/dy^2. Like y, or one array "
             "for series that share their times, or one number for all."},
    {.name = "t_column",
     .type = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = AT(t_column),
     .max = COLUMN_TEXT_MAX - 1,
     .unit = "",
     .help = "Of a table: which column holds the times, by its name or its number from 1; known "
             "names are found by themselves."},
    {.name = "y_column",
     .type = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = AT(y_column),
     .max = COLUMN_TEXT_MAX - 1,
     .unit = "",
     .help = "Of a table: which column holds the values, likewise."},
    {.name = "dy_column",
     .type = FIELD_TEXT,
     .flags = FIELD_OPTIONAL,
     .offset = AT(dy_column),
     .max = COLUMN_TEXT_MAX - 1,
     .unit = "",
     .help = "Of a table: which column holds the standard errors, likewise; none leaves them out."},
    {.name = "missing",
     .type = FIELD_ENUM,
     .offset = AT(missing),
     .preset = "refuse",
     .choices = missings,
     .unit = "",
     .help = "What becomes of samples of which a part is blank, NaN or null: refuse names the "
             "first, drop leaves them out."},
    {.name = "minimum_frequency",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .offset = AT(minimum_frequency),
     .min = 0,
     .max = INFINITY,
     .unit = FREQUENCY,
     .help = "Lowest frequency; half a grid step where it is left out."},
    {.name = "maximum_frequency",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .offset = AT(maximum_frequency),
     .min = 0,
     .max = INFINITY,
     .unit = FREQUENCY,
     .help = "Highest frequency; nyquist_factor times the mean Nyquist frequency where it is "
             "left out."},
    {.name = "samples_per_peak",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL | FIELD_ABOVE_MIN,
     .offset = AT(samples_per_peak),
     .min = 0,
     .max = 1e6,
     .preset = "5",
     .unit = "",
     .help = "Grid points across the width of a peak: the step is 1 / (baseline × this)."},
    {.name = "nyquist_factor",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL | FIELD_ABOVE_MIN,
     .offset = AT(nyquist_factor),
     .min = 0,
     .max = 1e9,
     .preset = "5",
     .unit = "",
     .help = "Highest frequency in units of the mean Nyquist frequency."},
    {.name = "f0",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .offset = AT(f0),
     .min = 0,
     .max = INFINITY,
     .unit = FREQUENCY,
     .help = "First frequency of an own grid f0 + k df; needs df and nf."},
    {.name = "df",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL | FIELD_ABOVE_MIN,
     .offset = AT(df),
     .min = 0,
     .max = INFINITY,
     .unit = FREQUENCY,
     .help = "Step of an own grid; needs f0 and nf."},
    {.name = "nf",
     .type = FIELD_INT,
     .flags = FIELD_OPTIONAL,
     .offset = AT(nf),
     .min = 1,
     .max = INFINITY,
     .unit = "frequencies",
     .help = "Points of an own grid; needs f0 and df."},
    {.name = "frequency",
     .type = FIELD_ARRAY,
     .flags = FIELD_OPTIONAL,
     .offset = AT(frequency),
     .min = 1,
     .max = INFINITY,
     .unit = FREQUENCY,
     .help = "The frequencies themselves, in any order, in place of a grid."},
    {.name = "normalization",
     .type = FIELD_ENUM,
     .offset = AT(normalization),
     .preset = "standard",
     .choices = normalizations,
     .unit = "",
     .help = "Scale of the power, as astropy defines it."},
    {.name = "fit_mean",
     .type = FIELD_BOOL,
     .offset = AT(fit_mean),
     .preset = "true",
     .unit = "",
     .help = "Fits a constant at each frequency (the floating mean)."},
    {.name = "center_data",
     .type = FIELD_BOOL,
     .offset = AT(center_data),
     .preset = "true",
     .unit = "",
     .help = "Subtracts the weighted mean of y first."},
    {.name = "nterms",
     .type = FIELD_INT,
     .offset = AT(nterms),
     .min = 1,
     .max = LOMBSCARGLE_TERMS_MAX,
     .preset = "1",
     .unit = "terms",
     .help = "Fourier terms of the model: a sinusoid and its harmonics."},
    {.name = "method",
     .type = FIELD_ENUM,
     .offset = AT(method),
     .preset = "auto",
     .choices = methods,
     .unit = "",
     .help = "How the sums are computed: every sample at every frequency, or by a non-uniform "
             "Fourier transform (a grid only, within 1e-9); auto takes the faster."},
    {.name = "precision",
     .type = FIELD_ENUM,
     .offset = AT(precision),
     .preset = "fp64",
     .choices = precisions,
     .unit = "",
     .help = "Floating-point type of the sums; phases are reduced in double in both."},
    {.name = "peaks",
     .type = FIELD_INT,
     .offset = AT(peaks),
     .min = 0,
     .max = LOMBSCARGLE_PEAKS_MAX,
     .preset = "10",
     .unit = "peaks",
     .help = "How many of the strongest peaks a JSON result lists."},
    {.name = "false_alarm",
     .type = FIELD_ENUM,
     .offset = AT(false_alarm),
     .preset = "none",
     .choices = alarms,
     .unit = "",
     .help = "Method of the peaks' false-alarm probability."},
    {.name = "bootstrap_samples",
     .type = FIELD_INT,
     .flags = FIELD_OPTIONAL,
     .offset = AT(bootstrap_samples),
     .min = 100,
     .max = 10000,
     .preset = "1000",
     .unit = "resampled series",
     .help = "How many times false_alarm=bootstrap draws the samples anew."},
    {.name = "seed",
     .type = FIELD_INT,
     .flags = FIELD_OPTIONAL,
     .offset = AT(seed),
     .min = 0,
     .max = 9007199254740991.0,
     .preset = "0",
     .unit = "",
     .help = "Start of the bootstrap's random numbers."},
    {.name = "fields",
     .type = FIELD_ENUM,
     .offset = AT(fields),
     .preset = "all",
     .choices = parts,
     .unit = "",
     .help = "peaks leaves the arrays out of a JSON result."},
    {.name = "layout",
     .type = FIELD_ENUM,
     .offset = AT(layout),
     .preset = "curve",
     .choices = layouts,
     .unit = "",
     .help = "Rows of an NPY body: t, y and dy of one series, or t and then one row for each "
             "series."},
    {.name = "plot_width",
     .type = FIELD_INT,
     .offset = AT(plot_width),
     .min = PLOT_SIDE_MIN,
     .max = PLOT_SIDE_MAX,
     .preset = "1200",
     .unit = "pixels",
     .help = "Width of a plot, PNG or SVG."},
    {.name = "plot_height",
     .type = FIELD_INT,
     .offset = AT(plot_height),
     .min = PLOT_SIDE_MIN,
     .max = PLOT_SIDE_MAX,
     .preset = "600",
     .unit = "pixels",
     .help = "Height of a plot, PNG or SVG."},
    RESULT_COMPRESSION(AT(compression)),
    {.name = NULL},
};

static const enum format formats[] = {FORMAT_JSON, FORMAT_NPY, FORMAT_CSV,
                                      FORMAT_PNG,  FORMAT_SVG, FORMAT_NONE};
static const enum format accepts[] = {FORMAT_CSV, FORMAT_NPY, FORMAT_NONE};

const double *lombscargle_array(const struct input *input, const uint8_t *data,
                                const struct array_ref *array) {
    uint64_t numbers, bytes, end, limit;
    if (data == NULL || !array->count || array->offset % sizeof(double) ||
        __builtin_add_overflow(array->count, array->rows, &numbers) ||
        __builtin_mul_overflow(numbers, sizeof(double), &bytes) ||
        __builtin_add_overflow(array->offset, bytes, &end) ||
        __builtin_add_overflow(input->offset, input->size, &limit) || end > limit) {
        return NULL;
    }
    return (const double *)(const void *)(data + array->offset);
}

double lombscargle_frequency(const struct periodogram *periodogram, uint64_t i) {
    if (periodogram->frequency != NULL) {
        return periodogram->frequency[i];
    }
    return periodogram->params->f0 + (double)i * periodogram->params->df;
}

#define CANARY_SAMPLES 64

/* A sinusoid of period 7 at uneven times. */
static size_t canary_input(uint8_t *data, size_t capacity, struct input *input, void *raw) {
    struct lombscargle_params *params = raw;
    const size_t bytes = CANARY_SAMPLES * sizeof(double);
    if (capacity < 2 * bytes) {
        return 0;
    }
    double *t = (double *)(void *)data, *y = t + CANARY_SAMPLES;
    for (int i = 0; i < CANARY_SAMPLES; i++) {
        t[i] = i + 0.3 * sin(2.0 * i);
        y[i] = sin(6.283185307179586 / 7 * t[i]) + 0.1 * cos(5.0 * i);
    }
    params->t = (struct array_ref){.count = CANARY_SAMPLES};
    params->y = (struct array_ref){.offset = bytes, .count = CANARY_SAMPLES};
    *input = (struct input){.kind = INPUT_SERIES, .size = 2 * bytes};
    return 2 * bytes;
}

const struct job_type lombscargle_job = {
    .name = "lombscargle",
    .title = "Lomb-Scargle periodogram of an unevenly sampled series",
    .input = INPUT_SERIES,
    .get = false,
    .fields = lombscargle_fields,
    .params_size = sizeof(struct lombscargle_params),
    .formats = formats,
    .accepts = accepts,
    .table = &lombscargle_table,
    .version = 4,
    .check = lombscargle_check,
    .describe_input = lombscargle_describe_input,
    .plan = lombscargle_plan,
    .variants = lombscargle_variants,
    .estimate = lombscargle_estimate,
    .run = lombscargle_run,
    .alike = lombscargle_alike,
    .run_group = lombscargle_run_group,
    .canary_query = "f0=0.01&df=0.002&nf=250&false_alarm=baluev",
    .canary_format = FORMAT_JSON,
    .canary_input = canary_input,
};
