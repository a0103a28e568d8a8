/*
 * info.h: what the daemon says about itself: health, readiness, metrics, devices, kinds of job.
 *
 * Threads: the listener's. None of these suspends.
 */
#ifndef KILN_SERVER_INFO_H
#define KILN_SERVER_INFO_H

#include "server/exchange.h"

enum MHD_Result info_health(struct exchange *exchange);
enum MHD_Result info_ready(struct exchange *exchange);
enum MHD_Result info_metrics(struct exchange *exchange);
enum MHD_Result info_openapi_yaml(struct exchange *exchange);
enum MHD_Result info_openapi_json(struct exchange *exchange);
enum MHD_Result info_devices(struct exchange *exchange);
enum MHD_Result info_types(struct exchange *exchange);

#endif
