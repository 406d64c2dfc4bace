"""A team whose every setting differs from the default."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Final

from holdfast_cdk.alarm_settings import AlarmSettings
from holdfast_cdk.config import load_teams
from holdfast_cdk.domain_settings import DomainSettings
from holdfast_cdk.notify_settings import AuditArchive, Notify
from holdfast_cdk.team_settings import AccessLogs, History, Memory, Replica, Retention, Team, Throttling

DEFAULT: Final = Team(name="ops")
"""The team without any setting."""


def _of_the_end_to_end_tests() -> Team:
    """Return a team with each setting of the teams of the end-to-end tests that is not the default."""
    teams = load_teams(Path(__file__).parents[1] / "e2e" / "teams.toml")
    return replace(
        DEFAULT,
        **{
            setting.name: value
            for setting in fields(Team)
            for team in teams
            if setting.name != "name"
            and (value := getattr(team, setting.name)) != getattr(DEFAULT, setting.name)
        },
    )


EVERY_SETTING: Final = replace(
    _of_the_end_to_end_tests(),
    account="123456789012",
    region="eu-central-1",
    own_locks=False,
    max_state_mb=250,
    retention=Retention(mode="compliance", days=30, bucket_default=True),
    history=History(days=90, keep_versions=20),
    key=f"arn:aws:kms:eu-central-1:123456789012:key/mrk-{'0' * 32}",
    key_administrators=("arn:aws:iam::123456789012:role/security",),
    replica=Replica(region="eu-west-1"),
    access_logs=AccessLogs(bucket="acme-s3-logs", prefix="holdfast/"),
    audit_retention=731,
    throttling=Throttling(rate=5, burst=7),
    memory=Memory(backend=1024, cloud=3008, management=2048, authorizer=256),
    domain=DomainSettings(
        name="states.example.com",
        certificate="arn:aws:acm:eu-central-1:123456789012:certificate/1a2b3c4d-1111-4222-8333-444455556666",
    ),
    audit_archive=AuditArchive(days=400),
    notify=Notify(
        topic="arn:aws:sns:eu-central-1:123456789012:holdfast", events=("state.written", "replica.failed")
    ),
    alarms=AlarmSettings(
        topic="arn:aws:sns:eu-central-1:123456789012:operations", oldest_lock="2d", slow=5000
    ),
    networks=("203.0.113.0/24", "2001:db8::/32"),
    tags={"cost-center": "42"},
)
"""Settings that the end-to-end tests cannot have together, or not at their place, are named here."""

# Whatever the documents name is another one here: the region, the topic, the team and the buckets.
IN_ANOTHER_REGION: Final = replace(
    EVERY_SETTING,
    name="data",
    region="us-west-2",
    key="kms",
    previous_keys=(),
    replica=Replica(region="ca-central-1"),
    notify=Notify(topic="arn:aws:sns:us-west-2:123456789012:platform", events=("state.written",)),
    alarms=AlarmSettings(topic="arn:aws:sns:us-west-2:123456789012:pager"),
    domain=None,
)
