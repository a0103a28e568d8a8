/*
 * lombscargle.h: what the files of the periodogram job share.
 *
 * Frequencies are cycles per unit of time, the times' unit is the client's. After `check` the grid
 * is f0, df, nf, or the array `frequency`; all other ways to ask for frequencies are resolved to
 * these, so that equal grids have equal canonical parameters.
 */
#ifndef KILN_COMPUTE_JOBS_LOMBSCARGLE_LOMBSCARGLE_H
#define KILN_COMPUTE_JOBS_LOMBSCARGLE_LOMBSCARGLE_H

#include "compute/jobs/job.h"
#include "kernels/lombscargle.h"

#define LOMBSCARGLE_SAMPLES_MIN 3
#define LOMBSCARGLE_PEAKS_MAX   1000
#define LOMBSCARGLE_SERIES_MAX  100000
/* Samples of all resampled curves of a request: their memory. */
#define LOMBSCARGLE_RESAMPLED_MAX (INT64_C(1) << 26)
#define LOMBSCARGLE_DENSITY       5.0 /* default of samples_per_peak and nyquist_factor, as astropy's */

enum lombscargle_precision { PRECISION_FP64, PRECISION_FP32 };
enum lombscargle_alarm { ALARM_NONE, ALARM_NAIVE, ALARM_DAVIES, ALARM_BALUEV, ALARM_BOOTSTRAP };
enum lombscargle_fields { FIELDS_ALL, FIELDS_PEAKS };

struct lombscargle_params {
    struct array_ref t, y, dy, frequency;
    double minimum_frequency, maximum_frequency; /* NaN: automatic, or resolved */
    double samples_per_peak, nyquist_factor;     /* NaN: resolved */
    double f0, df;
    int64_t nf;
    int64_t nterms, peaks;
    int64_t bootstrap_samples, seed; /* FIELD_ABSENT where no bootstrap is asked for */
    int64_t plot_width, plot_height; /* pixels */
    int32_t normalization;           /* enum lombscargle_normalization */
    int32_t method, precision, false_alarm, fields, layout, compression, missing;
    bool fit_mean, center_data;
    /* Of a table: the columns that were used, each by its name or its number from 1, dy "none"
       where it was not taken from the table. Else "". */
    char t_column[COLUMN_TEXT_MAX], y_column[COLUMN_TEXT_MAX], dy_column[COLUMN_TEXT_MAX];
};

/** One local maximum. */
struct peak {
    double frequency, power; /* of the parabola's vertex */
    uint64_t index;          /* of the highest point, in the order asked for */
};

/** The light curves of a request, where they lie in the input block. */
struct lombscargle_rows {
    const double *t, *y, *dy; /* dy NULL: none */
    const double *lengths;    /* of the curves; NULL: each has `samples` */
    uint64_t count, samples;
    uint64_t total;           /* samples of all curves */
    bool batch;               /* asked for as an array of arrays */
    bool shared_t, shared_dy; /* one row for all curves */
};

/** One of them. */
struct lombscargle_row {
    const double *t, *y, *dy;
    uint64_t n;
};

/** One periodogram on its way through run. Arrays are host scratch of the stream unless told. */
struct periodogram {
    const struct lombscargle_params *params;
    uint64_t n, nf;
    double *t, *y, *w;       /* n: near to 0; scaled and centred; weights of sum 1 */
    const double *frequency; /* nf, in the input block, or NULL for the grid */
    double *power;           /* nf, in the order asked for; in the result block for NPY */
    double baseline;         /* max t - min t */
    double spread;           /* weighted variance of t */
    double y_mean, yy;       /* of y as it lies here */
    double psd_factor;       /* standard power to astropy's psd */
    const char *note;        /* why there is no power, or NULL */
    int32_t method;          /* that the kernel used, told of the first curve; -1: it did not run */
    const double *maxima;    /* bootstrap: highest power of each resampled curve, ascending */
    uint64_t maxima_count;

    /* The same by ascending frequency, for peaks and plot. */
    const double *ascending_x; /* NULL for the grid */
    const double *ascending_power;
    const uint64_t *order; /* place in the given order; NULL: they agree */

    struct peak *peaks; /* by falling power; one even where none was asked for */
    uint64_t peak_count;
};

