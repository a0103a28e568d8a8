#!/usr/bin/env python3
"""openapi.py: makes the documents that the daemon serves from api/openapi.yaml.

    python3 scripts/openapi.py            writes api/served/openapi.json and openapi.yaml
    python3 scripts/openapi.py --check    fails where they are not what it would write

api/openapi.yaml says each thing once and refers to it: a query parameter to the member of a JSON body
that it shares its schema with. That is sound, but generators of clients take references to whole components
only, and few know `unevaluatedProperties`. So what is served says the same plainly: such references are
replaced by what they point to, objects put together by allOf are written out, which members of an object
go together is left to its description (generators take it for kinds of object), bytes are called
`format: binary` as in OpenAPI 3.0, defaults are told instead of declared, and a key's scopes, which linters expect of OAuth alone, are in
`x-kiln-scopes`.
The results are committed, because a build has no Python; a test and scripts/lint.sh run --check.
"""

import copy
import json
import pathlib
import sys

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "api" / "openapi.yaml"
SERVED = ROOT / "api" / "served"
HEAD = "# Made by scripts/openapi.py from api/openapi.yaml: do not edit.\n"


def resolve(document, reference):
    found = document
    for part in reference.removeprefix("#/").split("/"):
        found = found[part.replace("~1", "/").replace("~0", "~")]
    return found


def stays(document, reference):
    """Whether generators take this reference: a whole component, and an object or not a schema."""
    parts = reference.split("/")
    if len(parts) != 4:
        return False
    return parts[2] != "schemas" or "properties" in resolve(document, reference)


def merged(document, schema):
    """An object put together by allOf, written out."""
    whole = {"type": "object", "properties": {}, "required": []}
    for part in schema["allOf"]:
        part = resolve(document, part["$ref"]) if "$ref" in part else part
        whole["properties"].update(part.get("properties", {}))
        whole["required"] += [name for name in part.get("required", []) if name not in whole["required"]]
        whole.update({key: value for key, value in part.items()
                      if key not in ("type", "properties", "required")})
    whole.update({key: value for key, value in schema.items()
                  if key not in ("allOf", "unevaluatedProperties")})
    whole["additionalProperties"] = schema["unevaluatedProperties"]
    return {key: value for key, value in whole.items() if value != []}


def plain(document, node):
    if isinstance(node, list):
        return [plain(document, item) for item in node]
    if not isinstance(node, dict):
        return node
    if isinstance(node.get("$ref"), str) and not stays(document, node["$ref"]):
        more = {key: value for key, value in node.items() if key != "$ref"}
        return plain(document, {**resolve(document, node["$ref"]), **more})
    if "allOf" in node and "unevaluatedProperties" in node:
        node = merged(document, node)
    if all(set(one) == {"required"} for one in node.get("anyOf", [{}])):
        node = {key: value for key, value in node.items() if key != "anyOf"}
    return {key: plain(document, value) for key, value in node.items()}


def used(document):
    """Drops components that nothing refers to any more."""
    def references(node):
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            node = node.values()
        elif not isinstance(node, list):
            return
        for item in node:
            yield from references(item)

    while True:
        found = set(references(document))
        unused = [(kind, name) for kind, rows in document["components"].items() for name in rows
                  if kind != "securitySchemes" and f"#/components/{kind}/{name}" not in found]
        if not unused:
            return document
        for kind, name in unused:
            del document["components"][kind][name]


BINARY = {"type": "string", "format": "binary"}


def bytes_named(node):
    """Media types without a schema, and files in forms, are bytes."""
    if isinstance(node, list):
        return [bytes_named(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: bytes_named(value) for key, value in node.items()}
    if "contentMediaType" in node:
        return {**BINARY, **{key: node[key] for key in ("description",) if key in node}}
    for entry in node.get("content", {}).values() if isinstance(node.get("content"), dict) else ():
        if not entry:
            entry["schema"] = dict(BINARY)
    return node


def number_alone(schema):
    """A number that may be decimal text is a number where everything is text: in queries and forms."""
    numbers = [one for one in schema.get("oneOf", []) if one.get("type") == "number"]
    if numbers:
        schema = {**{key: value for key, value in schema.items() if key != "oneOf"}, **numbers[0]}
    return schema


def texts_eased(document):
    """Queries and forms have numbers without alternatives. A form's schema is not the component of the
    JSON body: clients in Python choose the media type by the class."""
    for item in document["paths"].values():
        for operation in item.values():
            for parameter in operation.get("parameters", []):
                if "schema" in parameter:
                    parameter["schema"] = number_alone(parameter["schema"])
            for media, entry in operation.get("requestBody", {}).get("content", {}).items():
                if media in ("application/x-www-form-urlencoded", "multipart/form-data"):
                    schema = entry["schema"]
                    schema = copy.deepcopy(resolve(document, schema["$ref"]) if "$ref" in schema else schema)
                    schema["properties"] = {name: number_alone(one)
                                            for name, one in schema["properties"].items()}
                    entry["schema"] = schema
    return document


def defaults_told(node):
    """Defaults are told, not declared: generated clients would send every one that they know of, which
    says more than was asked for, and typed ones would want them all given."""
    if isinstance(node, list):
        return [defaults_told(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "default" in node and not isinstance(node["default"], dict) and ("type" in node or "oneOf" in node):
        node = dict(node)
        text = json.dumps(node.pop("default")).strip('"')
        node["description"] = f"{node.get('description', '')} Default: {text}.".strip()
    return {key: defaults_told(value) for key, value in node.items()}


def scopes_moved(document):
    for item in document["paths"].values():
        for operation in item.values():
            rows = operation["security"]
            scopes = [scope for row in rows for scope in row.get("key", [])]
            if scopes:
                operation["security"] = [{}, {"key": []}] if {} in rows else [{"key": []}]
                operation["x-kiln-scopes"] = scopes
    return document


class Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data):
        return True


def served():
    """{file name: text}"""
    source = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    document = bytes_named(copy.deepcopy(plain(source, source)))
    document = used(defaults_told(scopes_moved(texts_eased(document))))
    return {
        "openapi.json": json.dumps(document, ensure_ascii=False, indent=1) + "\n",
        "openapi.yaml": HEAD + yaml.dump(document, Dumper=Dumper, sort_keys=False, allow_unicode=True,
                                         width=120),
    }


def main():
    wrong = []
    for name, text in served().items():
        path = SERVED / name
        if "--check" in sys.argv:
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                wrong.append(f"{path.relative_to(ROOT)} is not what scripts/openapi.py makes of "
                             f"{SOURCE.relative_to(ROOT)}: run it")
        else:
            SERVED.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    print("\n".join(wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
