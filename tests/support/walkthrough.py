"""The walks through documents: every block is typed as printed, and prints the lines below it.

There are two exceptions. The folder and the ports differ from a user's, so that both can run at once. The
minute's wait of docs/start/tutorial-access.md is left out: tests/e2e/test_access_revocation.py measures it.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final

from holdfast_cdk import places
from local_aws.deploy import cdk_environment
from local_aws.server import ROOT
from local_aws.terraform import terraforms
from tests.support.deployed import client
from tests.support.free_port import free_port
from tests.support.front_door import TIME_LIMIT, FrontDoor
from tests.support.pages import page

AWS_COMMAND: Final = ROOT / "tests" / "support" / "aws_command.py"
HEADING: Final = "Try it on this machine"
UPS: Final = {"make up\n": ["up"], "make up TEAMS=all\n": ["up", "--teams", "all"]}
ISSUER: Final = "127.0.0.1:4570"
WAITS: Final = "sleep 60\n"
LATER: Final = """\
last=$((SECONDS + 60))
until holdfast audit network/prod | grep -c ' serial=2 '; do
  if [ $SECONDS -ge $last ]; then break; fi
done > /dev/null
"""
"""Typed before a read of the audit trail: waits for the event, for a minute at most."""
LATER_ACTIVITY: Final = """\
last=$((SECONDS + 60))
until holdfast activity shop/prod | grep -c state.undeleted; do
  if [ $SECONDS -ge $last ]; then break; fi
done > /dev/null
"""
"""Typed before a read of the activity: waits in the same way, with a token."""


OLD_PLACE: Final = """\
cd $moving
set -a; . $local/aws.env; set +a
"$clone/.venv/bin/python" - <<'END'
import boto3
boto3.client("s3").create_bucket(Bucket="old-bucket")
boto3.client("dynamodb").create_table(
    TableName="locks",
    KeySchema=[{"AttributeName": "LockID", "KeyType": "HASH"}],
    AttributeDefinitions=[{"AttributeName": "LockID", "AttributeType": "S"}],
    BillingMode="PAY_PER_REQUEST",
)
END
for name in harbour airport; do
  mkdir $name
  cat > $name/main.tf <<END
terraform {
  backend "s3" {
    bucket                      = "old-bucket"
    key                         = "prefix/$name.tfstate"
    dynamodb_table              = "locks"
    use_path_style              = true
    skip_credentials_validation = true
    skip_requesting_account_id  = true
    skip_metadata_api_check     = true
  }
}
resource "terraform_data" "it" { input = "$name" }
END
  (
    cd $name
    terraform init
    for workspace in dev prod; do
      terraform workspace new -lock=false $workspace
      terraform apply -lock=false -auto-approve
    done
  )
done
. $local/terraform.env
export TF_CLI_CONFIG_FILE=$local/cloud.tfrc
git init --quiet
holdfast() { "$clone/.venv/bin/holdfast" "$@"; }
"""
"""Four states in workspaces of `backend "s3"`, with a table, before their move."""

FORGOTTEN: Final = """\
cp -r harbour forgotten
(cd forgotten && terraform apply -lock=false -auto-approve -replace=terraform_data.it)
"""
"""A pipeline that still uses the old place, after the import."""
PLANNED: Final = """\
for name in harbour airport; do
  cd $name
  rm -r .terraform
  for workspace in dev prod; do
    export TF_WORKSPACE=$workspace
    terraform init && terraform plan -detailed-exitcode
  done
  cd ..
done
"""
"""A plan of each state in the new place."""


@dataclass(frozen=True, slots=True)
class Step:
    """A block that is typed. It prints the lines of `printed` in this order, among others."""

    typed: str
    printed: tuple[str, ...]


def steps(document: str, heading: str = HEADING) -> list[Step]:
    """Return the blocks of a document's walk, in order."""
    _, _, rest = page(document).read_text().partition(f"\n## {heading}\n")
    walk, _, _ = rest.partition("\n## ")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", walk, re.MULTILINE | re.DOTALL)
    return [
        Step(text, tuple(after.splitlines()) if not below else ())
        for (kind, text), (below, after) in pairwise([*blocks, ("sh", "")])
        if kind == "sh"
    ]


