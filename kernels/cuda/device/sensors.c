/*
 * sensors.c: the few calls of libnvidia-ml.so.1 that kiln uses (sensors.h).
 *
 * Its header is no part of every toolkit, so the calls are declared here; the interface is stable
 * by NVIDIA's promise. Any thread; the library is loaded and started once.
 */
#include "kernels/cuda/device/sensors.h"
#include "kernels/cuda/device/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

enum { CLOCK_SM = 1, CLOCK_MEMORY = 2, TEMPERATURE_GPU = 0 };

struct utilization {
    unsigned gpu, memory;
};

#define MANAGEMENT_FUNCTIONS(X)                                                                    \
    X(start, "nvmlInit_v2", (void))                                                                \
    X(driver_version, "nvmlSystemGetDriverVersion", (char *text, unsigned size))                   \
    X(find, "nvmlDeviceGetHandleByPciBusId_v2", (const char *pci, void **device))                  \
    X(clock, "nvmlDeviceGetClockInfo", (void *device, int type, unsigned *mhz))                    \
    X(max_clock, "nvmlDeviceGetMaxClockInfo", (void *device, int type, unsigned *mhz))             \
    X(temperature, "nvmlDeviceGetTemperature", (void *device, int sensor, unsigned *celsius))      \
    X(power, "nvmlDeviceGetPowerUsage", (void *device, unsigned *milliwatts))                      \
    X(power_limit, "nvmlDeviceGetEnforcedPowerLimit", (void *device, unsigned *milliwatts))        \
    X(energy, "nvmlDeviceGetTotalEnergyConsumption",                                               \
      (void *device, unsigned long long *millijoules))                                             \
    X(load, "nvmlDeviceGetUtilizationRates", (void *device, struct utilization *load))

static struct {
#define X(member, symbol, parameters) int(*member) parameters;
    MANAGEMENT_FUNCTIONS(X)
#undef X
} management;

static bool available;
static pthread_once_t start_once = PTHREAD_ONCE_INIT;

static const char *const places[] = {"libnvidia-ml.so.1",
                                     "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
                                     "/usr/lib/wsl/lib/libnvidia-ml.so.1", NULL};

static void start(void) {
    char why[8];
    void *library = driver_open(places, why, sizeof why);
    if (library == NULL) {
        return;
    }
    void *address;
    bool complete = true;
#define X(member, symbol, parameters)                                                              \
    address = dlsym(library, symbol);                                                              \
    complete = complete && address;                                                                \
    memcpy(&management.member, &address, sizeof address);
    MANAGEMENT_FUNCTIONS(X)
#undef X
    available = complete && management.start() == 0;
}

static int reading(int result, unsigned value) {
    return result == 0 && value <= 0x7fffffffu ? (int)value : SENSORS_UNKNOWN;
}

static void read_clocks(void *device, struct sensors *sensors) {
    unsigned mhz = 0;
    int result = management.clock(device, CLOCK_SM, &mhz);
    sensors->sm_clock = reading(result, mhz);
    result = management.clock(device, CLOCK_MEMORY, &mhz);
    sensors->memory_clock = reading(result, mhz);
    result = management.max_clock(device, CLOCK_SM, &mhz);
    sensors->max_sm_clock = reading(result, mhz);
    result = management.max_clock(device, CLOCK_MEMORY, &mhz);
    sensors->max_memory_clock = reading(result, mhz);
}

void sensors_read(const char *pci, struct sensors *sensors) {
    pthread_once(&start_once, start);
    memset(sensors, 0xff, sizeof *sensors); /* SENSORS_UNKNOWN in every number */
    sensors->driver[0] = '\0';
    void *device = NULL;
    if (!available || management.find(pci, &device) != 0) {
        return;
    }
    if (management.driver_version(sensors->driver, sizeof sensors->driver) != 0) {
        sensors->driver[0] = '\0';
    }
    read_clocks(device, sensors);
    int result;
    unsigned value = 0;
    struct utilization load = {0, 0};
    result = management.temperature(device, TEMPERATURE_GPU, &value);
    sensors->temperature = reading(result, value);
    result = management.power(device, &value);
    sensors->power = reading(result, value);
    result = management.power_limit(device, &value);
    sensors->power_limit = reading(result, value);
    unsigned long long millijoules = 0;
    if (management.energy(device, &millijoules) == 0) {
        sensors->energy = (int64_t)(millijoules & INT64_MAX);
    }
    result = management.load(device, &load);
    sensors->load = reading(result, load.gpu);
    sensors->memory_load = reading(result, load.memory);
}
