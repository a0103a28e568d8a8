/*
 * status.c: the table of statuses.
 *
 * Symbols, codes, slugs and titles come from the list in status.h; the help paragraphs, which the
 * daemon serves as the pages behind a problem document's `type`, stand here. Constant; any thread.
 */
#include "compute/core/status.h"

#include <stddef.h>
#include <string.h>

static const char help_OK[] = "The request was carried out and the body is its result.";

static const char help_MALFORMED[] =
    "The request, its query or its body breaks the syntax of its own format: JSON that does not "
    "parse, an image or array whose bytes end early or contradict their header, a CSV row that "
    "is not made of numbers, or ambiguous HTTP. The detail says what was found and where. "
    "Sending the same bytes again gives the same answer; correct them first.";

static const char help_UNAUTHORIZED[] =
    "This daemon asks for a key (--keys), and the request had none, had one that the daemon does "
    "not know, or named it otherwise than in one header: Authorization: Bearer and the key (curl: "
    "-H \"Authorization: Bearer $KEY\"). Keys come from whoever runs the daemon.";

static const char help_FORBIDDEN[] =
    "The daemon knows the key, but the key lacks the scope that this address and method need: read "
    "for what the daemon tells about itself, compute for jobs, admin for cancelling the jobs of "
    "other keys. Sending the request again does not help; another key may.";

static const char help_CROSS_SITE[] =
    "A web page of another site made a browser send this request. Without keys, whoever is asked "
    "by "
    "a browser cannot tell its user's wish from a stranger's page, so only the daemon's own pages "
    "may ask, and those of the origins that --cors-origin names (https://a.example; * for all). "
    "Open the address in the browser's own address line, ask from a program, start the daemon "
    "with --cors-origin, or with keys. Behind a proxy that changes the Host header, pass it on "
    "as it came.";

static const char help_NOT_FOUND[] =
    "No route has this address, or the job, tile or page that it names does not exist (a job that "
    "has ended is not listed any more). GET / lists what this daemon serves, and "
    "GET /openapi.yaml describes every address.";

static const char help_METHOD[] =
    "The address exists but does not take this method. The Allow header of the answer lists the "
    "methods that it takes.";

static const char help_NOT_ACCEPTABLE[] =
    "The result cannot be given in any representation that the Accept header or the format "
    "parameter asks for. The detail lists the ones there are. Leave Accept out to get the "
    "default, or choose one by name with ?format=, which wins over the header.";

static const char help_REVOKED[] =
    "While this request's job was waiting or running, another request cancelled it with DELETE "
    "/v1/jobs/{id}. It was dropped from the queue, or stopped, and its result was thrown away; "
    "so it is for all requests that waited for the same job. "
    "Nothing is wrong with the request: send it again if the result is still wanted.";

static const char help_NOT_FINISHED[] =
    "The job waits or runs. GET /v1/jobs/{id} tells how far it is, and with Prefer: wait=N answers "
    "when it has ended; its result is at /v1/jobs/{id}/result from then on.";

static const char help_JOB_FAILED[] =
    "The job has ended, but not well, so that there is no result. The member error is the problem "
    "that a request which waits would have been answered with; where there is none the job was "
    "cancelled, or waited for longer than its Kiln-Expires allowed.";

static const char help_RANGE[] =
    "The header Range asks for bytes behind the end of the result. Content-Range tells how many "
    "bytes there are; without Range the answer is the whole result.";

static const char help_GONE[] =
    "There was such a job. Its result is gone: it was kept for as long as was asked for, was "
    "forgotten "
    "with DELETE, or made room for others. Send the request again if the result is still wanted.";

static const char help_PRECONDITION[] =
    "If-None-Match names the result that this request would have, by its ETag, or is *: the client "
    "has it already, so no job was run. GET and HEAD answer 304 then; for other methods "
    "RFC 9110 (13.1.2) asks for this status. Leave If-None-Match out to have the result again.";

static const char help_TOO_LARGE[] =
    "The body, or something that it decodes to, is larger than a limit of this daemon. The "
    "detail names the limit. Send less, or start the daemon with a higher one (--max-body, "
    "--max-pixels, --max-samples).";

static const char help_URI_TOO_LONG[] =
    "The address with its query is longer than this daemon accepts. Send the parameters as a "
    "JSON body with POST instead.";

static const char help_MEDIA_TYPE[] =
    "The Content-Type of the body is not one that this address reads. The detail lists those "
    "that it reads. Name the type of the bytes that you send (curl: -H 'Content-Type: "
    "image/png').";

static const char help_MISDIRECTED[] =
    "The Host header names something that this daemon was not told about. A daemon without keys "
    "answers to addresses, to localhost and to the names in --hosts, because a web page can point "
    "a name of its own at this machine and let a browser ask in its place. Ask by address or as "
    "localhost, or start the daemon with the name in --hosts, or with keys.";

static const char help_INVALID[] =
    "The request was well formed, but some fields are missing, unknown, of the wrong type or "
    "out of range. The member errors lists all of them with a reason each. "
    "GET /v1/jobs/types gives name, type, unit, range and default of every field.";

