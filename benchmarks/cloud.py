"""Count the requests of each Terraform command through each backend; measure commits of `cloud {}`."""

import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from benchmarks.figures import Figure, Section
from benchmarks.project import Project, one_of_each_version, projects
from benchmarks.relay import Relay
from benchmarks.run import Run, tell
from benchmarks.stack import TEAM, printed, program
from benchmarks.state import state
from holdfast import names
from holdfast.access import Caller, Grant, Role
from holdfast.cloud import locking, staging, uploads
from holdfast.cloud.ids import WorkspaceId
from holdfast.s3.budget import Budget
from holdfast.s3.store import Store
from holdfast.state.document import Revision
from local_aws.clients import s3_client
from local_aws.home import Connection
from local_aws.server import ACCOUNT, ROOT
from local_aws.terraform import Terraform
from local_aws.up import cloud_block, cloud_config
from tests.support.deployed import client, function_name
from tests.support.work import work

_COMMANDS: Final = ("init", "plan", "apply", "output")
_MEGABYTES: Final = (1, 100)
_CALLER: Final = Caller("token:benchmark", (Grant(Role.WRITER, ("*",)),))

_DECISIONS: Final = {"HOLDFAST_MAX_STATE_MB": "1000", "HOLDFAST_NEW_STATES": "any"}
"""The team's decisions for a commit: it accepts every size."""

_NOTES: Final = (
    "Requests: through the API, the sign-in of a token that nobody has used included in those to S3.",
    "  A write through cloud {} sends two uploads more, from the client straight to S3. On AWS, each command",
    "  with cloud {} also asks the API for /.well-known/terraform.json, which needs HTTPS.",
    "  Beside: what Terraform's own s3 backend, with use_lockfile, sends to S3.",
    "Commit: it runs in a process of its own, with the library alone, so the memory is that of the function",
    "  less what its handler loads.",
)


def measure(run: Run) -> Section:
    """Count the requests of each Terraform command, and measure the commits of states of several sizes."""
    return Section("cloud {}", [*_commands(run), *_commits(run)], _NOTES)


def _commands(run: Run) -> Iterator[Figure]:
    with run.stack.relayed("backend", "cloud", "authorizer") as relays:
        for terraform in one_of_each_version():
            yield from _of_terraform(run, terraform, *relays)


def _of_terraform(run: Run, terraform: Terraform, to_aws: Relay, to_s3: Relay) -> Iterator[Figure]:
    http, s3 = projects(run, "cloud", terraform, to_aws.endpoint)
    sides = {"cloud": _project(run, terraform, to_aws.endpoint), "http": http, "beside": s3}
    counted = defaultdict[str, list[float]](list)
    for number in range(run.rounds):
        tell(f"{terraform.client}, round {number + 1} of {run.rounds}")
        for command in _COMMANDS:
            for side, project in sides.items():
                token = run.stack.new_token()
                to_aws.take(), to_s3.take()
                project.run(command, token)
                name = f"{command}, {terraform.client}: {side}"
                if side == "beside":
                    counted[f"{name}, S3"].append(to_aws.take().requests)
                else:
                    counted[f"{name}, API"].append(to_aws.take().requests)
                    counted[f"{name}, S3"].append(to_s3.take().requests)
    yield from (Figure.count(name, requests) for name, requests in counted.items())


def _project(run: Run, terraform: Terraform, endpoint: str) -> Project:
    config = run.folder / f"cloud-{terraform.name}.tfrc"
    # The file's credentials are not used: each command gets its own token in a variable.
    config.write_text(cloud_config(Connection(endpoint + urlsplit(run.stack.address).path, "id", "secret")))
    block = cloud_block(f"benchmark/cloud/cloud-{terraform.name}")
    return Project(run, "cloud", terraform, block, {"TF_CLI_CONFIG_FILE": str(config)})


def _commits(run: Run) -> Iterator[Figure]:
    stack, s3 = run.stack, s3_client(run.stack.aws)
    configuration = client(stack.aws, "lambda").get_function_configuration(
        FunctionName=function_name(stack.aws, f"Holdfast-{TEAM}", "cloud")
    )
    environment = {**stack.aws.environment(), **_DECISIONS, "PYTHONPATH": str(ROOT / "functions")}
    staged = configuration["Environment"]["Variables"]["HOLDFAST_STAGING_BUCKET"]
    for megabytes in run.some(_MEGABYTES):
        name = names.parse(f"benchmark/cloud/{megabytes}-MB")
        took = defaultdict[str, list[float]](list)
        for serial in range(1, run.rounds + 1):
            tell(f"{megabytes} MB, round {serial} of {run.rounds}")
            document = state(serial, megabytes * 1_000_000)
            of = work(Store(s3, stack.bucket, ACCOUNT, Budget.seconds(400)), name, _CALLER)
            workspace = WorkspaceId.mint(name)
            locking.lock(of, workspace)
            md5 = hashlib.md5(document, usedforsecurity=False).hexdigest()
            upload = uploads.create(of, workspace.lock_id, Revision(serial, ""), md5, force=False)
            key = staging.state_key(name.value, _CALLER.principal, upload.key)
            s3.put_object(Bucket=staged, Key=key, Body=document)
            arguments = (stack.bucket, staged, ACCOUNT, str(upload), _CALLER.principal)
            command = (sys.executable, "-P", program("commit"), *arguments)
            for figure, value in json.loads(printed("the commit", *command, env=environment)).items():
                took[figure].append(value)
            locking.unlock(of, workspace)
        yield Figure.of(f"{megabytes} MB: commit, processor", "ms", took["processor"])
        yield Figure.of(f"{megabytes} MB: commit, memory at most", "MB", took["memory"])
