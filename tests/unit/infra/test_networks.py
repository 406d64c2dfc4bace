"""`networks` of a team: the list, who deploys it, and what a stack has with it and without."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast_cdk.config import AWS, ConfigError, load_teams
from holdfast_cdk.team_settings import ENVIRONMENT_BYTES, LONGEST_NETWORKS, Retention, Team
from holdfast_cdk.teams_lock import ELSEWHERE, TeamsLock, check_loopback
from tests.support.every_setting import EVERY_SETTING
from tests.support.iam_policy import Request, bucket_policy, evaluate
from tests.unit.infra.conftest import Synthesize, Synthesized
from tests.unit.infra.test_app import app
from tests.unit.infra.test_bucket_policy import INSIDE, OUTSIDE, PRESIGNED, TLS

NETWORKS = ("203.0.113.0/24", "2001:db8::/32")
TEAM = Team(name="payments", account="123456789012", region="eu-central-1", networks=NETWORKS)
LONGEST = [f"10.{number}.0.0/16" for number in range(221)]
LARGEST_POLICY = 20 * 1024


def read(folder: Path, networks: str) -> tuple[str, ...]:
    path = folder / "teams.toml"
    path.write_text(f"[teams.a]\nnetworks = {networks}\n")
    return load_teams(path)[0].networks


@pytest.mark.parametrize(
    ("networks", "told"),
    [
        (
            "[]",
            'networks = [] is not allowed; write a list of 1 to 300 entries, as in ["203.0.113.0/24", "198.',
        ),
        ('"203.0.113.0/24"', "is not allowed; write a list of 1 to 300 entries"),
        ("[7]", 'networks[0] = 7 is not allowed; write a network in quotes, as in "203.0.113.0/24"'),
        ('["a\\nb"]', 'networks[0] = "a\\nb" is not allowed; write a network in quotes'),
        ('["acme"]', 'networks[0] = "acme" is not allowed; write a network in quotes'),
        (
            '["203.0.113.5"]',
            "networks: '203.0.113.5' is not in the standard form of a network; write 203.0.113.5/32",
        ),
        ('["1.2.3.4/40"]', "networks: '1.2.3.4/40' is not a network; write a network such as 203.0.113.0/24"),
        ('["203.0.113.5/24"]', "networks: '203.0.113.5/24' is not in the standard form of a network; write"),
        (
            '["10.0.0.0/8", "10.1.0.0/16"]',
            "networks: the network 10.0.0.0/8 includes the network 10.1.0.0/16; remove 10.1.0.0/16",
        ),
        (
            '["2001:db8::/32", "2001:db9::/32"]',
            "team 'a': networks: 2001:db8::/32, 2001:db9::/32 would refuse every caller, because requests "
            "come only from IPv4 addresses; add an IPv4 network, such as 203.0.113.0/24",
        ),
        ('["10.0.0.0/8", "10.0.0.0/8"]', 'networks has "10.0.0.0/8" twice; write it once'),
        (
            json.dumps([*LONGEST, "2001:db8::/32", "192.168.0.0/16", "192.0.2.0/24"]),
            f"but a Lambda function has room for {LONGEST_NETWORKS};",
        ),
    ],
)
def test_a_list_that_is_wrong_or_too_long_is_refused(tmp_path: Path, networks: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        read(tmp_path, networks)
    assert told in str(error.value)
    assert str(error.value).isprintable()


def test_the_longest_list_fits_into_every_place(synthesize: Synthesize, tmp_path: Path) -> None:
    networks = read(tmp_path, json.dumps(LONGEST))
    assert LONGEST_NETWORKS - 30 < len(",".join(networks)) <= LONGEST_NETWORKS
    retention = Retention(mode="governance", days=36500)
    team = replace(
        EVERY_SETTING,
        name="t" * 25,
        key="kms",
        previous_keys=(),
        native_clients=False,
        retention=retention,
        history=None,
    )
    assert team.notify
    assert team.domain
    notify = replace(team.notify, topic=f"{team.notify.topic.rpartition(':')[0]}:{'t' * 256}")
    domain = replace(team.domain, name=f"{'d.' * 125}com")
    team = replace(team, notify=notify, domain=domain)
    stack = synthesize([replace(team, networks=networks)], AWS)[f"Holdfast-{team.name}"]
    have = []
    for function in stack.resources("AWS::Lambda::Function").values():
        variables = stack.resolve(function["Properties"]["Environment"]["Variables"])
        if "HOLDFAST_NETWORKS" in variables:
            variables["HOLDFAST_BUCKET"] = "b" * 63
            assert sum(map(len, (*variables, *variables.values()))) < ENVIRONMENT_BYTES
            have.append(function["Properties"]["Handler"])
    assert have == [f"{name}.handler.handle" for name in ("authorizer", "session_exchange")]
    for bucket in ("StateBucket", "StagingBucket"):
        assert len(json.dumps(bucket_policy(stack.template, bucket))) < LARGEST_POLICY - 2048


def test_only_a_stack_with_networks_has_the_address_in_the_key_of_the_cache_and_says_so(
    default: Synthesized, settled: Synthesized
) -> None:
    header, address = "$request.header.Authorization", "$context.identity.sourceIp"
    for stack, sources, networks in (
        (default, [header], None),
        (settled, [header, address], ",".join(EVERY_SETTING.networks)),
    ):
        assert stack.only("AWS::ApiGatewayV2::Authorizer")["Properties"]["IdentitySource"] == sources
        assert stack.template["Outputs"].get("Networks", {}).get("Value") == networks
        for handler in ("authorizer", "session_exchange"):
            variables = stack.function(f"{handler}.handler.handle")[1]["Environment"]["Variables"]
            assert variables.get("HOLDFAST_NETWORKS") == networks


@pytest.mark.parametrize("bucket", ["StateBucket", "StagingBucket"])
def test_a_presigned_address_is_denied_elsewhere_in_both_buckets(
    default: Synthesized, settled: Synthesized, bucket: str
) -> None:
    for stack in (default, settled):
        policy = bucket_policy(stack.template, bucket)
        resource = next(
            statement["Resource"]
            for statement in policy
            if statement["Sid"] in ("RefuseOldSignatures", "RefuseOtherEncryption")
        )
        for source in (*INSIDE, *OUTSIDE):
            for kind in (PRESIGNED, "REST-HEADER"):
                context = {**TLS, "s3:authType": kind, "aws:SourceIp": source}
                read_it = Request("s3:GetObject", f"{resource[:-1]}a", "anybody", context)
                denied = stack is settled and kind == PRESIGNED and source in OUTSIDE
                assert evaluate(policy, read_it) == ("deny" if denied else "nothing")


# --- who deploys it -----------------------------------------------------------------------------------


def deploy(folder: Path, *teams: Team, address: str | None = None) -> str:
    """Check and record teams, as a deployment does; return the message if it is stopped, else nothing."""
    lock = TeamsLock(folder / "teams.toml")
    try:
        lock.check_networks(teams, address)
    except ConfigError as error:
        return str(error)
    lock.record(teams, {team.name for team in teams})
    return ""


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("203.0.113.5", None),
        (ELSEWHERE, None),
        (
            None,
            "with -c address=<your public address>, or -c address=",
        ),
        (
            "198.51.100.7",
            "does not include 198.51.100.7 and would lock you out. Add 198.51.100.7/32 to the list",
        ),
        (
            "2001:db8::5",
            "-c address=2001:db8::5 is not an IPv4 address, but all requests come",
        ),
        (
            "here",
            "-c address=here is not an IPv4 address, but all requests come from IPv4",
        ),
        ("", "such as 203.0.113.5, or -c address=elsewhere if you yourself need no access"),
        ("true", "-c address=true is not an IPv4 address"),
    ],
)
def test_networks_are_deployed_from_inside_or_with_a_word(
    tmp_path: Path, address: str | None, told: str | None
) -> None:
    message = deploy(tmp_path, TEAM, address=address)
    assert message.isprintable()
    assert (message == "") is (told is None)
    assert (told or "") in message
    assert (tmp_path / "teams.lock").exists() is (told is None)


def test_a_list_is_checked_when_it_is_new_and_not_again(tmp_path: Path) -> None:
    plain = replace(TEAM, networks=())
    assert deploy(tmp_path, plain) == ""
    assert deploy(tmp_path, TEAM) != ""
    assert deploy(tmp_path, TEAM, address="203.0.113.5") == ""
    assert 'networks = ["203.0.113.0/24", "2001:db8::/32"]\n' in (tmp_path / "teams.lock").read_text()
    assert deploy(tmp_path, TEAM) == ""
    assert "not deployed yet" in deploy(tmp_path, replace(TEAM, networks=NETWORKS[:1]))
    assert deploy(tmp_path, plain) == ""
    assert "not deployed yet" in deploy(tmp_path, TEAM)


def test_a_deployed_list_of_ipv6_alone_can_be_mended(tmp_path: Path) -> None:
    earlier = replace(TEAM, networks=("2001:db8::/32",))
    assert deploy(tmp_path, earlier, address=ELSEWHERE) == ""
    assert deploy(tmp_path, TEAM, address="203.0.113.5") == ""


def test_a_team_that_is_not_made_is_neither_asked_nor_recorded_as_checked(tmp_path: Path) -> None:
    other = replace(TEAM, name="other")
    lock = TeamsLock(tmp_path / "teams.toml")
    lock.check_networks([other], "203.0.113.5")
    lock.record([TEAM, other], {"other"})
    assert (tmp_path / "teams.lock").read_text().count("networks = ") == 1
    assert deploy(tmp_path, other) == ""
    assert "team 'payments': networks" in deploy(tmp_path, TEAM)


def test_the_app_asks_whoever_deploys_and_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "teams.toml"
    path.write_text('[teams.payments]\naccount = "123456789012"\nnetworks = ["203.0.113.0/24"]\n')
    stopped = app(tmp_path, path, address="198.51.100.7")
    assert (stopped.returncode, stopped.stdout) == (1, "")
    assert "does not include 198.51.100.7 and would lock you out" in stopped.stderr
    assert list(tmp_path.rglob("*.template.json")) == []
    ended = app(tmp_path, path, **{"aws:cdk:bundling-stacks": []})  # as `cdk ls` and `cdk destroy` say it
    assert (ended.returncode, ended.stderr) == (0, "")
    assert not path.with_suffix(".lock").exists()


def test_networks_without_the_only_address_of_the_local_aws_are_refused_there() -> None:
    with pytest.raises(ConfigError, match=r'lacks 127\.0\.0\.1.*add "127\.0\.0\.0/8"'):
        check_loopback([TEAM])
    check_loopback([replace(TEAM, networks=("127.0.0.0/8",)), replace(TEAM, networks=())])
