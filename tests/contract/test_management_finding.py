"""The routes of the management API about resources, from event to response, on a real S3 server."""

import itertools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any, Final

import pytest

from holdfast import audit, json_object, names
from holdfast.access import Caller, Grant, Role
from holdfast.errors import InvalidRequest, InvalidState, UnreadableState
from holdfast.state import find as searching
from holdfast.state import tracked
from holdfast.state.description import LARGEST_READ
from holdfast.state.document import Mask
from holdfast.state.find import By, Wanted
from holdfast.state.read import read, read_outputs
from holdfast.state.write import write
from tests.contract.conftest import (
    NAME,
    ONLY_OUTPUTS,
    READER,
    Answer,
    Bucket,
    Handle,
    Server,
    coded,
    decoded,
    error,
    started,
)
from tests.support.documents import ADA, encrypted_state, lock_info, state
from tests.support.events import Context, manage_request
from tests.support.work import work

BUCKET: Final = "holdfast-management-finding"
AWS: Final = "registry.example/hashicorp/aws"
MIXED: Final = Caller(
    "token:mixed", (Grant(Role.READER, ("network/*", "*/shared")), Grant(Role.OUTPUTS, ("billing/*", "a")))
)
"""A caller who may read some states, and only the outputs of others."""


@dataclass(frozen=True)
class Api:
    handle: Handle
    bucket: Bucket

    def find(self, sent: object, caller: Caller | None = READER) -> Answer:
        return self.handle(manage_request("POST", "find", caller=caller, body=json.dumps(sent)), Context())

    def found(self, caller: Caller = READER, /, **sent: str) -> Any:
        answer = self.find(sent, caller)
        assert answer["statusCode"] == 200, answer
        return json.loads(answer["body"])

    def ask(self, path: str, caller: Caller = READER) -> Answer:
        return self.handle(manage_request("GET", path, caller=caller), Context())

    def resources(self, cursor: str | None = None, caller: Caller = READER) -> Answer:
        query = {"cursor": cursor} if cursor else None
        return self.handle(manage_request("GET", f"resources/{NAME}", caller=caller, query=query), Context())

    def attributes(self, address: str, caller: Caller = READER, /, **more: str) -> Answer:
        query = {"address": address, **more}
        return self.handle(manage_request("GET", f"attributes/{NAME}", caller=caller, query=query), Context())

    def detail(self, address: str, **more: str) -> Any:
        answer = self.attributes(address, **more)
        assert answer["statusCode"] == 200, answer
        return json.loads(answer["body"])

    def listed(self, cursor: str | None = None) -> Any:
        answer = self.resources(cursor)
        assert answer["statusCode"] == 200, answer
        return json.loads(answer["body"])

    def put(self, name: str, body: bytes) -> str:
        key = names.parse(name).state_key
        return self.bucket.s3.put_object(Bucket=self.bucket.name, Key=key, Body=body)["VersionId"]


@pytest.fixture(scope="module")
def function(moto: Server) -> Iterator[Api]:
    with started(moto, "management", HOLDFAST_BUCKET=BUCKET) as handlers:
        yield Api(handlers["management"], Bucket(BUCKET, moto))


@pytest.fixture
def api(function: Api) -> Iterator[Api]:
    yield function
    function.bucket.empty()


def resource(
    name: str = "web", attributes: Mapping[str, object] | None = None, **more: object
) -> dict[str, Any]:
    instance = {"attributes": attributes or {"id": f"i-{name}"}, **more.pop("instance", {})}  # type: ignore[dict-item] # of JSON
    return {
        "mode": "managed",
        "type": "aws_instance",
        "name": name,
        "provider": f'provider["{AWS}"].west',
        "instances": [instance],
        **more,
    }


def document(*resources: Mapping[str, object]) -> bytes:
    return json.dumps({**json.loads(state(1)), "resources": resources}).encode()


def addresses(page: Any) -> list[tuple[str, list[str]]]:
    return [(found["name"], [each["address"] for each in found["resources"]]) for found in page["states"]]


# --- resources -----------------------------------------------------------------------------------


