"""api/openapi.yaml against the daemon: the document served, its routes, and every job's fields."""

import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from daemon import JSON, SOURCE, Daemon, Report, need

need("yaml", "jsonschema")

import openapi

TEXT = (SOURCE / "api" / "openapi.yaml").read_bytes()
SERVED = SOURCE / "api" / "served"
PROGRAM = os.environ.get("KILND", str(SOURCE / "build" / "kilnd"))
# What stands in for the {…} of a path when a route is tried.
PLACES = {"z": "1", "x": "0", "y": "0", "name": "0.png", "slug": "malformed",
          "id": "0198a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b"}


def property_of(schema, name):
    """A property of an object schema that may be put together by allOf."""
    found = dict(schema.get("properties", {}))
    for part in schema.get("allOf", []):
        found.update(property_of(part, None))
    return found if name is None else found.get(name)


def json_body(operation):
    content = operation.get("requestBody", {}).get("content", {})
    return content.get(JSON, {}).get("schema", {})


def differences(field, schema):
    """What a schema in the document says otherwise than the registry's row."""
    wrong = []
    types = schema.get("type")
    options = schema.get("oneOf", []) + schema.get("anyOf", [])
    if options:  # a number that may be a decimal string
        wanted = [o for o in options if o.get("type") == field["type"]]
        if not wanted:
            return [f"no alternative of type {field['type']}"]
        schema = {**wanted[0], **{k: v for k, v in schema.items() if k not in ("oneOf", "anyOf")}}
        types = schema.get("type", field["type"])
    types = types if isinstance(types, list) else [types]
    if field["type"] not in types:
        wrong.append(f"type {types} instead of {field['type']}")
    if field.get("choices"):
        if schema.get("enum") != field["choices"]:
            wrong.append(f"enum {schema.get('enum')} instead of {field['choices']}")
    for mine, theirs in (("minimum", "minimum"), ("maximum", "maximum"),
                         ("exclusiveMinimum", "exclusiveMinimum"),
                         ("minItems", "minItems"), ("maxItems", "maxItems"),
                         ("minLength", "minLength"), ("maxLength", "maxLength")):
        a, b = field.get(mine), schema.get(theirs)
        if a != b and not (a is not None and b is not None and math.isclose(a, b, rel_tol=1e-12)):
            wrong.append(f"{mine} {b} instead of {a}")
    if field.get("default") != schema.get("default"):
        wrong.append(f"default {schema.get('default')!r} instead of {field.get('default')!r}")
    return wrong


def test_fields(report, types, document):
    common = {row["name"] for row in types["common"]}
    found = {(path, method): op for path, method, op in openapi.operations(document)}
    for job in types["jobs"]:
        rows = {row["name"]: row for row in job["fields"]}
        for method in (m.lower() for m in job["methods"] if m not in ("HEAD", "OPTIONS")):
            operation = found.get((job["route"], method))
            if not report.check(f"{method.upper()} {job['route']} is in the document", operation):
                continue
            query = {p["name"]: p["schema"] for p in operation["parameters"] if p["in"] == "query"}
            scalars = {n for n, row in rows.items()
                       if row["type"] != "array" and row.get("encoding") != "base64"}
            report.check(f"{method.upper()} {job['route']}: the same query parameters",
                         set(query) - common == scalars,
                         f"only in the document {sorted(set(query) - common - scalars)}, "
                         f"only in the registry {sorted(scalars - set(query))}")
            for name in sorted(scalars & set(query)):
                wrong = differences(rows[name], query[name])
                report.check(f"{method.upper()} {job['route']}?{name}", not wrong, "; ".join(wrong))
            if method != "post":
                continue
            body = property_of(json_body(operation), None)
            report.check(f"POST {job['route']}: the same JSON members",
                         set(body) - common == set(rows),
                         f"only in the document {sorted(set(body) - common - set(rows))}, "
                         f"only in the registry {sorted(set(rows) - set(body))}")
            for name in sorted(set(rows) & set(body)):
                wrong = differences(rows[name], body[name])
                report.check(f"POST {job['route']} {{{name}}}", not wrong, "; ".join(wrong))
            content = set(operation.get("requestBody", {}).get("content", {}))
            for media in job.get("accepts", []):
                name = media["media"] if isinstance(media, dict) else media
                report.check(f"POST {job['route']} takes {name}", name in content)
        answers = found.get((job["route"], "post"), {}).get("responses", {}).get("200", {})
        for form in job["formats"]:
            report.check(f"{job['route']} answers {form['media']}",
                         form["media"] in answers.get("content", {}))


