"""The command shows the differences between two versions of a state."""

import io
import json
import re
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast_cli.errors import CommandError
from holdfast_cli.terminal.state_diff import text
from tests.support.api_stub import ApiStub
from tests.support.management import NAME, answer, run
from tests.support.terminal import Terminal

Json = dict[str, Any]


def resource(address: str, change: str, *attributes: Json, **more: Any) -> Json:
    return {
        "address": address,
        "change": change,
        "moved_from": None,
        "type": "aws_instance",
        "tainted": None,
        "attributes": attributes,
        **more,
    }


def differing(change: str, before: str | None = None, after: str | None = None, **more: Any) -> Json:
    return {"change": change, "before": before, "after": after, "sensitive": False, **more}


def document(*changed: Json, outputs: tuple[Json, ...] = (), **more: Any) -> Json:
    side = {"serial": 11, "time": "2026-11-20T14:00:00Z", "size": 4321, "terraform_version": "1.11.4"}
    return {
        "name": "network/prod",
        "from": {**side, "version": "v1"},
        "to": {**side, "version": "v2", "serial": 12},
        "encrypted": False,
        "values": True,
        "lineage_changed": False,
        "resources": changed,
        "outputs": outputs,
        "summary": {"added": 1, "removed": 2, "moved": 3, "replaced": 4, "changed": 5, "outputs": 6},
        **more,
    }


DOCUMENT = document(
    resource("aws_instance.a", "added", differing("added", None, '"x"', path="id")),
    resource("aws_instance.b", "removed"),
    resource("aws_instance.c", "moved", moved_from="aws_instance.d"),
    resource("aws_instance.e", "replaced", differing("changed", '"1"', '"2"', path="id")),
    resource(
        "aws_instance.f",
        "changed",
        differing("changed", '"dev"', '"prod"', path='tags["env"]'),
        differing("changed", path="password", sensitive=True),
        differing("removed", '"y"', None, path="old"),
        tainted=True,
    ),
    resource("aws_instance.g", "changed", tainted=False),
    outputs=(differing("changed", "1", "2", name="url"), differing("added", name="key", sensitive=True)),
)


def on_terminal(
    monkeypatch: pytest.MonkeyPatch, shown: Json, *, columns: int = 60, now: datetime | None = None
) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with monkeypatch.context() as terminal:
        terminal.setattr(sys, "stdout", Terminal())
        return text(shown, now)


def test_a_pipe_gets_every_difference_in_a_line_of_its_own() -> None:
    assert (
        text(DOCUMENT)
        == """\
network/prod:
  from  serial 11, 2026-11-20T14:00:00Z, 4,321 bytes, client 1.11.4, version v1
  to    serial 12, 2026-11-20T14:00:00Z, 4,321 bytes, client 1.11.4, version v2

  +  aws_instance.a
      +  id  "x"
  -  aws_instance.b
  →  aws_instance.c, moved from aws_instance.d
  -+ aws_instance.e, replaced
      ~  id  "1" → "2"
  ~  aws_instance.f, now tainted
      ~  tags["env"]  "dev" → "prod"
      ~  password  (sensitive)
      -  old  "y"
  ~  aws_instance.g, no longer tainted

Outputs:
  ~  url  1 → 2
  +  key  (sensitive)

Resources: 1 added, 2 removed, 3 moved, 4 replaced, 5 changed. Outputs: 6 changed."""
    )


def test_with_long_a_terminal_gets_the_same_in_its_width_with_coloured_signs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = on_terminal(monkeypatch, DOCUMENT)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)

    assert "\x1b[32m+\x1b[0m" in shown
    assert "\x1b[31m-\x1b[0m" in shown
    assert max(map(len, plain.splitlines())) <= 60
    assert plain.split() == text(DOCUMENT).split()


# --- brief, on a terminal ------------------------------------------------------------------------

NOW = datetime(2026, 11, 20, 16, 30, tzinfo=UTC)


