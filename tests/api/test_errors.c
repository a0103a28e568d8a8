/*
 * test_errors.c: bad input. Each gets one problem document with the right status, costs no device
 * time, and leaves the daemon serving.
 */
#include "tests/api/lib_daemon.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JSON      "application/json"
#define FORM      "application/x-www-form-urlencoded"
#define ANY       "application/octet-stream"
#define MULTIPART "multipart/form-data; boundary=b"
/* Signature and header of a picture of 60000 × 60000 grey pixels. */
#define PNG_60000                                                                                  \
    "\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\352\140\000\000\352" \
    "\140\010\000\000\000\000\245\271\052\236\000\000\000\001\111\104\101\124\170\166\346\204\346"
#define PART(name) "--b\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"

static struct daemon daemon_;
static struct session *session;

static int setup(void **state) {
    static const char *const flags[] = {
        "--max-body", "200000",        "--max-pixels", "1000000",           "--max-iterations",
        "100000",     "--max-samples", "1000",         "--max-frequencies", "5000",
        NULL};
    (void)state;
    daemon_start(&daemon_, flags);
    session = session_create(&daemon_);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    session_destroy(session);
    return daemon_stop(&daemon_);
}

/* A request that is refused. `says` must occur in the document; for 422 it is usually the name of
   the field. */
struct refused {
    int status;
    const char *method, *path, *type, *body, *says;
    size_t size; /* 0: strlen */
};

