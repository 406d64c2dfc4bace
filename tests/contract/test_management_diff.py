"""The route of the management API that compares two versions of a state, on real S3 servers."""

import base64
import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from gateway.function import Function
from gateway.responses import respond
from gateway.router import Route, Router, by_name
from holdfast import names
from holdfast.access import Action, Caller
from holdfast.audit import Event
from holdfast.s3.budget import Budget
from holdfast.state import diff, tracked
from holdfast.state.acquiring import acquire
from holdfast.state.delete import delete
from holdfast.state.releasing import release
from holdfast.state.write import write
from management import differences, documents
from management.requests import Request
from tests.contract.conftest import ACCOUNT, NAME, ONE, READER, Answer, Bucket
from tests.support.documents import ADA, BOB, LINEAGE, OPERATOR, encrypted_state, state
from tests.support.events import manage_request
from tests.support.work import policy, work

ROUTE = Route(
    *("/manage/v1/diff/{name+}", "GET", differences.respond, Event.STATE_COMPARED),
    needs=Action.READ,
    query="from to values",
)
ROUTER = Router([ROUTE], {"name": by_name(names.parse_no_probe)})

Query = Mapping[str, str]
NO_QUERY: Final[Query] = {}


def put(bucket: Bucket, body: bytes, name: str = "network/prod") -> str:
    key = names.parse(name).state_key
    return bucket.s3.put_object(Bucket=bucket.name, Key=key, Body=body)["VersionId"]


def to_function(bucket: Bucket, event: Mapping[str, Any]) -> Request:
    """Return a request to a function of the bucket, through the proxy."""
    function = Function(bucket.server.proxied, bucket.name, ACCOUNT, policy(), None)
    return Request(event, function, Budget.seconds(20))


def ask(
    bucket: Bucket, query: Query = NO_QUERY, *, caller: Caller = READER, accepts: str = "identity"
) -> Answer:
    event = manage_request(
        "GET", "diff/network/prod", caller=caller, query=query, headers={"accept-encoding": accepts}
    )
    return respond(to_function(bucket, event), ROUTER, documents.error)


def found(bucket: Bucket, query: Query = NO_QUERY) -> Any:
    answer = ask(bucket, query)
    assert answer["statusCode"] == 200, answer
    return json.loads(answer["body"])


def refused(bucket: Bucket, query: Query = NO_QUERY, *, caller: Caller = READER) -> tuple[int, str, str]:
    answer = ask(bucket, query, caller=caller)
    document = json.loads(answer["body"])
    return answer["statusCode"], document["error"], document["message"]


def with_tag(serial: int, value: str) -> bytes:
    document = json.loads(state(serial))
    document["resources"] = [
        {
            "mode": "managed",
            "type": "terraform_data",
            "name": "a",
            "provider": 'provider["terraform.io/builtin/terraform"]',
            "instances": [
                {
                    "attributes": {"id": "1", "tags": {"env": value}, "password": f"SECRET-{value}"},
                    "sensitive_attributes": [[{"type": "get_attr", "value": "password"}]],
                }
            ],
        }
    ]
    return json.dumps(document).encode()


def test_it_tells_who_wrote_both_versions_and_which_provider_and_mark_have_changed(bucket: Bucket) -> None:
    aws = 'provider["registry.terraform.io/hashicorp/aws"]'
    for serial, caller, alias, is_sensitive in (
        (1, replace(ADA, owner="Ada"), "", True),
        (2, BOB, ".west", False),
    ):
        document = json.loads(with_tag(serial, "a"))
        document["resources"][0]["provider"] = f"{aws}{alias}"
        document["outputs"] = {"key": {"value": "SECRET", "type": "string", "sensitive": is_sensitive}}
        acquire(work(bucket.direct_store(), NAME, caller), ONE)
        write(work(bucket.direct_store(), NAME, caller), json.dumps(document).encode(), "one")
        release(work(bucket.direct_store(), NAME, caller), ONE)

    document = found(bucket, {"values": "true"})

    writers = [
        [document[side][name] for name in ("principal", "owner", "who", "operation")]
        for side in ("from", "to")
    ]
    assert writers == [
        ["token:ada", "Ada", "ada@laptop", "OperationTypeApply"],
        ["token:bob", None, "ada@laptop", "OperationTypeApply"],
    ]
    [resource] = document["resources"]
    assert (resource["change"], resource["attributes"]) == ("changed", [])
    assert resource["provider"] == {"before": aws, "after": f"{aws}.west"}
    [output] = document["outputs"]
    assert (output["change"], output["now_sensitive"]) == ("changed", False)
    assert "SECRET" not in json.dumps(document)


