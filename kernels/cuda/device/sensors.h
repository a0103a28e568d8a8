/*
 * sensors.h: clocks, temperature, power and load of a device, from the driver's management library.
 *
 * libnvidia-ml.so.1 is optional: where it, or one reading, is missing, the reading says so.
 *
 * Threads: any.
 */
#ifndef KILN_KERNELS_CUDA_DEVICE_SENSORS_H
#define KILN_KERNELS_CUDA_DEVICE_SENSORS_H

#include <stdint.h>

#define SENSORS_UNKNOWN (-1)

/** What could be read; SENSORS_UNKNOWN where not. */
struct sensors {
    int sm_clock, memory_clock;         /* MHz, now */
    int max_sm_clock, max_memory_clock; /* MHz */
    int temperature;                    /* °C */
    int power, power_limit;             /* mW */
    int load, memory_load;              /* percent of the last sample period */
    int64_t energy;                     /* mJ since the driver was loaded */
    char driver[32];                    /* driver's own version, "580.159.04", or "" */
};

/** Reads the device at this PCI address ("0000:1b:00.0"). Never fails; may answer nothing. */
void sensors_read(const char *pci, struct sensors *sensors);

#endif