@contextmanager
def issuer(front_door: FrontDoor) -> Iterator[str]:
    """Run `make issuer` in a second process until the context ends, and yield its host and port."""
    port = free_port()
    with subprocess.Popen(
        [*front_door.argv, "issuer", "--port", str(port)],
        cwd=ROOT,
        env=front_door.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"The issuer is http://127.0.0.1:{port}\n"
            yield f"127.0.0.1:{port}"
        finally:
            process.kill()


def _plain(line: str) -> str:
    """Return a line without the frame that Terraform draws in colour, and with one space between columns."""
    return " ".join(line.removeprefix("│").split())


def pattern(line: str) -> re.Pattern[str]:
    """Return the pattern of a document's line; `<…>` matches a word."""
    parts = re.split(r"<\w+>", _plain(line))
    return re.compile(r"\S+".join(re.escape(part) for part in parts))


def walk_access(front_door: FrontDoor, folder: Path) -> None:
    """Walk through docs/start/tutorial-access.md while an issuer runs; as `_walk`."""
    with issuer(front_door) as address:
        replaced = {
            ".local/": f"{front_door.folder}/",
            "-m local_aws": f"-m local_aws --folder {front_door.folder}",
            ISSUER: address,
        }
        _walk("tutorial-access", front_door, folder, replaced)


def walk_clients(front_door: FrontDoor, folder: Path) -> None:
    replaced = {f"{clone}/.local/": f"{front_door.folder}/" for clone in ("$PWD", "$clone")}
    _walk("tutorial-clients", front_door, folder, replaced)


def walk_readme(front_door: FrontDoor, folder: Path) -> None:
    """Apply as the README says, and see the version in the history."""
    [first] = steps("README.md", "Try it in five minutes")
    printed = (
        "Apply complete! Resources: 1 added, 0 changed, 0 destroyed.",
        "1 <time> (<n> <unit> ago) current, acknowledged <id> made by make up (<id>) "
        '(client says "<user>") OperationTypeApply <n> B -',
    )
    replaced = {" .local/": f" {front_door.folder}/", "/tmp/first": str(folder / "first")}  # noqa: S108 as there
    _type([Step(first.typed, printed)], replaced, folder)


def walk_operating(front_door: FrontDoor, folder: Path) -> None:
    _walk("tutorial-operating", front_door, folder, {"$clone/.local/": f"{front_door.folder}/"})


def walk_try(front_door: FrontDoor, folder: Path) -> None:
    _walk("try", front_door, folder, {" .local/": f" {front_door.folder}/"}, "Two teams")


def walk_moving_in(front_door: FrontDoor, folder: Path) -> None:
    """Move four states as docs/start/moving-in.md says, while a forgotten pipeline applies."""
    [plan] = steps("moving-in.md", "Plan")
    [run] = steps("moving-in.md", "Run")
    rewrite, check = steps("moving-in.md", "Switch")
    close = steps("moving-in.md", "Close")[0]
    later = (
        "holdfast: env:/prod/prefix/harbour.tfstate was written after its import: the source has serial 3,"
    )
    stopped = (
        'The locks stop clients with `use_lockfile` or with `dynamodb_table = "locks"`. They do not stop '
        "clients that do not lock, or `force-unlock`."
    )
    told = "This state has moved to <address>/states/harbour/prod: change the backend block."
    undone = "To use this old backend again, first run 'holdfast import reopen', which releases this lock."
    typed = [
        Step(OLD_PLACE, ("Apply complete! Resources: 1 added, 0 changed, 0 destroyed.",) * 4),
        Step(plan.typed, ("holdfast: 4 states can be imported.",)),
        Step(run.typed, ("4 states: 4 imported.",)),
        Step(FORGOTTEN, ("Apply complete! Resources: 1 added, 0 changed, 1 destroyed.",)),
        Step(
            check.typed,
            (
                f"{later} and harbour/prod has 2. 'holdfast import run' imports the state again.",
                "holdfast: 4 states: 3 the same, 1 moved on.",
            ),
        ),
        Step(
            close.typed,
            (
                f"{later} and serial 2 was imported. Run 'holdfast import run', and then 'holdfast import "
                "close' again.",
                f"holdfast: 4 states: 3 closed, 1 left open. {stopped}",
            ),
        ),
        Step(run.typed, ("4 states: 3 closed before, 1 replaced.",)),
        Step(close.typed, (f"4 states: 4 closed. {stopped}",)),
        Step(
            "(cd forgotten && terraform apply -auto-approve)\n",
            (f"Info: {told} {undone}",),
        ),
        Step(rewrite.typed + PLANNED, ("No changes. Your infrastructure matches the configuration.",) * 4),
    ]
    _type(typed, {"$clone": str(ROOT), "$local": str(front_door.folder), "$moving": str(folder)}, folder)


def walk_deploying(front_door: FrontDoor, installed: Path, folder: Path, document: str, heading: str) -> None:
    """Deploy a team from an empty folder as a section of a document says, and store a first state.

    What comes first is done: the folder `installed` has the programs of the package, and `make up` has
    bootstrapped. `npx aws-cdk@<version>` runs the same version from the clone, for the local AWS.
    """
    deployment = _walk_deployment(document, heading, front_door, installed, folder)
    written = {path.name for path in deployment.iterdir() if path.name != "app"}
    assert written == {"requirements.txt", "cdk.json", "teams.toml", ".gitignore", ".holdfast", "cdk.out"}


def walk_first_hour(front_door: FrontDoor, installed: Path, folder: Path) -> None:
    """Walk through docs/start/first-hour.md as a person with an IAM role; see `walk_deploying`."""
    iam, sts, sns = (client(front_door.aws, service) for service in ("iam", "sts", "sns"))
    role = iam.create_role(RoleName="Operator", AssumeRolePolicyDocument="{}")["Role"]
    keys = sts.assume_role(RoleArn=role["Arn"], RoleSessionName="ada")["Credentials"]
    environment = {
        "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
        "AWS_SESSION_TOKEN": keys["SessionToken"],
    }
    _walk_deployment("first-hour.md", "The hour", front_door, installed, folder, environment)
    assert [each["Endpoint"] for each in sns.list_subscriptions()["Subscriptions"]] == ["ada@example.com"]


def _walk_deployment(
    document: str,
    heading: str,
    front_door: FrontDoor,
    installed: Path,
    folder: Path,
    environment: Mapping[str, str] | None = None,
) -> Path:
    """Walk through a document that deploys from an empty folder, and return this folder.

    Args:
        environment: variables of the shell, in place of those of the account's root user.
    """
    typed = [step for step in steps(document, heading) if " bootstrap" not in step.typed]
    aws = front_door.aws
    cdk_local = ROOT / "node_modules" / ".bin" / "cdklocal"
    context = f"--context target=local --context local_endpoint={aws.endpoint}"
    npx = f"""\
if [ "$1" != aws-cdk@{places.cdk_version()} ]; then exit 1; fi
shift
exec {cdk_local} "$@" {context} --method direct --require-approval never --no-notices --no-color"""
    deployment = folder / "deployment"
    build = deployment / ".holdfast"
    build.mkdir(parents=True)
    # The packages of the functions, which the clone has for the same requirements. Others are installed.
    for dependencies in (ROOT / places.BUILD).glob("deps-local-*"):
        (build / dependencies.name).symlink_to(dependencies)
    _type(
        typed,
        {},
        folder,
        start=deployment,
        programs={"npx": npx, "aws": f'exec {sys.executable} {AWS_COMMAND} "$@"'},
        environment={
            **cdk_environment(aws),
            **(environment or {}),
            "PATH": f"{folder / 'bin'}:{installed}:{os.environ['PATH']}",
            "HOME": front_door.environment["HOME"],
        },
    )
    return deployment


def _walk(
    name: str, front_door: FrontDoor, folder: Path, replaced: Mapping[str, str], heading: str = HEADING
) -> None:
    """Walk through a document.

    The walk works in a folder below /tmp and removes it. The folder's name is `name`, without the prefix of a
    tutorial. `folder` is empty.
    `replaced` maps words of the document to typed words. AssertionError: a block does not print its lines.
    """
    up, *rest = steps(f"{name}.md", heading)
    assert up.printed[0] in front_door(*UPS[up.typed])
    typed = [step for step in rest if step.typed != "make issuer\n" and not step.typed.startswith(WAITS)]
    assert len(typed) == len(rest) - (2 if name == "tutorial-access" else 0)
    theirs = name.removeprefix("tutorial-")
    _type(typed, {**replaced, f"/tmp/{theirs}": str(folder / theirs)}, folder)  # noqa: S108 as in the document
    assert not (folder / theirs).exists()


def _waits(step: Step) -> str:
    if " audit " in step.typed:
        return LATER
    return LATER_ACTIVITY if step.typed.startswith("holdfast activity") else ""


def _type(
    typed: Sequence[Step],
    replaced: Mapping[str, str],
    folder: Path,
    *,
    start: Path = ROOT,
    programs: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Type blocks into one shell, with some words replaced, and compare what they print.

    Args:
        start: the folder in which the shell starts.
        programs: the scripts of other programs than `terraform`, by their names.
        environment: variables of the shell.
    """
    (folder / "bin").mkdir()
    terraform = f'exec {shlex.join(terraforms()[0].argv)} "$@"'
    for name, script in {"terraform": terraform, **(programs or {})}.items():
        program = folder / "bin" / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def here(text: str) -> str:
        for theirs, ours in replaced.items():
            text = text.replace(theirs, ours)
        return text

    script = "".join(f"echo '== {number}'\n{_waits(step)}{step.typed}" for number, step in enumerate(typed))
    done = subprocess.run(
        ["bash", "-c", here(script)],
        cwd=start,
        env={
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(folder),
            "TF_CLI_ARGS": "-no-color",
            "CHECKPOINT_DISABLE": "1",
            **(environment or {}),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIME_LIMIT,
        check=False,
    )

    _, *outputs = re.split(r"^== \d+\n", done.stdout, flags=re.MULTILINE)
    assert len(outputs) == len(typed), done.stdout
    for step, output in zip(typed, outputs, strict=True):
        lines = iter([_plain(line) for line in output.splitlines()])
        for wanted in step.printed:
            expected = pattern(here(wanted))
            assert any(expected.fullmatch(line) for line in lines), f"{wanted}\n\nis not in\n\n{output}"
