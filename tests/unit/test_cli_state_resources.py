"""`holdfast state resources` and `find`."""

import json
import os
import signal
import subprocess
import time
from typing import Any
from urllib.parse import parse_qs

import pytest

from holdfast.state.find import ID_ATTRIBUTES, MAX_STATE, Skipped
from holdfast_cli.api.state_texts import size
from holdfast_cli.commands import state_resources
from holdfast_cli.main import main
from holdfast_cli.terminal.output import Progress
from tests.support import terminal
from tests.support.api_stub import ApiStub, Reply
from tests.support.cli_account import HOLDFAST
from tests.support.management import NAME, answer, environment, failure, output, refusal, run


def resource(address: str = "aws_instance.web", **changed: object) -> dict[str, Any]:
    return {
        "address": address,
        "module": None,
        "mode": "managed",
        "type": "aws_instance",
        "name": "web",
        "provider": "registry.example/hashicorp/aws",
        "tainted": False,
        "deposed": None,
    } | changed


def listed(*resources: object, next_: str | None = None, encrypted: bool = False) -> Reply:
    return answer(
        {"name": NAME, "version": "v-1", "encrypted": encrypted, "resources": resources, "next": next_}
    )


def found(
    *states: object, skipped: object = (), searched: int = 2, left: int | None = 0, next_: str | None = None
) -> Reply:
    return answer({"states": states, "skipped": skipped, "searched": searched, "left": left, "next": next_})


def match(name: str, *resources: object, matches: int | None = None) -> dict[str, Any]:
    return {"name": name, "matches": matches or len(resources), "resources": list(resources)}


# --- resources -----------------------------------------------------------------------------------

WEB = resource(tainted=True)
OLD = resource("aws_instance.web (deposed 0123abcd)", deposed="0123abcd")
DB = resource("module.eu.module.db.aws_db_instance.a", module="module.eu.module.db", type="aws_db_instance")
EUROPE = resource("module.europe.aws_instance.web", module="module.europe")


def test_resources_are_a_table_over_all_pages(stub: ApiStub) -> None:
    stub.reply(listed(WEB, OLD, next_="more"), listed(DB))

    heading, *rows = output(stub, "state", "resources", NAME).splitlines()

    assert heading.split() == ["ADDRESS", "PROVIDER", "NOTE"]
    assert [row.split("  ")[-1].strip() for row in rows] == ["tainted", "deposed", "-"]
    assert rows[2].split()[:2] == [DB["address"], DB["provider"]]
    assert [asked.path for asked in stub.asked] == [
        f"/manage/v1/resources/{NAME}",
        f"/manage/v1/resources/{NAME}?cursor=more",
    ]


def test_a_terminal_lists_resources_by_module_and_type_with_short_providers(stub: ApiStub) -> None:
    usual = "registry.terraform.io/hashicorp/aws"
    bucket = resource("aws_s3_bucket.a", type="aws_s3_bucket", provider=usual)
    stub.reply(listed(DB, bucket, WEB))
    plain = environment(stub, TERM="dumb")

    shown = terminal.run([HOLDFAST, "state", "resources", NAME], plain, columns=200).splitlines()

    assert [line.split()[:2] for line in shown[1:]] == [
        [WEB["address"], "registry.example/hashicorp/aws"],
        [bucket["address"], "hashicorp/aws"],
        [DB["address"], "registry.example/hashicorp/aws"],
    ]
    stub.reply(listed(DB, bucket, WEB))
    _, *piped = output(stub, "state", "resources", NAME).splitlines()
    assert [line.split()[:2] for line in piped] == [
        [one["address"], one["provider"]] for one in (DB, bucket, WEB)
    ]