static const struct refused refusals[] = {
    /* addresses and methods */
    {404, "GET", "/no/such/thing", NULL, NULL, "/no/such/thing", 0},
    {404, "GET", "/v1/mandelbrot/", NULL, NULL, "not-found", 0},
    {404, "GET", "/v1//mandelbrot", NULL, NULL, "not-found", 0},
    {404, "GET", "/v1/jobs/../mandelbrot", NULL, NULL, "not-found", 0},
    {404, "GET", "/v1%2Fmandelbrot", NULL, NULL, "not-found", 0},
    {404, "GET", "/problems/no-such-problem", NULL, NULL, "not-found", 0},
    {404, "GET", "/a/b/c/d/e/f/g/h/i/j/k/l/m/n/o", NULL, NULL, "not-found", 0},
    {404, "GET", "/v1/mandelbrot/tiles/1/2/0.png", NULL, NULL, "not-found", 0},
    {404, "GET", "/v1/mandelbrot/tiles/1/0/0.jpg", NULL, NULL, "not-found", 0},
    {400, "GET", "/v1/mandelbrot%00", NULL, NULL, "malformed", 0},
    {400, "GET", "/v1/mandelbrot?width=%zz", NULL, NULL, "query", 0},
    {400, "GET", "/v1/mandelbrot?width=6%00", NULL, NULL, "query", 0},
    {400, "GET", "/v1/%", NULL, NULL, "path", 0},
    {405, "DELETE", "/v1/mandelbrot", NULL, NULL, "DELETE", 0},
    {405, "GET", "/v1/jacobi", NULL, NULL, "GET", 0},
    {405, "POST", "/healthz", JSON, "{}", "POST", 0},
    {405, "BREW", "/v1/devices", NULL, NULL, "BREW", 0},
    /* fields */
    {422, "GET", "/v1/mandelbrot?widht=3", NULL, NULL, "widht", 0},
    {422, "GET", "/v1/mandelbrot?width=", NULL, NULL, "width", 0},
    {422, "GET", "/v1/mandelbrot?width", NULL, NULL, "width", 0},
    {422, "GET", "/v1/mandelbrot?width=0", NULL, NULL, "width", 0},
    {422, "GET", "/v1/mandelbrot?width=-5", NULL, NULL, "width", 0},
    {422, "GET", "/v1/mandelbrot?width=1e2", NULL, NULL, "width", 0},
    {422, "GET", "/v1/mandelbrot?width=65536&height=65536", NULL, NULL, "max-pixels", 0},
    {422, "GET", "/v1/mandelbrot?width=65536&height=65536", NULL, NULL, "needs a larger --arena",
     0},
    {422, "GET", "/v1/mandelbrot?width=4294967297&height=4294967297", NULL, NULL, "width", 0},
    {422, "GET", "/v1/mandelbrot?width=99999999999999999999", NULL, NULL, "width", 0},
    {422, "GET", "/v1/mandelbrot?width=900&height=900&supersample=8", NULL, NULL, "max-pixels", 0},
    {422, "GET", "/v1/mandelbrot?max_iter=100001", NULL, NULL, "max-iterations", 0},
    {422, "GET", "/v1/mandelbrot?width=3&width=3", NULL, NULL, "is duplicated", 0},
    {422, "GET", "/v1/mandelbrot?xmin=nan", NULL, NULL, "xmin", 0},
    {422, "GET", "/v1/mandelbrot?xmin=inf", NULL, NULL, "xmin", 0},
    {422, "GET", "/v1/mandelbrot?xmin=1e999", NULL, NULL, "xmin", 0},
    {422, "GET", "/v1/mandelbrot?xmin=2&xmax=1", NULL, NULL, "xm", 0},
    {422, "GET", "/v1/mandelbrot?colormap=virids", NULL, NULL, "viridis", 0},
    {422, "GET", "/v1/mandelbrot?device=cuda:99", NULL, NULL, "device", 0},
    {422, "GET", "/v1/mandelbrot?device=", NULL, NULL, "device", 0},
    {422, "GET", "/v1/mandelbrot?format=png&format=png", NULL, NULL, "format", 0},
    {422, "GET", "/v1/mandelbrot/tiles/3/1/1.png?width=4", NULL, NULL, "width", 0},
    {422, "GET", "/v1/mandelbrot/tiles/60/1/1.png", NULL, NULL, "z", 0},
    {406, "GET", "/v1/mandelbrot?width=9&height=9&format=csv", NULL, NULL, "image/png", 0},
    {406, "GET", "/v1/mandelbrot?width=9&height=9&format=no", NULL, NULL, "application/x-npy", 0},
    /* JSON */
    {400, NULL, "/v1/mandelbrot", JSON, "{\"width\":", "line 1", 0},
    {400, NULL, "/v1/mandelbrot", JSON, "{\"width\":64}x", "line 1", 0},
    {400, NULL, "/v1/mandelbrot", JSON, "{'width':64}", "line 1", 0},
    {400, NULL, "/v1/mandelbrot", JSON, "{\"width\":NaN}", "line 1", 0},
    {400, NULL, "/v1/mandelbrot", JSON, "{\"width\":01}", "line 1", 0},
    {400, NULL, "/v1/mandelbrot", JSON, "{\"width\":1e999}", "malformed", 0},
    {400, NULL, "/v1/mandelbrot", JSON, "{\"width\":64,\"width\":65}", "line 1", 0},
    {400, NULL, "/v1/mandelbrot", JSON, "\xff\xfe{}", "malformed", 0},
    {400, NULL, "/v1/mandelbrot", JSON, "{\"width\":64}\0{}", "malformed", 15},
    {400, NULL, "/v1/mandelbrot", JSON, "[64]", "object", 0},
    {400, NULL, "/v1/mandelbrot", JSON, " ", "malformed", 0},
    {422, NULL, "/v1/mandelbrot", JSON, "{\"width\":\"wide\"}", "width", 0},
    {422, NULL, "/v1/mandelbrot", JSON, "{\"width\":64.5}", "width", 0},
    {422, NULL, "/v1/mandelbrot", JSON, "{\"width\":[64]}", "width", 0},
    {422, NULL, "/v1/mandelbrot", JSON, "{\"width\":true}", "width", 0},
    {422, NULL, "/v1/mandelbrot", JSON, "{\"widt\\u0000h\":1}", "field", 0},
    {422, NULL, "/v1/mandelbrot", JSON, "{\"width\\u0000\":1}", "field", 0},
    {422, NULL, "/v1/mandelbrot", JSON, "{\"Width\":1}", "Width", 0},
    {422, NULL, "/v1/mandelbrot", JSON, "{\"xmin\":\"-2.0\\u0000\"}", "xmin", 0},
    {422, NULL, "/v1/mandelbrot", JSON, "{\"format\":7}", "format", 0},
    {422, NULL, "/v1/mandelbrot?width=3", JSON, "{\"width\":3}", "width", 0},
    /* media types */
    {415, NULL, "/v1/mandelbrot", "application/xml", "<a/>", "application/json", 0},
    {415, NULL, "/v1/mandelbrot", NULL, "width=3", "application/json", 0},
    {415, NULL, "/v1/mandelbrot", "image/png", "x", "application/json", 0},
    {415, NULL, "/v1/laplacian", "text/csv", "1,2", "image/png", 0},
    {415, NULL, "/v1/laplacian", ANY, "GIF89a...", "PNG", 0},
    {415, NULL, "/v1/lombscargle", "image/png", "x", "text/csv", 0},
    {415, NULL, "/v1/lombscargle", "application/fits", "x", "a FITS file", 0},
    {415, NULL, "/v1/lombscargle", "text/csv", "SIMPLE  =                    T", "a FITS file", 0},
    {415, NULL, "/v1/lombscargle", ANY, "<?xml version=\"1.0\"?><VOTABLE>", "a VOTable", 0},
    {415, NULL, "/v1/lombscargle", FORM, "\x1f\x8b\b\0\0\0", "gzip", 6},
    {415, NULL, "/v1/lombscargle", "application/x-npy", "PK\3\4..........t.npy", "npz", 0},
    /* images */
    {422, NULL, "/v1/laplacian", JSON, "{}", "image", 0},
    {422, NULL, "/v1/laplacian", FORM, "scale=1", "image", 0},
    {422, NULL, "/v1/laplacian", JSON, "{\"image\":\"***\"}", "base64", 0},
    {422, NULL, "/v1/laplacian", JSON, "{\"image\":5}", "base64", 0},
    {400, NULL, "/v1/laplacian", ANY, "P5\n0 5\n255\n", "malformed", 0},
    {400, NULL, "/v1/laplacian", ANY, "P5\n-3 5\n255\n", "malformed", 0},
    {400, NULL, "/v1/laplacian", ANY, "P5\n3", "malformed", 0},
    {400, NULL, "/v1/laplacian", ANY, "P5\n60000 60000\n255\n...", "malformed", 0},
    {400, NULL, "/v1/laplacian", ANY, PNG_60000, "too short", 46},
    {400, NULL, "/v1/laplacian", "image/png", "P5\n1 1\n255\n.", "malformed", 0},
    {400, NULL, "/v1/laplacian", ANY, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\0\0\0\0\0", "malformed",
     24},
    {400, NULL, "/v1/laplacian", "application/x-npy", "\x93NUMPY\x01\0\xff\xff{", "malformed", 11},
    {422, NULL, "/v1/laplacian?scale=0", ANY, "P5\n1 1\n255\n.", "scale", 0},
    {422, NULL, "/v1/jacobi?iterations=100001", ANY, "P5\n1 1\n255\n.", "iterations", 0},
    {422, NULL, "/v1/jacobi?iterations=-1", ANY, "P5\n1 1\n255\n.", "iterations", 0},
    {422, NULL, "/v1/jacobi?tolerance=nan", ANY, "P5\n1 1\n255\n.", "tolerance", 0},
    /* light curves */
    {422, NULL, "/v1/lombscargle", JSON, "{}", "is missing", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,2,3,4]}", "\"y\"", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,2,3,4],\"y\":[1,2,3]}", "\"field\"", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,2],\"y\":[1,2]}", "\"t\"", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,\"2\",3],\"y\":[1,2,3]}", "element 1", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,[2],3],\"y\":[1,2,3]}", "element 1", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,null,3],\"y\":[1,2,3]}", "element 1", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":5,\"y\":[1,2,3]}", "array", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,2,3],\"y\":[[1,2,3],5]}",
     "element 1 is not an array", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,2,3],\"y\":[[1,2,3],[1,2,\"x\"]]}",
     "element 2 of series 1", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,2,3],\"y\":[[[1,2,3]]]}",
     "element 0 of series 0", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,2,3],\"y\":[[1,2,3],[]]}", "series 1", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,2,3],\"y\":[[],[]]}", "\"y\"", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[[1,2,3]],\"y\":[1,2,3]}", "array of arrays", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,2,3],\"y\":[1,2,4],\"frequency\":[[1,2]]}",
     "element 0", 0},
    {422, NULL, "/v1/lombscargle?format=png", JSON, "{\"t\":[1,2,3],\"y\":[[1,2,4]]}",
     "png draws one series", 0},
    {422, NULL, "/v1/lombscargle?format=svg", JSON, "{\"t\":[1,2,3],\"y\":[[1,2,4]]}",
     "svg draws one series", 0},
    {422, NULL, "/v1/lombscargle?layout=batch", "text/csv", "1,2\n2,3\n3,4\n4,5\n", "layout", 0},
    {422, NULL, "/v1/lombscargle?f0=1&df=1&nf=5001", JSON, "{\"t\":[1,2,3],\"y\":[1,2,4]}",
     "frequencies", 0},
    {422, NULL, "/v1/lombscargle?minimum_frequency=2&maximum_frequency=1", JSON,
     "{\"t\":[1,2,3],\"y\":[1,2,4]}", "frequency", 0},
    {422, NULL, "/v1/lombscargle", "text/csv", "1,2\n2,nan\n3,4\n4,5\n", "\"y\"", 0},
    {422, NULL, "/v1/lombscargle", "text/csv", "1,2\ninf,4\n3,4\n4,5\n", "\"t\"", 0},
    {422, NULL, "/v1/lombscargle", "text/csv", "1,2,1\n2,1,0\n3,4,1\n4,5,1\n", "\"dy\"", 0},
    {400, NULL, "/v1/lombscargle", "text/csv", "1,2\n2,x\n3,4\n", "line 2", 0},
    {400, NULL, "/v1/lombscargle", "text/plain", "1 2\n2 x\n3 4\n", "line 2", 0},
    {400, NULL, "/v1/lombscargle", "text/tab-separated-values", "t\ty\n1\tx\n", "line 2", 0},
    {400, NULL, "/v1/lombscargle", "text/csv", "t,y\n1,\"2\n3,4\n", "line 2: the quotes", 0},
    {400, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,NaN]}", "null stands for", 0},
    {422, NULL, "/v1/lombscargle", "text/csv", "time,temperature\n1,2\n2,3\n3,5\n",
     "'time', 'temperature'", 0},
    {422, NULL, "/v1/lombscargle", "text/csv", "time,flux,flux_total_err\n1,2,3\n", "dy_column=3",
     0},
    {422, NULL, "/v1/lombscargle?y_column=mag", "text/csv", "time,flux\n1,2\n2,3\n3,4\n",
     "y_column", 0},
    {422, NULL, "/v1/lombscargle?y_column=a%0Ab", "text/csv", "time,flux\n1,2\n", "control", 0},
    {422, NULL, "/v1/lombscargle?y_column=", "text/csv", "time,flux\n1,2\n", "y_column", 0},
    {422, NULL, "/v1/lombscargle?y_column=y", JSON, "{\"t\":[1,2,3],\"y\":[1,2,4]}", "y_column", 0},
    {422, NULL, "/v1/lombscargle?dy=2&dy_column=dy", "text/csv", "t,y,dy\n1,2,1\n2,3,1\n3,5,1\n",
     "beside dy", 0},
    {422, NULL, "/v1/lombscargle", "text/csv", "t,mag\n1,2\n2,\n3,4\n4,5\n",
     "line 3: column 2 (mag) is empty; missing=drop", 0},
    {422, NULL, "/v1/lombscargle?missing=drop", "text/csv", "t,y\n1,2\n2,\n3,4\n",
     "once missing ones are left out", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,2,3],\"y\":[[1,2,3],[1,null,3]]}",
     "element 1 of series 1", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,2,3],\"y\":[1,2,4],\"dy\":0}", "\"dy\"", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,2,3],\"y\":[1,2,4],\"dy\":\"1\"}",
     "or one number", 0},
    {422, NULL, "/v1/lombscargle", JSON, "{\"t\":[1,2,3],\"y\":[1,2,4],\"frequency\":[1,null]}",
     "element 1", 0},
    {422, NULL, "/v1/lombscargle", FORM, "t=1,2,3&y=1,,3", "element 1", 0},
    {400, NULL, "/v1/lombscargle", "application/x-npy", "\x93NUMPY\x01\0", "malformed", 8},
    {422, NULL, "/v1/lombscargle", FORM, "t=1,2,x&y=1,2,3", "element 2", 0},
    {422, NULL, "/v1/lombscargle", FORM, "t=1,2,&y=1,2,3", "element 2", 0},
    {422, NULL, "/v1/lombscargle", FORM, "t=1,2,3&t=1,2,3&y=1,2,3", "is duplicated", 0},
    {422, NULL, "/v1/lombscargle?nterms=7", JSON, "{\"t\":[1,2,3],\"y\":[1,2,4]}", "nterms", 0},
    /* multipart */
    {400, NULL, "/v1/mandelbrot", "multipart/form-data", PART("width") "5\r\n--b--", "boundary", 0},
    {400, NULL, "/v1/mandelbrot", MULTIPART, "no boundary at all", "boundary", 0},
    {400, NULL, "/v1/mandelbrot", MULTIPART, PART("width") "5", "does not end", 0},
    {400, NULL, "/v1/mandelbrot", MULTIPART, "--b\r\nX: y\r\n\r\n5\r\n--b--", "no name", 0},
    {400, NULL, "/v1/mandelbrot", MULTIPART, "--b\r\nbroken\r\n\r\n5\r\n--b--", "headers", 0},
    {422, NULL, "/v1/mandelbrot", MULTIPART, PART("width") "5\0\r\n--b--", "NUL", 62},
    {422, NULL, "/v1/mandelbrot", MULTIPART, PART("wid") "5\r\n--b--", "wid", 0},
    {422, NULL, "/v1/mandelbrot", MULTIPART, PART("width") "\r\n--b--", "width", 0},
};

