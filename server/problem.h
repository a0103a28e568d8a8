/*
 * problem.h: error answers as RFC 9457 problem documents.
 *
 * Threads: the listener's.
 */
#ifndef KILN_SERVER_PROBLEM_H
#define KILN_SERVER_PROBLEM_H

#include "server/exchange.h"

#define PROBLEM_MEDIA "application/problem+json"

/** Answers with the exchange's noted fault, its detail and its complaints. */
enum MHD_Result problem_send(struct exchange *exchange);
/** Notes a fault and answers with it (printf format). */
enum MHD_Result problem_reply(struct exchange *exchange, enum kiln_status status,
                              const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
