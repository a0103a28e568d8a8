/*
 * chirps.h: `spectral` by chirp convolutions (chirp.h), for arrays whose matrix products take long.
 *
 * Thread: the stream's.
 */
#ifndef KILN_KERNELS_CUDA_SPECTRAL_CHIRPS_H
#define KILN_KERNELS_CUDA_SPECTRAL_CHIRPS_H

#include "kernels/cuda/device/stream.h"
#include "kernels/spectral.h"

/** True where the device can run these convolutions and they are likely to end first. */
bool chirps_better(const struct stream *stream, const struct spectral_args *args);
/** Runs them; errors as of stream functions. */
enum kiln_status chirps_run(struct stream *stream, const struct spectral_args *args);

#endif