/* The document is complete, and its type leads to a page. */
static void assert_problem(const struct answer *answer, int status, const char *says) {
    struct answer page;
    assert_status(answer, status);
    assert_header(answer, "Content-Type", "application/problem+json");
    cJSON *document = cJSON_ParseWithLength(answer->body, answer->size);
    assert_non_null(document);
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(document, "type"));
    assert_non_null(type);
    assert_non_null(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(document, "title")));
    assert_int_equal(cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(document, "status")),
                     status);
    if (strstr(answer->body, says) == NULL) {
        fail_msg("\"%s\" is not in %s", says, answer->body);
    }
    session_get(session, type, &page);
    assert_status(&page, 200);
    assert_header(&page, "Content-Type", "text/html; charset=utf-8");
    answer_free(&page);
    cJSON_Delete(document);
}

static double submitted(void) {
    return metric_get(session, "kiln_jobs_submitted_total");
}

static void assert_serving(void) {
    struct answer answer;
    session_get(session, "/v1/mandelbrot?width=16&height=16&format=npy", &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
}

static void refused_without_device(void **state) {
    (void)state;
    double before = submitted();
    int wrong = 0;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refused *row = &refusals[i];
        const struct request request = {.method = row->method,
                                        .path = row->path,
                                        .type = row->type,
                                        .body = row->body,
                                        .size = row->size};
        struct answer answer;
        session_ask(session, &request, &answer);
        if (answer.status != row->status || strstr(answer.body, row->says) == NULL) {
            print_message("case %zu: %s %s %.60s\n  %d instead of %d (%s): %s\n", i,
                          row->method != NULL ? row->method : "POST", row->path,
                          row->body != NULL ? row->body : "", answer.status, row->status, row->says,
                          answer.body);
            wrong++;
            answer_free(&answer);
            continue;
        }
        assert_problem(&answer, row->status, row->says);
        answer_free(&answer);
    }
    assert_int_equal(wrong, 0);
    assert_true(submitted() == before);
    assert_serving();
}

