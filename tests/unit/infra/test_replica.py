"""The replica of a state bucket: its stack, and what the team's stack has for it."""

from dataclasses import replace

import pytest

from infra.config import AWS, Replica, TeamConfig
from tests.support.iam_policy import ACCOUNT, REGION
from tests.unit.infra.conftest import Synthesize, Synthesized

TEAM = TeamConfig(name="copied", account=ACCOUNT, region=REGION, replica=Replica(region="eu-west-1"))


@pytest.fixture(scope="module")
def made(synthesize: Synthesize) -> dict[str, Synthesized]:
    return synthesize([TEAM, replace(TEAM, name="plain", key="s3")], AWS)


def test_x(made):
    import yaml

    for n, s in made.items():
        if n.startswith("HoldfastReplica"):
            print(n, s.environment, yaml.safe_dump(s.resolve(s.template["Resources"])))
        else:
            print(
                n,
                yaml.safe_dump(s.resolve(s.template["Resources"]["StateBucket"])),
                s.template["Resources"].get("StateKey"),
            )
    assert 0