def test_resources_are_listed_by_address_type_and_provider_without_attributes(api: Api) -> None:
    version = api.put(
        "network/prod",
        document(
            resource(
                module='module.eu["a"]',
                instances=[
                    {"index_key": "blue", "attributes": {"id": "SECRET"}, "status": "tainted"},
                    {"index_key": "blue", "deposed": "0123abcd", "attributes": {"id": "SECRET"}},
                ],
            ),
            resource("ami", mode="data", type="aws_ami", provider="odd"),
        ),
    )

    answer = api.resources()

    assert "SECRET" not in answer["body"]
    web = {"module": 'module.eu["a"]', "mode": "managed", "type": "aws_instance", "name": "web"}
    address = 'module.eu["a"].aws_instance.web["blue"]'
    assert json.loads(answer["body"]) == {
        "name": "network/prod",
        "version": version,
        "encrypted": False,
        "resources": [
            {"address": address, **web, "provider": AWS, "tainted": True, "deposed": None},
            {
                "address": f"{address} (deposed 0123abcd)",
                **web,
                "provider": AWS,
                "tainted": False,
                "deposed": "0123abcd",
            },
            {
                "address": "data.aws_ami.ami",
                "module": None,
                "mode": "data",
                "type": "aws_ami",
                "name": "ami",
                "provider": "odd",
                "tainted": False,
                "deposed": None,
            },
        ],
        "next": None,
    }


def test_every_page_of_resources_is_of_the_version_of_the_first(api: Api, log: list[str]) -> None:
    instances = [{"index_key": number, "attributes": {}} for number in range(2500)]
    first = api.put("network/prod", document(resource(instances=instances)))

    page = api.listed()
    api.put("network/prod", document())
    pages = [page]
    while page["next"]:
        page = api.listed(page["next"])
        pages.append(page)

    assert [len(page["resources"]) for page in pages] == [1000, 1000, 500]
    assert {page["version"] for page in pages} == {first}
    found = [each["address"] for page in pages for each in page["resources"]]
    assert found == [f"aws_instance.web[{number}]" for number in range(2500)]
    lines = [json.loads(line) for line in log]
    assert [(line["message"], line["version_id"], line["s3_requests"]) for line in lines] == [
        ("state.described", first, 1)
    ] * 3


def test_a_page_of_resources_with_long_texts_ends_early_and_the_texts_are_cut(api: Api) -> None:
    instances = [{"index_key": f"{number} " + "\x01" * 900, "attributes": {}} for number in range(600)]
    api.put("network/prod", document(resource("n" * 9_000, instances=instances)))

    pages: list[Any] = []
    cursor = None
    while not pages or cursor:
        answer = api.resources(cursor)
        assert answer["statusCode"] == 200
        assert len(json.dumps(answer)) < 4_000_000
        pages.append(json.loads(answer["body"]))
        cursor = pages[-1]["next"]

    assert sum(len(page["resources"]) for page in pages) == 600
    assert max(len(page["resources"]) for page in pages) < 300
    assert {len(each["address"]) for page in pages for each in page["resources"]} == {500}


def dense(instances: str) -> bytes:
    """Return a state with such instances, which no client writes."""
    resource_ = '{"mode":"managed","type":"a","name":"b","instances":[' + instances + "]}"
    return ('{"version":4,"serial":1,"lineage":"x","resources":[' + resource_ + "]}").encode()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (None, (404, "no_state")),
        (b"", (409, "unreadable_version")),
        (b"[]", (409, "unreadable_version")),
        (b'{"version": 3, "serial": 1}', (409, "unreadable_version")),
        (b'{"version": 4, "resources": [{"mode": 1}]}', (409, "unreadable_version")),
        (b'{"version": 4, "resources": ' + b"[" * 9_000 + b"]" * 9_000 + b"}", (409, "unreadable_version")),
        (document(resource()) + b" " * LARGEST_READ, (413, "too_large")),
        (dense("{}," * 1_500_000 + "{}"), (413, "too_large")),
        (dense('{"attributes":{"a":[' + "0," * tracked.MAX_VALUES + "0]}}"), (413, "too_large")),
    ],
)
def test_the_refusal_says_why_there_are_no_resources_to_list(
    api: Api, body: bytes | None, expected: tuple[int, str]
) -> None:
    if body is not None:
        api.put("network/prod", body)

    assert error(api.resources()) == expected