def test_a_terminal_has_a_line_a_resource_and_names_a_provider_that_all_have_once(stub: ApiStub) -> None:
    usual = "registry.terraform.io/hashicorp/aws"
    long = resource(f"module.{60 * 'm'}.aws_instance.web", module=f"module.{60 * 'm'}", provider=usual)
    tainted = resource(f"{70 * 'x'}.web", type="x", provider=usual, tainted=True)
    plain = environment(stub, TERM="dumb")

    def shown(*resources: object) -> list[str]:
        stub.reply(listed(*resources))
        printed = terminal.run([HOLDFAST, "state", "resources", NAME], plain, columns=80)
        return printed.splitlines()

    assert shown(resource(provider=usual), long) == [
        "Provider: hashicorp/aws",
        "",
        "ADDRESS",
        "aws_instance.web",
        long["address"],
    ]
    # Only the row with a note has a second line.
    assert [line.split() for line in shown(resource(provider=usual), long, tainted)[2:]] == [
        ["ADDRESS", "NOTE"],
        ["aws_instance.web", "-"],
        [tainted["address"]],
        ["tainted"],
        [long["address"]],
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], [WEB, DB, EUROPE]),
        (["--type", "aws_db_instance"], [DB]),
        (["--module", "module.eu"], [DB]),
        (["--module", "module.eu.module.db"], [DB]),
        (["--module", "module.europe", "--type", "aws_instance"], [EUROPE]),
        (["--module", "module.e"], []),
    ],
)
def test_options_narrow_resources_down(
    stub: ApiStub, options: list[str], expected: list[dict[str, Any]]
) -> None:
    stub.reply(listed(WEB, DB, EUROPE))

    assert json.loads(output(stub, "state", "resources", NAME, *options, "--json")) == expected


def test_a_state_without_resources_and_an_encrypted_one_say_so(stub: ApiStub) -> None:
    stub.reply(listed())
    assert output(stub, "state", "resources", NAME) == f"The state {NAME} has no resources.\n"

    stub.reply(listed(encrypted=True))
    assert "was encrypted by the client" in failure(stub, "state", "resources", NAME)

    stub.reply(refusal(403, "not_allowed", "Use credentials with the role 'reader'."))
    assert "'reader'" in failure(stub, "state", "resources", NAME)


def test_pages_without_end_are_not_followed(stub: ApiStub) -> None:
    stub.reply(listed(WEB, next_="more"))

    assert "did not respond as the management API does" in failure(stub, "state", "resources", NAME)
    assert len(stub.asked) == 3  # the last asks for the version


# --- the attributes of one -----------------------------------------------------------------------


def attributes(*shown: tuple[str, str | None, bool], **changed: object) -> dict[str, Any]:
    return {
        "name": NAME,
        "version": "v-1",
        "address": 'aws_instance.web["a"]',
        "type": "aws_instance",
        "provider": "registry.example/hashicorp/aws",
        "tainted": False,
        "values": True,
        "attributes": [
            {"path": path, "value": value, "sensitive": sensitive} for path, value, sensitive in shown
        ],
    } | changed


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ([], {}),
        (["--show-values"], {"values": ["true"]}),
        (["--version", "v-7", "--show-values"], {"values": ["true"], "version": ["v-7"]}),
    ],
)
def test_one_resource_is_asked_for_by_its_address(
    stub: ApiStub, options: list[str], query: dict[str, list[str]]
) -> None:
    stub.reply(answer(attributes()))

    shown = output(stub, "state", "resources", NAME, 'aws_instance.web["a"]', *options, "--json")

    assert json.loads(shown) == attributes()
    [asked] = stub.asked
    path, _, sent = asked.path.partition("?")
    assert path == f"/manage/v1/attributes/{NAME}"
    assert parse_qs(sent) == {"address": ['aws_instance.web["a"]'], **query}


def test_attributes_are_a_table_and_what_is_sensitive_stays_masked(stub: ApiStub) -> None:
    stub.reply(answer(attributes(("ami", '"ami-1"', False), ("password", None, True), tainted=True)))

    done = run(stub, "state", "resources", NAME, "aws_instance.web", "--show-values")

    assert [" ".join(line.split()) for line in done.stdout.splitlines()] == [
        'address aws_instance.web["a"]',
        "type aws_instance",
        "provider registry.example/hashicorp/aws",
        "version v-1",
        "note tainted: the next apply replaces it",
        "",
        "ATTRIBUTE VALUE",
        'ami "ami-1"',
        "password (sensitive)",
    ]
    assert "older clients mark fewer of them" in done.stderr


def test_a_terminal_lays_out_json_below_its_path_and_keeps_the_others_in_their_table(stub: ApiStub) -> None:
    policy = json.dumps({"Version": "2012-10-17", "Resource": [f"arn:aws:s3:::{100 * 'x'}"]})
    values = (("ami", '"ami-1"', False), ("policy", json.dumps(policy), False), ("size", "3", False))
    command = ("state", "resources", NAME, "aws_instance.web", "--show-values")
    stub.reply(answer(attributes(*values)))

    printed = terminal.run([HOLDFAST, *command], environment(stub, TERM="dumb"), columns=80)

    table = printed.partition("\n\n")[2].splitlines()
    assert [line.rstrip() for line in table[: -len(printed.partition("holdfast: ")[2].splitlines())]] == [
        "ATTRIBUTE  VALUE",
        'ami        "ami-1"',
        "size       3",
        "",
        "policy",
        "  {",
        '    "Version": "2012-10-17",',
        '    "Resource": [',
        f'      "arn:aws:s3:::{100 * "x"}"',
        "    ]",
        "  }",
    ]
    stub.reply(answer(attributes(*values)))
    piped = run(stub, *command).stdout.splitlines()
    assert piped[-2].split(maxsplit=1) == ["policy", json.dumps(policy)]


