"""`holdfast trust`, against moto's server over HTTP."""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.access import Grant, Role
from holdfast.identity import trust
from holdfast.identity.trust import AwsTrust, OidcTrust, Records, Trust
from holdfast_cli.commands.trust import _table
from tests.support import terminal
from tests.support.api_stub import ApiStub, Reply
from tests.support.cli_account import Aws, bucket, unread
from tests.support.fault_relay import Fault

MOTOS_ARN = "arn:aws:sts::123456789012:user/moto"
GITHUB = "https://token.actions.githubusercontent.com"
ADD = ("trust", "create", "network-main", "--role", "writer", "--scope", "network/*")
UPDATE = ("trust", "update", "network-main")
UPDATE_A = ("trust", "update", "a", "--role", "writer")
FROM_GITHUB = ("--issuer", GITHUB, "--claim", "repository=acme/network")
FROM_AWS = ("--aws-role", "Developer")


def stored(aws: Aws) -> Records:
    body = aws.records("payments").get(trust.KEY)
    return Records() if body is None else trust.parse(body)


def put(aws: Aws, *records: Trust) -> None:
    aws.put_record("payments", trust.KEY, Records(records).to_json())


def of_role(name: str, aws_role: str | None = None, *, description: str = "") -> AwsTrust:
    return trust.new_aws(
        name,
        aws_role=aws_role or name,
        grants=[Grant(Role.READER, ("*",))],
        description=description,
        created_by="bob",
        now=datetime.now(UTC),
    )


# --- add -----------------------------------------------------------------------------------------


def test_an_added_record_lets_tokens_with_its_claims_in(aws: Aws) -> None:
    text = aws.output(
        *ADD,
        *("--scope", "shared", "--description", "the pipeline", "--audience", "holdfast"),
        *FROM_GITHUB,
        *("--claim", "ref=refs/heads/main=x"),
    )

    [record] = stored(aws)
    claims = {"repository": "acme/network", "ref": "refs/heads/main=x"}
    assert stored(aws).for_claims({"iss": GITHUB, "aud": "holdfast", **claims}) == record
    assert isinstance(record, OidcTrust)
    assert record.grants == (Grant(Role.WRITER, ("network/*", "shared")),)
    assert (record.description, record.created_by) == ("the pipeline", MOTOS_ARN)
    assert timedelta(0) <= datetime.now(UTC) - record.created < timedelta(minutes=1)
    assert text == (
        "Created the trust record network-main of the team payments: writer of network/*, shared\n\n"
        f"  issuer    {GITHUB}\n"
        "  audience  holdfast\n"
        "  claims    repository=acme/network, ref=refs/heads/main=x\n"
    )


@pytest.mark.parametrize(
    ("who", "of_its_kind"),
    [
        (
            FROM_GITHUB,
            {
                "kind": "oidc",
                "issuer": GITHUB,
                "audience": "https://payments.example.com",
                "claims": {"repository": "acme/network"},
                "aws_role": None,
            },
        ),
        (
            FROM_AWS,
            {"kind": "aws", "issuer": None, "audience": None, "claims": None, "aws_role": "Developer"},
        ),
    ],
)
def test_the_json_of_a_record_is_the_same_from_every_command(
    aws: Aws, who: tuple[str, ...], of_its_kind: dict[str, Any]
) -> None:
    added = json.loads(aws.output(*ADD, *who, "--description", "x", "--json"))
    [listed] = json.loads(aws.output("trust", "list", "--json"))
    unchanged = json.loads(aws.output("trust", "update", "network-main", "--role", "writer", "--json"))
    removed = json.loads(aws.output("trust", "remove", "network-main", "--json"))

    assert added == listed == unchanged == removed
    [created, record_id] = [added.pop("created"), added.pop("id")]
    assert timedelta(0) <= datetime.now(UTC) - datetime.fromisoformat(created) < timedelta(minutes=1)
    assert len(record_id) == 20
    assert added == {
        "name": "network-main",
        **of_its_kind,
        "role": "writer",
        "scope": ["network/*"],
        "grants": [{"role": "writer", "scope": ["network/*"]}],
        "description": "x",
        "owner": "",
        "from": [],
        "created_by": MOTOS_ARN,
        "updated": None,
        "updated_by": "",
    }