def test_an_encrypted_state_has_no_resources_to_list(api: Api) -> None:
    api.put("network/prod", encrypted_state(1, "xxx"))

    page = api.listed()

    assert (page["encrypted"], page["resources"], page["next"]) == (True, [], None)


def test_a_cursor_of_resources_is_for_one_version_of_one_state(api: Api) -> None:
    version = api.put("network/prod", document(resource()))
    other = api.put("network/other", document(resource()))

    wrong: list[Sequence[object]] = [
        ("resources", "network/other", other, 1),
        ("resources", "network/prod", version, 0),
        ("resources", "network/prod", version, -1),
        ("resources", "network/prod", version, True),
        ("resources", "network/prod", "", 1),
        ("resources", "network/prod", "x" * 129, 1),
        ("versions", "network/prod", version, 1),
        ("resources", "network/prod", version),
    ]
    for fields in wrong:
        assert error(api.resources(coded(*fields))) == (400, "invalid_request"), fields
    assert error(api.resources("made-up")) == (400, "invalid_request")
    assert error(api.resources(coded("resources", "network/prod", other, 1))) == (404, "no_such_version")
    assert api.listed(coded("resources", "network/prod", version, 9))["resources"] == []


# --- attributes ----------------------------------------------------------------------------------

POLICY: Final = {"Statement": [{"Action": "s3:GetObject"}]}
GUARDED: Final = {
    "id": "i-web",
    "tags": {"env": "prod", "owner": None},
    "ports": [80, 443.0],
    "policy": json.dumps(POLICY),
    "password": "CONFIDENTIAL",
    "copied": "CONFIDENTIAL",
    "login": {"user": "ada", "key": "CONFIDENTIAL-TOO"},
    "nothing": None,
}
MARKED: Final = [
    [{"type": "get_attr", "value": "password"}],
    [
        {"type": "get_attr", "value": "login"},
        {"type": "index", "value": {"type": "string", "value": "key"}},
    ],
]


def guarded(**more: object) -> bytes:
    instance = {"attributes": GUARDED, "sensitive_attributes": MARKED, **more}
    return document(resource(instances=[instance]))


def told(detail: Any) -> dict[str, str | None]:
    return {each["path"]: each["value"] for each in detail["attributes"]}


def test_the_attributes_of_a_resource_are_hidden_until_their_values_are_asked_for(api: Api) -> None:
    version = api.put("network/prod", guarded(status="tainted"))

    hidden = api.detail("aws_instance.web")
    assert "i-web" not in json.dumps(hidden)
    assert set(told(hidden).values()) == {None}
    shown = api.detail("aws_instance.web", values="true")
    assert hidden == {
        **shown,
        "values": False,
        "attributes": [{**each, "value": None} for each in shown["attributes"]],
    }
    attributes = shown.pop("attributes")
    assert shown == {
        "name": "network/prod",
        "version": version,
        "address": "aws_instance.web",
        "type": "aws_instance",
        "provider": AWS,
        "tainted": True,
        "values": True,
    }
    assert {each["path"]: each["value"] for each in attributes} == {
        "copied": None,
        "id": '"i-web"',
        'login["key"]': None,
        'login["user"]': '"ada"',
        "password": None,
        "policy": json.dumps(json.dumps(POLICY)),
        "ports[0]": "80",
        "ports[1]": "443.0",
        'tags["env"]': '"prod"',
        'tags["owner"]': "null",
    }
    hidden_ones = {each["path"] for each in attributes if each["sensitive"]}
    assert hidden_ones == {"copied", 'login["key"]', "password"}
    assert "CONFIDENTIAL" not in json.dumps(attributes)


def test_an_address_means_one_instance_of_one_module_and_a_deposed_object_is_named(api: Api) -> None:
    instances = [
        {"index_key": 'a"b', "attributes": {"id": "blue"}},
        {"index_key": 'a"b', "deposed": "0123abcd", "attributes": {"id": "old"}},
        {"index_key": "c", "attributes": {"id": "green"}},
    ]
    api.put(
        "network/prod",
        document(
            resource(module="module.eu[0]", instances=instances),
            resource(instances=[{"index_key": 1, "attributes": {"id": "root"}}]),
            resource(mode="data", instances=[{"attributes": {"id": "read"}}]),
        ),
    )

    addresses = [each["address"] for each in api.listed()["resources"]]
    assert [told(api.detail(address, values="true")) for address in addresses] == [
        {"id": f'"{id_}"'} for id_ in ("blue", "old", "green", "root", "read")
    ]
    assert [api.detail(address)["address"] for address in addresses] == addresses


