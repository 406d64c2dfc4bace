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
