"""Parse and render the JSON:API documents (https://jsonapi.org) of the clients of `cloud {}`.

A response contains only members that go-tfe reads, as Terraform's package `internal/cloud` uses them.

`InvalidDocument` is raised for an invalid document or parameter, `TooLarge` for a document that is too large.
`query` contains the decoded parameters.
"""

import base64
import binascii
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from gateway.payload import Payload
from holdfast import json_object, timestamp
from holdfast.access import Action, Caller, OwnLocks, claimed
from holdfast.cloud.ids import OutputId, UploadId, VersionId
from holdfast.cloud.names import organization_and_workspace
from holdfast.cloud.versions import Outputs, Version
from holdfast.cloud.workspaces import Wanted, Workspace
from holdfast.errors import HoldfastError, InvalidDocument, Locked, TooLarge
from holdfast.s3 import object_metadata
from holdfast.state.document import SERIAL_END, Output, Revision
from holdfast.state.lock_info import ZERO_TIME

HEADERS: Final = {
    "Content-Type": "application/vnd.api+json",
    # Seconds between two writes during an apply; Terraform's own default is 20, too. Terraform writes only at
    # the end if the last response did not have this header, so errors have it, too.
    "X-Terraform-Snapshot-Interval": "20",
}
"""Headers of every document."""

PAGE_SIZE: Final = 100
"""The maximum and the default number of items in a page."""

_MAX_BYTES: Final = 64 * 1024
"""Bytes of the largest document of a request, except one with a state."""

TAGGED: Final = "filter[tagged][0][key]"
"""The first of the parameters that filter a list by tags. It represents all of these parameters."""
OF_WORKSPACES: Final = " ".join(
    (
        *("search[name]", "search[wildcard-name]", "search[tags]", "search[exclude-tags]", TAGGED),
        *("filter[project][id]", "filter[current-run][status]", "page[number]", "page[size]", "sort"),
    )
)
"""The parameters of the list of workspaces."""
_OF_ORGANIZATION: Final = "filter[organization][name]"
_OF_WORKSPACE: Final = "filter[workspace][name]"
OF_VERSIONS: Final = f"{_OF_ORGANIZATION} {_OF_WORKSPACE} page[number] page[size]"
"""The parameters of the list of versions."""
_TAGS_AGAIN: Final = "TagBindings"
"""The parameter with which go-tfe repeats a map of tags in Go's own notation, beside the filters by tags."""
OF_PROJECTS: Final = "filter[names] q page[number] page[size]"
"""The parameters of the list of projects. They have no effect, because the list is always empty."""

_MD5: Final = re.compile(r"[0-9a-fA-F]{32}", re.ASCII)
_FILTER: Final = re.compile(r"filter\[tagged\]\[([0-9]{1,4})\]\[(key|value)\]", re.ASCII)

_KIND: Final = re.compile(r'\s*(?:\[\s*)?"([a-z]+)"', re.ASCII)
_JSON_TYPES: Final = {
    "string": "string",
    "number": "number",
    "bool": "boolean",
    **dict.fromkeys(("list", "set", "tuple"), "array"),
    **dict.fromkeys(("map", "object"), "object"),
}
"""The JSON type of a value, by the first word of its Terraform type."""

_T = TypeVar("_T")

Data = Mapping[str, Any] | Sequence[Mapping[str, Any]]


def answer(data: Data, **members: Any) -> Payload:
    """Return a document with `data` and other top-level members."""
    return Payload(json.dumps({"data": data, **members}), is_base64=False, headers=HEADERS)