ADD_A = ("trust", "create", "a", *ADD[3:], *FROM_AWS)
REMOVE_A = ("trust", "remove", "a")
BOTH = {"a": Role.WRITER, "b": Role.READER}
RACES: Mapping[str, tuple[tuple[str, ...], list[Fault], bool, Mapping[str, Role]]] = {
    # S3 can respond with a conflict to one of two simultaneous writes, before it decides.
    "an addition": (ADD_A, [Fault.CONFLICT], True, BOTH),
    "an addition whose answer is lost": (ADD_A, [Fault.ANSWER_LOST], True, BOTH),
    "an update": (UPDATE_A, [], True, BOTH),
    "an update that is lost": (UPDATE_A, [Fault.ANSWER_LOST], False, {"a": Role.WRITER}),
    "an update that is lost before others add": (UPDATE_A, [Fault.ANSWER_LOST], True, BOTH),
    "a removal": (REMOVE_A, [], True, {"b": Role.READER}),
    "a removal that is lost": (REMOVE_A, [Fault.ANSWER_LOST], False, {}),
}
"""The command, faults of its write, whether others add a record then, and the roles at the end."""


@pytest.mark.parametrize(("command", "lost", "others", "roles"), RACES.values(), ids=RACES)
def test_a_change_is_made_once_and_leaves_the_records_that_others_add_at_the_same_time(
    aws: Aws, command: tuple[str, ...], lost: list[Fault], others: bool, roles: Mapping[str, Role]
) -> None:
    if command != ADD_A:
        put(aws, of_role("a"))

    before = (lambda: put(aws, *stored(aws), of_role("b"))) if others else None
    with aws.faults(trust.KEY, *lost, before=before) as s3:
        text = aws.output(*command, **s3)

    assert {record.name: record.grants[0].role for record in stored(aws)} == roles
    assert command != UPDATE_A or "role  reader -> writer" in text


def test_a_name_that_others_take_at_the_same_time_is_one_line(aws: Aws) -> None:
    with aws.faults(trust.KEY, before=lambda: put(aws, of_role("network-main", "Other"))) as s3:
        line = aws.failure(*ADD, *FROM_AWS, **s3)

    assert line.startswith("holdfast: The trust record was not created: ")
    assert "'network-main' already" in line
    assert [record.created_by for record in stored(aws)] == ["bob"]


def test_an_addition_whose_answer_is_lost_is_not_made_again_after_others_remove_it(aws: Aws) -> None:
    def remove() -> None:
        assert [record.name for record in stored(aws)] == ["network-main"]
        put(aws)

    with aws.faults(trust.KEY, Fault.ANSWER_LOST, before=remove) as s3:
        line = aws.failure(*ADD, *FROM_AWS, **s3)

    assert "may have removed network-main" in line
    assert "`holdfast trust list`" in line
    assert tuple(stored(aws)) == ()


# --- list ----------------------------------------------------------------------------------------


def test_a_list_has_a_line_for_each_record_by_name(aws: Aws) -> None:
    assert aws.output("trust", "list") == (
        "The team payments has no trust records. `holdfast trust create --help` shows how to create one.\n"
    )
    assert aws.output("trust", "list", "--json") == "[]\n"

    aws.output(*ADD, *FROM_GITHUB)
    assert "AWS role  Developer" in aws.output(
        *("trust", "create", "developers", *ADD[3:], *FROM_AWS, "--owner", "ada")
    )

    lines = aws.output("trust", "list").splitlines()

    assert [line.split(maxsplit=4) for line in lines] == [
        ["NAME", "ROLE", "SCOPE", "OWNER", "WHO"],
        ["developers", "writer", "network/*", "ada", "AWS role Developer"],
        ["network-main", "writer", "network/*", "-", f"{GITHUB} repository=acme/network"],
    ]


def test_a_terminal_has_grants_in_one_column_and_no_column_that_is_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "stdout", terminal.Terminal())
    records = [of_role("people"), replace(of_role("readers"), owner="platform team")]

    def shown(*listed: Trust) -> list[list[str]]:
        lines = _table(listed, brief=True).splitlines()
        return [re.split(r"\s{2,}", line) for line in lines]

    assert shown(*records) == [
        ["NAME", "GRANTS", "OWNER", "WHO"],
        ["people", "reader:*", "-", "AWS role people"],
        ["readers", "reader:*", "platform team", "AWS role readers"],
    ]
    assert shown(*records[:1])[0] == ["NAME", "GRANTS", "WHO"]


@pytest.mark.parametrize("arguments", [["trust", "list"], ["trust", "remove", "x"], [*ADD, *FROM_AWS]])
def test_records_that_cannot_be_read_are_one_line_and_stay(aws: Aws, arguments: list[str]) -> None:
    aws.put_record("payments", trust.KEY, b'{"records": {}}')

    line = aws.failure(*arguments)

    assert f"s3://{bucket('payments')}/{trust.KEY}" in line
    assert aws.records("payments")[trust.KEY] == b'{"records": {}}'


# --- update --------------------------------------------------------------------------------------


