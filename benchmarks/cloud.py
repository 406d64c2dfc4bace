"""`cloud {}` beside `backend "http"` and `backend "s3"`: requests of each command; large states."""

import hashlib
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final
from urllib.parse import urlsplit

from benchmarks.distance import new_token
from benchmarks.figures import Figure, Section
from benchmarks.project import Project, one_of_each_version, projects
from benchmarks.relay import Passed, Relay
from benchmarks.run import Run, tell
from benchmarks.stack import TEAM
from benchmarks.state import state
from holdfast import names
from holdfast.access import Caller, Role
from holdfast.cloud import locking, staging, uploads
from holdfast.cloud.ids import WorkspaceId
from holdfast.s3.store import Store
from holdfast.state.document import Revision
from local_aws.clients import s3_client
from local_aws.server import ACCOUNT, ROOT
from local_aws.terraform import Terraform
from tests.support.deployed import client, function_name

_COMMANDS: Final = ("init", "plan", "apply", "output")
_HOST: Final = "holdfast.local"
_MEGABYTES: Final = (1, 10, 50, 100)
_CALLER: Final = Caller("token:benchmark", Role.WRITER, ("*",))

_BLOCK: Final = """
terraform {{
  cloud {{
    hostname     = "{host}"
    organization = "{organization}"
    workspaces {{ name = "{workspace}" }}
  }}
}}
"""

_COMMIT: Final = """
import json, os, resource, sys, time
from pathlib import Path
asked = json.load(sys.stdin)
from holdfast.access import Caller, Role
from holdfast.cloud import uploads
from holdfast.cloud.ids import UploadId
from holdfast.s3.store import Store, connect
s3 = connect()
def peak():
    # What getrusage says of a process begins with the memory of the one that started it.
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1000
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000_000
store, staged = (
    Store(s3, asked[bucket], asked["account"], deadline=time.monotonic() + 60)
    for bucket in ("state", "staging")
)
store.read("nothing")
before, started, ran = peak(), time.perf_counter(), time.process_time()
uploads.commit(
    store, staged, UploadId.parse(asked["upload"]), Caller(asked["principal"], Role.WRITER, ("*",)),
    limit=10**9, retention=None,
)
print(json.dumps({
    "ms": 1000 * (time.perf_counter() - started), "processor": 1000 * (time.process_time() - ran),
    "before": before, "peak": peak(),
}))
"""

_NOTES: Final = (
    "Requests: through the API, the sign-in of a token that nobody has used included in those to S3.",
    "  A write through cloud {} sends two uploads more, from the client straight to S3.",
    "  Beside: what Terraform's own s3 backend, with use_lockfile, sends to S3.",
    "In the function: by the log, over the same commands; the ratio is to a read over http of these.",
    "Sizes: the upload is a PUT of the same bytes to the local S3; the commit runs in a process of its own,",
    "  with the library alone, so the memory is that of the function less what its handler loads.",
)


def measure(run: Run) -> Section:
    """Count the requests of each command, and commit states of each size."""
    return Section("cloud {}", [*_commands(run), *_sizes(run)], _NOTES)


def _commands(run: Run) -> Iterator[Figure]:
    with run.stack.relayed("backend", "cloud", "authorizer") as relays:
        for terraform in one_of_each_version():
            yield from _of_terraform(run, terraform, *relays)
    yield from _in_the_function(
        {function: run.stack.log("benchmark/cloud/", function) for function in ("backend", "cloud")}
    )


def _of_terraform(run: Run, terraform: Terraform, to_aws: Relay, to_s3: Relay) -> Iterator[Figure]:
    http, s3 = projects(run, "cloud", terraform, to_aws.endpoint)
    sides = {"cloud": _project(run, terraform, to_aws.endpoint), "http": http, "s3": s3}
    bucket_client = s3_client(run.stack.aws)
    counted = defaultdict[tuple[str, str], list[tuple[Passed, Passed]]](list)
    for number in range(run.rounds):
        tell(f"{terraform.client}, round {number + 1} of {run.rounds}")
        for command in _COMMANDS:
            for side, project in sides.items():
                token = new_token(bucket_client, run.stack.bucket)
                bearer = f"{token['TF_HTTP_USERNAME']}.{token['TF_HTTP_PASSWORD']}"
                to_aws.take(), to_s3.take()
                project.run(command, {**token, "TF_TOKEN_holdfast_local": bearer})
                counted[command, side].append((to_aws.take(), to_s3.take()))
    for command in _COMMANDS:
        name = f"{command}, {terraform.client}"
        for side in ("cloud", "http"):
            api, functions = zip(*counted[command, side], strict=True)
            yield Figure.count(f"{name}: {side}, API", [passed.requests.total() for passed in api])
            yield Figure.count(f"{name}: {side}, S3", [passed.requests.total() for passed in functions])
        beside = [passed.requests.total() for passed, _ in counted[command, "s3"]]
        yield Figure.count(f"{name}: beside, S3", beside)


