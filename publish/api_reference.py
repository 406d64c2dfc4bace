"""The API reference of the site, in Markdown, from `docs/openapi.yaml`."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

Part = Mapping[str, Any]
"""A part of the document: a route, a parameter, a response, a schema."""

VERBS: Final = ("get", "head", "post", "put", "patch", "delete")
_CREDENTIALS: Final[Mapping[str, str]] = {
    "token": "an access token or a session",
    "idToken": "an ID token",
    "aws": "a signature with AWS credentials",
}
"""Name of a security scheme -> what a caller sends."""
_SLASHES: Final = "#/components/schemas/Name".count("/")
_KINDS: Final = {"schemas": "Document", "responses": "Error"}
"""Section of the components -> the word before a name in its heading, which keeps the headings different."""


def api_reference(openapi: str) -> str:
    """Return the page: a section for each verb of each route, for each error and for each document.

    Args:
        openapi: the text of an OpenAPI document, in YAML, with references into itself alone.

    Raises:
        KeyError: a reference has no target.
    """
    api = yaml.safe_load(openapi)
    return "\n".join(_lines(_without_deep_references(api, api))) + "\n"


def _without_deep_references(api: Part, part: Any) -> Any:
    """Return a part in which each reference to a part of a component, which has no heading, is that part."""
    if isinstance(part, list):
        return [_without_deep_references(api, each) for each in part]
    if not isinstance(part, dict):
        return part
    if part.get("$ref", "").count("/") > _SLASHES:
        return _without_deep_references(api, _resolved(api, part))
    return {name: _without_deep_references(api, each) for name, each in part.items()}


def _lines(api: Part) -> Iterator[str]:
    yield "# API reference"
    yield "\nFor authors of clients and scripts. [openapi.yaml](openapi.yaml) has the same for programs.\n"
    yield api["info"]["description"]
    for tag in api["tags"]:
        yield f"\n## {tag['name'].capitalize()}\n\n{tag['description']}"
        for path, route in api["paths"].items():
            for verb in VERBS:
                if tag["name"] in route.get(verb, {}).get("tags", ()):
                    yield from _operation(api, path, verb, route)
    yield "\n## Errors\n\nEach route above links to the errors that it can return."
    for name, response in api["components"]["responses"].items():
        if _is_error(api, name):
            yield f"\n### Error `{name}`\n\n{response['description']}"
            if content := _content(response):
                yield f"\nThe body is {content}."
    yield "\n## Documents\n\nThe bodies of requests and responses, in JSON."
    for name, schema in api["components"]["schemas"].items():
        yield f"\n### Document `{name}`\n\n{schema.get('description', '')}"
        yield from _members(schema)


def _is_error(api: Part, name: str) -> bool:
    """Return whether some verb of a route responds with this component, and a status from 400."""
    reference = {"$ref": f"#/components/responses/{name}"}
    return any(
        status >= "400" and response == reference
        for route in api["paths"].values()
        for verb in VERBS
        for status, response in route.get(verb, {}).get("responses", {}).items()
    )


def _operation(api: Part, path: str, verb: str, route: Part) -> Iterator[str]:
    operation = route[verb]
    yield f"\n### `{verb.upper()} {path}`\n\n{operation['summary']}.\n"
    yield operation.get("description", "")
    allowed = [name for each in operation.get("security", api["security"]) for name in each]
    yield f"\nCredentials: {' or '.join(_CREDENTIALS[name] for name in allowed) or 'none'}."
    parameters = [
        _resolved(api, each) for each in (*route.get("parameters", ()), *operation.get("parameters", ()))
    ]
    if parameters:
        yield "\n| Parameter | In | Type | Meaning |\n| --- | --- | --- | --- |"
    for each in parameters:
        needed = "" if each.get("required") else ", optional"
        meaning = _cell(each.get("description", ""))
        yield f"| `{each['name']}` | {each['in']}{needed} | {_cell(_type(each['schema']))} | {meaning} |"
    if "requestBody" in operation:
        body = _resolved(api, operation["requestBody"])
        needed = "" if body.get("required") else ", or nothing"
        yield f"\nBody: {_content(body)}{needed}. {body.get('description', '')}"
        for media in body["content"].values():
            yield from _members(media.get("schema", {}))
    yield "\n| Status | Meaning | Body |\n| --- | --- | --- |"
    responses = operation["responses"]
    for status, response in responses.items():
        if status < "400":
            found = _resolved(api, response)
            yield f"| {status} | {_cell(found['description'])} | {_cell(_content(found))} |"
    errors = (
        f"[{status}](#{_anchor('responses', response['$ref'])})"
        for status, response in responses.items()
        if status >= "400"
    )
    yield f"\nErrors: {', '.join(errors)}."


def _resolved(api: Part, part: Part) -> Part:
    """Return the target of a reference, or the part itself."""
    while "$ref" in part:
        found: Any = api
        for name in part["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        part = found
    return part


def _content(part: Part) -> str:
    """Return the documents of a body and their media types, or an empty text."""
    return " or ".join(
        f"{_type(media['schema'])} (`{name}`)" if "schema" in media else f"`{name}`"
        for name, media in part.get("content", {}).items()
    )


def _members(schema: Part) -> Iterator[str]:
    if members := schema.get("properties"):
        yield "\n| Member | Type | Meaning |\n| --- | --- | --- |"
        for name, member in members.items():
            needed = "" if name in schema.get("required", ()) else ", optional"
            yield f"| `{name}` | {_cell(_type(member))}{needed} | {_cell(member.get('description', ''))} |"


def _type(schema: Part) -> str:
    """Return the type of a value in words, in Markdown."""
    if "$ref" in schema:
        return f"[{schema['$ref'].rpartition('/')[2]}](#{_anchor('schemas', schema['$ref'])})"
    if "enum" in schema:
        return " or ".join("null" if each is None else f"`{each}`" for each in schema["enum"])
    for several in ("oneOf", "anyOf"):
        if several in schema and "properties" not in schema:
            return " or ".join(_type(each) for each in schema[several])
    kinds = schema.get("type", "any value")
    return " or ".join(_kind(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def _kind(kind: str, schema: Part) -> str:
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    return "time" if schema.get("format") == "date-time" and kind == "string" else kind


def _anchor(section: str, reference: str) -> str:
    """Return the anchor of the heading of a component."""
    return f"{_KINDS[section]}-{reference.rpartition('/')[2]}".lower()


def _cell(text: str) -> str:
    """Return a text as a cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")
