/*
 * lib_daemon.h: a real kilnd for tests, and requests to it.
 *
 * $KILND is the program, $KILN_TEST_DEVICE the device (default cpu). Whatever cannot be done here
 * fails the running test.
 *
 * Threads: a daemon may be used by many; a session by one.
 */
#ifndef KILN_TESTS_API_LIB_DAEMON_H
#define KILN_TESTS_API_LIB_DAEMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

struct daemon {
    pid_t pid;
    int port;
    char folder[64]; /* temporary: port, log, and what tests put there */
    char url[64];    /* "http://127.0.0.1:1234" */
    char trust[96];  /* the file after --tls-cert, which makes it https; "" for none */
};

/** Starts kilnd on a free port, without a cache, and waits until it is ready. `flags` are more
    arguments, which win over those, ended by NULL; NULL for none. */
void daemon_start(struct daemon *daemon, const char *const *flags);
/** Starts kilnd with just these arguments (ended by NULL) and waits for nothing; its output is
   thrown away. */
void daemon_spawn(struct daemon *daemon, const char *const *arguments);
/** In a child that will be a daemon: it dies with the thread that made it, so that a test that
   fails half-way leaves none behind. */
void daemon_tie(void);
/** False once it has ended (daemon_wait tells how). */
bool daemon_alive(const struct daemon *daemon);
/** True if it listens, by this port file, and says that it is ready. */
bool daemon_ready(struct daemon *daemon, const char *port_file);
/** SIGTERM; waits for the end and returns the exit code (negative: the signal). */
int daemon_stop(struct daemon *daemon);
/** The same in two steps. */
void daemon_signal(const struct daemon *daemon, int number);
int daemon_wait(struct daemon *daemon);
/** Runs $KILND with these arguments (ended by NULL) to its end and returns the exit code; its
   output is thrown away. */
int daemon_run(const char *const *arguments);

/** A client with a connection that is kept alive. */
struct session;
struct session *session_create(const struct daemon *daemon);
void session_destroy(struct session *session);

/** A header ("Name: value") for all requests from now on; NULL for none. */
void session_header(struct session *session, const char *line);
/** Newest TLS that may be used (CURL_SSLVERSION_MAX_…); 0 for any. */
void session_tls_max(struct session *session, long version);

struct request {
    const char *method; /* NULL: GET, or POST with a body */
    const char *path;
    const char *type;       /* Content-Type of the body; NULL: none is sent */
    const void *body;       /* NULL: none */
    size_t size;            /* 0: strlen of the body */
    const char *headers[4]; /* "Name: value" */
    bool chunked;
};

struct answer {
    int status; /* 0: there was no answer */
    char *body; /* followed by a NUL */
    size_t size;
    char *headers; /* all lines */
    int connects;  /* new connections that it took */
};

/** Makes a request; the answer lives until answer_free. */
void session_ask(struct session *session, const struct request *request, struct answer *answer);
/** GET of a path. */
void session_get(struct session *session, const char *path, struct answer *answer);
void answer_free(struct answer *answer);
/** Copies a header's value; false if it is not there. */
bool answer_header(const struct answer *answer, const char *name, char *out, size_t size);
/** Fails unless the header is there and equal. */
void assert_header(const struct answer *answer, const char *name, const char *value);
/** Fails, showing the answer, unless the status is this. */
void assert_status(const struct answer *answer, int status);

/** A plain connection. */
int raw_open(const struct daemon *daemon);
/** Sends bytes, then reads until the other side closes, `seconds` pass, or the buffer is full;
    returns what was read, NUL-terminated. `*closed` tells that the other side closed. */
size_t raw_exchange(int fd, const void *bytes, size_t size, char *out, size_t capacity,
                    double seconds, bool *closed);

/** A value from /metrics, by the whole name with labels ("kiln_running_jobs"); -1 if not there. */
double metric_get(struct session *session, const char *name);
/** Process of the first ready device's worker, from /v1/devices; 0 if there is none. */
pid_t worker_pid(struct session *session);

/** Seconds on a steady clock. */
double now_s(void);
void sleep_s(double seconds);

#endif