def test_the_attributes_are_those_of_the_version_that_is_named(api: Api, log: list[str]) -> None:
    first = api.put("network/prod", document(resource(attributes={"id": "old"})))
    second = api.put("network/prod", document(resource(attributes={"id": "new"})))

    assert told(api.detail("aws_instance.web", values="true", version=first)) == {"id": '"old"'}
    assert told(api.detail("aws_instance.web", values="true")) == {"id": '"new"'}
    lines = [json.loads(line) for line in log]
    assert [(line["message"], line["version_id"], line["s3_requests"]) for line in lines] == [
        ("state.read", first, 1),
        ("state.read", second, 1),
    ]
    assert not any("aws_instance" in line for line in log)


@pytest.mark.parametrize(
    ("address", "more", "expected"),
    [
        ("aws_instance.we", {}, (404, "no_resource")),
        ("aws_instance.web[0]", {}, (404, "no_resource")),
        ("AWS_INSTANCE.web", {}, (404, "no_resource")),
        ("\x00", {}, (404, "no_resource")),
        ("", {}, (400, "invalid_request")),
        ("x" * 4001, {}, (400, "invalid_request")),
        ("aws_instance.web", {"values": "yes"}, (400, "invalid_request")),
        ("aws_instance.web", {"version": "@previous"}, (400, "invalid_request")),
        ("aws_instance.web", {"version": "unknown"}, (404, "no_such_version")),
        ("aws_instance.web", {"cursor": "x"}, (400, "invalid_request")),
    ],
)
def test_attributes_of_what_there_is_not_get_its_code(
    api: Api, address: str, more: dict[str, str], expected: tuple[int, str]
) -> None:
    api.put("network/prod", document(resource()))
    answer = api.attributes(address, **more)
    assert error(answer) == expected
    assert "aws_instance" not in answer["body"]


def test_attributes_that_cannot_be_read_get_a_code_that_says_why(api: Api) -> None:
    assert error(api.attributes("aws_instance.web")) == (404, "no_state")
    api.put("network/prod", encrypted_state(1, "x"))
    assert error(api.attributes("aws_instance.web")) == (409, "encrypted_state")
    api.put("network/prod", b'{"version": 4, "serial": 1, "resources": [5]}')
    assert error(api.attributes("aws_instance.web")) == (409, "unreadable_version")
    api.put("network/prod", document(resource(attributes={"id": "x" * 5_000_001})))
    assert error(api.attributes("aws_instance.web", values="true")) == (413, "too_large")
    assert api.attributes("aws_instance.web")["statusCode"] == 200
    api.put("network/prod", b" " * (LARGEST_READ + 1))
    assert error(api.attributes("aws_instance.web")) == (413, "too_large")


