import json

import pytest

from holdfast_cli.terminal.json_text import lines

_DEEP = 100_000 * "[" + 100_000 * "]"


@pytest.mark.parametrize(
    ("value", "laid_out"),
    [
        (json.dumps("one"), ['"one"']),
        (json.dumps("one\ntwo"), ["one", "two"]),
        (json.dumps('{"a":[1]}'), ["{", '  "a": [', "    1", "  ]", "}"]),
        (json.dumps("[Unit]\nAfter=network.target"), ["[Unit]", "After=network.target"]),
        (json.dumps("{{ if .Values }}\na: 1"), ["{{ if .Values }}", "a: 1"]),
        (json.dumps("[Unit]"), ['"[Unit]"']),
        ('{"a": 1}', ["{", '  "a": 1', "}"]),
        ("no JSON", ["no JSON"]),
        (_DEEP, [_DEEP]),
        (json.dumps(_DEEP), [json.dumps(_DEEP)]),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_text_is_shown_by_its_lines_and_json_as_it_would_be_written_by_hand(
    value: str, laid_out: list[str]
) -> None:
    assert lines(value) == laid_out
