"""Bad requests to the function behind `cloud {}`: no response is a 5xx, and no request changes anything."""

import base64
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.cloud.ids import OutputId, VersionId
from holdfast.names import parse
from tests.contract.cloud_api import (
    BY_NAME,
    ORGANIZATION,
    OUT,
    SV,
    UPLOAD,
    WORKSPACE,
    WS,
    announced,
    ask,
    binding,
    commit,
    created,
    data,
    error,
    keys,
    opened,
    tag,
    unlock,
    uploaded,
    write,
)
from tests.contract.conftest import CLOUD_BUCKET, ONLY_OUTPUTS, READER, Handle, Server
from tests.support.documents import ADA, OPERATOR, state
from tests.support.events import Context, cloud_request

BAD_IDS = [
    *(WS[:-1], WS + "A", WS[:10], "ws-", "ws-" + "A" * 5000, "ws-\u00e4", WS.upper()),
    *(SV, UPLOAD, OUT, "prod", "ws-W10", "ws-bnVsbA", "ws-" + "W" * 2000),
]


def test_an_id_that_this_api_did_not_make_is_400(cloud: Handle, moto: Server) -> None:
    calls = (
        ("GET", "", None),
        ("POST", "/actions/lock", None),
        ("GET", "/tag-bindings", None),
        ("POST", "/state-versions", announced(b"x")),
    )
    for given in BAD_IDS:
        for method, suffix, body in calls:
            refused = ask(cloud, method, f"workspaces/{given}{suffix}", ADA, body)
            assert error(refused) == (400, "invalid_id"), given
        for prefix in ("sv-", "upload-"):
            other = prefix + given.partition("-")[2]
            if other not in (SV, UPLOAD):
                assert error(ask(cloud, "GET", f"state-versions/{other}")) == (400, "invalid_id"), other
    assert keys(moto) == []


def other_forms(minted: str) -> Iterator[str]:
    """Yield other forms of an ID, with the same content."""
    prefix, _, coded = minted.partition("-")
    said = base64.urlsafe_b64decode(coded + "=" * (-len(coded) % 4)).decode()
    for form in (said.replace(",", ", "), said.replace("p", "\\u0070", 1), f" {said}", f"{said} "):
        yield f"{prefix}-{base64.urlsafe_b64encode(form.encode()).decode().rstrip('=')}"
    if len(coded) % 4:
        yield minted + "=" * (-len(coded) % 4)
        yield minted[:-1] + chr(ord(minted[-1]) + 1)  # a bit that no byte has


def test_an_id_in_another_form_than_it_was_minted_is_400(cloud: Handle) -> None:
    padded = 0
    for minted, path in (
        (WS, "workspaces/{}"),
        (SV, "state-versions/{}"),
        (UPLOAD, "state-versions/{}"),
        (OUT, "state-version-outputs/{}"),
    ):
        forms = list(other_forms(minted))
        padded += len(forms) > 4
        for form in forms:
            assert error(ask(cloud, "GET", path.format(form))) == (400, "invalid_id"), form
    assert padded


BAD_NAMES = [
    *(("network", name) for name in ("..", "a%2Fb", "x" * 300, "a::b", ":", "a b", "\u00e4", "-a", "")),
    *((name, "prod") for name in ("..", "a%2Fb", "x" * 300, "a:b", "", "holdfast-doctor")),
]


def test_a_name_that_no_state_can_have_is_400(cloud: Handle, moto: Server) -> None:
    for organization, workspace in BAD_NAMES:
        path = f"organizations/{organization}/workspaces"
        document = {"type": "workspaces", "attributes": {"name": workspace}}
        for refused in (ask(cloud, "GET", f"{path}/{workspace}"), ask(cloud, "POST", path, ADA, document)):
            assert error(refused) == (400, "invalid_state_name"), (organization, workspace)
    assert error(ask(cloud, "GET", f"{ORGANIZATION}/workspaces/eu/prod")) == (400, "unknown_route")
    document = {"type": "workspaces", "attributes": {"name": "eu/prod"}}
    assert error(ask(cloud, *CREATE, ADA, document)) == (400, "invalid_state_name")
    assert keys(moto) == []