static void allow_header(void **state) {
    (void)state;
    static const struct {
        const char *path, *allow;
    } rows[] = {{"/v1/mandelbrot", "GET, HEAD, POST, OPTIONS"},
                {"/v1/jacobi", "POST, OPTIONS"},
                {"/v1/jobs", "GET, HEAD, OPTIONS"},
                {"/v1/jobs/types", "GET, HEAD, OPTIONS"},
                {"/healthz", "GET, HEAD, OPTIONS"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct request request = {.method = "DELETE", .path = rows[i].path};
        struct answer answer;
        session_ask(session, &request, &answer);
        assert_status(&answer, 405);
        assert_header(&answer, "Allow", rows[i].allow);
        answer_free(&answer);
    }
}

/* All bad fields of a request in one answer. */
static void all_at_once(void **state) {
    (void)state;
    const struct request request = {
        .path = "/v1/mandelbrot?height=0&nonsense=1&device=tpu:0",
        .type = JSON,
        .body =
            "{\"width\":-1,\"colormap\":\"none\",\"gamma\":0,\"shade\":\"maybe\",\"other\":{}}"};
    static const char *const names[] = {"height",   "nonsense", "device", "width",
                                        "colormap", "gamma",    "shade",  "other"};
    struct answer answer;
    session_ask(session, &request, &answer);
    assert_problem(&answer, 422, "errors");
    cJSON *document = cJSON_Parse(answer.body);
    const cJSON *errors = cJSON_GetObjectItemCaseSensitive(document, "errors");
    assert_int_equal(cJSON_GetArraySize(errors), sizeof names / sizeof names[0]);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const cJSON *row;
        bool found = false;
        cJSON_ArrayForEach(row, errors) {
            const char *field =
                cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "field"));
            const char *reason =
                cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "reason"));
            found = found || (strcmp(field, names[i]) == 0 && reason[0] != '\0');
        }
        assert_true(found);
    }
    cJSON_Delete(document);
    answer_free(&answer);
}