def error(raised: HoldfastError) -> tuple[int, Payload]:
    """Return the status and the document of an error.

    Clients show the title, a blank line and the detail. A held lock has status 409, the only status on which
    clients wait. A freeze or a missing declaration keeps its status: clients show the text and do not wait.
    """
    status, title, detail = raised.status, raised.code.replace("_", " ").capitalize(), raised.text
    if isinstance(raised, Locked) and raised.is_released:
        status, title = 409, raised.text
        since = raised.holder["Created"]
        at = "" if since == ZERO_TIME else f" at {since}"
        detail = (
            f"The client acquired the lock for {claimed(raised.holder['Operation'])}{at}. Wait until the "
            "client releases the lock, or run the command with an option such as -lock-timeout=5m."
        )
    error_object: dict[str, Any] = {
        "status": str(status),
        "code": raised.code,
        "title": title,
        "detail": detail,
    }
    if isinstance(raised, InvalidDocument) and raised.parameter:
        error_object["source"] = {"parameter": raised.parameter}
    return status, Payload(json.dumps({"errors": [error_object]}), is_base64=False, headers=HEADERS)


# Responses.


def workspace(stored: Workspace, caller: Caller, own_locks: OwnLocks) -> Mapping[str, Any]:
    """Return a workspace, with the caller's permissions for it."""
    organization, name = organization_and_workspace(stored.name) or ("", "")
    writes = caller.may(Action.WRITE, stored.name)
    deletes = caller.may(Action.DELETE, stored.name)
    relationships: dict[str, Any] = {"organization": {"data": {"id": organization, "type": "organizations"}}}
    if stored.lock and stored.lock.principal:
        relationships["locked-by"] = locked_by(stored.lock.principal)
    return {
        "id": str(stored.id),
        "type": "workspaces",
        "relationships": relationships,
        "attributes": {
            "name": name,
            # A workspace that another protocol created has no record with the time.
            **({"created-at": timestamp.write(stored.created_at)} if stored.created_at else {}),
            "execution-mode": "local",
            "operations": False,
            "locked": stored.lock is not None,
            # Not a version number, because clients of other versions would refuse to work with the workspace.
            "terraform-version": "latest",
            "tag-names": sorted(stored.tags),
            # Clients crash without this member.
            "permissions": {
                "can-read-settings": True,
                "can-update": writes,
                "can-lock": caller.may(Action.LOCK, stored.name),
                "can-unlock": caller.may(Action.UNLOCK, stored.name),
                "can-force-unlock": caller.may(own_locks.needs, stored.name),
                "can-destroy": deletes,
                # If this member is present, clients request a safe delete, unless -force is used.
                "can-force-delete": deletes,
                "can-queue-run": False,
                "can-queue-apply": False,
                "can-queue-destroy": False,
                "can-update-variable": False,
            },
        },
    }


def locked_by(principal: str) -> Mapping[str, Any]:
    """Return the relation to the holder of a lock."""
    return {"data": {"id": principal, "type": "users"}}


def page(
    workspaces: Sequence[Workspace], number: int, size: int, caller: Caller, own_locks: OwnLocks
) -> Payload:
    """Return one page of a list of workspaces."""
    shown = workspaces[(number - 1) * size : number * size]
    return answer(
        [workspace(stored, caller, own_locks) for stored in shown],
        meta=_pagination(number, size, len(workspaces)),
    )


