/*
 * pages.c: HTML without scripts, printed on every request (they are small).
 */
#include "server/api/pages.h"

#include "server/http/problem.h"
#include "server/http/reply.h"

#include <string.h>

#define HTML_MEDIA "text/html; charset=utf-8"

static void html_print(struct text *text, const char *string) {
    static const struct {
        char c;
        const char *entity;
    } entities[] = {{'<', "&lt;"}, {'>', "&gt;"}, {'&', "&amp;"}, {'"', "&quot;"}};
    for (; *string != '\0'; string++) {
        const char *entity = NULL;
        for (size_t i = 0; i < sizeof entities / sizeof entities[0]; i++) {
            entity = entities[i].c == *string ? entities[i].entity : entity;
        }
        if (entity != NULL) {
            text_string(text, entity);
        } else {
            text_bytes(text, string, 1);
        }
    }
}

static void page_open(struct text *text, const char *title) {
    text_string(text, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
                      "<meta name=\"viewport\" content=\"width=device-width\"><title>");
    html_print(text, title);
    text_string(text,
                "</title>\n<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;"
                "margin:2rem auto;padding:0 1rem;color:#222;background:#fff}pre{background:#f3f1ee;"
                "padding:.75rem;overflow:auto}img{max-width:100%;height:auto}a{color:#a03c00}"
                "</style></head><body>\n<h1>");
    html_print(text, title);
    text_string(text, "</h1>\n");
}

static void page_close(struct text *text) {
    text_string(text, "</body></html>\n");
}

static void jobs_print(struct text *text) {
    text_string(text, "<h2>Jobs</h2>\n<ul>\n");
    for (size_t i = 0; job_types[i] != NULL; i++) {
        const struct job_type *type = job_types[i];
        text_format(text,
                    type->get ? "<li><a href=\"/v1/%s\">/v1/%s</a>: " : "<li><code>/v1/%s</code>: ",
                    type->name, type->name);
        html_print(text, type->title);
        text_string(text, "</li>\n");
    }
    text_string(text, "</ul>\n");
}

/* `curl` lines with the address that this request came by. */
static void lines_print(struct http_request *request, struct text *text) {
    const char *host = request_header(request, MHD_HTTP_HEADER_HOST);
    bool secure = request->service->options->tls_cert[0] != '\0';
    static const char *const lines[] = {
        "/v1/mandelbrot?colormap=viridis&shade=true' -o mandelbrot.png",
        "/v1/mandelbrot' -H 'Content-Type: application/json' -d "
        "'{\"width\":64,\"format\":\"json\"}'",
        "/v1/laplacian?format=png' --data-binary @in.png -o laplacian.png",
        "/v1/jacobi?offset=32768' --data-binary @laplacian.png -o out.png",
        "/v1/lombscargle?minimum_frequency=0.02&maximum_frequency=0.2&format=png' "
        "--data-binary @sunspots.csv -o periodogram.png",
        "/v1/devices'",
    };
    text_string(text, "<h2>Try</h2>\n<pre>");
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        text_string(text, secure ? "curl 'https://" : "curl 'http://");
        html_print(text, host != NULL ? host : "127.0.0.1:8080");
        html_print(text, lines[i]);
        text_string(text, "\n");
    }
    text_string(text, "</pre>\n");
}

static void index_print(struct http_request *request, struct text *text) {
    page_open(text, "kiln");
    text_string(text, "<p>Compute devices, kept hot behind HTTP.</p>\n"
                      "<p><img src=\"/v1/mandelbrot?width=736&amp;height=400&amp;ymin=-0.815"
                      "&amp;ymax=0.815&amp;supersample=2\" width=\"736\" height=\"400\" "
                      "alt=\"the Mandelbrot set, computed just now\"></p>\n");
    jobs_print(text);
    lines_print(request, text);
    text_string(text,
                "<h2>About this daemon</h2>\n<ul>\n"
                "<li><a href=\"/openapi.yaml\">/openapi.yaml</a>, <a href=\"/openapi.json\">"
                "/openapi.json</a>: every address, parameter and answer</li>\n"
                "<li><a href=\"/v1/jobs/types\">/v1/jobs/types</a>: the jobs' parameters</li>\n"
                "<li><a href=\"/v1/jobs\">/v1/jobs</a>: jobs that wait or run, and how far they "
                "are</li>\n"
                "<li><a href=\"/v1/devices\">/v1/devices</a>: the devices</li>\n"
                "<li><a href=\"/readyz\">/readyz</a>, <a href=\"/healthz\">/healthz</a>, "
                "<a href=\"/metrics\">/metrics</a>: for machines that watch it</li>\n"
                "<li><a href=\"/problems\">/problems</a>: what errors mean</li>\n</ul>\n");
    page_close(text);
}

enum MHD_Result page_index(struct http_request *request) {
    return reply_print(request, MHD_HTTP_OK, HTML_MEDIA, index_print);
}

static void problems_print(struct http_request *request, struct text *text) {
    (void)request;
    page_open(text, "Problems");
    text_string(text, "<ul>\n");
    for (int status = KILN_OK + 1; status < KILN_STATUS_COUNT; status++) {
        const struct status_row *row = status_row((enum kiln_status)status);
        text_format(text, "<li>%d <a href=\"/problems/%s\">", row->http, row->slug);
        html_print(text, row->title);
        text_string(text, "</a></li>\n");
    }
    text_string(text, "</ul>\n");
    page_close(text);
}

enum MHD_Result page_problems(struct http_request *request) {
    return reply_print(request, MHD_HTTP_OK, HTML_MEDIA, problems_print);
}

static void problem_print(struct http_request *request, struct text *text) {
    const struct status_row *row = status_by_slug(request->match.captures[0]);
    page_open(text, row->title);
    text_format(text, "<p>HTTP status %d.</p>\n<p>", row->http);
    html_print(text, row->help);
    text_string(text, "</p>\n<p><a href=\"/problems\">All problems</a></p>\n");
    page_close(text);
}

enum MHD_Result page_problem(struct http_request *request) {
    const struct status_row *row = status_by_slug(request->match.captures[0]);
    if (row == NULL || row == status_row(KILN_OK)) {
        return problem_reply(request, KILN_NOT_FOUND, "There is no problem of this name.");
    }
    return reply_print(request, MHD_HTTP_OK, HTML_MEDIA, problem_print);
}
