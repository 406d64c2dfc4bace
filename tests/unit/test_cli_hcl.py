"""The reader of HCL: where blocks, arguments and their values are in a text, whatever stands around them."""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast_cli.config.hcl import Item, NotHclError, parse

AROUND: Final = (
    '# terraform { backend "s3" { bucket = "old" } }\n',
    '// "\n',
    '/* " { ${ \n terraform { */\n',
    'a = "a \\" } ${join("}", [for k, v in { x = "\\"{" } : "${k}"])} %{if v == "}"}}%{endif}" // {\n',
    'locals {\n  a = <<-EOT\n    terraform { backend "s3" {\n    ${x["}"]} "\n    EOT\n  b = <<E\nE\n}\n',
    'a = [1,2 , { a : "}", "b" = (1 > 0 ? "{" : "}") }]\n',
    "a = b == c # {\n\n# }\n",
    "a = f(\n  b, # )\n)\n",
    'variable "v" {}\n',
    "locals { a = { for k, v in x : k => v... if v } }\n",
    'resource "a" b {\n  c {\n    d = "é"\n  }\n}\n',
    "\t \n",
)
"""Texts that look like blocks, or like their ends, or do not."""
INNER: Final = (
    'bucket = "old"',
    'key= "a/b" /* } */',
    "key = <<-E\n    }\n  E",
    "n   =   1.5",
    "m = x ? { } : {}",
)
BLOCKS: Final = (
    'terraform {\n  backend "s3" { # }\n    INNER\n  }\n}\n',
    "terraform { cloud {\n    INNER\n } }\n",
    'remote_state {\n  backend = "s3"\n  config = {\n    INNER\n  }\n}\n',
)


def flat(items: tuple[Item, ...]) -> Iterator[Item]:
    for item in items:
        yield item
        yield from flat(item.items)


@settings(deadline=None)  # the first text loads the parser
@given(
    st.lists(st.sampled_from(AROUND), max_size=4),
    st.sampled_from(BLOCKS),
    st.lists(st.sampled_from(INNER), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from(AROUND), max_size=4),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\ufeff"]),
)
def test_a_block_and_its_arguments_are_where_they_stand(
    before: list[str], block: str, inner: list[str], after: list[str], line_end: str, mark: str
) -> None:
    whole = block.replace("INNER", "\n    ".join(inner)).replace("\n", line_end)
    first = mark + "".join(before).replace("\n", line_end)
    text = first + whole + "".join(after).replace("\n", line_end)

    [read] = [item for item in parse(text) if item.name in ("terraform", "remote_state")]

    assert (read.start, text[read.start : read.end]) == (len(first), whole.rstrip())
    assert text[read.value_start :].startswith("{")
    deepest = read.items[-1]
    assert [text[item.start : item.end] for item in deepest.items] == [
        re.sub(r" /\*.*", "", each).replace("\n", line_end) for each in inner
    ]
    for item in flat(parse(text)):
        assert text[item.start :].startswith((item.name, f'"{item.name}"'))
        assert text[item.value_start : item.end] == item.value == item.value.strip()


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (r'"a \"b\" \u00e9\\"', r'a "b" é' + "\\"),
        ('"$${a} %%{b} $ %"', "${a} %{b} $ %"),
        ('""', ""),
        ("3", 3),
        ("-1.5", -1.5),
        ("true", True),
        ('<<E\n  a\n b "\\\nE\n', '  a\n b "\\'),
        ("<<-E\r\n    a\r\n      b\r\n    E\r\n", "a\r\n  b"),
        ("null", None),
        ('"${a}"', None),
        ("<<E\n%{if a}b%{endif}\nE\n", None),
        ("a", None),
        ("a.b[0]", None),
        ('("a")', None),
        ('"a" == "b"', None),
        ('["a"]', None),
        ('{ a = "b" }', None),
        ('file("a")', None),
        (r'"\U0001F600"', None),
        (f"{'[' * 3000}{']' * 3000}", None),
    ],
)
def test_a_literal_is_a_text_a_number_or_a_boolean(value: str, literal: object) -> None:
    [item] = parse(f"a = {value}")

    assert (item.literal, type(item.literal)) == (literal, type(literal))


@pytest.mark.parametrize("text", ["a {", "a }", 'a = "', "a = <<E\nE1\n", 'a = "${b"\n', "a = $b", "{}"])
def test_a_text_without_an_end_is_no_hcl(text: str) -> None:
    with pytest.raises(NotHclError):
        parse(text)


def test_a_command_loads_the_parser_only_when_it_reads_hcl() -> None:
    code = "import sys; from holdfast_cli.commands import doctor, import_; print('lark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