def test_an_update_changes_the_record_in_place_and_shows_what_was_and_is(aws: Aws) -> None:
    first, last = of_role("a"), of_role("z")
    put(aws, first, last)
    aws.output(*ADD, *FROM_GITHUB)
    [before] = [record for record in stored(aws) if record.name == "network-main"]

    text = aws.output(
        *(*UPDATE, "--role", "reader", "--scope", "network/prod", "--scope", "shared"),
        *("--description", "CI", "--owner", "Béa's team"),
    )

    assert text == (
        "Updated the trust record network-main of the team payments. Its ID tokens and sessions stay valid, "
        "and the change applies to them within 60 seconds.\n\n"
        "  role         writer -> reader\n"
        "  scope        network/* -> network/prod, shared\n"
        "  description  - -> CI\n"
        "  owner        - -> Béa's team\n"
    )
    assert [*stored(aws)][:2] == [first, last]
    [after] = [record for record in stored(aws) if record.name == "network-main"]
    assert after == replace(
        before,
        grants=(Grant(Role.READER, ("network/prod", "shared")),),
        description="CI",
        owner="Béa's team",
        updated=after.updated,
        updated_by=MOTOS_ARN,
    )
    assert after.updated is not None
    assert timedelta(0) <= datetime.now(UTC) - after.updated < timedelta(minutes=1)
    assert "  owner  Béa's team -> -\n" in aws.output(*UPDATE, "--owner", "")


def test_a_record_is_shown_with_who_signs_in_by_it_and_what_it_grants(aws: Aws) -> None:
    put(aws, of_role("other"), of_role("developers", "Developer", description="the people"))
    aws.output("trust", "update", "developers", "--owner", "ada")

    fields = dict(line.split(maxsplit=1) for line in aws.output("trust", "show", "developers").splitlines())

    shown = json.loads(aws.output("trust", "show", "developers", "--json"))
    assert shown in json.loads(aws.output("trust", "list", "--json"))
    assert fields.pop("AWS") == "role     Developer"
    assert fields.pop("created").endswith("ago) by bob")
    assert fields.pop("updated").endswith(f"ago) by {MOTOS_ARN}")
    assert fields == {
        "name": "developers",
        "role": "reader",
        "scope": "*",
        "from": "anywhere",
        "description": "the people",
        "owner": "ada",
    }
    assert "There is no trust record nobody" in aws.failure("trust", "show", "nobody")


def test_a_record_with_several_grants_is_added_changed_as_a_whole_and_shown(
    account: Aws, stub: ApiStub
) -> None:
    account.deploy("payments", ApiAddress=stub.address, BucketName={"Ref": "Bucket"})
    stub.reply(Reply(200, b'{"status": "ok", "version": "0.3.0"}'))
    grants = ("--grant", "writer:apps/*", "--grant", "outputs:network/*")

    added = account.output("trust", "create", "a", *grants, *FROM_AWS)

    assert "writer of apps/*; outputs of network/*" in added
    [record] = stored(account)
    assert record.grants == (Grant(Role.WRITER, ("apps/*",)), Grant(Role.OUTPUTS, ("network/*",)))
    [_, line] = account.output("trust", "list").splitlines()
    assert line.split()[1:3] == ["writer,outputs", "writer:apps/*,outputs:network/*"]
    for part in (("--role", "reader"), ("--scope", "a")):
        assert "--role and --scope cannot change; write all its grants" in account.failure(
            "trust", "update", "a", *part
        )
    assert tuple(stored(account)) == (record,)
    assert "the change" in account.output("trust", "update", "a", "--description", "CI")
    text = account.output("trust", "update", "a", "--grant", "reader:apps/*")
    assert "  role   writer, outputs -> reader\n  scope  writer:apps/*, outputs:network/* -> apps/*\n" in text
    assert json.loads(account.records("payments")[trust.KEY])["schema"] == 1


def test_an_update_that_changes_nothing_says_so_and_writes_nothing(aws: Aws) -> None:
    put(aws, of_role("a"))
    before = aws.records("payments")

    text = aws.output("trust", "update", "a", "--role", "reader", "--scope", "*")

    assert text == "Nothing was changed: the trust record a of the team payments already had these values.\n"
    assert aws.records("payments") == before


@pytest.mark.parametrize(("is_lost", "by", "named"), [(False, "bob", "bob"), (True, "", "Another operator")])
def test_an_update_is_not_made_again_over_another_update_of_the_record(
    aws: Aws, is_lost: bool, by: str, named: str
) -> None:
    record = of_role("a")
    narrowed = replace(
        record, grants=(Grant(Role.READER, ("theirs",)),), updated=record.created, updated_by=by
    )
    put(aws, record)

    def narrow() -> None:
        assert [one.grants[0].role for one in stored(aws)] == [Role.WRITER if is_lost else Role.READER]
        put(aws, narrowed)

    with aws.faults(trust.KEY, *[Fault.ANSWER_LOST] * is_lost, before=narrow) as s3:
        line = aws.failure(*UPDATE_A, **s3)

    assert f"{named} updated the trust record a at the same time" in line
    assert tuple(stored(aws)) == (narrowed,)