def test_answers(report, daemon, document):
    """Periodograms of every shape of request match the schema of their answer."""
    found = {(path, method): op for path, method, op in openapi.operations(document)}
    answer = found[("/v1/lombscargle", "post")]["responses"]["200"]["content"][JSON]["schema"]
    t, y = [0.0, 1.1, 2.3, 3.2, 4.8, 5.1], [1, 0.2, -0.9, 0.1, 1, 0.4]
    level, grid = [2.0] * 6, {"f0": 0.1, "df": 0.05, "nf": 20}
    for name, body in (("a grid", {"t": t, "y": y, **grid}),
                       ("a list of frequencies", {"t": t, "y": y, "frequency": [0.3, 0.1, 0.2]}),
                       ("a curve without variance", {"t": t, "y": level, **grid}),
                       ("davies", {"t": t, "y": y, **grid, "false_alarm": "davies", "peaks": 20}),
                       ("davies, three samples", {"t": t[:3], "y": y[:3], **grid,
                                                  "false_alarm": "davies"}),
                       ("several series", {"t": t, "y": [y, level], **grid, "dy": 0.1}),
                       ("series, a list, peaks", {"t": t, "y": [y, level], "fields": "peaks",
                                                  "frequency": [0.1, 0.2]}),
                       ("gaps", {"t": t, "y": y[:5] + [None], **grid, "missing": "drop"})):
        lint = openapi.Lint(document)
        lint.schema(name, answer, [("answer", daemon.post("/v1/lombscargle", body).json())])
        report.check(f"the periodogram of {name} matches its schema", not lint.problems,
                     "; ".join(lint.problems[:3]))


def test_routes(report, daemon, document):
    for path, method, operation in openapi.operations(document):
        address = re.sub(r"\{([^}]+)\}", lambda m: PLACES.get(m.group(1), "1"), path)
        reply = daemon.request(method.upper(), address)
        declared = set(operation["responses"])
        known = str(reply.status) in declared or "default" in declared \
            or f"{reply.status // 100}XX" in declared
        problem = reply.headers.get("content-type", "")
        if "{id}" in path:  # no job has this number: the route itself says so
            report.check(f"{method.upper()} {address} is there and knows no such job",
                         known and reply.status == 404 and "job" in reply.json()["detail"],
                         f"{reply.status} {problem}")
            continue
        report.check(f"{method.upper()} {address} is there and answers as declared",
                     known and reply.status not in (404, 405), f"{reply.status} {problem}")
        if reply.status == 200 and method == "get":
            media = problem.split(";")[0]
            content = operation["responses"]["200"].get("content", {})
            report.check(f"GET {address} has a declared media type", media in content or not content,
                         f"{media} of {sorted(content)}")
            if media == JSON and "schema" in content.get(media, {}):
                lint = openapi.Lint(document)
                lint.schema(f"GET {address}", content[media]["schema"], [("answer", reply.json())])
                report.check(f"GET {address} matches its schema", not lint.problems,
                             "; ".join(lint.problems[:3]))
    for method, path in (("GET", "/v1/no-such-thing"), ("GET", "/v2/mandelbrot")):
        report.check(f"{method} {path} is 404", daemon.request(method, path).status == 404)


def test_served(report, daemon):
    """Both documents are what scripts/openapi.py makes of the source, and say the same."""
    made = subprocess.run([sys.executable, str(SOURCE / "scripts" / "openapi.py"), "--check"],
                          capture_output=True, text=True)
    report.check("api/served is made from api/openapi.yaml", made.returncode == 0, made.stdout.strip())
    texts = {name: daemon.get(f"/{name}") for name in ("openapi.yaml", "openapi.json")}
    for name, reply in texts.items():
        report.check(f"/{name} is the file, byte for byte", reply.body == (SERVED / name).read_bytes())
        problems = openapi.check(reply.body)
        report.check(f"/{name} is a sound OpenAPI 3.1 document", not problems, "; ".join(problems[:3]))
    report.check("YAML and JSON say the same",
                 openapi.load(texts["openapi.yaml"].body) == texts["openapi.json"].json())
    deep = [r for r in re.findall(r'"(#/components/[^"]+)"', texts["openapi.json"].body.decode())
            if r.count("/") != 3]
    report.check("references are to whole components", not deep, f"{deep[:3]}")


