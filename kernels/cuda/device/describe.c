/*
 * describe.c: everything the driver tells about a device, as JSON.
 *
 * The attributes' names and numbers come from the toolkit's cuda.h when kiln is built
 * (attributes.cmake); a driver that is older than the header refuses the newest, which are left
 * out. Any thread.
 */
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/sensors.h"

#include <string.h>

static const struct {
    const char *name;
    int number;
} attributes[] = {
#define X(name, number) {#name, number},
#include "cuda_attributes.inc"
#undef X
};

static void write_string(struct text *json, const char *name, const char *value) {
    text_format(json, ",\"%s\":", name);
    text_json_string(json, value, strlen(value));
}

/* A member only where the value is known. */
static bool write_known(struct text *json, const char *before, const char *name, int value) {
    if (value != SENSORS_UNKNOWN) {
        text_format(json, "%s\"%s\":%d", before, name, value);
    }
    return value != SENSORS_UNKNOWN;
}

static void write_identity(struct device *device, const struct sensors *sensors,
                           struct text *json) {
    CUuuid uuid;
    int major = 0, minor = 0;
    driver.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                device->handle);
    driver.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                device->handle);
    text_string(json, "\"name\":");
    text_json_string(json, device->name, strlen(device->name));
    text_format(json, ",\"index\":%d,\"compute_capability\":\"%d.%d\",\"multiprocessors\":%d",
                device->index, major, minor, device->multiprocessors);
    text_format(json, ",\"driver_version\":\"%d.%d\",\"toolkit_version\":\"%d.%d\"",
                driver.version / 1000, driver.version % 1000 / 10, CUDA_VERSION / 1000,
                CUDA_VERSION % 1000 / 10);
    if (sensors->driver[0]) {
        write_string(json, "driver", sensors->driver);
    }
    write_string(json, "pci", device->pci);
    if (driver.cuDeviceGetUuid(&uuid, device->handle) == CUDA_SUCCESS) {
        text_string(json, ",\"uuid\":\"GPU-");
        for (int i = 0; i < 16; i++) {
            const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
            text_format(json, "%s%02x", dash, (unsigned char)uuid.bytes[i]);
        }
        text_string(json, "\"");
    }
}

static void write_state(const struct sensors *sensors, struct text *json) {
    text_string(json, ",\"clocks\":{");
    const char *comma = write_known(json, "", "sm", sensors->sm_clock) ? "," : "";
    comma = write_known(json, comma, "memory", sensors->memory_clock) ? "," : comma;
    comma = write_known(json, comma, "sm_max", sensors->max_sm_clock) ? "," : comma;
    write_known(json, comma, "memory_max", sensors->max_memory_clock);
    text_string(json, "}");
    write_known(json, ",", "temperature", sensors->temperature);
    if (sensors->power != SENSORS_UNKNOWN) {
        text_format(json, ",\"power\":%d.%03d", sensors->power / 1000, sensors->power % 1000);
    }
    if (sensors->power_limit != SENSORS_UNKNOWN) {
        text_format(json, ",\"power_limit\":%d.%03d", sensors->power_limit / 1000,
                    sensors->power_limit % 1000);
    }
    if (sensors->energy != SENSORS_UNKNOWN) {
        text_format(json, ",\"energy\":%lld.%03d", (long long)(sensors->energy / 1000),
                    (int)(sensors->energy % 1000));
    }
    write_known(json, ",", "utilization", sensors->load);
    write_known(json, ",", "memory_utilization", sensors->memory_load);
}

enum kiln_status device_describe(struct device *device, struct text *json) {
    struct sensors sensors;
    size_t free_bytes = 0, total_bytes = 0;
    sensors_read(device->pci, &sensors);
    CUresult result = driver.cuCtxSetCurrent(device->context);
    if (result == CUDA_SUCCESS) {
        result = driver.cuMemGetInfo(&free_bytes, &total_bytes);
    }
    if (result != CUDA_SUCCESS) {
        return driver_status(result);
    }
    text_string(json, "{");
    write_identity(device, &sensors, json);
    text_format(json, ",\"memory\":{\"total\":%zu,\"free\":%zu,\"pools\":%llu}", total_bytes,
                free_bytes, (unsigned long long)atomic_load(&device->used));
    write_state(&sensors, json);
    text_string(json, ",\"attributes\":{");
    const char *comma = "";
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        int value = 0;
        if (driver.cuDeviceGetAttribute(&value, (CUdevice_attribute)attributes[i].number,
                                        device->handle) == CUDA_SUCCESS) {
            text_format(json, "%s\"%s\":%d", comma, attributes[i].name, value);
            comma = ",";
        }
    }
    text_string(json, "}}");
    return KILN_OK;
}