/* What a kind and this daemon's limits have against a request comes with the bad fields, and
   nothing is made up of those. */
static void limits_at_once(void **state) {
    static const struct {
        const char *path, *type, *body, *fields;
    } rows[] = {
        {"/v1/mandelbrot?max_iter=100001&colormap=none&xmin=left&xmax=-3", JSON, "{\"width\":0}",
         "colormap xmin width max_iter "},
        {"/v1/mandelbrot?max_iter=100001&device=tpu:0&format=csv&width=9", JSON, "{}",
         "device max_iter format "},
        {"/v1/jacobi?iterations=100001&bits=7", "image/x-portable-graymap", "P5 1 1 255\na",
         "bits iterations "},
        {"/v1/jacobi?iterations=100001&bits=7", JSON, "{\"image\":\"?\"}",
         "bits image iterations "},
        {"/v1/lombscargle?normalization=none&f0=1&df=1&nf=5001", JSON,
         "{\"t\":[1,2,3,4],\"y\":[1,2,3]}", "normalization nf "},
        {"/v1/lombscargle?maximum_frequency=-1&samples_per_peak=1e6", JSON,
         "{\"t\":[1,1,1],\"y\":\"?\"}", "maximum_frequency y "},
        {"/v1/lombscargle?nterms=0&false_alarm=naive&fit_mean=false&center_data=false", "text/csv",
         "t,y\n1,2\n2,3\n", "nterms false_alarm "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct request request = {
            .path = rows[i].path, .type = rows[i].type, .body = rows[i].body};
        struct answer answer;
        char fields[256] = "";
        const cJSON *row;
        session_ask(session, &request, &answer);
        assert_problem(&answer, 422, "errors");
        cJSON *document = cJSON_Parse(answer.body);
        cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(document, "errors")) {
            strcat(fields, cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "field")));
            strcat(fields, " ");
        }
        assert_string_equal(fields, rows[i].fields);
        cJSON_Delete(document);
        answer_free(&answer);
    }
}

