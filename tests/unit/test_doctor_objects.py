"""The findings of `holdfast doctor` about the current objects: their keys, their copies, and their states."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, cast

import pytest

from holdfast import watching
from holdfast.template import DeployedTemplate
from holdfast_cli.doctor import objects
from holdfast_cli.doctor.findings import Finding, Level
from tests.unit.test_doctor_team import Client, refusal

OWN, GIVEN, STRANGE = ("own", "given", "strange")
NOW = datetime(2026, 11, 28, 12, tzinfo=UTC)
JUST_NOW = NOW - timedelta(minutes=14)
LONG_AGO = NOW - timedelta(minutes=16)


def template(**properties: object) -> DeployedTemplate:
    bucket = {"Type": "AWS::S3::Bucket", "Properties": properties}
    return DeployedTemplate({"Resources": {"StateBucket": bucket}}, {}, "aws", "eu-central-1", "123456789012")


ALONE, REPLICATED = template(), template(ReplicationConfiguration={})


class Listing:
    """The one page of a list of objects."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        return [{"Contents": [{"Key": name} for name in self._names]}]


def found(heads: dict[str, Any], deployed: DeployedTemplate = ALONE) -> list[Finding]:
    """Look at a bucket with these objects: name -> fields of HeadObject, or a function that raises."""

    def head(*, Key: str, **_: object) -> Any:  # noqa: N803 the SDK's name
        if callable(heads[Key]):
            heads[Key]()
        response = {"HTTPHeaders": {"date": format_datetime(NOW, usegmt=True)}}
        return {"ResponseMetadata": response, "LastModified": JUST_NOW, "Metadata": {}, **heads[Key]}

    s3 = Client(head_object=head, get_paginator=lambda _: Listing(*heads))
    return list(objects.check(cast("Any", s3), "b", deployed, [OWN, GIVEN]))


def of(check: str, findings: list[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.check == check]


def under(key: str) -> dict[str, str]:
    return {"SSEKMSKeyId": key}


def test_objects_are_counted_under_each_key_that_the_functions_may_use() -> None:
    findings = found(
        {
            "states/a": under(OWN),
            "states/b": under(OWN),
            "tokens/c": {},
            "gone": refusal("404", 404),
            "probes/d": under(STRANGE),
            watching.secret_key("e"): refusal("403", 403),
        }
    )

    said = "The functions may read every current object: 1 with keys of S3, 0 with given, 2 with own."
    assert [(one.level, one.text) for one in of("keys.objects", findings)] == [(Level.OK, said)]


def test_a_state_under_another_key_is_named_with_the_key_to_write() -> None:
    strange = {f"states/b{number}": under(STRANGE) for number in range(7)}
    [finding] = of("keys.objects", found({"states/a": under(OWN), **strange}))

    assert finding.level is Level.PROBLEM
    assert finding.text == (
        "The functions may not use the key strange, which encrypts states/b0, states/b1, states/b2, "
        "states/b3, states/b4 and 2 more."
    )
    assert finding.do == 'Add "strange" to previous_keys in teams.toml, and deploy the stack.'


def test_objects_that_the_operator_may_not_look_at_are_a_note_that_hides_no_other_object() -> None:
    denied = {f"states/a{number}": refusal("403", 403) for number in range(6)}
    strange, hidden = of("keys.objects", found({**denied, "states/b": under(STRANGE)}))
    _, others = of("keys.objects", found({**denied, "states/b": under(OWN)}))

    assert (strange.level, hidden.level) == (Level.PROBLEM, Level.NOTE)
    assert "states/b" in strange.text
    assert hidden.text == (
        "Not checked: states/a0, states/a1, states/a2, states/a3, states/a4 and 1 more. AWS does not allow "
        "these credentials to read the metadata."
    )
    assert others.text.startswith("The functions may read every other current object: ")


@pytest.mark.parametrize(
    ("heads", "level", "says"),
    [
        ([("COMPLETED", LONG_AGO)], Level.OK, "The replica has 1 of 1 current objects."),
        (
            [("COMPLETED", LONG_AGO), ("PENDING", JUST_NOW)],
            Level.OK,
            "The replica has 1 of 2 current objects.",
        ),
        (
            [("COMPLETED", LONG_AGO), ("PENDING", LONG_AGO), ("COMPLETED", LONG_AGO)],
            Level.PROBLEM,
            "After 15 minutes S3 has not copied states/1 to the replica.",
        ),
        (
            [("FAILED", JUST_NOW), ("COMPLETED", JUST_NOW)],
            Level.PROBLEM,
            "S3 failed to copy states/0 to the replica.",
        ),
        (
            [("", LONG_AGO)],
            Level.NOTE,
            "S3 has not copied these objects, which are older than the replica: states/0.",
        ),
        (
            [("REPLICA", LONG_AGO)],
            Level.NOTE,
            "S3 has not copied these objects, which are older than the replica: states/0.",
        ),
    ],
)
def test_an_object_that_the_replica_lacks_is_named_with_why(
    heads: list[tuple[str, datetime]], level: Level, says: str
) -> None:
    bucket = {
        f"states/{number}": {"ReplicationStatus": status, "LastModified": written}
        for number, (status, written) in enumerate(heads)
    }
    first, *_ = of("replica.copies", found(bucket, REPLICATED))

    assert (first.level, first.text) == (level, says)
    assert ("Batch Replication" in first.do) is (level is not Level.OK)
    assert not of("replica.copies", found(bucket))


def test_a_lock_that_is_held_for_an_hour_without_a_state_is_named() -> None:
    old, young = {"LastModified": NOW - watching.OLD}, {"LastModified": JUST_NOW}
    frozen = {**old, "Metadata": {"freeze": "an-id"}}
    bucket = {
        "states/locked.tfstate": old,
        "states/locked.tfstate.tflock": old,
        "states/denied.tfstate": refusal("403", 403),
        "states/denied.tfstate.tflock": old,
        "states/first-apply.tfstate.tflock": young,
        "states/frozen.tfstate.tflock": frozen,
    }
    left = {"states/network/typo.tfstate.tflock": old}

    [none], [named] = of("locks", found(bucket)), of("locks", found({**bucket, **left}))

    assert (none.level, named.level) == (Level.OK, Level.NOTE)
    assert "older than an hour: network/typo." in named.text