CREATE = ("POST", f"{ORGANIZATION}/workspaces")
CHANGE = ("PATCH", f"workspaces/{WS}")
TAGS = ("POST", f"workspaces/{WS}/relationships/tags")
BINDINGS = ("PATCH", f"workspaces/{WS}/tag-bindings")
VERSIONS = ("POST", f"workspaces/{WS}/state-versions")


def related(**relationships: object) -> dict[str, Any]:
    return {"data": {**WORKSPACE, "relationships": relationships}}


def versioned(**attributes: object) -> dict[str, Any]:
    return {"data": announced(b"x", **attributes)}


NO_DOCUMENTS: list[object] = [[], {}, {"data": 7}, None]
NO_ATTRIBUTES: list[object] = [[], None, {"name": 7}, {}]
NO_TAGS: list[object] = [7, {"data": 7}, {"data": [7]}, {"data": [binding("a")]}]
BAD_DOCUMENTS: list[tuple[tuple[str, str], object]] = [
    *((call, bad) for call in (CREATE, CHANGE, TAGS, BINDINGS, VERSIONS) for bad in NO_DOCUMENTS),
    *((call, {"data": {"type": "runs"}}) for call in (CREATE, CHANGE, VERSIONS)),
    *((CREATE, {"data": {"type": "workspaces", "attributes": bad}}) for bad in NO_ATTRIBUTES),
    *((CREATE, related(tags=bad)) for bad in NO_TAGS),
    (CREATE, related(**{"tag-bindings": {"data": [tag("a")]}})),
    (CREATE, {"data": {**WORKSPACE, "relationships": []}}),
    (VERSIONS, {"data": {"type": "state-versions", "attributes": {"lineage": "\ud800"}}}),
    *((TAGS, {"data": [tag(bad)]}) for bad in ("", "\u00e4", "x" * 129)),
    *((TAGS, {"data": [bad]}) for bad in ({"type": "tags"}, {"type": "tags", "attributes": {"name": None}})),
    *((BINDINGS, {"data": [binding("a", value)]}) for value in ("\u00e4", "x" * 257)),
    (BINDINGS, {"data": [{"type": "tag-bindings", "attributes": {"key": "a", "value": 7}}]}),
    (BINDINGS, {"data": [{"type": "tag-bindings", "attributes": {"value": "a"}}]}),
    (BINDINGS, {"data": [binding(f"a{number}") for number in range(51)]}),
    *((VERSIONS, versioned(serial=bad)) for bad in (-1, 2**64, "1", True, 1.5, None)),
    *((VERSIONS, versioned(md5=bad)) for bad in ("", "x" * 32, "0" * 31, 7, None)),
    *((VERSIONS, versioned(lineage=bad)) for bad in (7, "x" * 201, "\ud800")),
    *((VERSIONS, versioned(force=bad)) for bad in ("true", 1)),
    (VERSIONS, versioned(state=7)),
]


def test_a_document_that_is_not_what_its_call_takes_is_400(cloud: Handle, moto: Server) -> None:
    for call, document in BAD_DOCUMENTS:
        body = "{" if document is None else json.dumps(document)
        answer = cloud(cloud_request(*call, caller=OPERATOR, body=body), Context())
        assert error(answer) == (400, "invalid_document"), (call, document)
    assert keys(moto) == []


def test_a_change_that_a_redirect_has_turned_into_a_read_is_400(cloud: Handle) -> None:
    workspace = created(cloud)
    sent = {"content-type": "application/vnd.api+json"}
    followed = {"referer": "https://api.example.com/api/v2/"}
    # Each path has a verb that changes something, beside GET.
    for path in (
        BY_NAME,
        f"{ORGANIZATION}/workspaces",
        f"workspaces/{workspace}",
        f"workspaces/{workspace}/tag-bindings",
    ):
        assert error(ask(cloud, "GET", path, headers=sent | followed)) == (400, "bent_request")
        for headers in (sent, followed):
            assert ask(cloud, "GET", path, headers=headers)["statusCode"] == 200


def test_ten_megabytes_of_tags_are_413(cloud: Handle, moto: Server) -> None:
    many = [tag("x" * 100_000)] * 100
    for method, path in (TAGS, BINDINGS):
        assert error(ask(cloud, method, path, ADA, many)) == (413, "too_large")
    whole = {**WORKSPACE, "relationships": {"tags": {"data": many}}}
    assert error(ask(cloud, *CREATE, ADA, whole)) == (413, "too_large")
    assert keys(moto) == []