def test_an_address_is_compared_without_making_a_text_of_each_long_name(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    instances = [{"index_key": number, "attributes": {}} for number in range(3)]
    api.put("network/prod", document(resource("n" * 100_000, instances=instances), resource()))
    made: list[int] = []
    text = tracked.Address.__str__

    def counted(address: tracked.Address) -> str:
        made.append(address.characters)
        return text(address)

    monkeypatch.setattr(tracked.Address, "__str__", counted)
    assert told(api.detail("aws_instance.web", values="true")) == {"id": '"i-web"'}
    assert max(made) < 100


def test_who_may_read_outputs_only_may_not_read_attributes(api: Api) -> None:
    api.put("network/prod", guarded())
    assert error(api.attributes("aws_instance.web", ONLY_OUTPUTS)) == (403, "not_allowed")


# --- find ----------------------------------------------------------------------------------------


@pytest.fixture
def network(api: Api) -> Api:
    """The API, with two states that have similar resources."""
    api.put("network/prod", document(resource("web", {"id": "i-1", "arn": "arn:aws:x/i-1", "ami": "ami-7"})))
    api.put(
        "network/dev",
        document(
            resource("web_eu", {"id": "i-2", "tags": {"id": "i-1"}, "name": "i-1"}, module="module.Web"),
            resource("db", {"id": 12, "self_link": "projects/x", "urn": "do:7"}, type="aws_db_instance"),
        ),
    )
    return api


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (
            {"address": "instance.web"},
            {"network/dev": ["module.Web.aws_instance.web_eu"], "network/prod": ["aws_instance.web"]},
        ),
        ({"address": "MODULE.wEB.aws"}, {"network/dev": ["module.Web.aws_instance.web_eu"]}),
        ({"type": "aws_db_instance"}, {"network/dev": ["aws_db_instance.db"]}),
        ({"type": "aws_db"}, {}),
        ({"type": "AWS_DB_INSTANCE"}, {}),
        ({"id": "i-1"}, {"network/prod": ["aws_instance.web"]}),
        ({"id": "arn:aws:x/i-1"}, {"network/prod": ["aws_instance.web"]}),
        ({"id": "projects/x"}, {"network/dev": ["aws_db_instance.db"]}),
        ({"id": "do:7"}, {"network/dev": ["aws_db_instance.db"]}),
        ({"id": "12"}, {"network/dev": ["aws_db_instance.db"]}),
        ({"id": "ami-7"}, {}),
        ({"id": "i-"}, {}),
        ({"address": "web", "prefix": "network/p"}, {"network/prod": ["aws_instance.web"]}),
    ],
)
def test_a_resource_is_found_by_part_of_its_address_its_type_or_its_id(
    network: Api, sent: dict[str, str], expected: dict[str, list[str]]
) -> None:
    page = network.found(**sent)

    assert dict(addresses(page)) == expected
    assert [found["matches"] for found in page["states"]] == [1] * len(expected)
    assert (page["searched"], page["left"], page["next"]) == (1 if "prefix" in sent else 2, 0, None)


def test_a_value_that_the_state_marks_as_sensitive_is_not_compared(api: Api) -> None:
    def marked(name: str, *sensitive: object) -> dict[str, Any]:
        return resource(name, {"id": "s3cr3t"}, instance={"sensitive_attributes": sensitive})

    of_id = [{"type": "get_attr", "value": "id"}]
    of_other = [{"type": "get_attr", "value": "password"}]
    api.put("a", document(marked("a", of_id), marked("b", "broken"), marked("c", of_other), marked("d")))

    page = api.found(id="s3cr3t")

    # A path to a missing attribute, as in `c`, marks the last value on the path.
    assert addresses(page) == [("a", ["aws_instance.d"])]
    assert "s3cr3t" not in json.dumps(page)


def test_a_state_that_the_caller_may_not_read_whole_is_neither_searched_nor_counted_nor_named(
    api: Api,
) -> None:
    for name in ("a", "b", "billing/prod", "billing/shared", "network/prod", "other/x/shared", "zz/shared"):
        api.put(name, document(resource()))
    api.put("billing/huge", b"x" * 9)

    page = api.found(MIXED, address="web")

    assert [name for name, _ in addresses(page)] == ["billing/shared", "network/prod", "zz/shared"]
    assert (page["skipped"], page["searched"], page["left"]) == ([], 3, 0)
    assert "other/x" not in json.dumps(page)
    assert error(api.find({"address": "web"}, ONLY_OUTPUTS)) == (403, "not_allowed")


def test_a_search_by_prefix_or_cursor_stays_within_what_the_caller_may_read(api: Api) -> None:
    for name in ("billing/prod", "network/prod", "network/z"):
        api.put(name, document(resource()))

    assert api.found(MIXED, address="web", prefix="billing/")["searched"] == 0
    for outside in ("states/billing/prod.tfstate", "states/billing/q", "x", ""):
        sent = {"address": "web", "cursor": coded("readable", outside)}
        assert error(api.find(sent, MIXED)) == (400, "invalid_request"), outside
    within = api.found(MIXED, address="web", cursor=coded("readable", "states/network/prod.tfstate"))
    assert addresses(within) == [("network/z", ["aws_instance.web"])]