def brief(monkeypatch: pytest.MonkeyPatch, shown: Json, *, columns: int = 60) -> list[str]:
    """Return the lines between the head and the summary, on a terminal without colours."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", str(columns))
    with monkeypatch.context() as terminal:
        terminal.setattr(sys, "stdout", Terminal())
        head, *rest = text(shown, NOW).split("\n\n")
    assert " ".join(head.split()) == "network/prod: from serial 11 (2 h ago) to serial 12 (2 h ago)"
    lines = "\n\n".join(rest).splitlines()
    return lines[: lines.index("Resources: 1 added, 2 removed, 3 moved, 4 replaced,") - 1]


def test_on_a_terminal_a_resource_has_a_sign_and_values_have_lines_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert brief(monkeypatch, DOCUMENT) == [
        "+  aws_instance.a",
        '    id  + "x"',
        "-  aws_instance.b",
        "→  aws_instance.c, moved from aws_instance.d",
        "-+ aws_instance.e, replaced",
        '    id  - "1"',
        '        + "2"',
        "~  aws_instance.f, now tainted",
        '    tags["env"]  - "dev"',
        '                 + "prod"',
        "    password     (sensitive, changed)",
        '    old          - "y"',
        "~  aws_instance.g, no longer tainted",
        "",
        "Outputs:",
        "    url  - 1",
        "         + 2",
        "    key  (sensitive, added)",
    ]


def test_on_a_terminal_it_has_colours_and_names_the_writer_and_no_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = document(resource("a.b", "changed", differing("changed", "1", "2", path="x")))
    shown["to"] |= {"principal": "token:k2v9", "owner": "Ada"}
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    with monkeypatch.context() as terminal:
        terminal.setattr(sys, "stdout", Terminal())
        printed = text(shown, NOW)

    assert printed.startswith("network/prod: from serial 11 (2 h ago) to serial 12 (2 h ago, Ada)\n\n")
    assert "\x1b[33m~\x1b[0m  a.b\n    x  \x1b[31m- 1\x1b[0m\n       \x1b[32m+ 2\x1b[0m\n" in printed
    assert "token:k2v9" not in printed
    assert "v1" not in printed


@pytest.mark.parametrize(
    ("writer", "named"),
    [
        ({"principal": "token:k2v9", "owner": "Ada", "who": "bob@desk"}, "Ada"),
        ({"principal": "token:k2v9", "owner": None, "who": "bob@desk"}, '"bob@desk"'),
        ({"principal": "token:k2v9", "owner": None, "who": None}, "the token k2v9"),
        ({"principal": "token:k2v9"}, "the token k2v9"),
    ],
)
def test_on_a_terminal_it_names_the_writer_by_the_best_name(
    monkeypatch: pytest.MonkeyPatch, writer: Json, named: str
) -> None:
    shown = document()
    shown["to"] |= writer

    head, *_ = on_terminal(monkeypatch, shown, columns=80, now=NOW).splitlines()

    assert head.endswith(f" to serial 12 (2 h ago, {named})")


def test_on_a_terminal_one_line_says_when_and_by_whom_both_versions_were_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = document()
    shown["from"] |= {"principal": "token:k2v9", "owner": "Ada", "time": "2026-11-18T14:00:00Z"}
    for owner, said in (
        ("Bob", "from serial 11 (2 d ago, Ada) to serial 12 (2 h ago, Bob)"),
        ("Ada", "from serial 11 (2 d ago) to serial 12 (2 h ago), both by Ada"),
    ):
        shown["to"] |= {"principal": "token:z9v9", "owner": owner}

        head, *_ = on_terminal(monkeypatch, shown, columns=80, now=NOW).splitlines()

        assert head == f"network/prod: {said}"


def test_without_values_an_attribute_has_a_word_if_it_was_not_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attributes = [
        differing("changed", path="ami"),
        differing("added", path="b" * 40),
        differing("removed", path="c"),
        differing("changed", path="d", sensitive=True),
    ]
    shown = document(
        resource("a.b", "changed", *attributes),
        outputs=(differing("changed", name="key", sensitive=True, now_sensitive=True),),
    )

    assert brief(monkeypatch, shown) == [
        "~  a.b",
        "    ami",
        f"    {'b' * 40}",
        "      (added)",
        "    c    (removed)",
        "    d    (sensitive, changed)",
        "",
        "Outputs:",
        "    key  (sensitive, changed, now sensitive)",
    ]


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (
            '{"a": ["s3:Get"], "z": [1, 2, 3]}',
            '{"a": ["s3:Get", "s3:Put"], "z": [1, 2, 3]}',
            [
                "        {",
                '          "a": [',
                '      -     "s3:Get"',
                '      +     "s3:Get",',
                '      +     "s3:Put"',
                "          ],",
                '          "z": [',
            ],
        ),
        ("one\ntwo\n", "one\nTwo\n", ["        one", "      - two", "      + Two"]),
        (
            "\n".join("abcdefghijklmn"),
            "\n".join("Abcdefghijklmo"),
            [
                "      - a",
                "      + A",
                "        b",
                "        c",
                "        …",
                "        l",
                "        m",
                "      - n",
                "      + o",
            ],
        ),
        # What differs in its text alone is shown as it is.
        ('{"a": 1}', '{"a":1}', ['      - "{\\"a\\": 1}"', '      + "{\\"a\\":1}"']),
        ("{a", "{b", ['      - "{a"', '      + "{b"']),
        (9999 * "[", "x", [f'      - "{119 * "["}…', "        (10,001 characters)", '      + "x"']),
    ],
)
def test_on_a_terminal_json_in_a_string_and_lines_are_compared(
    monkeypatch: pytest.MonkeyPatch, before: str, after: str, lines: list[str]
) -> None:
    change = differing("changed", json.dumps(before), json.dumps(after), path="p" * 31)
    head, path, *shown = brief(monkeypatch, document(resource("a.b", "changed", change)))

    assert (head, path) == ("~  a.b", f"    {'p' * 31}")
    assert shown == lines


def test_a_value_that_is_new_is_not_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    change = differing("added", None, json.dumps('{"a": [1, 2]}'), path="p")

    assert brief(monkeypatch, document(resource("a.b", "changed", change))) == [
        "~  a.b",
        '    p  + "{\\"a\\": [1, 2]}"',
    ]


def test_on_a_terminal_resources_that_differ_alike_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def web(address: str, after: str) -> Json:
        return resource(address, "changed", differing("changed", '"1"', after, path="ami"))

    shown = document(
        *(resource(f"aws_subnet.private[{number}]", "added") for number in range(6, 18)),
        web('module.web["a"].aws_instance.web[0]', '"2"'),
        web('module.web["b"].aws_instance.web[0]', '"2"'),
        web('module.web["c"].aws_instance.web[0]', '"3"'),
        resource("aws_subnet.private", "added"),
        resource("x.y[0]", "moved", moved_from="x.z[0]"),
        resource("x.y[1]", "moved", moved_from="x.z[1]"),
    )

    assert brief(monkeypatch, shown) == [
        "+  aws_subnet.private[6] and 11 alike: [7], [8], [9], [10],",
        "     [11], [12], [13], [14] and 3 more",
        '~  module.web["a"].aws_instance.web[0] and 1 alike:',
        '     ["b"].aws_instance.web[0]',
        '    ami  - "1"',
        '         + "2"',
        '~  module.web["c"].aws_instance.web[0]',
        '    ami  - "1"',
        '         + "3"',
        "+  aws_subnet.private",
        "→  x.y[0], moved from x.z[0]",
        "→  x.y[1], moved from x.z[1]",
    ]


def test_on_a_terminal_alike_added_or_removed_resources_are_folded_with_their_values_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def subnet(number: int, change: str) -> Json:
        values = ('"10.0.0.0/24"', f'"subnet-{number}"')
        before = values if change == "removed" else (None, None)
        after = values if change == "added" else (None, None)
        paths = ("cidr", "id")
        attributes = (
            differing(change, old, new, path=path)
            for path, old, new in zip(paths, before, after, strict=True)
        )
        return resource(f"aws_subnet.{change}[{number}]", change, *attributes)

    shown = document(*(subnet(number, change) for change in ("added", "removed") for number in range(3)))

    assert brief(monkeypatch, shown) == [
        "+  aws_subnet.added[0] and 2 alike: [1], [2]",
        '    cidr  + "10.0.0.0/24"',
        "    id    (different values)",
        "-  aws_subnet.removed[0] and 2 alike: [1], [2]",
        '    cidr  - "10.0.0.0/24"',
        "    id    (different values)",
    ]
    assert text(shown).count("subnet-") == 6


@pytest.mark.parametrize(
    ("summary", "lines"),
    [
        ({"added": 1, "outputs": 3}, ["Resources: 1 added.", "Outputs: 3 changed."]),
        ({"outputs": 1}, ["Outputs: 1 changed."]),
        ({"removed": 2, "changed": 1}, ["Resources: 2 removed, 1 changed."]),
    ],
)
def test_on_a_terminal_the_summary_has_no_zeros_and_a_pipe_has_all_counts(
    monkeypatch: pytest.MonkeyPatch, summary: dict[str, int], lines: list[str]
) -> None:
    zeros = dict.fromkeys(("added", "removed", "moved", "replaced", "changed", "outputs"), 0)
    shown = document(resource("a.b", "changed"), summary=zeros | summary)
    assert " 0 moved," in text(shown).splitlines()[-1]
    monkeypatch.setattr(sys, "stdout", Terminal())

    assert text(shown, NOW).splitlines()[-1 - len(lines) :] == ["", *lines]


# --- what both forms say -------------------------------------------------------------------------


def test_without_values_it_says_how_to_see_them() -> None:
    shown = document(resource("a.b", "changed", differing("changed", path="x")), values=False)

    assert "      ~  x\n" in text(shown)
    assert "--show-values" in text(shown)
    assert "--show-values" not in text(DOCUMENT)


def test_it_says_that_nothing_differs_and_what_is_not_compared() -> None:
    assert text(document()).endswith(
        "\n\nNo differences in resources and outputs.\n"
        "Identities, schema versions, dependencies, private data and results of checks are not compared."
    )


def test_it_says_who_wrote_both_versions() -> None:
    shown = document()
    shown["from"] |= {"principal": "token:k2v9", "owner": "Ada"}
    shown["to"] |= {"principal": "token:k2v9", "owner": None}
    _, older, newer, *_ = text(shown).splitlines()

    assert older.endswith("client 1.11.4, by Ada (token:k2v9), version v1")
    assert newer.endswith("client 1.11.4, by token:k2v9, version v2")


def test_it_says_that_a_provider_and_a_mark_have_changed() -> None:
    providers = {"before": 'provider["a/b/c"]', "after": 'provider["a/b/c"].west'}
    shown = text(
        document(
            resource("aws_instance.a", "changed", provider=providers),
            outputs=(
                differing("changed", name="key", sensitive=True, now_sensitive=False),
                differing("changed", name="url", sensitive=True, now_sensitive=True),
            ),
        )
    )

    assert '  ~  aws_instance.a, provider["a/b/c"] → provider["a/b/c"].west\n' in shown
    assert "  ~  key  (sensitive), no longer sensitive\n" in shown
    assert "  ~  url  (sensitive), now sensitive\n" in shown


def test_of_an_encrypted_state_it_shows_both_heads_and_says_why_not_more() -> None:
    shown = text(document(encrypted=True))

    assert "serial 11, 2026-11-20T14:00:00Z, 4,321 bytes" in shown
    assert "encrypted" in shown
    assert "holdfast state get" in shown
    assert "No differences" not in shown


def test_it_says_that_the_lineages_differ() -> None:
    assert "different states" in text(document(lineage_changed=True))
    assert "different states" not in text(document())


def test_nothing_that_others_wrote_controls_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "\x1b[2J\u202e\x9b\ud800"
    shown = document(
        resource(evil, "moved", differing("changed", evil, evil, path=evil), moved_from=evil),
        outputs=(differing("added", None, evil, name=evil),),
        name=evil,
    )

    for printed in (text(shown), on_terminal(monkeypatch, shown), on_terminal(monkeypatch, shown, now=NOW)):
        assert not {"\x1b[2J", "\u202e", "\x9b", "\ud800"} & set(
            re.findall(r"\x1b\[2J|[^\x00-\x7f→]", printed)
        )
        assert "?[2J??" in printed


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ('"' + "a" * 300 + '"', None, f'"{"a" * 119}… (302 characters)'),
        (
            f'"{"a" * 300}b"', f'"{"a" * 300}c"',
            f'…{"a" * 20}b" (303 characters) → …{"a" * 20}c" (303 characters)',
        ),
        ("1", f'"{"a" * 300}"', f'1 → "{"a" * 119}… (302 characters)'),
    ],
)  # fmt: skip
def test_of_long_values_it_shows_what_differs(before: str, after: str | None, shown: str) -> None:
    change = "changed" if after else "removed"

    assert f"      {'~' if after else '-'}  x  {shown}\n" in text(
        document(resource("a.b", "changed", differing(change, before, after, path="x")))
    )


def test_signs_that_standard_output_has_no_letter_for_are_written_with_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    shown = document(resource("aws_instance.ü", "moved", moved_from="a.b"))

    assert "  -> aws_instance.?, moved from a.b\n" in text(shown)


def test_what_a_newer_stack_tells_is_shown_as_far_as_it_is_known() -> None:
    shown = text(document(resource("a.b", "imported"), summary={"added": 1, "imported": 1}))

    assert "  ?  a.b\n" in shown
    assert "Resources: 1 added, 0 removed" in shown


@pytest.mark.parametrize(
    "shown",
    [
        {},
        {"name": "network/prod", "from": 7, "to": [], "lineage_changed": 0},
        {**document(), "from": None},
        document({}),
        {**document(), "from": {"size": "x", "serial": 1, "time": "t", "version": "v"}},
        document(resource("a", "added"), summary=[]),
        document(resources=3),
    ],
)
def test_a_response_that_lacks_what_is_shown_is_told_in_a_sentence(shown: Json) -> None:
    with pytest.raises(CommandError, match="different versions"):
        text(shown)


@pytest.mark.parametrize(
    "shown",
    [
        {},
        {**document(), "to": None},
        {**document(), "to": {"serial": 1, "time": "at dusk"}},
        document({}),
        document(resource("a", "changed", {"path": "x", "change": "changed"})),
        document(resources=3),
    ],
)
def test_so_is_one_that_lacks_what_a_terminal_shows(shown: Json) -> None:
    with pytest.raises(CommandError, match="different versions"):
        text(shown, NOW)


# --- the exit code -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize(
    ("shown", "code"),
    [
        (document(), 0),
        (document(lineage_changed=True), 2),
        (document(resource("a.b", "moved", moved_from="a.c")), 2),
        (document(outputs=(differing("changed", "1", "2", name="url"),)), 2),
        (document(encrypted=True), 1),
    ],
)
def test_the_exit_code_says_whether_the_versions_differ_if_it_is_asked_for(
    stub: ApiStub, form: list[str], shown: Json, code: int
) -> None:
    stub.reply(answer(shown))
    assert run(stub, "state", "diff", NAME, *form).returncode == 0

    stub.reply(answer(shown))
    done = run(stub, "state", "diff", NAME, "--exit-code", *form)

    assert done.returncode == code
    assert done.stdout
    assert ("it is unknown whether the versions differ" in done.stderr) == (code == 1)


@pytest.mark.parametrize("environment", [{"HOLDFAST_ADDRESS": "not an address"}, {"TF_HTTP_PASSWORD": None}])
def test_a_setting_that_is_wrong_or_missing_is_no_difference(
    stub: ApiStub, environment: dict[str, str | None]
) -> None:
    assert run(stub, "state", "diff", NAME, **environment).returncode == 2
    assert run(stub, "state", "diff", NAME, "--exit-code", **environment).returncode == 1