def test_the_version_before_an_old_one_is_found_by_one_request(bucket: Bucket) -> None:
    oldest, old = put(bucket, with_tag(1, "a")), put(bucket, with_tag(2, "b"))
    for serial in range(3, 45):
        put(bucket, with_tag(serial, "c"))
    event = manage_request("GET", "diff/network/prod", caller=READER, query={"to": old})
    request = to_function(bucket, event)

    answer = respond(request, ROUTER, documents.error)

    assert json.loads(answer["body"])["from"]["version"] == oldest
    assert request.budget.requests == ["GetObject", "ListObjectVersions", "GetObject"]


def test_it_compares_the_current_version_with_the_one_before_it(bucket: Bucket, log: list[str]) -> None:
    put(bucket, with_tag(1, "a"))
    before = put(bucket, with_tag(2, "dev"))
    after = put(bucket, with_tag(3, "prod"))
    put(bucket, with_tag(9, "other"), "network/prod-2")

    document = found(bucket, {"values": "true"})

    for side, version, serial in (("from", before, 2), ("to", after, 3)):
        told = document.pop(side)
        assert told.pop("time").endswith("Z")
        assert told == {
            "version": version,
            "serial": serial,
            "terraform_version": "1.15.5",
            "size": len(with_tag(serial, "dev" if serial == 2 else "prod")),
            **dict.fromkeys(("principal", "owner", "who", "operation")),  # another program wrote it
        }
    assert document == {
        "name": "network/prod",
        "encrypted": False,
        "values": True,
        "lineage_changed": False,
        "resources": [
            {
                "address": "terraform_data.a",
                "change": "changed",
                "moved_from": None,
                "type": "terraform_data",
                "tainted": None,
                "provider": None,
                "attributes": [
                    {
                        "path": "password",
                        "change": "changed",
                        "before": None,
                        "after": None,
                        "sensitive": True,
                    },
                    {
                        "path": 'tags["env"]',
                        "change": "changed",
                        "before": '"dev"',
                        "after": '"prod"',
                        "sensitive": False,
                    },
                ],
            }
        ],
        "outputs": [],
        "summary": {"added": 0, "removed": 0, "moved": 0, "replaced": 0, "changed": 1, "outputs": 0},
    }
    [line] = log
    assert "state.compared" in line
    assert after in line
    assert "SECRET" not in line
    assert '"prod"' not in line


def test_values_are_left_out_unless_they_are_asked_for(bucket: Bucket) -> None:
    for value in ("dev", "prod"):
        put(bucket, with_tag(1, value))

    for query in (NO_QUERY, {"values": "false"}):
        document = found(bucket, query)
        assert document["values"] is False
        assert [part["path"] for part in document["resources"][0]["attributes"]] == [
            "password",
            'tags["env"]',
        ]
        assert "dev" not in json.dumps(document)


def test_versions_can_be_named_and_delete_markers_are_skipped(bucket: Bucket) -> None:
    first = put(bucket, with_tag(1, "a"))
    second = put(bucket, with_tag(2, "b"))
    bucket.s3.delete_object(Bucket=bucket.name, Key=NAME.state_key)
    third = put(bucket, with_tag(3, "c"))

    def compared(query: Query = NO_QUERY) -> tuple[str, str]:
        document = json.loads(ask(bucket, query)["body"])
        return document["from"]["version"], document["to"]["version"]

    assert compared() == (second, third)
    assert compared({"to": second}) == (first, second)
    assert compared({"from": first}) == (first, third)
    assert compared({"from": third, "to": first}) == (third, first)
    assert compared({"from": third}) == (third, third)


def test_a_deleted_state_is_compared_by_its_versions(bucket: Bucket) -> None:
    first, second = put(bucket, with_tag(1, "a")), put(bucket, with_tag(2, "b"))
    delete(work(bucket.direct_store(), NAME, OPERATOR))

    assert refused(bucket)[:2] == (404, "no_state")
    assert found(bucket, {"to": second})["from"]["version"] == first


def test_a_version_that_is_not_there_is_refused(bucket: Bucket) -> None:
    only = put(bucket, with_tag(1, "a"))
    other = put(bucket, with_tag(1, "a"), "network/other")
    marker = bucket.s3.delete_object(Bucket=bucket.name, Key=NAME.state_key)["VersionId"]

    for query in ({"to": only}, {"to": only, "from": other}, {"to": marker}, {"to": "made-up"}):
        assert refused(bucket, query)[:2] == (404, "no_such_version"), query
    status, code, message = refused(bucket, {"to": "x" * 201})
    assert (status, code) == (400, "invalid_request")
    assert "x" * 50 not in message