/* More bad fields than are listed: bounded answer, counted rest; names that need escaping. */
static void many_bad_fields(void **state) {
    (void)state;
    char path[4000] = "/v1/mandelbrot?\"quote\\=1";
    for (int i = 0; i < 100; i++) {
        size_t used = strlen(path);
        snprintf(path + used, sizeof path - used, "&%%01%%22x%d=1", i);
    }
    struct answer answer;
    session_get(session, path, &answer);
    assert_problem(&answer, 400, "control character");
    answer_free(&answer);
    snprintf(path, sizeof path, "/v1/mandelbrot?\"quote\\=1");
    for (int i = 0; i < 100; i++) {
        size_t used = strlen(path);
        snprintf(path + used, sizeof path - used, "&%%22%%3Cx%d%%c3%%28=1", i);
    }
    session_get(session, path, &answer);
    assert_problem(&answer, 422, "\"more_errors\":69");
    answer_free(&answer);
}

/* Images whose header is fine and whose data is not: found by the worker, 400, device unharmed. */
static void broken_image_data(void **state) {
    (void)state;
    static const struct {
        const char *body;
        size_t size;
    } images[] = {
        {"P2\n3 3\n255\n1 2 3 4", 0},
        {"P2\n2 2\n255\n1 2 3 256", 0},
    };
    for (size_t i = 0; i < sizeof images / sizeof images[0]; i++) {
        const struct request request = {
            .path = "/v1/laplacian", .type = ANY, .body = images[i].body, .size = images[i].size};
        struct answer answer;
        session_ask(session, &request, &answer);
        assert_problem(&answer, 400, "malformed");
        answer_free(&answer);
    }
    assert_serving();
}

/* A PNG that was cut after its header, and one with a wrong checksum. */
static void broken_png(void **state) {
    (void)state;
    struct answer png, answer;
    session_get(session, "/v1/mandelbrot?width=64&height=64", &png);
    assert_status(&png, 200);
    struct request request = {
        .path = "/v1/laplacian", .type = "image/png", .body = png.body, .size = png.size / 2};
    session_ask(session, &request, &answer);
    assert_problem(&answer, 400, "malformed");
    answer_free(&answer);
    png.body[png.size / 2] = (char)~png.body[png.size / 2];
    request.size = png.size;
    session_ask(session, &request, &answer);
    assert_problem(&answer, 400, "malformed");
    answer_free(&answer);
    answer_free(&png);
    assert_serving();
}

static void too_large(void **state) {
    (void)state;
    char *body = calloc(1, 300000);
    struct request request = {.path = "/v1/laplacian", .type = ANY, .body = body, .size = 300000};
    struct answer answer;
    /* refused from its Content-Length, though all of it was sent */
    session_ask(session, &request, &answer);
    assert_problem(&answer, 413, "200000");
    assert_header(&answer, "Connection", "close");
    answer_free(&answer);
    /* without a Content-Length it is refused when the limit is passed */
    request.chunked = true;
    session_ask(session, &request, &answer);
    assert_problem(&answer, 413, "200000");
    answer_free(&answer);
    free(body);
    assert_serving();
}

