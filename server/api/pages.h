/*
 * pages.h: the few pages for people: the index, and help on every kind of problem.
 *
 * Threads: the listener's.
 */
#ifndef KILN_SERVER_API_PAGES_H
#define KILN_SERVER_API_PAGES_H

#include "server/http/request/request.h"

enum MHD_Result page_index(struct http_request *request);
enum MHD_Result page_problems(struct http_request *request);
enum MHD_Result page_problem(struct http_request *request);

#endif