extern const struct field lombscargle_fields[];
extern const struct table_shape lombscargle_table;

/** Writes `,"columns":{…},"weighted":…,"dropped":…` of a JSON result. */
void lombscargle_columns_write(struct text *text, const struct lombscargle_params *params);
/** The same as a header of other results. */
void lombscargle_describe_input(const void *params, struct text *text);

/** Doubles of an array in the input block; NULL for none or where it does not lie in the block. */
const double *lombscargle_array(const struct input *input, const uint8_t *data,
                                const struct array_ref *array);

/** Finds the curves. Where shapes contradict each other or lie outside of the block the answer is
    false, with complaints if `complaints` is not NULL. */
bool lombscargle_rows_find(const struct lombscargle_params *params, const struct input *input,
                           const uint8_t *data, struct lombscargle_rows *rows,
                           struct complaints *complaints);

/** Samples of curve i. */
uint64_t lombscargle_row_samples(const struct lombscargle_rows *rows, uint64_t i);

/** Curve i, which begins with sample `at` of all of them. */
struct lombscargle_row lombscargle_row_at(const struct lombscargle_rows *rows, uint64_t i,
                                          uint64_t at);

/** What a pass over the times gives the grid; n 0 where they are unusable. */
struct lombscargle_times {
    uint64_t n;
    double baseline;
};

/** Resolves the three ways to ask for frequencies. Complains of contradictions, empty ranges and
    grids above `limits`. `list` is the explicit array or NULL. */
void lombscargle_grid_resolve(struct lombscargle_params *params,
                              const struct lombscargle_times *times, const double *list,
                              const struct limits *limits, struct complaints *complaints);

/** Frequency number i in the order asked for. */
double lombscargle_frequency(const struct periodogram *periodogram, uint64_t i);

void lombscargle_check(void *params, const struct input *input, const uint8_t *data,
                       enum format format, const struct limits *limits,
                       struct complaints *complaints);
enum kiln_status lombscargle_plan(const void *params, const struct input *input, enum format format,
                                  struct plan *plan);
extern const struct work_variant lombscargle_variants[];
void lombscargle_estimate(const void *params, const struct input *input, const uint8_t *data,
                          enum format format, bool closely, struct work *work);
enum kiln_status lombscargle_run(struct task *task);
bool lombscargle_alike(const struct job *one, const struct job *other);
enum kiln_status lombscargle_run_group(struct task *tasks, size_t count);

/** True where a JSON result needs nothing but peaks that the device can find. */
bool lombscargle_peaks_only(const struct lombscargle_params *params);

/** How many peaks are sought: one even where none was asked for. */
uint64_t lombscargle_peaks_wanted(const struct lombscargle_params *params);

/** How many of them are asked of the device. */
uint64_t lombscargle_peaks_sought(const struct lombscargle_params *params);

/** Fills the ascending view and the strongest peaks. KILN_NO_MEMORY. */
enum kiln_status lombscargle_peaks_find(struct task *task, struct periodogram *periodogram);

/** The same from what a device has found, `count` places. */
enum kiln_status lombscargle_peaks_take(struct task *task, struct periodogram *periodogram,
                                        const struct lombscargle_peak *found, uint64_t count);

/** The highest powers of resampled curves, for each of `count` periodograms whose times lie at
    element curves[i].t of the device's `args->t`. The device is idle before and after. */
enum kiln_status lombscargle_bootstrap(struct task *task, struct periodogram *periodograms,
                                       const struct lombscargle_curve *curves, uint64_t count,
                                       const struct lombscargle_args *args);

/** The false-alarm probability of a peak's power, from 0 to 1, as astropy 5 computes it; NaN where
    the method is none or the power is NaN. */
double lombscargle_alarm(const struct periodogram *periodogram, double power);

/** Upper bound of an encoded result, 0 on overflow. */
uint64_t lombscargle_result_bound(const struct lombscargle_params *params, uint64_t nf,
                                  enum format format);
/** Encodes `count` periodograms (one, where the request is for one) into the task's result block
   and sets its size. */
enum kiln_status lombscargle_result_write(struct task *task, const struct periodogram *periodograms,
                                          uint64_t count);

#endif
