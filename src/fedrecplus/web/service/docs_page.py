"""OpenAPI as a page of plain HTML: FastAPI's own pages load their scripts from somebody else's server."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

from fedrecplus.markdown import html_table

_STYLE = "docs.css"
STYLE_SHEET = """\
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
pre { overflow: auto; padding: .75rem; border: 1px solid #8886; border-radius: .4rem; }
h2 { border-top: 1px solid #8886; padding-top: 1rem; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .2rem .8rem .2rem 0; vertical-align: top; }
"""


def docs_page(openapi: Mapping[str, Any]) -> str:
    """Every route with its description, its body's fields and its answers."""
    schemas = openapi.get("components", {}).get("schemas", {})
    routes = "".join(
        _route(method, path, operation, schemas)
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
    )
    title, text = html.escape(openapi["info"]["title"]), _paragraphs(openapi["info"].get("description", ""))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>'
        f'{title}</title><meta name="viewport" content="width=device-width">'
        f'<link rel="stylesheet" href="{_STYLE}"></head><body><main><h1>{title}</h1>{text}'
        f'<p>For programs: <a href="openapi.json">openapi.json</a>.</p>{routes}</main></body></html>'
    )


def _route(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    text = f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>"
    text += _paragraphs(operation.get("description") or operation.get("summary", ""))
    rows = [(each["name"], each["schema"], each.get("description", "")) for each in operation.get("parameters", [])]
    if rows:
        text += f"<h3>Query</h3>{_table(rows)}"
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body:
        text += f"<h3>Body</h3>{_schema(body, schemas)}"
    for status, answer in operation.get("responses", {}).items():
        text += f"<h3>Answer {html.escape(status)}: {html.escape(answer.get('description', ''))}</h3>"
        for kind, content in answer.get("content", {}).items():
            text += f"<p><code>{html.escape(kind)}</code></p>{_schema(content.get('schema', {}), schemas)}"
    return text


def _schema(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    named = schemas.get(schema.get("$ref", "").rpartition("/")[2], schema)
    fields = [(name, each, each.get("description", "")) for name, each in named.get("properties", {}).items()]
    text = _paragraphs(named.get("description", "")) + (_table(fields) if fields else "")
    for example in named.get("examples", []):
        text += f"<pre>{html.escape(json.dumps(example, indent=2))}</pre>"
    return text


def _table(rows: list[tuple[str, Mapping[str, Any], str]]) -> str:
    return html_table(["name", "type", "meaning"], [[name, _type(schema), text] for name, schema, text in rows])


def _type(schema: Mapping[str, Any]) -> str:
    """A field's type in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "anyOf" in schema:
        return " or ".join(_type(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(json.dumps(each) for each in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"text → {_type(schema['additionalProperties'])}"
    bounds = [f"{word} {schema[key]:g}" for word, key in (("from", "minimum"), ("to", "maximum")) if key in schema]
    default = [f"default {json.dumps(schema['default'])}"] if "default" in schema else []
    return ", ".join([str(schema.get("type", "anything")), *bounds, *default])


def _paragraphs(text: str) -> str:
    parts = [html.escape(part) for part in text.split("\n\n") if part.strip()]
    return "".join(f"<p>{part}</p>" for part in parts)
