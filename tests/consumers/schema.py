"""Validates JSON documents against a schema: `schema.py [--complete] SCHEMA DOCUMENT...`.

With `--complete` a document may have nothing that the schema does not describe, so that the schema is not forgotten when a
field is added."""

import json
import sys

import jsonschema


def closed(schema):
    """The same schema, with nothing allowed in objects but what it lists."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: closed(part) for key, part in schema.items()}
    if "properties" in schema and schema.get("type") == "object":
        parts.setdefault("additionalProperties", False)
    return parts


def main(arguments):
    is_complete = arguments[0] == "--complete"
    schema, *documents = (json.load(open(path, encoding="utf-8")) for path in arguments[is_complete:])
    schema = closed(schema) if is_complete else schema
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    errors = [error for document in documents for error in validator.iter_errors(document)]
    for error in errors[:20]:
        print(f"{error.json_path}: {error.message[:300]}", file=sys.stderr)
    sys.exit(1 if errors else 0)


main(sys.argv[1:])
