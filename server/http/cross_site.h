/*
 * cross_site.h: requests that a web page of another site made a browser send (CSRF).
 *
 * A daemon without keys does what it is asked, and any page can make its visitors' browsers ask:
 * form posts, pictures and "no-cors" requests need nobody's leave (CORS only keeps the page from
 * reading the answer). So without keys such requests are refused with 403, but for plain reads of
 * addresses that are open to all (health, pages, the API's description) and run no job. What
 * counts, in this order:
 *
 *   Sec-Fetch-Site   same-origin, none (typed, bookmarked): ours. Browsers say it, pages cannot.
 *   Origin           the host of this request itself: ours; named by --cors-origin: allowed.
 *   Referer          the same, for plain reads only (pictures in an allowed page have no Origin).
 *   Sec-Fetch-Site   same-site: another port or subdomain of ours; plain reads only.
 *   none of them     no browser of these years, or no request of a page: ours.
 *
 * With keys nothing is refused here: a page that does not know a key can do nothing.
 *
 * Threads: reentrant.
 */
#ifndef KILN_SERVER_HTTP_CROSS_SITE_H
#define KILN_SERVER_HTTP_CROSS_SITE_H

#include "compute/core/status.h"

struct http_request;
struct service;

/** Once the route is known: KILN_OK, or the fault noted. */
enum kiln_status cross_site_check(struct http_request *request);

/** The value of Cross-Origin-Resource-Policy: which pages may show an answer. */
const char *cross_site_policy(const struct service *service);

#endif