def test_without_the_option_values_are_masked_and_it_says_so(stub: ApiStub) -> None:
    stub.reply(answer(attributes(("ami", None, False), ("password", None, True), values=False)))

    done = run(stub, "state", "resources", NAME, "aws_instance.web")

    rows = [line.split() for line in done.stdout.splitlines()[-2:]]
    assert rows == [["ami", "(masked)"], ["password", "(sensitive)"]]
    assert "--show-values shows the values that are not marked as sensitive" in done.stderr


def test_an_address_that_is_not_there_is_told_with_the_nearest(stub: ApiStub) -> None:
    no_resource = refusal(404, "no_resource", "The resource is unknown.")
    stub.reply(no_resource, listed(WEB, next_="more"), listed(DB, EUROPE))
    line = failure(stub, "state", "resources", NAME, "aws_instance.wbe")
    assert line == (
        "holdfast: The resource is unknown. Similar addresses in the current version: aws_instance.web, "
        "module.europe.aws_instance.web."
    )

    for listing in (listed(encrypted=True), refusal(403, "not_allowed", "No."), listed(DB)):
        stub.reply(no_resource, listing)
        line = failure(stub, "state", "resources", NAME, "x")
        assert line == "holdfast: The resource is unknown."


@pytest.mark.parametrize(
    "typed",
    [
        ["--show-values"],
        ["--version", "@12"],
        ["aws_instance.web", "--type", "aws_instance"],
        ["aws_instance.web", "--module", "module.eu"],
    ],
)
def test_options_of_the_list_and_of_one_resource_are_not_mixed(stub: ApiStub, typed: list[str]) -> None:
    done = run(stub, "state", "resources", NAME, *typed)

    assert (done.returncode, stub.asked) == (2, [])


# --- find ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        (["aws_instance.w"], {"address": "aws_instance.w"}),
        (["--type", "aws_instance"], {"type": "aws_instance"}),
        (["--id", "i-1", "--prefix", "network/"], {"id": "i-1", "prefix": "network/"}),
    ],
)
def test_what_is_searched_for_is_sent_in_the_body_alone(
    stub: ApiStub, typed: list[str], sent: dict[str, str]
) -> None:
    stub.reply(found(left=None, next_="more"), found())

    assert (
        output(stub, "state", "find", *typed)
        == "No searched state has such a resource. States searched: 4.\n"
    )

    assert [(asked.method, asked.path) for asked in stub.asked] == [("POST", "/manage/v1/find")] * 2
    assert [json.loads(asked.body) for asked in stub.asked] == [sent, {**sent, "cursor": "more"}]


def test_matches_are_a_table_and_states_that_were_not_searched_are_named(stub: ApiStub) -> None:
    skipped = [
        {"name": "big", "why": "too_large", "size": 17_000_000},
        {"name": "odd", "why": "of tomorrow", "size": 9},
    ]
    stub.reply(
        found(match("network/eu", WEB, DB, matches=102), next_="more"),
        found(match(NAME, OLD), skipped=skipped),
    )

    done = run(stub, "state", "find", "web")

    assert done.returncode == 0
    heading, *rows = done.stdout.splitlines()
    assert heading.split() == ["STATE", "ADDRESS", "NOTE"]
    assert [row.split()[0] for row in rows] == ["network/eu", "network/eu", NAME]
    assert rows[0].split()[1:] == ["aws_instance.web", "tainted"]
    assert done.stderr.splitlines() == [
        "holdfast: network/eu has more matching resources: 100. `holdfast state resources network/eu` shows "
        "all resources of the state.",
        "holdfast: big was not searched, because it is too large: 17 MB.",
        "holdfast: odd was not searched, for the reason 'of tomorrow'.",
    ]