@pytest.mark.parametrize("anew", [(), (of_role("a"),)], ids=["removed", "re-created"])
def test_a_record_that_others_remove_or_re_create_stays_so(aws: Aws, anew: tuple[Trust, ...]) -> None:
    put(aws, of_role("a"))

    with aws.faults(trust.KEY, before=lambda: put(aws, *anew)) as s3:
        line = aws.failure("trust", "update", "a", "--role", "writer", **s3)

    assert "removed the trust record a, or created it again" in line
    assert tuple(stored(aws)) == anew


# --- records of a newer command ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schema", "changed", "told"),
    [
        *(
            (7, changed, "written by a newer version of holdfast. This command has ")
            for changed in ({"kind": "saml"}, {"role": "king"}, {"scope": {"all": True}})
        ),
        (1, {"role": "king"}, "is damaged, so it lets nobody sign in"),
    ],
)
def test_a_record_that_this_command_does_not_understand_is_one_line_that_says_so_and_stays(
    aws: Aws, schema: int, changed: dict[str, object], told: str
) -> None:
    [document] = json.loads(Records((of_role("a"),)).to_json())["records"]
    body = json.dumps({"schema": schema, "records": [{**document, **changed}]}).encode()
    aws.put_record("payments", trust.KEY, body)

    nothing_valid = aws.run("trust", "list")
    assert nothing_valid.stdout == "The team payments has no valid trust records.\n"
    for line in (nothing_valid.stderr, aws.failure(*UPDATE_A)):
        assert "The trust record a in s3://" in line
        assert told in line
    assert "already" in aws.failure(*ADD_A)
    assert aws.records("payments") == {trust.KEY: body}

    aws.output(*ADD, *FROM_AWS)
    kept = json.loads(aws.records("payments")[trust.KEY])
    assert (kept["schema"], kept["records"][0]) == (schema, {**document, **changed})
    listed = aws.run("trust", "list", "--json")
    assert [one["name"] for one in json.loads(listed.stdout)] == ["network-main"]
    assert listed.returncode == 1
    aws.output("trust", "remove", "a")
    assert [record.name for record in stored(aws).records] == ["network-main"]


def test_records_that_are_not_valid_at_all_are_one_line_and_stay(aws: Aws) -> None:
    body = json.dumps({"schema": 7, "entries": []}).encode()
    aws.put_record("payments", trust.KEY, body)
    for command in (("trust", "list"), (*ADD, *FROM_AWS), UPDATE_A, ("trust", "remove", "a")):
        assert "written by a newer version of holdfast. This command has " in aws.failure(*command)
    assert aws.records("payments") == {trust.KEY: body}


# --- remove --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("who", "whose"),
    [
        (FROM_GITHUB, "its sessions, and ID tokens that no other record matches, are"),
        (FROM_AWS, "its sessions are"),
    ],
)
def test_a_removed_record_is_gone_and_the_others_stay(aws: Aws, who: tuple[str, ...], whose: str) -> None:
    put(aws, of_role("a"))
    aws.output(*ADD, *who)

    text = aws.output("trust", "remove", "network-main")

    assert text == (
        f"Removed the trust record network-main of the team payments: {whose} refused after at most 60 "
        "seconds.\n"
    )
    assert [record.name for record in stored(aws)] == ["a"]


@pytest.mark.parametrize("command", [["remove"], ["update", "--role", "reader"]])
def test_an_unknown_record_is_one_line_that_says_where_to_look(aws: Aws, command: list[str]) -> None:
    line = aws.failure("trust", *command, "nobody")

    assert "There is no trust record nobody" in line
    assert "holdfast trust list" in line
    assert aws.records("payments") == {}


def test_a_record_that_others_make_anew_under_the_name_at_the_same_time_stays(aws: Aws) -> None:
    put(aws, of_role("a"))
    anew = of_role("a")

    with aws.faults(trust.KEY, before=lambda: put(aws, anew)) as s3:
        aws.output("trust", "remove", "a", **s3)

    assert tuple(stored(aws)) == (anew,)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([*ADD, *FROM_AWS], "Created the trust record network-main"),
        (["trust", "remove", "a"], "Removed the trust record a"),
    ],
)
def test_what_was_done_and_not_printed_is_told(aws: Aws, arguments: list[str], told: str) -> None:
    put(aws, of_role("a"))
    code, [line] = unread(aws.environment, *arguments)

    assert code == 1
    assert told in line
