"""The differences between two state documents, without the values that stay secret."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict
from itertools import count
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import TooLarge, UnreadableVersion
from holdfast.state import tracked
from holdfast.state.attribute_diff import Attribute
from holdfast.state.diff import Diff, compare
from tests.support.documents import LINEAGE, encrypted_state

AWS = 'provider["registry.terraform.io/hashicorp/aws"]'
NOTHING: Final[Mapping[str, Any]] = {}
Json = Any
Path = Sequence[str | int]


def state(*resources: Mapping[str, Json], outputs: Json = NOTHING, **more: Json) -> bytes:
    document = {
        "version": 4,
        "terraform_version": "1.11.4",
        "serial": 3,
        "lineage": LINEAGE,
        "outputs": outputs,
        "resources": resources,
        **more,
    }
    return json.dumps(document).encode()


def resource(name: str, /, *instances: Mapping[str, Json], **more: Json) -> dict[str, Json]:
    head = {"mode": "managed", "type": "aws_instance", "name": name, "provider": AWS}
    return {**head, "instances": instances, **more}


def one(attributes: Json, *sensitive: Path, **more: Json) -> dict[str, Json]:
    return {"attributes": attributes, "sensitive_attributes": [path(*steps) for steps in sensitive], **more}


def path(*steps: str | int) -> list[dict[str, Json]]:
    """A path as Terraform writes it: a text is the name of an attribute, with "=" before it a key."""
    return [
        {"type": "index", "value": {"value": step, "type": "number"}}
        if isinstance(step, int)
        else {"type": "index", "value": {"value": step[1:], "type": "string"}}
        if step.startswith("=")
        else {"type": "get_attr", "value": step}
        for step in steps
    ]


def changes(diff: Diff) -> list[tuple[str, str, str | None]]:
    return [(found.address, found.change.value, found.moved_from) for found in diff.resources]


def attributes(
    before: Mapping[str, Json], after: Mapping[str, Json], *, values: bool = True
) -> list[Attribute]:
    """The attributes in which two instances of a resource differ."""
    diff = compare(state(resource("a", before)), state(resource("a", after)), values=values)
    return [attribute for found in diff.resources for attribute in found.attributes]


def told(before: Mapping[str, Json], after: Mapping[str, Json]) -> dict[str, tuple[str | None, str | None]]:
    """The values that the diff shows for the attributes that differ."""
    return {found.path: (found.before, found.after) for found in attributes(before, after)}


def masked(before: Mapping[str, Json], after: Mapping[str, Json]) -> set[str]:
    found = [attribute for attribute in attributes(before, after) if attribute.is_sensitive]
    assert all(attribute.before is None and attribute.after is None for attribute in found)
    return {attribute.path for attribute in found}


# --- resources -----------------------------------------------------------------------------------


def test_resources_are_listed_by_address_with_what_happened_to_them() -> None:
    before = state(
        resource("kept", one({"id": "k"})),
        resource("gone", one({"id": "g"})),
        resource("old", one({"id": "m", "size": 1})),
        resource("replaced", one({"id": "1"})),
        resource("changed", one({"id": "c", "size": 1})),
        resource("tainted", one({"id": "t"})),
    )
    after = state(
        resource("new", one({"id": "m", "size": 2})),
        resource("tainted", one({"id": "t"}, status="tainted")),
        resource("replaced", one({"id": "2"})),
        resource("changed", one({"id": "c", "size": 2})),
        resource("kept", one({"id": "k"})),
        resource("added", one({"id": "a"})),
        serial=4,
    )

    diff = compare(before, after)

    assert changes(diff) == [
        ("aws_instance.added", "added", None),
        ("aws_instance.changed", "changed", None),
        ("aws_instance.gone", "removed", None),
        ("aws_instance.new", "moved", "aws_instance.old"),
        ("aws_instance.replaced", "replaced", None),
        ("aws_instance.tainted", "changed", None),
    ]
    assert [found.tainted for found in diff.resources] == [None, None, None, None, None, True]
    assert [[part.path for part in found.attributes] for found in diff.resources] == [
        [], ["size"], [], ["size"], ["id"], [],
    ]  # fmt: skip
    assert diff.summary == {"added": 1, "removed": 1, "moved": 1, "replaced": 1, "changed": 2, "outputs": 0}
    assert (diff.before.revision.serial, diff.after.revision.serial) == (3, 4)


def test_the_order_of_resources_and_of_members_does_not_matter() -> None:
    a, b = resource("a", one({"id": "1", "x": 1})), resource("b", one({"id": "2"}))
    turned = resource("a", one({"x": 1, "id": "1"}))

    assert compare(state(a, b), state(b, turned)).resources == ()


@pytest.mark.parametrize(
    ("more", "instance", "address"),
    [
        ({}, {}, "aws_instance.a"),
        ({"mode": "data"}, {}, "data.aws_instance.a"),
        ({"module": 'module.m["x"].module.n[0]'}, {}, 'module.m["x"].module.n[0].aws_instance.a'),
        ({"module": "module.m", "mode": "data"}, {}, "module.m.data.aws_instance.a"),
        ({}, {"index_key": 0}, "aws_instance.a[0]"),
        ({}, {"index_key": 'a"b'}, 'aws_instance.a["a\\"b"]'),
        ({}, {"index_key": ""}, 'aws_instance.a[""]'),
        ({}, {"index_key": 1, "deposed": "1a2b3c4d"}, "aws_instance.a[1] (deposed 1a2b3c4d)"),
    ],
)
def test_addresses_are_those_that_clients_print(more: Json, instance: Json, address: str) -> None:
    added = state(resource("a", one({}, **instance), **more))
    assert changes(compare(state(), added)) == [(address, "added", None)]


def test_instances_come_in_the_order_of_their_keys() -> None:
    instances = [one({}, index_key=key) for key in (10, "b", 9, "a")]

    assert [address for address, *_ in changes(compare(state(), state(resource("a", *instances))))] == [
        "aws_instance.a[9]", "aws_instance.a[10]", 'aws_instance.a["a"]', 'aws_instance.a["b"]',
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([one({"id": ""})], [one({"id": ""})], id="empty"),
        pytest.param([one({"id": None})], [one({"id": None})], id="null"),
        pytest.param([one({"id": "none"})], [one({"id": "none"})], id="what a provider stores for no ID"),
        pytest.param([one({"id": "x"})], [one({"id": "x"}), one({"id": "x"})], id="two after"),
        pytest.param([one({"id": "x"}), one({"id": "x"})], [one({"id": "x"})], id="two before"),
        pytest.param([one({"id": "x"})], [one({"id": "x"}, deposed="1")], id="deposed"),
        pytest.param([one({"name": "x"})], [one({"name": "x"})], id="no ID"),
    ],
)
def test_a_move_is_never_guessed(before: Sequence[Json], after: Sequence[Json]) -> None:
    older = [resource(f"b{number}", instance) for number, instance in enumerate(before)]
    newer = [resource(f"a{number}", instance) for number, instance in enumerate(after)]

    assert {change for _, change, _ in changes(compare(state(*older), state(*newer)))} == {"added", "removed"}


@pytest.mark.parametrize(
    "more", [{"type": "aws_eip"}, {"provider": 'provider["example.com/a/aws"]'}, {"mode": "data"}]
)
def test_nothing_moves_to_another_type_or_provider_or_into_data(more: Json) -> None:
    found = compare(state(resource("a", one({"id": "x"}))), state(resource("b", one({"id": "x"}), **more)))

    assert {change for _, change, _ in changes(found)} == {"added", "removed"}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            [resource("a", one({"id": "1"}, index_key=0))],
            [resource("a", one({"id": "2"}, index_key="0"))],
            [("aws_instance.a[0]", "removed", None), ('aws_instance.a["0"]', "added", None)],
            id="keys that are a number and a text are two",
        ),
        pytest.param(
            [resource("a", one({"id": "x"}))],
            [resource("a", one({"id": "x"}), module="module.m", provider=f"module.m.{AWS}.west")],
            [("module.m.aws_instance.a", "moved", "aws_instance.a")],
            id="the configuration of a provider does not keep a resource from moving",
        ),
        pytest.param(
            [resource("a", one({"id": "zero"}, index_key=0), one({"id": "one"}, index_key=1))],
            [resource("a", one({"id": "one"}, index_key=0))],
            [("aws_instance.a[0]", "moved", "aws_instance.a[1]"), ("aws_instance.a[0]", "removed", None)],
            id="the rest of an identity that moved away is shown",
        ),
        pytest.param(
            [resource("a", one({"id": "1"})), resource("b", one({"id": "2"}))],
            [resource("a", one({"id": "2"})), resource("b", one({"id": "1"}))],
            [("aws_instance.a", "moved", "aws_instance.b"), ("aws_instance.b", "moved", "aws_instance.a")],
            id="two that changed places have moved",
        ),
        pytest.param(
            [resource("a", one({"id": "1"}), mode="data")],
            [resource("a", one({"id": "2"}), mode="data")],
            [("data.aws_instance.a", "changed", None)],
            id="data with another ID has changed",
        ),
    ],
)
def test_an_identity_is_followed(before: Sequence[Json], after: Sequence[Json], expected: Json) -> None:
    assert changes(compare(state(*before), state(*after))) == expected


@pytest.mark.parametrize("provider", [f"{AWS}.west", 'provider["example.com/acme/aws"]'])
def test_another_configuration_or_source_of_the_provider_is_a_change(provider: str) -> None:
    before, after = resource("a", one({"id": "1"})), resource("a", one({"id": "1"}), provider=provider)
    [found] = compare(state(before), state(after)).resources

    assert (found.address, found.change.value, found.attributes) == ("aws_instance.a", "changed", ())
    assert found.providers == (AWS, provider)
    [tainted] = compare(
        state(after), state({**after, "instances": [one({"id": "1"}, status="tainted")]})
    ).resources
    assert tainted.providers is None


# --- attributes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": 1}, {"a": 2}, {"a": ("1", "2")}),
        ({"a": 1}, {"a": 1.0}, {}),
        ({"a": 1}, {"a": True}, {"a": ("1", "true")}),
        ({"a": 0}, {"a": False}, {"a": ("0", "false")}),
        ({"a": 1}, {"a": "1"}, {"a": ("1", '"1"')}),
        ({"a": None}, {"a": "x"}, {"a": ("null", '"x"')}),
        ({"a": None}, {}, {"a": ("null", None)}),
        ({"tags": {"env": "dev"}}, {"tags": {"env": "prod"}}, {'tags["env"]': ('"dev"', '"prod"')}),
        ({"tags": None}, {"tags": {"a.b": "x"}}, {'tags["a.b"]': (None, '"x"')}),
        ({"tags": {"a": "x"}}, {"tags": {}}, {'tags["a"]': ('"x"', None)}),
        ({"tags": None}, {"tags": {}}, {"tags": ("null", "{}")}),
        ({"ingress": [{"port": 1}]}, {"ingress": [{"port": 2}]}, {"ingress[0].port": ("1", "2")}),
        ({"b": [{"x": [{"y": 1}]}]}, {"b": [{"x": [{"y": 2}]}]}, {'b[0].x[0].y': ("1", "2")}),
        ({"l": ["a"]}, {"l": ["a", "b"]}, {"l[1]": (None, '"b"')}),
        ({"l": [{"a b": 1}]}, {"l": []}, {'l[0]["a b"]': ("1", None)}),
        ({"l": ["a"]}, {"l": "a"}, {"l[0]": ('"a"', None), "l": (None, '"a"')}),
        ({"l": ["a"]}, {"l": {"k": "a"}}, {"l[0]": ('"a"', None), 'l["k"]': (None, '"a"')}),
        ({"l": {"k": 1}}, {"l": []}, {'l["k"]': ("1", None)}),
        ({"l": {}}, {"l": [1]}, {"l[0]": (None, "1")}),
        ({"l": []}, {"l": {}}, {"l": ("[]", "{}")}),
        ({"a": {"value": 1, "type": "number"}}, {"a": {"value": 2, "type": "number"}}, {"a": ("1", "2")}),
        ({"a": None}, {"a": {"value": 2, "type": "number"}}, {"a": ("null", "2")}),
        (
            {"a": {"value": [], "type": ["set", "string"]}},
            {"a": {"value": [], "type": ["list", "string"]}},
            {"type(a)": ('["set", "string"]', '["list", "string"]')},
        ),
        (
            {"a": {"value": {"k": 1}, "type": ["map", "number"]}},
            {"a": {"value": {"k": 2}, "type": ["map", "number"]}},
            {'a["k"]': ("1", "2")},
        ),
        ({"a": {"value": 1, "type": "A"}}, {"a": {"value": 2, "type": "A"}}, {'a["value"]': ("1", "2")}),
        ({"a": "ü\x1b"}, {"a": "\ud800"}, {"a": ('"ü\\u001b"', '"\ud800"')}),
    ],
)  # fmt: skip
def test_attributes_are_told_path_by_path(before: Json, after: Json, expected: Json) -> None:
    assert told(one(before), one(after)) == expected


def test_without_values_the_names_and_kinds_of_change_are_told() -> None:
    found = attributes(one({"a": 1, "b": 1}), one({"a": 2, "c": 1}), values=False)

    assert [(part.path, part.change.value, part.before, part.after) for part in found] == [
        ("a", "changed", None, None), ("b", "removed", None, None), ("c", "added", None, None),
    ]  # fmt: skip


def test_numbers_are_neither_rounded_nor_equal_if_they_differ_in_a_late_digit() -> None:
    numbers = [b"12345678901234567890.1", b"12345678901234567890.2", b"1e400", b"1E+9999999999999999999999"]
    first, *others = (
        state(resource("a", one({"n": 0}))).replace(b'{"n": 0}', b'{"n": %b}' % number) for number in numbers
    )

    found = [compare(first, other, values=True).resources[0].attributes[0].after for other in others]

    assert found == ["12345678901234567890.2", "1E+400", "1E+9999999999999999999999"]


def test_a_whole_resource_tells_its_attributes_with_values_only_and_none_that_are_null() -> None:
    whole = state(resource("a", one({"id": "1", "none": None, "tags": {"a": "b"}})))

    assert compare(state(), whole).resources[0].attributes == ()
    for diff, change in (
        (compare(state(), whole, values=True), "added"),
        (compare(whole, state(), values=True), "removed"),
    ):
        assert [(part.path, part.change.value) for part in diff.resources[0].attributes] == [
            ("id", change), ('tags["a"]', change),
        ]  # fmt: skip


def test_what_is_private_is_never_told() -> None:
    before, after = (one({"id": "1", "size": size}, private=f"SECRET{size}") for size in (1, 2))

    assert "SECRET" not in str(attributes(before, after))
    assert attributes(one({"id": "1"}, private="a"), one({"id": "1"}, private="b")) == []


def test_flat_attributes_of_old_resources_are_compared() -> None:
    before, after = ({"attributes_flat": {"id": "1", "tags.%": number}} for number in "12")

    assert told(before, after) == {"tags.%": ('"1"', '"2"')}


# --- what is sensitive ---------------------------------------------------------------------------


S, T = "SECRET-1", "SECRET-2"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(one({"a": S}, ["a"]), one({"a": T}, ["a"]), {"a"}, id="both"),
        pytest.param(one({"a": S}, ["a"]), one({"a": T}), {"a"}, id="not any more"),
        pytest.param(one({"a": S}), one({"a": T}, ["a"]), {"a"}, id="from now on"),
        pytest.param(one({}), one({"a": T}, ["a"]), {"a"}, id="added"),
        pytest.param(one({"a": S}, ["a"]), one({}), {"a"}, id="removed"),
        pytest.param(one({"a": {}}, ["a"]), one({"a": {S: {S: S}}}), {"a"}, id="keys and length"),
        pytest.param(one({"a": [S]}, ["a"]), one({"a": [T, S]}), {"a"}, id="length of a list"),
        pytest.param(
            one({"a": None}), one({"a": {"k": S, "l": 1}}, ["a", "=k"]), {'a["k"]'},
            id="within what was added",
        ),
        pytest.param(
            one({"a": [1, {"b": S}]}, ["a", 1, "b"]), one({"a": [2, {"b": T}]}, ["a", 1, "b"]), {"a[1].b"},
            id="within a list",
        ),
        pytest.param(one({"a": {"k": S}}, ["a", "=k"]), one({"a": [T]}), {"a"}, id="a list instead of a map"),
        pytest.param(one({"a": [S]}, ["a", 0]), one({"a": T}), {"a"}, id="a text instead of a list"),
        pytest.param(
            one({"a": [1, S]}, ["a", 1]), one({"a": [T, 1, 2]}), {"a"},
            id="at another index, and not any more",
        ),
        pytest.param(one({"a": [S]}, ["a", 3]), one({"a": [T]}), {"a"}, id="an index that is not there"),
        pytest.param(
            one({"a": {"b": {"c": S}}}, ["a", "b", "x"]), one({"a": {"b": {"c": T}}}), {'a["b"]'},
            id="a name that is not there",
        ),
        pytest.param(
            one({"a": None}, ["a", "=k"]), one({"a": {"k": T}}), {"a"}, id="within what was null"
        ),
        pytest.param(
            one({"a": {"value": {"k": S, "l": 1}, "type": ["object", {S: "string"}]}}, ["a", "k"]),
            one({"a": {"value": {"k": T, "l": 2}, "type": ["object", {T: "string"}]}}, ["a", "k"]),
            {'a["k"]'},
            id="within a value of any type",
        ),
        pytest.param(
            one({"a": {"value": {"k": S}, "type": ["object", {S: "string"}]}}, ["a", "k"]),
            one({"a": {"value": {"k": S}, "type": ["object", {T: "string"}]}}, ["a", "k"]),
            {"type(a)"},
            id="the type of what has something sensitive in it",
        ),
        pytest.param(
            one({"a": {"value": S, "type": "string"}}, ["a", "value"]),
            one({"a": {"value": T, "type": "string"}}),
            {"a"},
            id="an object that looks like a value of any type",
        ),
        pytest.param(
            one({"a": {"value": {"value": S, "k": 1}, "type": ["map", "string"]}}, ["a", "value"]),
            one({"a": {"value": {"value": S, "k": 2}, "type": ["map", "string"]}}, ["a", "value"]),
            {"a"},
            id="an object that looks like one, with a value in its value",
        ),
        pytest.param(
            one({"a": {"value": {"k": 1}, "type": "A"}}, ["a", "value"]),
            one({"a": {"value": {"k": S}, "type": ["map", "string"]}}),
            {"a"},
            id="an object that looks like one on one side only",
        ),
        pytest.param(one({"a": {"b": S}}, ["a"], ["a", "b"]), one({"a": {"b": T}}), {"a"}, id="twice"),
        pytest.param(
            one({"value": S, "type": "string"}, ["value"]),
            one({"value": T, "type": "number"}),
            {"value"},
            id="a resource whose attributes are value and type",
        ),
    ],
)  # fmt: skip
def test_what_either_side_marks_is_masked(before: Json, after: Json, expected: set[str]) -> None:
    assert masked(before, after) == expected
    assert "SECRET" not in repr([attributes(before, after), attributes(after, before)])


@pytest.mark.parametrize(
    "sensitive",
    [
        {"a": 1}, "a", False, [None], [[]], [[None]], [["a"]], [[{"type": "get_attr"}]],
        [[{"type": "get_attr", "value": 1}]], [[{"type": "index", "value": 0}]],
        [[{"type": "?", "value": "a"}]],
        [[{"type": "index", "value": {"value": "0", "type": "number"}}]],
        [[{"type": "index", "value": {"value": 0.5, "type": "number"}}]],
        [[{"type": "index", "value": {"value": -1, "type": "number"}}]],
        [[{"type": "index", "value": {"value": {"a": 1}, "type": ["object", {"a": "number"}]}}]],
        [path("c")],
    ],
)  # fmt: skip
@pytest.mark.parametrize("marked", ["before", "after"])
def test_a_path_that_is_malformed_or_names_no_attribute_masks_the_whole_resource(
    sensitive: Json, marked: str
) -> None:
    before = {"attributes": {"a": 1, "b": 1, "same": 1}}
    after = {"attributes": {"a": 2, "b": 2, "same": 1}}
    (before if marked == "before" else after)["sensitive_attributes"] = sensitive

    assert masked(before, after) == {"a", "b"}


@pytest.mark.parametrize("step", ["value", "type", "=value", "x"])
def test_a_path_into_a_null_of_any_type_masks_it(step: str) -> None:
    nothing = one({"a": {"value": None, "type": "string"}, "b": 1}, ["a", step])

    assert masked(nothing, one({"a": {"value": "x", "type": "string"}, "b": 2})) == {"a"}


@pytest.mark.parametrize("sensitive", [None, []])
def test_a_resource_without_marks_is_told(sensitive: Json) -> None:
    before, after = ({"attributes": {"a": n}, "sensitive_attributes": sensitive} for n in (1, 2))

    assert told(before, after) == {"a": ("1", "2")}


def test_a_sensitive_text_is_masked_wherever_it_occurs_in_its_resource() -> None:
    """`output` of `terraform_data` is not marked where its `input` is."""
    before = one({"input": S, "output": S, "b": "x"}, ["input"])
    after = one({"input": T, "output": T, "b": "y"}, ["input"])

    assert masked(before, after) == {"input", "output"}
    assert told(before, after)["b"] == ('"x"', '"y"')


def test_marks_that_change_alone_are_no_difference() -> None:
    assert attributes(one({"a": 1}, ["a"]), one({"a": 1})) == []


def test_what_moved_is_masked_too() -> None:
    before, after = (one({"id": "1", "a": secret}, *marks) for secret, marks in ((S, [["a"]]), (T, [])))
    [found] = compare(state(resource("a", before)), state(resource("b", after)), values=True).resources

    assert found.change == "moved"
    assert [(part.path, part.before, part.after, part.is_sensitive) for part in found.attributes] == [
        ("a", None, None, True)
    ]


_NO_KEYS: Final[Sequence[Json]] = (0.5, -1, [], {}, True, 10**12)
SCALARS = st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["", "a", "b\n"])
NAMES = st.sampled_from(["a", "b", "value", "type", "x y"])
NUMBER = 777_000


@st.composite
def instances(draw: st.DrawFn) -> tuple[Json, list[Path]]:
    """The attributes of a resource, and the paths of its sensitive values, which resemble no other value."""
    numbers = count()
    marked: list[Path] = []

    def secret() -> Json:
        number = next(numbers)
        return draw(
            st.sampled_from([
                f"SECRET{number}", NUMBER + number, {f"SECRET{number}": 1}, [NUMBER + number],
                {"value": {f"SECRET{number}": "a"}, "type": ["object", {f"SECRET{number}": "string"}]},
            ])
        )  # fmt: skip

    def grown(at: Path, depth: int) -> Json:
        kinds = ["secret", "scalar", "scalar", "list", "object", "any"] if depth else ["scalar"]
        kind = draw(st.sampled_from(kinds))
        if kind == "secret":
            marked.append(at)
            return secret()
        if kind == "list":
            return [grown((*at, index), depth - 1) for index in range(draw(st.integers(0, 3)))]
        if kind == "object":
            form = draw(st.sampled_from(["{}", "={}"]))
            names = draw(st.lists(NAMES, max_size=3, unique=True))
            return {name: grown((*at, form.format(name)), depth - 1) for name in names}
        if kind == "any":
            inner = grown(at, depth - 1)
            if isinstance(inner, dict):
                return {"value": inner, "type": ["object", dict.fromkeys(inner, "string")]}
            return {"value": inner, "type": "string"}
        return draw(SCALARS)

    names = draw(st.lists(NAMES, max_size=4, unique=True))
    return {name: grown((name,), 3) for name in names}, marked


def leaves_changed(draw: st.DrawFn, value: Json) -> Json:
    if isinstance(value, dict):
        return {name: leaves_changed(draw, part) for name, part in value.items()}
    if isinstance(value, list):
        return [leaves_changed(draw, part) for part in value]
    if isinstance(value, str) and value.startswith("SECRET"):
        return f"{value}+" if draw(st.booleans()) else value
    if isinstance(value, int) and value >= NUMBER:
        return value + 100 if draw(st.booleans()) else value
    return draw(SCALARS) if draw(st.booleans()) and value not in ("string", "object") else value


@st.composite
def pairs(draw: st.DrawFn) -> tuple[Json, Json]:
    """Two instances: strangers to each other, or of one shape where each secret is marked in at least one."""
    before, marked = draw(instances())
    if draw(st.booleans()):
        after, also_marked = draw(instances())
        return one(before, *marked), one(after, *also_marked)
    after = leaves_changed(draw, deepcopy(before))
    in_which = [draw(st.sampled_from(["before", "after", "both"])) for _ in marked]
    return (
        one(before, *(at for at, which in zip(marked, in_which, strict=True) if which != "after")),
        one(after, *(at for at, which in zip(marked, in_which, strict=True) if which != "before")),
    )


@settings(deadline=None)
@given(pairs())
def test_no_secret_that_either_side_marks_is_ever_told(pair: tuple[Json, Json]) -> None:
    before, after = (state(resource("a", instance)) for instance in pair)

    assert_no_secret(compare(before, after, values=True))
    assert_no_secret(compare(after, before, values=True))


@settings(deadline=None)
@given(instances())
def test_no_secret_of_a_whole_resource_is_ever_told(found: tuple[Json, list[Path]]) -> None:
    whole = state(resource("a", one(found[0], *found[1])))

    assert_no_secret(compare(state(), whole, values=True))
    assert_no_secret(compare(whole, state(), values=True))


def assert_no_secret(diff: Diff) -> None:
    printed = json.dumps([asdict(found) for found in diff.resources])
    assert "SECRET" not in printed
    assert str(NUMBER)[:3] not in printed


@settings(deadline=None)
@given(pairs())
def test_without_values_no_value_is_told(pair: tuple[Json, Json]) -> None:
    found = compare(*(state(resource("a", instance)) for instance in pair))

    parts = [part for each in found.resources for part in each.attributes]
    assert {side for part in parts for side in (part.before, part.after)} <= {None}


# --- outputs -------------------------------------------------------------------------------------


def test_outputs_are_added_removed_changed_and_marked_and_masked_whole() -> None:
    def output(value: Json, **more: Json) -> Json:
        return {"value": value, "type": "string", **more}

    diff = compare(
        state(outputs={
            "changed": output("x"), "gone": output({"a": [1.50]}), "same": output("s"),
            "was": output(S, sensitive=True), "odd": output(S, sensitive="no"),
            "opened": output("s", sensitive=True), "kept": output(S, sensitive=True),
        }),
        state(outputs={
            "changed": output("y"), "same": output("s", sensitive=True), "new": output(None),
            "was": output(T), "odd": output(T), "secret": output([S], sensitive=True),
            "opened": output("s"), "kept": output(T, sensitive=True),
        }),
        values=True,
    )  # fmt: skip

    assert [
        (o.name, o.change.value, o.before, o.after, o.is_sensitive, o.now_sensitive) for o in diff.outputs
    ] == [
        ("changed", "changed", '"x"', '"y"', False, None),
        ("gone", "removed", '{"a": [1.5]}', None, False, None),
        ("kept", "changed", None, None, True, None),
        ("new", "added", None, "null", False, None),
        ("odd", "changed", None, None, True, False),
        ("opened", "changed", None, None, True, False),
        ("same", "changed", None, None, True, True),
        ("secret", "added", None, None, True, None),
        ("was", "changed", None, None, True, False),
    ]
    assert diff.summary["outputs"] == 9


# --- bad input -----------------------------------------------------------------------------------


def test_of_an_encrypted_state_nothing_is_compared_but_its_head() -> None:
    plain, encrypted = state(resource("a", one({}))), encrypted_state(7, "…")

    for before, after in ((plain, encrypted), (encrypted, plain)):
        diff = compare(before, after, values=True)
        assert (diff.encrypted, diff.resources, diff.outputs) == (True, (), ())
        assert {diff.before.revision.serial, diff.after.revision.serial} == {3, 7}
    assert compare(encrypted, encrypted).encrypted


def test_another_lineage_is_told() -> None:
    assert compare(state(), state(lineage="other")).lineage_changed
    assert not compare(state(), state(lineage="")).lineage_changed


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b"\xff", b"{}", state()[:-1], state(version=3, modules=[]), state(version=5),
        state(version=True), state(serial=-1), state(resources={}), state(resources=3), state(resources=[3]),
        state(resources=[[]]), state(outputs=[]), state(outputs={"a": 1}), state({}),
        state(resource("a", instances=[3])),
        state(resource("a", one({}), one({}))), state(resource("a", one({})), resource("a", one({"x": 1}))),
        state(resource("a", one({}, index_key=0), one({}, index_key=0.0))),
        *(state(resource("a", **{name: None})) for name in ("mode", "type", "name")),
        *(state(resource("a", one({}), **{name: [1]})) for name in ("mode", "type", "name")),
        *(state(resource("a", one({}), **{name: [1]})) for name in ("provider", "module")),
        state(resource("a", instances={})), state(resource("a", one([]))), state(resource("a", one("x"))),
        *(state(resource("a", one({}, index_key=key))) for key in _NO_KEYS),
        state(resource("a", one({}, deposed=3))), state(resource("a", one({}, status=3))),
        b'{"version": 4, "serial": 1, "resources": ' + b"[" * 5000 + b"]" * 5000 + b"}",
        state(resource("a", one({"x": "X"}))).replace(b'"X"', b'{"a":' * 5000 + b"1" + b"}" * 5000),
        b'{"version": 4, "serial": 1, "x": %b}' % (b"9" * 5000),
    ],
)  # fmt: skip
def test_what_is_not_a_state_document_is_refused_with_its_side(body: bytes) -> None:
    with pytest.raises(UnreadableVersion, match="'from'"):
        compare(body, state())
    with pytest.raises(UnreadableVersion, match="'to'"):
        compare(state(), body)


@pytest.mark.parametrize("depth", range(50, 1200, 50))
def test_deep_values_are_compared_or_refused(depth: int) -> None:
    def nested(leaf: bytes) -> bytes:
        deep = b'{"a":' * depth + leaf + b"}" * depth
        return state(resource("a", one({"x": "X"}))).replace(b'"X"', deep)

    if depth <= 200:
        assert compare(nested(b"1"), nested(b"2"), values=True).resources[0].attributes[0].after == "2"
        return
    with suppress(UnreadableVersion):  # the depth of the caller's stack decides how much is read
        assert compare(nested(b"1"), nested(b"2"), values=True).resources[0].attributes[0].after == "2"


def test_a_difference_that_is_too_large_to_be_told_is_refused_before_it_is_made() -> None:
    key = "k" * 10_000
    wide = state(resource("a", one({"m": {key: {str(number): 1 for number in range(10_000)}}})))
    none = state(resource("a", one({"m": {}})))

    with pytest.raises(TooLarge, match="holdfast state get"):
        compare(none, wide, max_told=1_000_000)


def test_missing_members_are_none() -> None:
    bare = b'{"version": 4, "serial": 1}'

    assert compare(bare, state(outputs=None, resources=None)).summary["added"] == 0
    [added] = changes(compare(bare, state(resource("a", {}, module=None))))
    assert added == ("aws_instance.a", "added", None)
    assert compare(bare, state(resource("a"))).resources == ()


def test_a_resource_is_compared_once_however_many_instances_it_has() -> None:
    class Common(frozenset[bytes]):
        looks = 0

        def __contains__(self, resource: object) -> bool:
            Common.looks += 1
            return super().__contains__(resource)

    instances = [{"index_key": number, "attributes": {}} for number in range(50)]
    resource = {"mode": "managed", "type": "a", "name": "a", "provider": "p", "instances": instances}
    written = json.dumps(resource).encode()
    assert tracked.tracking([written], Common([written])).objects == {}
    assert Common.looks == 1
