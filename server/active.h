/*
 * active.h: the jobs that wait or run: seeing how far they are, and cancelling one.
 *
 * Threads: the listener's. None of these suspends.
 */
#ifndef KILN_SERVER_ACTIVE_H
#define KILN_SERVER_ACTIVE_H

#include "server/exchange.h"

/** GET /v1/jobs */
enum MHD_Result active_list(struct exchange *exchange);
/** GET and DELETE /v1/jobs/{id} */
enum MHD_Result active_job(struct exchange *exchange);

#endif