def _pagination(number: int, size: int, total: int) -> Mapping[str, Any]:
    pages = max(1, -(-total // size))
    return {
        "pagination": {
            "current-page": number,
            "page-size": size,
            "prev-page": number - 1 or None,
            "next-page": number + 1 if number < pages else None,
            "total-pages": pages,
            "total-count": total,
        }
    }


def tag_bindings(tags: Mapping[str, str]) -> Payload:
    """Return tags with their values."""
    return answer(
        [
            {"id": key, "type": "tag-bindings", "attributes": {"key": key, "value": value}}
            for key, value in sorted(tags.items())
        ]
    )


def versions(stored: Sequence[Version], number: int, size: int, total: int, api_address: str) -> Payload:
    """Return one page of a list of versions, of which there are `total`."""
    listed = [_version(each, api_address) for each in stored]
    return answer(listed, meta=_pagination(number, size, total))


def version(stored: Version, api_address: str) -> Payload:
    """Return a version of a state, with the address from which to download it."""
    return answer(_version(stored, api_address))


def _version(stored: Version, api_address: str) -> Mapping[str, Any]:
    attributes: dict[str, Any] = {
        "status": "discarded" if stored.was_refused else "finalized",
        # It is absolute, because not every client resolves relative addresses.
        "hosted-state-download-url": f"{api_address}/api/v2/state-versions/{stored.id}/download",
        "created-at": timestamp.write(stored.created_at),
    }
    if stored.revision:
        attributes["serial"] = stored.revision.serial
    return _state_version(stored.id, attributes)


def committed(written: UploadId) -> Payload:
    """Return the state version of a committed upload."""
    return answer(_state_version(written, {"status": "finalized", "serial": written.serial}))


def upload(created: UploadId, state_address: str, json_address: str) -> Payload:
    """Return a new upload, with the addresses to which the client uploads the state and its JSON format."""
    attributes = {
        "status": "pending",
        "serial": created.serial,
        "hosted-state-upload-url": state_address,
        "hosted-json-state-upload-url": json_address,
    }
    return answer(_state_version(created, attributes))


def _state_version(version_id: VersionId | UploadId, attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"id": str(version_id), "type": "state-versions", "attributes": attributes}


def outputs(of_version: Outputs) -> bytes:
    """Return the outputs of a version. Clients request the values of sensitive outputs one by one.

    For an encrypted state, return an output without a type, which makes the client read the state itself.
    """
    if of_version.values is None:
        encrypted = _output(OutputId(of_version.version, ""), Output("null", "", sensitive=False), "null")
        return f'{{"data": [{encrypted}]}}'.encode()
    items = [
        _output(OutputId(of_version.version, name), stored, "null" if stored.sensitive else stored.value)
        for name, stored in of_version.values.items()
    ]
    return f'{{"data": [{", ".join(items)}]}}'.encode()


def output(which: OutputId, stored: Output) -> bytes:
    """Return an output with its value."""
    return f'{{"data": {_output(which, stored, stored.value)}}}'.encode()


def _output(which: OutputId, stored: Output, value: str) -> str:
    # Joined as text, so that value and type keep their exact form, for example the digits of long numbers.
    attributes = {"name": json.dumps(which.output), "sensitive": json.dumps(stored.sensitive), "value": value}
    if stored.type:
        attributes["detailed-type"] = stored.type
    if (kind := _KIND.match(stored.type)) and kind[1] in _JSON_TYPES:
        attributes["type"] = json.dumps(_JSON_TYPES[kind[1]])
    members = ", ".join(f'"{name}": {text}' for name, text in attributes.items())
    return f'{{"id": "{which}", "type": "state-version-outputs", "attributes": {{{members}}}}}'


# Requests.


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A state version that a client announces, or whose state it sends.

    Attributes:
        announced: serial and lineage; the lineage is empty if the client did not send it.
        md5: the hexadecimal MD5 of the state.
        force: whether to skip the comparison of serial and lineage.
        state: the state itself; None if the client uploads it.
    """

    announced: Revision
    md5: str
    force: bool
    state: bytes | None


def new_workspace(body: bytes) -> tuple[str, Mapping[str, str]]:
    """Parse the name and the tags of a workspace to create."""
    data = _resource(_data(body), "workspaces")
    name = _attribute(data, "name", str)
    if name is None:
        raise InvalidDocument("The workspace has no 'name'.")
    tags: dict[str, str] = {}
    relationships = _object(data.get("relationships"), "relationships")
    for kind, parse in (("tags", _tag_name), ("tag-bindings", _tag_binding)):
        relation = _object(relationships.get(kind), kind)
        tags |= dict(map(parse, _list(relation.get("data", []))))
    return name, tags


def check_change(body: bytes, current: Mapping[str, Any]) -> None:
    """Raise `InvalidDocument` if a request changes more than the Terraform version of a `workspace`.

    Clients set the Terraform version after they create a workspace. It is ignored, and remains "latest".
    """
    data = _resource(_data(body), "workspaces")
    for name, value in _object(data.get("attributes"), "attributes").items():
        if name != "terraform-version" and value is not None and value != current["attributes"].get(name):
            raise InvalidDocument(
                "A workspace cannot be renamed. Create a workspace with the new name, and move the state to "
                "the new workspace."
                if name == "name"
                else (
                    "This API stores only the name and the tags of a workspace. Nothing was changed. Remove "
                    f"'{name[:60]}' from the request."
                )
            )
    for name, value in _object(data.get("relationships"), "relationships").items():
        related = _object(value, name).get("data")
        if related and related != current["relationships"].get(name, {}).get("data"):
            raise InvalidDocument(
                f"This request cannot change the relationship '{name[:60]}' of a workspace. Nothing was "
                "changed. To change the tags, use /api/v2/workspaces/{id}/tag-bindings."
            )


def received_bindings(body: bytes) -> Mapping[str, str]:
    """Parse tags with values."""
    return dict(map(_tag_binding, _list(_data(body))))


def received_names(body: bytes) -> Mapping[str, str]:
    """Parse tags without values."""
    return dict(map(_tag_name, _list(_data(body))))


def new_version(body: bytes) -> NewVersion:
    """Parse the announcement of a state version.

    The state's other formats in the document are ignored: they may contain values in plain text that the
    client encrypts in the state.
    """
    data = _resource(_data(body, limit=None), "state-versions")
    serial, md5 = _attribute(data, "serial", int), _attribute(data, "md5", str)
    lineage, encoded = _attribute(data, "lineage", str) or "", _attribute(data, "state", str)
    if serial is None or not 0 <= serial < SERIAL_END:
        raise InvalidDocument("The attribute 'serial' must be an integer from 0 to 2^64-1.")
    if md5 is None or not _MD5.fullmatch(md5):
        raise InvalidDocument(
            "The attribute 'md5' must be the MD5 digest of the state, as 32 hexadecimal digits."
        )
    if not object_metadata.fits(lineage):
        raise InvalidDocument(
            "The attribute 'lineage' must be Unicode text of at most 200 bytes in percent-encoding."
        )
    return NewVersion(
        Revision(serial, lineage),
        md5.lower(),
        _attribute(data, "force", bool) or False,
        None if encoded is None else _decode(encoded),
    )


def check_parameters(query: Mapping[str, str], known: Collection[str]) -> None:
    """Raise `InvalidDocument` for an unknown parameter: ignoring a filter would return too much.

    Args:
        known: the parameters of this call, beside `include`, which every call ignores. With `TAGGED`, the
            call also takes the other filters by tags, and ignores their repetition.
    """
    for name in query:
        is_of_tags = TAGGED in known and (name == _TAGS_AGAIN or _FILTER.fullmatch(name))
        if name != "include" and name not in known and not is_of_tags:
            takes = f"It accepts {', '.join(sorted(known))}." if known else "It accepts no parameters."
            raise _invalid_parameter(name, f"This call does not accept the parameter '{name[:60]}'. {takes}")


def wanted(query: Mapping[str, str]) -> Wanted:
    """Parse the filter of a list of workspaces; raise `InvalidDocument` for a tag filter without a key."""
    tags: list[tuple[str, str | None]] = [(key, None) for key in _keys(query, "search[tags]")]
    numbered: dict[str, dict[str, str]] = {}
    for parameter, value in query.items():
        if form := _FILTER.fullmatch(parameter):
            numbered.setdefault(form[1], {})[form[2]] = value
    for number, binding in numbered.items():
        if "key" not in binding:
            parameter = f"filter[tagged][{number}][key]"
            raise _invalid_parameter(
                parameter, f"A filter by tags needs the key of a tag, in the parameter '{parameter}'."
            )
        tags.append((binding["key"], binding.get("value")))
    return Wanted(
        query.get("search[name]", ""),
        query.get("search[wildcard-name]", ""),
        tuple(tags),
        frozenset(_keys(query, "search[exclude-tags]")),
    )


def workspace_wanted(query: Mapping[str, str]) -> tuple[str, str]:
    """Parse the names of the organization and the workspace of a list of versions; both are required."""
    for parameter in (_OF_ORGANIZATION, _OF_WORKSPACE):
        if not query.get(parameter):
            raise _invalid_parameter(parameter, f"This list needs the parameter '{parameter}'.")
    return query[_OF_ORGANIZATION], query[_OF_WORKSPACE]


def is_reversed(query: Mapping[str, str]) -> bool:
    """Return whether to sort a list of workspaces by name in reverse; `InvalidDocument` for other orders."""
    sort = query.get("sort") or "name"
    if sort not in ("name", "-name"):
        raise _invalid_parameter("sort", "This list can be sorted only by 'name' or '-name'.")
    return sort == "-name"


def _keys(query: Mapping[str, str], parameter: str) -> Sequence[str]:
    return [key.strip() for key in query.get(parameter, "").split(",") if key.strip()]


def page_wanted(query: Mapping[str, str]) -> tuple[int, int]:
    """Parse the number and the size of the requested page."""
    number = _number(query, "page[number]", 1)
    return number, min(_number(query, "page[size]", PAGE_SIZE), PAGE_SIZE)


def _number(query: Mapping[str, str], parameter: str, default: int) -> int:
    text = query.get(parameter, str(default))
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text)):
        raise _invalid_parameter(
            parameter, f"The parameter '{parameter}' must be an integer from 1 to 999999999."
        )
    return int(text)


def _invalid_parameter(name: str, message: str) -> InvalidDocument:
    return InvalidDocument(message, parameter=name[:200])


def _decode(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidDocument(
            "The attribute 'state' must be the state document, encoded in base64."
        ) from None


def _data(body: bytes, *, limit: int | None = _MAX_BYTES) -> object:
    if limit is not None and len(body) > limit:
        raise TooLarge(f"The document has {len(body)} bytes; this call accepts at most {limit}.")
    try:
        document = json_object.parse_unicode(body)
    except ValueError as broken:
        raise InvalidDocument(f"The body {broken}. Send a JSON:API document.") from None
    if "data" not in document:
        raise InvalidDocument("The document has no 'data', so it is not a JSON:API document.")
    return document["data"]


def _resource(value: object, kind: str) -> Mapping[str, Any]:
    resource = _object(value, "data")
    if resource.get("type") != kind:
        raise InvalidDocument(f"The member 'type' of 'data' must be '{kind}'.")
    return resource


def _object(value: object, name: str) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InvalidDocument(f"'{name}' must be an object.")
    return value


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise InvalidDocument("The tags must be a list.")
    return value


def _attribute(resource: Mapping[str, Any], name: str, kind: type[_T]) -> _T | None:
    """Return an attribute, or None if it is missing or null."""
    value = _object(resource.get("attributes"), "attributes").get(name)
    # A bool is an int in Python, but not in JSON.
    if value is not None and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
        words = {str: "text", int: "an integer", bool: "true or false"}
        raise InvalidDocument(f"The attribute '{name}' must be {words[kind]}.")
    return value


def _tag_name(value: object) -> tuple[str, str]:
    name = _attribute(_resource(value, "tags"), "name", str)
    if name is None:
        raise InvalidDocument("A tag needs the attribute 'name'.")
    return name, ""


def _tag_binding(value: object) -> tuple[str, str]:
    resource = _resource(value, "tag-bindings")
    key = _attribute(resource, "key", str)
    if key is None:
        raise InvalidDocument("A tag needs the attribute 'key'.")
    return key, _attribute(resource, "value", str) or ""
