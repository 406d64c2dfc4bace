"""State names and their keys."""

import pytest

from holdfast import names
from holdfast.errors import InvalidName


@pytest.mark.parametrize(
    "raw", ["a", "network/prod", "A.b_c-9", "a/b/c/d/e/f/g/h", "x" * 200, "prod.tfstate", "a..b"]
)
def test_a_valid_name_keeps_its_text_and_lies_where_the_s3_backend_would_put_it(raw: str) -> None:
    name = names.parse(raw)
    assert str(name) == raw
    assert name.state_key == f"states/{raw}.tfstate"
    assert name.lock_key == f"states/{raw}.tfstate.tflock"


@pytest.mark.parametrize(
    ("raw", "rule"),
    [
        ("", "empty"),
        ("/a", "empty"),
        ("a/", "empty"),
        ("a//b", "empty"),
        ("..", "must start"),
        ("a/../b", "must start"),
        (".hidden", "must start"),
        ("-a", "must start"),
        ("a\0", "letters, digits"),
        ("bücher", "letters, digits"),
        ("a%2Fb", "letters, digits"),
        ("a?b", "letters, digits"),
        ("a b", "letters, digits"),
        ("a\n", "letters, digits"),
        ("٣", "letters, digits"),
        ("x" * 201, "201 characters"),
        ("x" * 300, "at most 200"),
        ("a/b/c/d/e/f/g/h/i", "9 segments"),
    ],
)
def test_an_invalid_name_is_refused_with_the_rule_that_it_broke(raw: str, rule: str) -> None:
    with pytest.raises(InvalidName, match=rule) as refused:
        names.parse(raw)
    assert refused.value.status == 400


ID = "0123456789abcdef0123456789abcdef"


def test_a_probe_lies_below_probes_and_ends_with_nothing_that_the_bucket_policy_protects() -> None:
    name = names.parse(f"holdfast-doctor/{ID}")
    assert (name.is_probe, str(name)) == (True, f"holdfast-doctor/{ID}")
    assert (name.state_key, name.lock_key) == (f"probes/{ID}", f"probes/{ID}.tflock")


@pytest.mark.parametrize(
    "raw",
    [
        "holdfast-doctor",
        "holdfast-doctor/prod",
        f"holdfast-doctor/{ID[1:]}",
        f"holdfast-doctor/{ID}0",
        f"holdfast-doctor/{ID.upper()}",
        f"holdfast-doctor/{ID}.tflock",
        f"holdfast-doctor/{ID}/prod",
        f"holdfast-doctor/prod/{ID}",
    ],
)
def test_every_other_name_that_starts_as_a_probes_is_reserved(raw: str) -> None:
    with pytest.raises(InvalidName, match="reserved for 'holdfast doctor'"):
        names.parse(raw)


@pytest.mark.parametrize(
    "raw", [f"a/holdfast-doctor/{ID}", f"Holdfast-Doctor/{ID}", f"holdfast-doctors/{ID}", f"probes/{ID}"]
)
def test_a_name_that_only_resembles_a_probes_is_a_states(raw: str) -> None:
    name = names.parse(raw)
    assert not name.is_probe
    assert name.state_key == f"states/{raw}.tfstate"


def test_no_operator_works_on_a_probe() -> None:
    assert names.parse_no_probe("network/prod") == names.parse("network/prod")
    with pytest.raises(InvalidName, match="Operators cannot read or change these states"):
        names.parse_no_probe(f"holdfast-doctor/{ID}")
    with pytest.raises(InvalidName, match="reserved"):
        names.parse_no_probe("holdfast-doctor/prod")
