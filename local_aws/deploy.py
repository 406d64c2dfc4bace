"""Deploy this repository's CDK app into a local AWS, with the commands that deploy it to AWS."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from holdfast.team import replica_stack_name, stack_name
from holdfast.template import DeployedTemplate, physical_ids
from holdfast_cdk.config import load_teams
from local_aws import bucket_properties
from local_aws.clients import cloudformation_client, s3_client, said_plainly
from local_aws.failure import LocalAwsError
from local_aws.files import create_private, tail
from local_aws.home import DeployedTeam
from local_aws.server import ACCOUNT, REGION, ROOT, LocalAws, for_local_commands

_CDKLOCAL = ROOT / "node_modules" / ".bin" / "cdklocal"
_TIED_PROCESS = ROOT / "local_aws" / "tied_process.py"
_TIME_LIMIT = 600


def bootstrap(aws: LocalAws, region: str = REGION) -> None:
    """Run `cdk bootstrap`, which every account needs once in each region."""
    # In a folder without cdk.json: bootstrapping needs no app, so our app is not synthesized.
    _cdk(aws, ["bootstrap", f"aws://{ACCOUNT}/{region}"], folder=aws.data_dir)


def deploy(
    aws: LocalAws, teams: Sequence[str], *, teams_file: Path | None = None, sources: Path = ROOT
) -> tuple[DeployedTeam, ...]:
    """Run `cdk deploy`, then set the bucket properties that CloudFormation left out; return the teams.

    `aws` must be bootstrapped; the regions of replicas are bootstrapped here. `teams_file`, if not None, is
    read instead of `teams.toml`. `sources` is the folder of the app, which may be that of another release.
    """
    stacks = {team: stack_name(team) for team in teams}
    regions = dict.fromkeys(stacks.values(), REGION)
    replicas = {
        replica_stack_name(team.name): team.replica.region
        for team in load_teams(teams_file or ROOT / "teams.toml")
        if team.replica and team.name in teams
    }
    for region in sorted({*replicas.values()}):
        bootstrap(aws, region)
    assembly, outputs = aws.data_dir / "cdk.out", aws.data_dir / "outputs.json"
    outputs.unlink(missing_ok=True)
    context = {"target": "local", "local_endpoint": aws.endpoint}
    if teams_file:
        context["teams"] = str(teams_file.resolve())
    arguments = [
        *("--require-approval", "never", "--output", str(assembly), "--outputs-file", str(outputs)),
        # A change set, the default, would miss a change of the outputs alone, such as another port.
        *("--method", "direct"),
        *(argument for key, value in context.items() for argument in ("--context", f"{key}={value}")),
    ]
    _cdk(aws, ["deploy", *stacks.values(), *arguments], folder=sources, modules=modules_of(sources))
    with said_plainly(aws):
        for stack, region in {**replicas, **regions}.items():  # S3 looks for a replica before it copies
            document = json.loads((assembly / f"{stack}.template.json").read_text())
            ids = physical_ids(cloudformation_client(aws, region), stack)
            template = DeployedTemplate(document, ids, "aws", region, ACCOUNT)
            bucket_properties.apply(template, s3_client(aws, region))
    told = json.loads(outputs.read_text())
    return tuple(
        DeployedTeam(team, told[stack]["ApiAddress"], told[stack]["BucketName"])
        for team, stack in stacks.items()
    )


def modules_of(sources: Path) -> dict[str, str]:
    """Return the variable with which Python finds our modules in another clone than this one."""
    if sources == ROOT:
        return {}
    return {"PYTHONPATH": os.pathsep.join(map(str, (sources / "functions", sources / "infra", sources)))}


def _cdk(
    aws: LocalAws, arguments: Iterable[str], *, folder: Path, modules: Mapping[str, str] | None = None
) -> None:
    command = [
        *(str(_CDKLOCAL), *arguments, "--no-notices", "--no-color"),
        *(("--ca-bundle-path", str(aws.tls.ca)) if aws.tls else ()),
    ]
    log = aws.data_dir / "cdk.log"
    with create_private(log) as output:
        ended = _run(command, folder, output, {**cdk_environment(aws), **(modules or {})})
    if ended != 0:
        raise LocalAwsError(f"cdk {command[1]} failed; the end of {log}:\n{tail(log, 30)}")


def cdk_environment(aws: LocalAws) -> dict[str, str]:
    """Return the variables with which `cdk` deploys to this local AWS, without the user's AWS settings."""
    own = {
        "TMPDIR": str(aws.temporary),
        "CDK_DISABLE_CLI_TELEMETRY": "true",
        "CDK_DISABLE_VERSION_CHECK": "true",
        # CDK's rules for templates take seconds to load, and the unit tests apply them to every template.
        "CDK_VALIDATION": "false",
        "NODE_NO_WARNINGS": "1",
    }
    return for_local_commands(os.environ) | aws.environment() | own


def _run(command: Sequence[str], folder: Path, output: BinaryIO, environment: dict[str, str]) -> int:
    """Run a command, and kill every process that it started when the command ends or is interrupted."""
    process = subprocess.Popen(
        [sys.executable, "-I", _TIED_PROCESS, *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        umask=0o077,
    )
    with process:
        try:
            return process.wait(_TIME_LIMIT)
        except subprocess.TimeoutExpired as error:
            raise LocalAwsError(f"cdk {command[1]} did not end within {_TIME_LIMIT} s.") from error
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