def keys_make(folder):
    """One key for each scope, in a file; {scope: key}."""
    keys, lines = {}, []
    for scope in ("read", "compute", "admin"):
        made = subprocess.run([PROGRAM, "key", "new", "--id", scope, "--scopes", scope],
                              capture_output=True, check=True, text=True)
        keys[scope], line = made.stdout.splitlines()
        lines.append(line + "\n")
    path = folder / "keys"
    path.write_text("".join(lines))
    return path, keys


def test_security(report, document):
    """Every operation asks for the scopes that the document says, and is declared to."""
    with tempfile.TemporaryDirectory() as folder:
        path, keys = keys_make(pathlib.Path(folder))
        with Daemon("--keys", str(path)) as daemon:
            for path, method, operation in openapi.operations(document):
                address = re.sub(r"\{([^}]+)\}", lambda m: PLACES.get(m.group(1), "1"), path)
                taken = {scope for row in operation["security"] for scope in row.get("key", [])}
                wrong = []
                for scope in (None, *keys):
                    headers = {"Authorization": f"Bearer {keys[scope]}"} if scope else {}
                    status = daemon.request(method.upper(), address, headers=headers).status
                    want = 401 if scope is None else 403
                    if (status == want) == (not taken or scope in taken) or status == 429:
                        wrong.append(f"{status} with {scope}")
                declared = {"401", "403", "429"} & set(operation["responses"])
                if len(declared) != (3 if taken else 0):
                    wrong.append(f"declares {sorted(declared)}")
                report.check(f"{method.upper()} {path} takes {sorted(taken) or 'anybody'}",
                             not wrong, "; ".join(wrong))


def test_cors(report, document):
    """Pages of other origins are told of the methods and headers that there are, and of no others."""
    sent = {"authorization", "content-type", "accept", "traceparent", "tracestate", "x-request-id"}
    told = {name.lower() for name in document["components"]["headers"]}
    methods = {}
    for path, method, operation in openapi.operations(document):
        methods.setdefault(path, set()).add(method.upper())
        sent |= {p["name"].lower() for p in operation["parameters"] if p["in"] == "header"}
    with Daemon("--cors-origin", "https://page.example") as daemon:
        def names(path, method, name):
            address = re.sub(r"\{([^}]+)\}", lambda m: PLACES.get(m.group(1), "1"), path)
            reply = daemon.request(method, address, headers={
                "Origin": "https://page.example", "Access-Control-Request-Method": "POST"})
            return {one.strip() for one in reply.headers.get(name, "").split(",")} - {""}

        for path, found in methods.items():
            want = found | {"OPTIONS"} | ({"HEAD"} if "GET" in found else set())
            got = names(path, "OPTIONS", "access-control-allow-methods")
            report.check(f"{path} is open to pages for {sorted(want)}", got == want, str(sorted(got)))
        for method, name, known in (("OPTIONS", "access-control-allow-headers", sent),
                                    ("GET", "access-control-expose-headers", told)):
            got = names("/v1/mandelbrot", method, name)
            unknown = {one for one in got if one.lower() not in known}
            report.check(f"{name} has only what there is", got and not unknown, str(sorted(unknown)))


def main():
    report = Report()
    problems = openapi.check(TEXT)
    for problem in problems:
        report.check("lint", False, problem)
    report.check("api/openapi.yaml is a sound OpenAPI 3.1 document", not problems)
    document = openapi.load(TEXT)
    with Daemon() as daemon:
        test_served(report, daemon)
        test_fields(report, daemon.get("/v1/jobs/types").json(), document)
        test_routes(report, daemon, document)
        test_answers(report, daemon, document)
    if not os.environ.get("KILN_URL"):
        test_security(report, document)
        test_cors(report, document)
    report.end()


main()