/* Headers only: the answer comes before a body of 10 GB would, and no "100 Continue". */
static void refused_early(void **state) {
    (void)state;
    static const char head[] = "POST /v1/laplacian HTTP/1.1\r\nHost: x\r\nContent-Type: " ANY
                               "\r\nContent-Length: 10000000000\r\nExpect: 100-continue\r\n\r\n";
    char out[4096];
    bool closed;
    int fd = raw_open(&daemon_);
    raw_exchange(fd, head, sizeof head - 1, out, sizeof out, 10, &closed);
    assert_true(closed);
    assert_int_equal(strncmp(out, "HTTP/1.1 413 ", 13), 0);
    assert_null(strstr(out, "HTTP/1.1 100"));
    close(fd);
}

/* A target of more than 8 KiB. */
static void long_target(void **state) {
    (void)state;
    char request[10000] = "GET /v1/mandelbrot?width=1";
    char out[4096];
    bool closed;
    memset(request + strlen(request), '0', 9000);
    snprintf(request + strlen(request), 100, " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    int fd = raw_open(&daemon_);
    raw_exchange(fd, request, strlen(request), out, sizeof out, 10, &closed);
    assert_int_equal(strncmp(out, "HTTP/1.1 414 ", 13), 0);
    assert_non_null(strstr(out, "application/problem+json"));
    close(fd);
}

#define POST_HEAD "POST /v1/mandelbrot HTTP/1.1\r\nHost: x\r\nContent-Type: " FORM "\r\n"
#define GET_HEAD  "GET /healthz HTTP/1.1\r\n"

/* Framing that two readers could understand differently. After each the connection is closed, so
   that what follows is not taken for a request. */
static const struct {
    const char *name, *bytes;
} framings[] = {
    {"two lengths", POST_HEAD "Content-Length: 3\r\nContent-Length: 3\r\n\r\na=1"},
    {"two different lengths", POST_HEAD "Content-Length: 3\r\nContent-Length: 4\r\n\r\na=1"},
    {"length with transfer coding",
     POST_HEAD "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    {"transfer coding with length",
     POST_HEAD "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"},
    {"unknown coding", POST_HEAD "Transfer-Encoding: gzip\r\n\r\nabc"},
    {"unknown and chunked", POST_HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
    {"chunked twice",
     POST_HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    {"blank in a name", POST_HEAD "Content-Length : 3\r\n\r\na=1"},
    {"signed length", POST_HEAD "Content-Length: +3\r\n\r\na=1"},
    {"negative length", POST_HEAD "Content-Length: -3\r\n\r\na=1"},
    {"hexadecimal length", POST_HEAD "Content-Length: 0x3\r\n\r\na=1"},
    {"list of lengths", POST_HEAD "Content-Length: 3, 3\r\n\r\na=1"},
    {"huge length", POST_HEAD "Content-Length: 99999999999999999999999\r\n\r\na=1"},
    {"no host", GET_HEAD "\r\n"},
    {"two hosts", GET_HEAD "Host: a\r\nHost: b\r\n\r\n"},
    {"bad host", GET_HEAD "Host: a/b\r\n\r\n"},
    {"control character in a value", GET_HEAD "Host: x\r\nX-A: a\x01z\r\n\r\n"},
    {"control character in a name", GET_HEAD "Host: x\r\nX\x01: a\r\n\r\n"},
    {"body of a GET", GET_HEAD "Host: x\r\nContent-Length: 5\r\n\r\nhello"},
    {"chunked GET", GET_HEAD "Host: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    {"chunked in HTTP/1.0", "POST /v1/mandelbrot HTTP/1.0\r\nHost: x\r\n"
                            "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
    {"a fragment", "GET /healthz#x HTTP/1.1\r\nHost: x\r\n\r\n"},
    {"a target without slash", "GET healthz HTTP/1.1\r\nHost: x\r\n\r\n"},
};

static void framing_refused(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof framings / sizeof framings[0]; i++) {
        /* a smuggled request behind it must not be answered */
        char bytes[1024], out[8192];
        bool closed;
        int fd = raw_open(&daemon_);
        int size = snprintf(bytes, sizeof bytes, "%sGET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
                            framings[i].bytes);
        double began = now_s();
        raw_exchange(fd, bytes, (size_t)size, out, sizeof out, 10, &closed);
        close(fd);
        bool host_only = strstr(framings[i].name, "fragment") != NULL ||
                         strstr(framings[i].name, "slash") != NULL;
        /* a length that no 64 bits hold is refused by the library itself, with 413 */
        const char *code = strcmp(framings[i].name, "huge length") == 0 ? " 413 " : " 400 ";
        if (strncmp(out, "HTTP/1.", 7) != 0 || strncmp(out + 8, code, 5) != 0 ||
            (!host_only && (!closed || strstr(out, "kiln_requests_total") != NULL))) {
            fail_msg("%s: closed %d after %.1f s:\n%.500s", framings[i].name, closed,
                     now_s() - began, out);
        }
    }
    assert_serving();
}

/* Noise, cut-off requests, and clients that leave at every point of a request. */
static void noise(void **state) {
    (void)state;
    static const char whole[] = "POST /v1/mandelbrot?format=npy HTTP/1.1\r\nHost: x\r\n"
                                "Content-Type: " JSON "\r\nContent-Length: 25\r\n\r\n"
                                "{\"width\":40,\"height\":40 } ";
    char bytes[512], out[4096];
    bool closed;
    for (size_t cut = 0; cut < sizeof whole - 1; cut += 7) {
        int fd = raw_open(&daemon_);
        raw_exchange(fd, whole, cut, out, sizeof out, 0, &closed);
        close(fd);
    }
    uint32_t random = 12345;
    for (int i = 0; i < 300; i++) {
        memcpy(bytes, whole, sizeof whole);
        for (int k = 0; k < 1 + i % 8; k++) {
            random = random * 1664525 + 1013904223;
            bytes[(random >> 8) % (sizeof whole - 1)] = (char)(random >> 24);
        }
        int fd = raw_open(&daemon_);
        raw_exchange(fd, bytes, sizeof whole - 1, out, sizeof out, i % 10 == 0 ? 0.05 : 0, &closed);
        assert_int_not_equal(strncmp(out, "HTTP/1.1 5", 10), 0);
        close(fd);
    }
    assert_serving();
}

/* Nothing of all this holds memory of the arena. */
static void nothing_held(void **state) {
    (void)state;
    double end = now_s() + 20, used;
    do {
        used = metric_get(session, "kiln_arena_used_bytes");
        sleep_s(0.02);
    } while (used > 1 << 20 && now_s() < end);
    if (used > 1 << 20) {
        fail_msg("%.0f bytes of the arena are still taken", used);
    }
    struct answer answer;
    session_get(session, "/metrics", &answer);
    assert_null(strstr(answer.body, "status=\"500\""));
    answer_free(&answer);
    assert_true(metric_get(session, "kiln_running_jobs") <= 1);
    do {
        used = metric_get(session, "kiln_active_requests");
        sleep_s(0.02);
    } while (used != 1 && now_s() < end);
    if (used != 1) {
        fail_msg("%.0f requests are active; one, this question, should be", used);
    }
}

/* A job that the device's memory can never hold is refused before it starts. */
static void device_memory(void **state) {
    (void)state;
    static const char *const flags[] = {"--device-memory", "256M", "--max-pixels", "400000000",
                                        NULL};
    struct daemon other;
    struct answer answer;
    daemon_start(&other, flags);
    struct session *own = session_create(&other);
    session_get(own, "/v1/mandelbrot?width=9000&height=9000&format=npy&max_iter=1", &answer);
    assert_status(&answer, 507);
    assert_header(&answer, "Content-Type", "application/problem+json");
    assert_non_null(strstr(answer.body, "/problems/job-too-large"));
    assert_non_null(strstr(answer.body, "device memory"));
    answer_free(&answer);
    assert_true(metric_get(own, "kiln_jobs_submitted_total") == 0);
    session_get(own, "/v1/mandelbrot?width=90&height=90&format=npy&max_iter=1", &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    session_destroy(own);
    assert_int_equal(daemon_stop(&other), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_without_device),
        cmocka_unit_test(allow_header),
        cmocka_unit_test(all_at_once),
        cmocka_unit_test(limits_at_once),
        cmocka_unit_test(many_bad_fields),
        cmocka_unit_test(broken_image_data),
        cmocka_unit_test(broken_png),
        cmocka_unit_test(too_large),
        cmocka_unit_test(refused_early),
        cmocka_unit_test(long_target),
        cmocka_unit_test(framing_refused),
        cmocka_unit_test(noise),
        cmocka_unit_test(nothing_held),
        cmocka_unit_test(device_memory),
    };
    return cmocka_run_group_tests_name("api.errors", tests, setup, teardown);
}
