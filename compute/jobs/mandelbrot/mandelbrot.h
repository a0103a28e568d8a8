/*
 * mandelbrot.h: the parameters of a Mandelbrot picture, shared by the job, its tiles and its run.
 *
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_JOBS_MANDELBROT_MANDELBROT_H
#define KILN_COMPUTE_JOBS_MANDELBROT_MANDELBROT_H

#include "compute/jobs/job.h"

struct mandelbrot_params {
    int64_t width, height; /* pixels */
    double xmin, xmax, ymin, ymax;
    int64_t max_iter;
    double escape_radius;
    double gamma, vmin, vmax; /* vmax NaN: max_iter */
    double azimuth, altitude, vert_exag;
    int64_t supersample;
    double extent; /* no field: largest coordinate of all tiles, 0 for a picture of its own */
    int32_t precision, field, colormap, compression;
    bool smooth, shade;
};

enum mandelbrot_precision {
    MANDELBROT_AUTO, /* until check has chosen */
    MANDELBROT_FP32,
    MANDELBROT_FP64
};

/** What an array holds. */
enum mandelbrot_field { MANDELBROT_SMOOTH, MANDELBROT_COUNT };

extern const struct field mandelbrot_fields[];

/** Distance of neighbouring samples' centres between two edges. */
static inline double mandelbrot_spacing(double low, double high, int64_t samples) {
    return (high - low) / (double)samples;
}

/** Distance of neighbouring pixels in units in the last place of the largest coordinate. */
double mandelbrot_ulps(const struct mandelbrot_params *params, int precision);

/** True if that is so little in the precision chosen that counts may not be those of exact
    arithmetic. */
bool mandelbrot_limited(const struct mandelbrot_params *params);

/** True if the centres of neighbouring samples differ in double precision. */
bool mandelbrot_resolvable(const struct mandelbrot_params *params);

/** Samples along a pixel's side in this format. */
int64_t mandelbrot_oversampling(const struct mandelbrot_params *params, enum format format);

extern const struct work_variant mandelbrot_variants[];
void mandelbrot_estimate(const void *params, const struct input *input, const uint8_t *data,
                         enum format format, bool closely, struct work *work);

enum kiln_status mandelbrot_run(struct task *task);
enum kiln_status mandelbrot_run_group(struct task *tasks, size_t count);

/** /v1/mandelbrot/tiles/{z}/{x}/{name}; ended by pattern NULL. */
extern const struct job_path mandelbrot_paths[];

#endif
