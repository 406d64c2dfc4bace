"""The function `watch` of the deployed team `watched`: its metrics, its messages and its probe."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from holdfast import watching
from holdfast.names import parse
from holdfast.watching import Kind
from local_aws.server import ACCOUNT, REGION, LocalAws
from tests.support import access_commands, documents
from tests.support.deployed import client, function_name, new_user, route_through
from tests.support.http_client import Credentials
from tests.support.subscribed_queue import subscribed
from tests.support.team import Team
from tests.support.waiting import wait_until
from tests.support.watch import ending_token, look

TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:watched"


def holdfast(team: Team, *arguments: str) -> str:
    return access_commands.holdfast(team, "watch", *arguments)


def newest(aws: LocalAws, metric: str) -> float:
    """Return the value that was written last."""
    now = datetime.now(UTC)
    points = client(aws, "cloudwatch").get_metric_statistics(
        Namespace=watching.NAMESPACE,
        MetricName=metric,
        Dimensions=[{"Name": watching.DIMENSION, "Value": "watched"}],
        StartTime=now - timedelta(minutes=10),
        EndTime=now + timedelta(minutes=1),
        Period=1,
        Statistics=["Maximum"],
    )["Datapoints"]
    return float(max(points, key=lambda point: point["Timestamp"])["Maximum"])


@pytest.fixture
def messages(aws: LocalAws, watched: Team) -> Iterator[Any]:  # noqa: ARG001 the topic comes with the team
    """Returns the messages about a kind of finding, from a queue that subscribes to the topic."""
    with subscribed(aws, TOPIC, "findings") as queue:

        def about(kind: Kind) -> list[str]:
            queue.receive()
            subject = f"Holdfast: {kind} in team watched"
            return [one["Message"] for one in queue.messages if one["Subject"] == subject]

        yield about


@pytest.fixture
def change(aws: LocalAws, watched: Team) -> Iterator[Callable[..., None]]:
    """Changes variables of the function until the end of the test."""
    name = function_name(aws, f"Holdfast-{watched.name}", "watch")
    lambda_ = client(aws, "lambda")
    before = lambda_.get_function_configuration(FunctionName=name)["Environment"]["Variables"]

    def make(**to: str) -> None:
        changed = {"Variables": {**before, **to}}
        lambda_.update_function_configuration(FunctionName=name, Environment=changed)
        route_through(aws, [name], None)

    yield make
    make()


def test_a_lock_that_was_left_behind_is_a_metric_and_a_message(
    aws: LocalAws, watched: Team, state: str, messages: Any, change: Callable[..., None]
) -> None:
    change(HOLDFAST_OLD_LOCK="0")
    frozen = f"{state}-frozen"
    access_commands.holdfast(
        watched, "state", "freeze", frozen, "--reason", "x", environment=maintainer(watched)
    )
    held = documents.lock_info(who="<!channel> ada@laptop")
    assert watched.client("writer").lock(state, held).status == 200

    looked = look(aws, watched.name)

    assert (looked["findings"].count(Kind.LOCK_HELD), looked["frozen"]) == (1, 1)
    assert newest(aws, watching.Metric.OLDEST_LOCK) >= looked["oldest_lock"]
    wait_until(lambda: any(state in text for text in messages(Kind.LOCK_HELD)), "the message")
    (text,) = messages(Kind.LOCK_HELD)
    assert f"More: holdfast lock show {state}" in text
    assert documents.lock_id(held) in text
    assert not any(word in text for word in ("<!", "ada@", frozen))


def maintainer(team: Team) -> dict[str, str]:
    token = team.token("maintainer")
    return {
        "TF_HTTP_USERNAME": token.username,
        "TF_HTTP_PASSWORD": token.password,
        "HOLDFAST_ADDRESS": team.gateway.address,
    }


def test_a_token_that_ends_is_a_finding_of_the_function_and_of_the_command(
    aws: LocalAws, watched: Team, messages: Any
) -> None:
    token = ending_token(watched)

    looked = look(aws, watched.name)
    status = access_commands.run(watched, "watch", "status", "--json")

    assert looked["attention"] == newest(aws, watching.Metric.ATTENTION) == 1
    wait_until(lambda: any(token.id in text for text in messages(Kind.TOKEN_ENDS)), "the message")
    assert status.returncode == 1, status
    (problem,) = [one for one in json.loads(status.stdout)["findings"] if one["level"] == "problem"]
    assert problem["do"] == f"Run `holdfast token rotate {token.id} --team watched`."
    watched.s3.delete_object(Bucket=watched.bucket, Key=token.key)
    assert look(aws, watched.name)["attention"] == 0


def test_the_probe_passes_and_fails_for_a_revoked_token_and_a_wrong_secret(
    aws: LocalAws, watched: Team, messages: Any
) -> None:
    assert look(aws, watched.name)["probe"] is None
    assert "enabled" in holdfast(watched, "enable")
    assert look(aws, watched.name)["probe"] == ""
    assert newest(aws, watching.Metric.PROBE_FAILED) == 0

    # A probe that was killed leaves its lock, which the next one acquires again.
    (key,) = probe_keys(watched)
    stored = json.loads(watched.object(key) or b"")
    left = json.dumps({"ID": "holdfast-watch", "Operation": "probe", "Info": "", "Who": "holdfast watch"})
    probing = watched.client_with(Credentials(stored["id"], stored["secret"]))
    assert probing.lock(stored["state"], left.encode()).status == 200
    assert probing.read("network/prod").status == 403
    assert look(aws, watched.name)["probe"] == ""
    assert watched.object(parse(stored["state"]).lock_key) is None

    watched.put("watch/newer.json", watching.secret(stored["id"], "holdfast_wrong", parse(stored["state"])))
    assert look(aws, watched.name)["probe"] == "the API responded to PUT /locks with 403"
    assert newest(aws, watching.Metric.PROBE_FAILED) == 1
    wait_until(lambda: messages(Kind.PROBE_FAILED), "the message")

    holdfast(watched, "enable", "--expires", "30d")
    (renewed,) = probe_keys(watched)
    assert renewed not in (key, "watch/newer.json")
    access_commands.holdfast(watched, "token", "revoke", renewed.removeprefix("watch/").removesuffix(".json"))
    assert look(aws, watched.name)["findings"][:2] == [Kind.PROBE_FAILED, Kind.PROBE_ENDED]

    assert "is disabled" in holdfast(watched, "disable")
    assert (probe_keys(watched), look(aws, watched.name)["probe"]) == ([], None)


def probe_keys(team: Team) -> list[str]:
    listed = team.s3.list_objects_v2(Bucket=team.bucket, Prefix=watching.SECRETS)
    return [one["Key"] for one in listed.get("Contents", [])]


def test_not_even_somebody_who_may_read_the_whole_bucket_reads_the_probes_secret(
    aws: LocalAws, watched: Team
) -> None:
    reads = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"arn:aws:s3:::{watched.bucket}/*"}
    reader = client(aws, "s3", new_user(client(aws, "iam"), "reads-all", reads))
    watched.put("watch/any.json", b"{}")
    watched.put("probes/any", b"{}")

    reader.get_object(Bucket=watched.bucket, Key="probes/any")
    with pytest.raises(ClientError, match="AccessDenied"):
        reader.get_object(Bucket=watched.bucket, Key="watch/any.json")
    watched.s3.delete_object(Bucket=watched.bucket, Key="watch/any.json")