@pytest.mark.parametrize("query", [{"values": "yes"}, {"show": "true"}])
def test_a_parameter_that_breaks_a_rule_is_refused(bucket: Bucket, query: dict[str, str]) -> None:
    assert refused(bucket, query)[:2] == (400, "invalid_request")


def test_an_encrypted_version_is_told_with_its_head(bucket: Bucket) -> None:
    put(bucket, with_tag(1, "a"))
    put(bucket, encrypted_state(2, "…"))

    document = found(bucket, {"values": "true"})

    assert document["encrypted"] is True
    assert (document["from"]["serial"], document["to"]["serial"]) == (1, 2)
    assert (document["resources"], document["outputs"]) == ([], [])


def test_versions_above_the_limit_are_refused_with_both_sizes_and_not_read(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(diff, "MAX_BYTES", 2000)
    small, large = state(1), state(2, content="x" * 3000)
    put(bucket, small)
    put(bucket, large)
    put(bucket, state(3))

    for query in (NO_QUERY, {"to": bucket.history(NAME.state_key)[1][1]}):
        status, code, message = refused(bucket, query)
        assert (status, code) == (413, "too_large")
        assert f"{len(large)}" in message
        assert f"{len(small)}" in message or f"{len(state(3))}" in message
        assert "holdfast state get" in message


def test_a_version_of_more_values_than_are_parsed_is_refused(bucket: Bucket) -> None:
    put(bucket, state(1))
    put(bucket, state(2).replace(b'"resources": []', b'"resources": [' + b"0," * tracked.MAX_VALUES + b"0]"))

    status, code, message = refused(bucket)
    assert (status, code) == (413, "too_large")
    assert "at most 1,000,000" in message


@pytest.mark.parametrize(
    ("outputs", "instances", "expected"),
    [
        ({str(number): {} for number in range(19)}, 19, 200),
        ({"a": {"value": "," * 200}}, 0, 200),
        (
            {"a": {"value": list(range(160))}},
            0,
            "values of the state, but it can read at most 300",
        ),
        (
            {str(number): {} for number in range(21)},
            0,
            "at least 21 outputs of the state, but it can read at most 20",
        ),
        ({}, 21, "at least 21 instances of the state, but it can read at most 20"),
    ],
)
def test_two_versions_of_too_many_values_together_or_too_many_outputs_or_instances_are_refused(
    bucket: Bucket,
    monkeypatch: pytest.MonkeyPatch,
    outputs: Mapping[str, object],
    instances: int,
    expected: int | str,
) -> None:
    monkeypatch.setattr(tracked, "MAX_VALUES", 300)
    monkeypatch.setattr(tracked, "MOST_MEMBERS", 20)
    monkeypatch.setattr(tracked, "MAX_OBJECTS", 20)
    resource = {"mode": "managed", "type": "a", "name": "b"}
    many = [{"index_key": number} for number in range(instances)]
    for serial in (1, 2):
        document = {**json.loads(state(serial)), "outputs": outputs}
        put(bucket, json.dumps({**document, "resources": [{**resource, "instances": many}]}).encode())

    if expected == 200:
        assert found(bucket)["summary"]["outputs"] == 0
        return
    status, code, message = refused(bucket)
    assert (status, code) == (413, "too_large")
    assert re.search(str(expected), message)


def test_a_large_difference_is_compressed_or_refused(bucket: Bucket) -> None:
    def large(part: str) -> bytes:
        document = json.loads(with_tag(1, "a"))
        document["resources"][0]["instances"][0]["attributes"]["tags"] = {
            f"{part}{number:01000}": "" for number in range(3_500)
        }
        return json.dumps(document).encode()

    put(bucket, large("a"))
    put(bucket, large("b"))

    packed = ask(bucket, accepts="gzip")
    assert packed["statusCode"] == 200
    assert (
        len(json.loads(gzip.decompress(base64.b64decode(packed["body"])))["resources"][0]["attributes"])
        == 7_000
    )
    status, code, message = refused(bucket)
    assert (status, code) == (413, "too_large")
    assert "holdfast state get" in message


def test_another_lineage_is_told(bucket: Bucket) -> None:
    put(bucket, state(1, lineage=LINEAGE))
    put(bucket, state(1, lineage="other"))

    assert found(bucket)["lineage_changed"] is True


def test_the_default_takes_three_requests(bucket: Bucket) -> None:
    for value in ("a", "b"):
        put(bucket, with_tag(1, value))
    with bucket.sent("range") as sent:
        found(bucket)

    assert len(sent) == 3