def test_large_encrypted_and_unreadable_states_are_named_as_skipped(api: Api) -> None:
    api.put("a/encrypted", encrypted_state(1, "web"))
    api.put("a/empty", b"")
    api.put("a/large", document(resource()) + b" " * searching.MAX_STATE)
    api.put("a/odd", b'{"version": 4, "resources": [{"mode": "managed", "name": "web"}]}')
    api.put("a/old", b'{"version": 3, "modules": []}')
    api.put("a/prod", document(resource()))

    page = api.found(address="web")

    assert addresses(page) == [("a/prod", ["aws_instance.web"])]
    assert page["searched"] == 6
    assert [(each["name"], each["why"]) for each in page["skipped"]] == [
        ("a/empty", "unreadable"),
        ("a/encrypted", "encrypted"),
        ("a/large", "too_large"),
        ("a/odd", "unreadable"),
        ("a/old", "unreadable"),
    ]
    assert page["skipped"][2]["size"] > searching.MAX_STATE


def test_a_state_whose_addresses_are_longer_than_itself_is_skipped_in_time(api: Api) -> None:
    instance = {"attributes": {"id": "i"}}
    wide = resource("w" * 1_000_000, instances=[instance] * 1_000)
    api.put("a/wide", document(wide))
    api.put("b/prod", document(resource()))

    page = api.found(address="w")

    assert [(each["name"], each["why"]) for each in page["skipped"]] == [("a/wide", "too_large")]
    assert addresses(page) == [("b/prod", ["aws_instance.web"])]