static const char help_UNSUPPORTED[] =
    "Each field is valid, but this combination of method, precision, input and format is not "
    "available here. The detail says which part to change.";

static const char help_INCAPABLE[] =
    "The device that was asked for is not one that this daemon uses, or it lacks a kernel that "
    "this job needs, and asking again does not change that: the detail says which, and which "
    "devices could run the job. GET /v1/devices lists the devices with their kernels. Name "
    "another device or none, choose another method or format, or start the daemon with the device "
    "in --device.";

static const char help_MISMATCH[] =
    "The same Idempotency-Key came earlier with other parameters, another input or another format. "
    "A key names one request; take a new one for a new request.";

static const char help_LIMITED[] =
    "The key has asked more often than its rate allows, or has as many requests in hand as it may "
    "have. Nothing was started. The headers RateLimit-Policy and RateLimit tell the limits and "
    "what is left; try again after the number of seconds in Retry-After. Without these two "
    "headers: "
    "your address has sent too many keys that the daemon does not know. A right key is taken at "
    "any time.";

static const char help_QUOTA[] =
    "The key has as many unfinished jobs, or as many bytes of inputs and results, as one key may "
    "have. "
    "Nothing was accepted. Wait for jobs to finish, or forget results with DELETE /v1/jobs/{id}.";

static const char help_HEAD_TOO_LARGE[] =
    "The request line and the headers together, with 64 bytes more for each header, have more than "
    "24 KiB. Send fewer or shorter ones, and parameters as a JSON body with POST.";

static const char help_CANCELLED[] =
    "The connection was closed by the client before the result was "
    "there. The job was dropped from the queue, or stopped if it was running, and its result "
    "was thrown away.";

static const char help_INTERNAL[] =
    "The daemon met a condition that should not be possible. The request is not to blame; the "
    "daemon's log has more. Trying again may help; a report of how it came about certainly "
    "does.";

static const char help_DEVICE_FAULT[] =
    "The device failed, or the process that owns it died, while this job was running; the job "
    "was run a second time, alone, and it happened again. The device has been restarted and "
    "other jobs go on. If the same request fails again, the cause is most likely in this job's "
    "kernel or in the device, and the daemon's log and GET /v1/devices tell more.";

static const char help_BUSY[] =
    "As many jobs are waiting as this daemon lets wait (--queue). Nothing was started. Try "
    "again after the number of seconds in the Retry-After header.";

static const char help_NO_DEVICE[] =
    "No device that could run this job is available now: the one that was asked for is broken, or "
    "all of them are, or the daemon has none. GET /v1/devices gives the state of each and the "
    "reason. Broken devices are tried again from time to time.";

static const char help_NO_MEMORY[] =
    "The daemon's arena for inputs and results, this client's share of it, or the device's memory "
    "is taken now by other jobs and by answers that have not been read yet. Nothing is wrong with "
    "the request: try again after the number of seconds in the Retry-After header, or start the "
    "daemon with a larger --arena.";

static const char help_DRAINING[] =
    "The daemon was told to stop: it finishes the jobs that it has and takes no new ones. Try "
    "again in a moment if a supervisor restarts it, or another instance.";

static const char help_STORE[] =
    "The process that keeps jobs does not answer, or is being started again. It is not known "
    "whether "
    "this request was accepted: send it again with the same Idempotency-Key, after the number of "
    "seconds in Retry-After. Synchronous requests go on meanwhile.";

static const char help_DEADLINE[] =
    "The job did not finish within the time that this daemon gives a job (--deadline), waiting "
    "included, and was stopped. Ask for less work (fewer pixels, iterations or frequencies), or "
    "try again when fewer jobs are waiting.";

static const char help_JOB_TOO_LARGE[] =
    "The job's input, result or working memory can never fit into this daemon's arena or the "
    "device's memory, however idle they are. Ask for a smaller result, another device, or start "
    "the daemon with a larger --arena or --device-memory.";

static const char help_STORE_FULL[] = "There is no room on the disk, or within --store-bytes, for "
                                      "this job's input and result, and no "
                                      "result that could go. Jobs that were accepted finish, and "
                                      "reading goes on. Try again later, or "
                                      "forget results with DELETE /v1/jobs/{id}.";

/* A status without a paragraph does not compile. */
#define X(symbol_, http_, slug_, title_)                                                           \
    [KILN_##symbol_] = {.symbol = #symbol_,                                                        \
                        .http = http_,                                                             \
                        .slug = slug_,                                                             \
                        .title = title_,                                                           \
                        .help = help_##symbol_},
static const struct status_row rows[KILN_STATUS_COUNT] = {KILN_STATUSES(X)};
#undef X

const struct status_row *status_row(enum kiln_status status) {
    /* Through unsigned: the value may have come from another process. */
    if ((unsigned)status >= KILN_STATUS_COUNT) {
        status = KILN_INTERNAL;
    }
    return &rows[status];
}

const struct status_row *status_by_slug(const char *slug) {
    for (int i = 0; i < KILN_STATUS_COUNT; i++) {
        if (strcmp(rows[i].slug, slug) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}