def test_a_list_with_parameters_that_are_none_is_400(cloud: Handle) -> None:
    for query in (
        *({"page[number]": bad} for bad in ("0", "-1", "x", "1" * 30, "\u0663", "")),
        {"page[size]": "0"},
        {"filter[tagged][0][value]": "a"},
        {"sort": "current-run.created-at"},
    ):
        refused = ask(cloud, "GET", f"{ORGANIZATION}/workspaces", query=query)
        assert error(refused) == (400, "invalid_document"), query
    refused = ask(cloud, "GET", f"{ORGANIZATION}/workspaces", query={"search[name]": "\ud800"})
    assert error(refused) == (400, "invalid_request")


def test_what_is_no_call_is_400_with_what_there_is(cloud: Handle, log: list[str]) -> None:
    for path in ("", "runs", "ping/", f"{ORGANIZATION}/runs", "workspaces", "../ping", "x" * 300):
        refused = ask(cloud, "GET", path)
        assert error(refused) == (400, "unknown_route"), path
        assert "no runs" in refused["body"]
        assert "state" not in json.loads(log[-1])


def test_a_log_line_names_the_state_whether_a_name_or_an_id_was_given(cloud: Handle, log: list[str]) -> None:
    ask(cloud, "GET", BY_NAME)
    ask(cloud, "POST", f"workspaces/{WS}/actions/lock")
    unlock(cloud, WS)
    ask(cloud, "GET", f"state-versions/{UPLOAD}", READER)
    ask(cloud, "GET", f"state-version-outputs/{OUT}")
    ask(cloud, "GET", "workspaces/ws-none")
    found = [json.loads(line) for line in log]
    assert [line.get("state") for line in found] == ["network/prod"] * 5 + [None]
    refused = ["request.refused"] * 3
    assert [line["message"] for line in found] == [
        *("workspace.absent", "lock.acquired", "lock.released", *refused)
    ]


def test_a_commit_of_what_another_upload_wrote_may_be_repeated(cloud: Handle) -> None:
    workspace, body = created(cloud), state(1)
    ask(cloud, "POST", f"workspaces/{workspace}/actions/lock")
    write(cloud, workspace, body)
    upload_id = uploaded(cloud, workspace, body, force=True)
    for _ in range(2):
        assert data(commit(cloud, upload_id))["id"] == upload_id


def test_ids_of_versions_that_have_no_address_are_refused(cloud: Handle) -> None:
    version = VersionId(parse("network/prod"), "\ud800", 1)
    for path in (
        f"state-versions/{version}",
        f"state-versions/{version}/download",
        f"state-version-outputs/{OutputId(version, 'content')}",
    ):
        assert error(ask(cloud, "GET", path)) == (400, "invalid_id")


def test_outputs_that_no_response_carries_have_the_client_read_the_state(cloud: Handle, moto: Server) -> None:
    value = base64.b64encode(random.Random(0).randbytes(5_000_000)).decode()  # noqa: S311 gzip must fail
    document = {"version": 4, "serial": 1, "outputs": {"large": {"value": value, "type": "string"}}}
    moto.direct.put_object(Bucket=CLOUD_BUCKET, Key="states/network/prod.tfstate", Body=json.dumps(document))
    path = f"workspaces/{opened(cloud)}/current-state-version-outputs"
    (output,) = data(ask(cloud, "GET", path))
    assert "detailed-type" not in output["attributes"]
    refused = ask(cloud, "GET", path, ONLY_OUTPUTS)
    assert error(refused) == (413, "too_large")
    assert "terraform state pull" in refused["body"]


def test_a_list_by_tags_keeps_its_connections(
    cloud: Handle, moto: Server, caplog: pytest.LogCaptureFixture
) -> None:
    record = {"tags": {"team": "net"}, "created_by": "x", "created": "2026-01-01T00:00:00+00:00"}
    for number in range(30):
        key = f"workspaces/network/w{number}.json"
        moto.direct.put_object(Bucket=CLOUD_BUCKET, Key=key, Body=json.dumps(record))
    # A damaged record hides no other record.
    moto.direct.put_object(Bucket=CLOUD_BUCKET, Key="workspaces/network/damaged.json", Body=b"{}")
    query = {"search[tags]": "team"}
    assert len(data(ask(cloud, "GET", "organizations/network/workspaces", query=query))) == 30
    assert "pool is full" not in caplog.text