def _project(run: Run, terraform: Terraform, endpoint: str) -> Project:
    folder = run.folder / "cloud" / terraform.name / "cloud"
    config = run.folder / f"cloud-{terraform.name}.tfrc"
    base = f"{endpoint}{urlsplit(run.stack.address).path}/api/v2/"
    # A `host` block replaces discovery, which needs HTTPS, so it has every service.
    services = ", ".join(f'"{name}" = "{base}"' for name in ("tfe.v2", "tfe.v2.1", "tfe.v2.2", "state.v2"))
    config.write_text(f'host "{_HOST}" {{ services = {{ {services} }} }}\n')
    block = _BLOCK.format(host=_HOST, organization="benchmark", workspace=f"cloud:cloud-{terraform.name}")
    variables = {
        "TF_CLI_CONFIG_FILE": str(config),
        "TF_TOKEN_holdfast_local": f"{run.stack.username}.{run.stack.password}",
    }
    return Project(run.stack, terraform, folder, block, variables)


def _in_the_function(logs: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Figure]:
    took = defaultdict[str, list[float]](list)
    for function, lines in logs.items():
        for line in lines:
            took[f"{function}, {line['message']}"].append(line["milliseconds"])
    read = median(took["backend, state.read"])
    for name, milliseconds in took.items():
        yield Figure.of(f"{name}: in the function", "ms", milliseconds)
        yield Figure.of(f"{name}: ratio", "ratio", [each / read for each in milliseconds])


def _sizes(run: Run) -> Iterator[Figure]:
    stack, s3 = run.stack, s3_client(run.stack.aws)
    configuration = client(stack.aws, "lambda").get_function_configuration(
        FunctionName=function_name(stack.aws, f"Holdfast-{TEAM}", "cloud")
    )
    staged = configuration["Environment"]["Variables"]["HOLDFAST_STAGING_BUCKET"]
    for megabytes in _MEGABYTES:
        name = names.parse(f"benchmark/cloud/{megabytes}-MB")
        took = defaultdict[str, list[float]](list)
        for serial in range(1, run.rounds + 1):
            tell(f"{megabytes} MB, round {serial} of {run.rounds}")
            document = state(serial, megabytes * 1_000_000)
            store = Store(s3, stack.bucket, ACCOUNT, deadline=time.monotonic() + 60)
            workspace = WorkspaceId.mint(name)
            locking.lock(store, workspace, _CALLER)
            md5 = hashlib.md5(document, usedforsecurity=False).hexdigest()
            upload = uploads.create(store, workspace, Revision(serial, ""), md5, _CALLER, force=False)
            started = time.perf_counter()
            key = staging.state_key(name.value, _CALLER.principal, upload.key)
            s3.put_object(Bucket=staged, Key=key, Body=document)
            took["upload"].append(1000 * (time.perf_counter() - started))
            asked = {
                "state": stack.bucket,
                "staging": staged,
                "account": ACCOUNT,
                "upload": str(upload),
                "principal": _CALLER.principal,
            }
            for figure, value in _commit(stack.aws.environment(), asked).items():
                took[figure].append(value)
            locking.unlock(
                Store(s3, stack.bucket, ACCOUNT, deadline=time.monotonic() + 60), workspace, _CALLER
            )
        yield Figure.of(f"{megabytes} MB: upload", "ms", took["upload"])
        yield Figure.of(f"{megabytes} MB: commit", "ms", took["ms"])
        yield Figure.of(f"{megabytes} MB: commit, processor", "ms", took["processor"])
        yield Figure.of(f"{megabytes} MB: commit, memory before", "MB", took["before"])
        yield Figure.of(f"{megabytes} MB: commit, memory at most", "MB", took["peak"])


def _commit(environment: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", _COMMIT],
        input=json.dumps(asked),
        env={**environment, "PYTHONPATH": str(ROOT / "functions")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the commit failed:\n{done.stderr}")
    measured: dict[str, float] = json.loads(done.stdout)
    return measured