def test_a_terminal_shows_a_hit_beside_its_state_several_below_and_counts_those_beyond_six_lines(
    stub: ApiStub,
) -> None:
    many = [WEB | {"address": f"aws_instance.web[{number}]", "tainted": False} for number in range(7)]
    stub.reply(
        found(
            match("network/dns", *many, matches=102),
            match("app", *many),
            match("six", *many[:6]),
            match(NAME, WEB),
        )
    )
    plain = environment(stub, TERM="dumb")

    shown = terminal.run([HOLDFAST, "state", "find", "web"], plain, columns=60)

    first = [f"  aws_instance.web[{number}]" for number in range(5)]
    assert shown.splitlines() == [
        "network/dns: 102 resources",
        *first,
        "  and 97 more: run `holdfast state resources network/dns`",
        "app: 7 resources",
        *first,
        "  and 2 more: --long shows them",
        "six: 6 resources",
        *first,
        "  aws_instance.web[5]",
        f"{NAME}: aws_instance.web  (tainted)",
    ]
    piped = run(stub, "state", "find", "web")
    assert run(stub, "state", "find", "web", "--long").stdout == piped.stdout
    long = terminal.run([HOLDFAST, "state", "find", "web", "--long"], plain, columns=400)
    table, _, told = long.rpartition("holdfast:")
    assert [line.split() for line in table.splitlines()] == [
        line.split() for line in piped.stdout.splitlines()
    ]
    assert told in piped.stderr


def test_json_has_matches_and_what_was_not_searched(stub: ApiStub) -> None:
    skipped = {"name": "big", "why": "too_large", "size": 17_000_000}
    stub.reply(found(match("a", WEB), next_="more"), found(match("b", DB), skipped=[skipped]))

    assert json.loads(output(stub, "state", "find", "--type", "x", "--json")) == {
        "states": [match("a", WEB), match("b", DB)],
        "skipped": [skipped],
        "searched": 4,
    }


@pytest.mark.parametrize(
    "typed",
    [
        [],
        ["web", "--type", "x"],
        ["--type", "x", "--id", "y"],
        ["web", "--prefix", "network/*"],
        ["web", "--prefix", "a b"],
    ],
)
def test_a_wrong_search_is_not_sent(stub: ApiStub, typed: list[str]) -> None:
    done = run(stub, "state", "find", *typed)

    assert (done.returncode, stub.asked) == (2, [])


def test_a_throttled_search_goes_on(stub: ApiStub) -> None:
    stub.reply(found(next_="more"), Reply(429), found(match("a", WEB)))

    assert "aws_instance.web" in output(stub, "state", "find", "web")


def test_an_older_api_says_that_it_lacks_the_route(stub: ApiStub) -> None:
    stub.reply(refusal(400, "unknown_route", "it is unknown"))

    assert "deploy the team's stack again" in failure(stub, "state", "find", "web")


SEARCHED = "states searched"


def test_progress_says_how_many_states_of_how_many_were_searched(
    stub: ApiStub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stub.reply(found(searched=34, left=None, next_="a"), found(searched=66, left=712, next_="b"), found())
    for name, value in environment(stub).items():
        monkeypatch.setenv(name, value)
    shown: list[tuple[int, int | None, str]] = []
    monkeypatch.setattr(Progress, "count", lambda _, *counted: shown.append(counted))

    assert main(["state", "find", "web"]) == 0

    assert shown == [(34, None, SEARCHED), (100, 812, SEARCHED), (102, 102, SEARCHED)]
    assert "States searched: 102." in capsys.readouterr().out


def test_an_interrupt_says_how_far_the_search_was(stub: ApiStub) -> None:
    stub.reply(found(searched=34, left=778, next_="more"), Reply(429))
    command = subprocess.Popen(
        [HOLDFAST, "state", "find", "web"],
        env=environment(stub),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = time.monotonic() + 30
    while len(stub.asked) < 2 and time.monotonic() < limit:
        time.sleep(0.02)
    os.kill(command.pid, signal.SIGINT)
    printed, said = command.communicate(timeout=30)

    assert (command.returncode, printed) == (130, "")
    assert said == (
        "holdfast: Interrupted. States searched: 34 of 812. What the search found until then is not shown.\n"
    )


def test_the_help_names_the_limits_and_the_attributes_of_the_library(stub: ApiStub) -> None:
    shown = " ".join(output(stub, "state", "find", "--help").split())

    assert f"{', '.join(ID_ATTRIBUTES[:-1])} or {ID_ATTRIBUTES[-1]}" in shown
    assert f"above {size(MAX_STATE)}" in shown
    assert list(state_resources._WHY) == list(Skipped)  # noqa: SLF001 the words for people
