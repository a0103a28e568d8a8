"""Lint of an OpenAPI 3.1 document: structure, references, schemas, examples.

    python3 openapi.py api/openapi.yaml
"""

import json
import re
import sys

import yaml

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


class Loader(yaml.SafeLoader):
    """YAML in which a key stands once."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if name in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {name!r} stands twice", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep)


def load(text):
    """JSON is read as such: YAML 1.1, which PyYAML knows, takes 1e-40 for a word."""
    text = text.decode() if isinstance(text, bytes) else text
    return json.loads(text) if text.lstrip().startswith("{") else yaml.load(text, Loader)


def resolve(document, reference):
    """The object at a local reference; LookupError where there is none."""
    if not reference.startswith("#/"):
        raise LookupError(reference)
    found = document
    for part in reference[2:].split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        found = found[int(part)] if isinstance(found, list) else found[part]
    return found


def expanded(document, node, above=()):
    """`node` with every reference replaced by what it points to."""
    if isinstance(node, list):
        return [expanded(document, item, above) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str):
        reference = node["$ref"]
        if reference in above:
            return {}
        more = {key: value for key, value in node.items() if key != "$ref"}
        target = expanded(document, resolve(document, reference), above + (reference,))
        return {**target, **expanded(document, more, above)} if isinstance(target, dict) else target
    return {key: expanded(document, value, above) for key, value in node.items()}


def operations(document):
    """(path, method, operation) with references replaced; a path's parameters are added."""
    for path, item in expanded(document, document.get("paths", {})).items():
        for method in METHODS:
            if method in item:
                operation = dict(item[method])
                operation["parameters"] = item.get("parameters", []) + operation.get("parameters", [])
                yield path, method, operation


class Lint:
    def __init__(self, document):
        self.document = document
        self.problems = []

    def expect(self, held, where, text):
        if not held:
            self.problems.append(f"{where}: {text}")
        return held

    def references(self, node=None, where="#"):
        """Every reference resolves, and every component is used."""
        used = set()

        def walk(node, where):
            if isinstance(node, list):
                for i, item in enumerate(node):
                    walk(item, f"{where}/{i}")
            elif isinstance(node, dict):
                reference = node.get("$ref")
                if isinstance(reference, str):
                    used.add(reference)
                    try:
                        resolve(self.document, reference)
                    except (LookupError, ValueError, TypeError):
                        self.expect(False, where, f"{reference} leads nowhere")
                for key, value in node.items():
                    walk(value, f"{where}/{key}")

        walk(self.document, "#")
        for kind, entries in self.document.get("components", {}).items():
            for name in entries:
                reference = f"#/components/{kind}/{name}"
                if kind != "securitySchemes":
                    self.expect(any(u == reference or u.startswith(reference + "/") for u in used),
                                reference, "is never used")

    def head(self):
        document = self.document
        self.expect(re.fullmatch(r"3\.1\.\d+", str(document.get("openapi"))), "openapi",
                    "is not 3.1")
        for name in ("title", "version", "description", "license"):
            self.expect(document.get("info", {}).get(name), "info", f"lacks {name}")
        self.expect(document.get("paths"), "paths", "is missing")
        unknown = set(document) - {"openapi", "info", "jsonSchemaDialect", "servers", "paths",
                                   "webhooks", "components", "security", "tags", "externalDocs"}
        self.expect(not unknown, "#", f"unknown members {sorted(unknown)}")

    def schema(self, where, schema, examples):
        """A schema is valid JSON Schema and its examples match it."""
        try:
            from jsonschema import Draft202012Validator, SchemaError
        except ImportError:
            return
        try:
            Draft202012Validator.check_schema(schema)
        except SchemaError as error:
            self.expect(False, where, f"not a JSON Schema: {error.message}")
            return
        for name, value in examples:
            for error in Draft202012Validator(schema).iter_errors(value):
                at = "/".join(map(str, error.absolute_path))
                self.expect(False, where, f"example {name} at /{at}: {error.message[:200]}")

    @staticmethod
    def examples(holder):
        found = [("example", holder["example"])] if "example" in holder else []
        found += [(name, entry["value"]) for name, entry in holder.get("examples", {}).items()
                  if isinstance(entry, dict) and "value" in entry]
        return found

    def content(self, where, content):
        for media, entry in content.items():
            here = f"{where} {media}"
            found = self.examples(entry)
            schema = entry.get("schema", {})
            if media.split(";")[0].endswith("json"):
                found = found or [("default", v) for v in [schema.get("example")] if v is not None]
                found = found or [("first", v) for v in schema.get("examples", [])[:1]]
                self.expect("schema" in entry, here, "has no schema")
                self.expect(found, here, "has no example")
                self.schema(here, schema, found)
            elif "schema" in entry:
                self.schema(here, schema, [])

    def parameters(self, where, path, parameters):
        seen = set()
        for parameter in parameters:
            key = (parameter.get("name"), parameter.get("in"))
            here = f"{where} parameter {key[0]}"
            self.expect(key not in seen, here, "stands twice")
            seen.add(key)
            self.expect(parameter.get("in") in ("query", "header", "path", "cookie"), here,
                        "has no place")
            self.expect(parameter.get("description"), here, "has no description")
            if self.expect("schema" in parameter or "content" in parameter, here, "has no schema"):
                self.schema(here, parameter.get("schema", {}), self.examples(parameter))
            if parameter.get("in") == "path":
                self.expect(parameter.get("required") is True, here, "must be required")
        captured = set(re.findall(r"\{([^}]+)\}", path))
        named = {name for name, place in seen if place == "path"}
        self.expect(captured == named, where, f"path names {captured}, parameters {named}")

    def operations(self):
        ids = set()
        for path, method, operation in operations(self.document):
            where = f"{method.upper()} {path}"
            self.expect(path.startswith("/"), where, "path does not start with /")
            name = operation.get("operationId")
            self.expect(name and name not in ids, where, f"operationId {name!r} missing or repeated")
            ids.add(name)
            self.expect(operation.get("summary"), where, "has no summary")
            self.parameters(where, path, operation["parameters"])
            if "requestBody" in operation:
                self.expect(operation["requestBody"].get("content"), where, "body without content")
                self.content(f"{where} body", operation["requestBody"].get("content", {}))
            responses = operation.get("responses") or {}
            self.expect(responses, where, "has no responses")
            self.expect(any(str(code)[0] == "2" for code in responses), where, "never succeeds")
            for code, response in responses.items():
                here = f"{where} {code}"
                self.expect(re.fullmatch(r"[1-5](\d\d|XX)|default", str(code)), here,
                            "is not a status")
                self.expect(isinstance(code, str), here, "status is not a string (quote it)")
                self.expect(response.get("description"), here, "has no description")
                self.content(here, response.get("content", {}))

    def run(self):
        self.head()
        self.references()
        if not self.problems:
            self.operations()
        return self.problems


def check(text):
    """Problems of the document as a list of sentences."""
    try:
        document = load(text)
    except (yaml.YAMLError, ValueError) as error:
        return [f"not YAML or JSON: {error}"]
    problems = Lint(document).run()
    try:
        from openapi_spec_validator import validate
    except ImportError:
        return problems
    try:
        validate(document)
    except Exception as error:  # the validator has a class of its own in every version
        problems.append(f"openapi-spec-validator: {error}")
    return problems


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        found = check(file.read())
    for problem in found:
        print(f"{sys.argv[1]}: {problem}")
    sys.exit(1 if found else 0)
