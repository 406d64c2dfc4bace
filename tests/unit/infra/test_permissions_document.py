"""`function-permissions.md` shows the roles and the bucket policy that the CDK app makes."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Final

import pytest

from holdfast_cdk.config import AWS
from holdfast_cdk.functions import METRICS, NOTIFIED_TOPIC, ROLES, STATE_KEY, TRANSFERS_ROLE
from holdfast_cdk.notify_settings import AuditArchive, Notify
from holdfast_cdk.team_settings import Retention, Team
from tests.conftest import GeneratedFile
from tests.support import permissions_document
from tests.support.aws_permissions import allowed
from tests.support.pages import page
from tests.support.permissions_document import Permission
from tests.unit.infra.conftest import Synthesize, Synthesized
from tests.unit.infra.test_bucket_policy import ALL, KEYS, KMS, KMS_BY_DEFAULT, TABLE

FULL: Final = Team(
    name="full",
    retention=Retention(mode="governance", days=30),
    new_states="declared",
    key="kms",
    watch=True,
    audit_archive=AuditArchive(days=30),
    notify=Notify(topic="arn:aws:sns:eu-central-1:123456789012:holdfast"),
)
"""A team with every setting that adds a permission to a role."""
WITHOUT: Final = {
    "`retention` is set without `bucket_default`": (
        replace(FULL, name="no-retention", retention=None),
        replace(
            FULL, name="by-default", retention=Retention(mode="governance", days=30, bucket_default=True)
        ),
    ),
    '`new_states = "declared"`': (replace(FULL, name="any-name", new_states="any"),),
    "`key` or `previous_keys` names a KMS key": (replace(FULL, name="no-key", key="s3"),),
    "`audit_archive` is set": (replace(FULL, name="no-archive", audit_archive=None),),
    "`notify` is set": (replace(FULL, name="no-topic", notify=None),),
}
"""Settings that add permissions, each with teams that lack it."""
WHEN: Final = {
    ALL: "",
    ALL - {"native"}: " unless `native_clients = true`",
    ALL - {"retention"}: " unless `retention` is set",
    frozenset({"retention"}): " if `retention` is set",
    KMS: " if `key` or `previous_keys` names a KMS key",
    KMS_BY_DEFAULT: " if `key` names a KMS key",
    ALL - KMS: " if neither `key` nor `previous_keys` names a KMS key",
    frozenset({"networks"}): " if `networks` is set",
}
"""The setting that decides for which teams a statement is, in words."""


BY_ARN: Final = {
    ":sns:": f"<{NOTIFIED_TOPIC.resource}>",
    ":kms:": f"<{STATE_KEY.resource}.Arn>",
}
"""Resources that a team's settings may name by their ARNs."""


def permissions(stack: Synthesized) -> Mapping[str, list[Permission]]:
    """Return the permissions of each role."""
    of_role = {}
    for spec in ROLES:
        if spec.setting and f"{spec.construct_id}Role" not in str(stack.template["Resources"].keys()):
            continue
        role = stack.role(spec.name)
        [policy] = role["Policies"]
        names = {
            f"<{spec.construct_id}Log.Arn>": "<OwnLog>",
            stack.role_arn("transfers"): f"<{TRANSFERS_ROLE.resource}>",
            "*": f"<{METRICS.resource}>",
        }
        of_role[spec.name] = [
            (action, names.get(on) or next((place for kind, place in BY_ARN.items() if kind in on), on))
            for action, on in allowed(stack.resolve(policy["PolicyDocument"]["Statement"]))
        ]
    return of_role


@pytest.fixture(scope="module")
def roles(synthesize: Synthesize) -> Mapping[str, Mapping[str, list[Permission]]]:
    """The permissions of each function, by the name of the team."""
    teams = [FULL, *chain(*WITHOUT.values())]
    stacks = synthesize(teams, AWS)
    return {team.name: permissions(stacks[f"Holdfast-{team.name}"]) for team in teams}


def test_no_team_has_a_permission_that_the_document_leaves_out(
    roles: Mapping[str, Mapping[str, Iterable[Permission]]],
    stacks: dict[str, Synthesized],
    settled: Synthesized,
) -> None:
    for stack in (*stacks.values(), settled):
        for function, needed in permissions(stack).items():
            assert set(needed) <= set(roles[FULL.name][function])


@pytest.mark.generated
def test_the_document_shows_every_role_and_every_denied_request(
    roles: Mapping[str, Mapping[str, Iterable[Permission]]], generated_file: GeneratedFile
) -> None:
    text = permissions_document.text(
        roles[FULL.name],
        {setting: [roles[team.name] for team in teams] for setting, teams in WITHOUT.items()},
        {name: {kind: row.denied.get(kind, {}) for kind in KEYS} for name, row in TABLE.items()},
        WHEN,
    )

    generated_file(page("function-permissions.md"), text)
