"""Credentials at work with every installed Terraform, and the events in the audit trail."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from holdfast.access import Role
from holdfast.identity import principals
from tests.support import access_commands
from tests.support.access_records import add_oidc_trust, new_token
from tests.support.http_client import Credentials
from tests.support.oidc import Issuer
from tests.support.project import NewProject, cloud, reads_output
from tests.support.team import HOLDFAST, Team
from tests.support.waiting import wait_until

NETWORK = """
resource "terraform_data" "subnet" {
  input = "10.0.1.0/24 and a secret of the resource"
}

output "subnet_id" {
  value = "subnet-1"
}
"""

SUBJECT = "repo:acme/network:ref:refs/heads/main"


def test_a_configuration_with_cloud_reads_outputs_that_its_own_token_does_not(
    strict: Team, state: str, new_project: NewProject
) -> None:
    other, own = f"network/{state}", f"app/{state.replace('/', '-')}"
    new_project.applied(strict, other, strict.token("writer"), main=NETWORK)
    reader = strict.new_token("outputs", other)
    writer = strict.new_token("writer", own)
    project = new_project(strict, None, writer)
    project.environment.update(TF_HTTP_USERNAME=reader.username, TF_HTTP_PASSWORD=reader.password)
    project.write(backend=cloud(strict, own), main=reads_output(strict, other, "subnet_id"))

    project.ok("init")
    project.ok("apply", "-auto-approve")

    assert json.loads(project.ok("output", "-json").out)["subnet_id"]["value"] == "subnet-1"
    assert reader.password.encode() not in (strict.current(own) or reader.password.encode())
    assert strict.client_with(writer).outputs(other).error == (403, "not_allowed")


def test_a_ci_job_applies_with_its_id_token_and_with_a_session_and_both_are_the_same_caller(
    strict: Team, state: str, new_project: NewProject, issuer: Issuer
) -> None:
    environment = {"environment": state}
    add_oidc_trust(strict, issuer, f"network/{state}/*", claims=environment)
    token = issuer.token(environment, subject=SUBJECT)

    new_project.applied(strict, f"network/{state}/one", Credentials("oidc", token), main=NETWORK)
    session = access_commands.login(strict, "--oidc", environment={"HOLDFAST_ID_TOKEN": token})
    new_project.applied(strict, f"network/{state}/two", session, main=NETWORK)

    principal = principals.principal(f"oidc:{issuer.address}#{SUBJECT}")
    for name in ("one", "two"):
        [version] = strict.versions(f"network/{state}/{name}")
        assert unquote(version.metadata["written-by"]) == principal
    assert session.username.startswith("session-")


def test_the_trail_tells_who_did_what_and_is_followed(
    strict: Team, state: str, new_project: NewProject, issuer: Issuer, tmp_path: Path
) -> None:
    name = f"network/{state}/prod"
    add_oidc_trust(strict, issuer, f"network/{state}/*", claims={"environment": state})
    token = issuer.token({"environment": state}, subject=SUBJECT)
    _, outsider = new_token(strict, Role.READER, "elsewhere/*")

    new_project.applied(strict, name, Credentials("oidc", token), main=NETWORK)
    printed = tmp_path / "followed"

    def told() -> list[dict[str, Any]]:
        lines = printed.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def wait_for(*awaited: str) -> None:
        wait_until(lambda: {*awaited} <= {event["event"] for event in told()}, f"{awaited} are followed")

    with (
        printed.open("w") as output,
        subprocess.Popen(
            [HOLDFAST, "audit", name, "--since", "1h", "--follow", "--json"],
            env={"PATH": os.environ["PATH"], **strict.environment, "HOLDFAST_TEAM": strict.name},
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
        ) as following,
    ):
        try:
            wait_for("state.written", "lock.released")
            assert strict.client_with(outsider).read(name).status == 403
            assert strict.client("maintainer").delete(name).status == 200
            wait_for("request.refused", "state.deleted")
        finally:
            following.send_signal(signal.SIGINT)
        assert (following.communicate(timeout=10)[1], following.returncode) == ("", 130)
    events = sorted(told(), key=lambda event: str(event["time"]))
    assert len({event["id"] for event in events}) == len(events)
    principal = principals.principal(f"oidc:{issuer.address}#{SUBJECT}")
    done = [event["event"] for event in events if event["principal"] == principal]
    assert [each for each in done if each not in ("state.read", "state.absent")] == [
        "lock.acquired",
        "state.written",
        "lock.released",
    ]
    [version] = strict.versions(name)
    [written] = [event for event in events if event["event"] == "state.written"]
    assert written["version_id"] == version.id
    assert written["subject"] == f"{issuer.address}#{SUBJECT}"
    assert (written["operation"], written["who"]) == ("OperationTypeApply", version.metadata["who"])
    [refused] = [event for event in events if event["event"] == "request.refused"]
    assert (refused["principal"], refused["error"]) == (f"token:{outsider.username}", "not_allowed")
    [deleted] = [event for event in events if event["event"] == "state.deleted"]
    assert deleted["principal"] == f"token:{strict.token('maintainer').username}"
    assert deleted["version_id"] == version.id
