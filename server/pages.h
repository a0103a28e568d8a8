/*
 * pages.h: the few pages for people: the index, and help on every kind of problem.
 *
 * Threads: the listener's.
 */
#ifndef KILN_SERVER_PAGES_H
#define KILN_SERVER_PAGES_H

#include "server/exchange.h"

enum MHD_Result page_index(struct exchange *exchange);
enum MHD_Result page_problems(struct exchange *exchange);
enum MHD_Result page_problem(struct exchange *exchange);

#endif
