/*
 * options.h: everything that can be set, as one table.
 *
 * A row is a flag (`--max-body 64M`), an environment variable (`KILN_MAX_BODY`) and a line of the
 * configuration file (`max-body = 64M`). A flag wins over the environment, the environment over
 * the file, the file over the default. `--help` is printed from the same table.
 *
 * Threads: read once at start, constant afterwards.
 */
#ifndef KILN_SERVER_CORE_OPTIONS_H
#define KILN_SERVER_CORE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OPTION_TEXT_MAX 256
#define OPTION_LIST_MAX 1024
#define OPTION_WHY_MAX  512

struct options {
    char listen[OPTION_TEXT_MAX];    /* "127.0.0.1:8080", "[::1]:0", ":8080" (all addresses) */
    char port_file[OPTION_TEXT_MAX]; /* "" for none */
    char device[OPTION_TEXT_MAX];
    char state_dir[OPTION_TEXT_MAX]; /* "" for none */
    char config[OPTION_TEXT_MAX];    /* "" for none */
    char keys[OPTION_TEXT_MAX];      /* "" for none: everybody may do everything */
    char tls_cert[OPTION_TEXT_MAX], tls_key[OPTION_TEXT_MAX]; /* "" for none */
    char cors_origin[OPTION_LIST_MAX];                        /* "" for none */
    bool log_requests;                                        /* a line for every request */
    bool allow_open;             /* other machines may ask without keys */
    char hosts[OPTION_TEXT_MAX]; /* names that a daemon without keys answers to (hosts.h) */
    uint64_t slots, threads;     /* 0: the default of the device */
    uint64_t gather;             /* likewise */
    uint64_t arena;              /* bytes */
    uint64_t cache_bytes;        /* 0: every request runs its own job */
    uint64_t device_memory;      /* bytes; 0: all there is */
    uint64_t max_body;           /* bytes */
    uint64_t max_pixels, max_iterations, max_samples, max_frequencies;
    uint64_t queue;       /* jobs */
    uint64_t store_bytes; /* 0: as the disk allows */
    uint64_t store_jobs;
    uint64_t connections, connections_per_address;
    uint64_t http_threads;
    uint64_t wrong_keys;                          /* of an address in a minute; 0: no limit */
    double deadline, drain_timeout, idle_timeout; /* seconds */
    double transfer_timeout;
    int32_t log_format; /* 0: text, 1: JSON */
    int32_t log_level;  /* enum log_level */
    int32_t sandbox;    /* 0: on, 1: off, 2: report */
    char unknown[256];  /* variables of the environment that are no options, with commas */
};

/** Reads flags (argv[first] on), environment and file. False with a sentence in `why` for anything
    unknown or out of range; `help` is set where --help was asked for. */
bool options_read(struct options *options, int argc, char **argv, int first, bool *help, char *why,
                  size_t why_size);

/** The table as text for a terminal. */
void options_help(FILE *out);

#endif