def test_a_state_of_millions_of_empty_values_is_skipped_before_it_is_parsed(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.put("a/dense", dense("{}," * 1_500_000 + "{}"))
    api.put("b/prod", document(resource()))
    parsed: list[int] = []
    elements = json_object.elements

    def noted(array: bytes) -> Iterator[bytes]:
        parsed.append(len(array))
        return elements(array)

    monkeypatch.setattr(json_object, "elements", noted)

    page = api.found(address="web")

    assert [(each["name"], each["why"]) for each in page["skipped"]] == [("a/dense", "too_large")]
    assert addresses(page) == [("b/prod", ["aws_instance.web"])]
    assert [length < 1_000 for length in parsed] == [True]


def test_an_instance_counts_as_much_as_a_client_writes_for_one(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracked, "MAX_OBJECTS", 100)
    many = resource(instances=[{"attributes": {}}] * 101)
    api.put("a/many", document(many))
    api.put("b/as-many", document(resource(instances=[{"attributes": {}}] * 100)))

    page = api.found(address="web")

    assert [(each["name"], each["why"]) for each in page["skipped"]] == [("a/many", "too_large")]
    assert [each["matches"] for each in page["states"]] == [100]


def test_of_a_state_with_many_matches_the_first_are_shown_and_all_are_counted(api: Api) -> None:
    instances = [{"index_key": number, "attributes": {}} for number in range(3000)]
    for number in range(12):
        api.put(f"a/{number:02}", document(resource(instances=instances)))

    page = api.found(address="web")

    assert {(found["matches"], len(found["resources"])) for found in page["states"]} == {(3000, 100)}
    assert (page["searched"], page["left"]) == (10, 2)
    rest = api.found(address="web", cursor=page["next"])
    assert [name for name, _ in addresses(rest)] == ["a/10", "a/11"]


def test_a_page_ends_before_it_reads_too_much_but_has_at_least_one_state(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = document(resource())
    for number in range(5):
        api.put(f"a/{number}", one)
    store, wanted = api.bucket.store(), Wanted(By.TYPE, "x")
    monkeypatch.setattr(searching, "MAX_BYTES", 2 * len(one) + 1)

    pages: list[searching.Page] = []
    cursor = None
    while not pages or cursor:
        pages.append(searching.page(store, wanted, "", cursor, READER, page_size=4))
        cursor = pages[-1].next

    assert [(page.searched, page.left) for page in pages] == [(2, None), (2, 1), (1, 0)]
    assert store.budget.requests.count("GetObject") == 5
    with monkeypatch.context() as late:
        late.setattr(searching, "SECONDS", 0.0)
        assert searching.page(store, wanted, "", None, READER).searched == 1
    monkeypatch.setattr(searching, "MAX_BYTES", 1)
    assert searching.page(store, wanted, "", None, READER).searched == 1


def test_a_page_of_the_api_ends_after_three_seconds_or_32_megabytes(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        api.put(f"large/{number}", document(resource()) + b" " * 9_000_000)
    for number in range(60):
        api.put(f"small/{number:02}", document(resource()))
    seconds = itertools.count(0, 0.1)
    monkeypatch.setattr(searching, "time", SimpleNamespace(monotonic=lambda: next(seconds)))

    large = api.found(type="x", prefix="large/")
    small = api.found(type="x", prefix="small/")

    assert (large["searched"], large["left"], large["next"] is None) == (3, 2, False)
    assert 25 <= small["searched"] <= 30  # each look at the clock is a tenth of a second


def test_a_page_ends_in_time_although_s3_is_slow(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(40):
        api.put(f"a/{number}", document(resource()))
    store = api.bucket.store()
    read = store.read_at_most

    def slow(*arguments: Any) -> Any:
        time.sleep(0.2)
        return read(*arguments)

    monkeypatch.setattr(store, "read_at_most", slow)
    monkeypatch.setattr(searching, "SECONDS", 0.3)

    page = searching.page(store, Wanted(By.TYPE, "x"), "", None, READER)

    assert 1 <= page.searched <= 24  # one on a busy machine
    assert (page.left, page.next is None) == (40 - page.searched, False)


def test_a_search_takes_one_request_for_the_list_and_one_for_each_state(network: Api, log: list[str]) -> None:
    network.put("network/large", b" " * (searching.MAX_STATE + 1))
    network.bucket.s3.put_object(
        Bucket=BUCKET, Key=names.parse("network/new").lock_key, Body=lock_info("new")
    )

    page = network.found(address="web")

    assert page["searched"] == 3
    assert json.loads(log[0])["s3_requests"] == 3
    store = network.bucket.store()
    searching.page(store, Wanted(By.TYPE, "x"), "", None, READER)
    assert store.budget.requests == ["ListObjectsV2", "GetObject", "GetObject"]


def test_what_is_searched_for_is_in_no_log_line(
    network: Api, log: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    word = "Wanted-4711"
    page = network.found(id=word)
    cursor = coded("readable", "states/network/dev.tfstate")
    sent: list[object] = [
        {"address": word, "cursor": cursor},
        {"address": word, "type": word},
        {"address": word, "prefix": f"{word} "},
        {"address": word, "cursor": word},
        {"address": [word]},
        {"address": word * 100},
        {"adress": word},
        word,
    ]
    statuses = [network.find(each)["statusCode"] for each in sent]

    assert page["searched"] == 2
    assert statuses == [200, *[400] * 7]
    assert [json.loads(line)["message"] for line in log] == [
        *["states.searched"] * 2,
        *["request.refused"] * 7,
    ]
    assert json.loads(log[0])["trail"] == "holdfast.audit"
    printed = "".join([*log, *capfd.readouterr()])
    assert word.lower() not in printed.lower()
    assert "4711" not in repr(Wanted(By.ID, word))


def test_a_search_is_one_event_of_the_audit_trail_and_a_page_of_no_search_is_one_too(
    network: Api, log: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def audited(caller: Caller = READER, **sent: str) -> bool:
        network.found(caller, **sent)
        return bool(json.loads(log[-1]).get("trail") == audit.MARK)

    monkeypatch.setattr(searching, "PAGE", 1)
    cursor = network.found(type="aws_instance")["next"]
    made_up = coded("readable", "states/network/a.tfstate")

    assert not audited(type="aws_instance", cursor=cursor)
    assert not audited(type="aws_instance", cursor=cursor)  # the client repeats a lost page
    assert audited(type="aws_instance")
    assert audited(type="aws_instance", cursor=made_up)
    assert audited(type="aws_db_instance", cursor=cursor)
    assert audited(address="aws_instance", cursor=cursor)
    assert audited(type="aws_instance", cursor=cursor, prefix="network/")
    assert audited(MIXED, type="aws_instance", cursor=cursor)
    assert {json.loads(line)["message"] for line in log} == {"states.searched"}


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"cursor": "x"},
        {"address": ""},
        {"address": None},
        {"address": 7},
        {"id": "x" * 1001},
        {"id": "x", "type": "x"},
        {"id": "x", "attribute": "ami"},
        {"id": "x", "prefix": "/"},
        {"id": "x", "prefix": 7},
        {"id": "x", "cursor": "made-up"},
        {"id": "x", "cursor": coded("states", "states/network/prod.tfstate")},
        [],
    ],
)
def test_a_wrong_search_is_refused(network: Api, sent: object) -> None:
    assert error(network.find(sent)) == (400, "invalid_request")


@pytest.mark.parametrize("route", ["{path+}", "{proxy+}"])
def test_a_search_at_another_route_of_the_gateway_is_refused_because_it_has_other_limits(
    network: Api, route: str
) -> None:
    for path in ("find", "find/"):
        event = manage_request("POST", "find", caller=ADA, body='{"type": "x"}')
        event |= {"routeKey": f"ANY /manage/v1/{route}", "pathParameters": {route.strip("{}+"): path}}

        assert error(network.handle(event, Context())) == (400, "unknown_route")


def test_the_next_page_begins_after_the_last_state(network: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MAX_BYTES", 1)
    page = searching.page(network.bucket.store(), Wanted(By.TYPE, "x"), "", None, READER)

    assert decoded(page.next or "") == ["readable", "states/network/dev.tfstate"]
    with pytest.raises(InvalidRequest):
        Wanted(By.ID, "")


def nested(serial: int) -> bytes:
    """Return a state of arrays in arrays, as no client writes it: parsed, it takes 42 times its bytes."""
    pair = b"[[[[[]]]]]"
    arrays = b",".join([pair] * (json_object.ARRAYS_FROM // (len(pair) + 1) + 1))
    written = document(resource(instances=[{"attributes": {"a": "HERE"}}]))
    return written.replace(b'"serial": 1', b'"serial": %d' % serial).replace(b'"HERE"', b"[%b]" % arrays)


def test_a_state_of_arrays_in_arrays_is_written_no_more_and_stays_readable_where_it_is(api: Api) -> None:
    by_ada = work(api.bucket.direct_store(), NAME, ADA)
    with pytest.raises(InvalidState, match="Above 8 MB, a body may have at most one array for each 16 bytes"):
        write(by_ada, nested(1), None)
    assert api.bucket.history("") == []

    for serial in (1, 2):  # from an earlier version
        api.put(NAME.value, nested(serial))
    assert read(by_ada) == nested(2)
    page = api.found(address="web")
    assert [(each["name"], each["why"]) for each in page["skipped"]] == [(NAME.value, "too_large")]
    assert error(api.resources()) == (413, "too_large")
    assert error(api.ask(f"diff/{NAME}")) == (413, "too_large")
    described = json.loads(api.ask(f"states/{NAME}")["body"])
    assert (described["size"], described["resources"], described["encrypted"]) == (len(nested(2)), None, None)


def test_a_description_of_a_state_of_many_values_has_no_numbers(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracked, "MAX_VALUES", 50)
    for number, resources in ((3, {"managed": 3, "data": 0, "outputs": 1}), (60, None)):
        api.put(NAME.value, document(resource(instances=[{"index_key": each} for each in range(number)])))
        described = json.loads(api.ask(f"states/{NAME}")["body"])
        assert (described["resources"], described["status"]) == (resources, "other_program")


def test_outputs_are_separated_from_each_other_up_to_a_number(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_object, "MOST_MEMBERS", 20)
    masked = partial(read_outputs, work(api.bucket.direct_store(), NAME, ADA), Mask.ALL)

    def put(number: int) -> None:
        outputs = {str(each): {"value": each, "type": "number"} for each in range(number)}
        api.put(NAME.value, json.dumps({**json.loads(state(1)), "outputs": outputs}).encode())

    put(20)
    assert len(json.loads(masked() or b"")["outputs"]) == 20
    put(21)
    with pytest.raises(UnreadableState, match=r"must be an object\. Each may have at most 20 members"):
        masked()


@pytest.mark.parametrize("route", ["content", "diff", "resources"])
def test_a_document_of_more_members_than_are_read_says_so(api: Api, route: str) -> None:
    many = {**json.loads(state(1)), **{f"x{number}": 1 for number in range(2_000_000 // 9)}}
    for _ in range(2):
        api.put(NAME.value, json.dumps(many).encode())

    status, code = error(api.ask(f"{route}/{NAME}", ONLY_OUTPUTS if route == "content" else READER))

    assert (status, code) in ((409, "unreadable_state"), (409, "unreadable_version"))
