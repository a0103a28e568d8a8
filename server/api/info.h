/*
 * info.h: what the daemon says about itself: health, readiness, metrics, devices, kinds of job.
 *
 * Threads: the listener's. None of these suspends.
 */
#ifndef KILN_SERVER_API_INFO_H
#define KILN_SERVER_API_INFO_H

#include "server/http/request/request.h"

enum MHD_Result info_health(struct http_request *request);
enum MHD_Result info_ready(struct http_request *request);
enum MHD_Result info_metrics(struct http_request *request);
enum MHD_Result info_openapi_yaml(struct http_request *request);
enum MHD_Result info_openapi_json(struct http_request *request);
enum MHD_Result info_devices(struct http_request *request);
enum MHD_Result info_types(struct http_request *request);

#endif
