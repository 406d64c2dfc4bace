"""A real Terraform reads all HCL of the documents, the examples and the help, and what commands print."""

import os
import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from holdfast_cdk.team_settings import Team
from holdfast_cli.commands.table import parser
from local_aws import up
from local_aws.home import Connection, DeployedTeam, Deployment, Home
from tests.support import hcl
from tests.support.hcl import BEGINNING, PAGES, Piece, fenced, pieces, without_comments
from tests.unit.test_cli_backend_config import PACKAGED, run_terraform
from tests.unit.test_commands import COMMANDS

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = sorted((ROOT / "examples").rglob("*.tf"))
ADDRESSES: Final = (
    "https://abc123.execute-api.eu-central-1.amazonaws.com",
    "http://127.0.0.1:4566/_aws/execute-api/abc123/$default",
)
STATE: Final = "network/prod"
NOWHERE: Final = "http://127.0.0.1:9"
OFFLINE: Final = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "HTTPS_PROXY": NOWHERE,
    "HTTP_PROXY": NOWHERE,
    "TF_HTTP_RETRY_MAX": "0",
    "TF_REGISTRY_DISCOVERY_RETRY": "0",
}

TAGS: Final = ("hcl", "terraform", "tf")
ASSIGNMENT: Final = re.compile(r"\w+ += \S.*")


def looks_like_hcl(text: str) -> bool:
    """Return whether a text has a block on its own lines, or consists of values."""
    lines = [line for line in without_comments(text).splitlines() if line]
    return any(BEGINNING.fullmatch(line) for line in lines) or all(map(ASSIGNMENT.fullmatch, lines))


def files_of_pages() -> Iterator[Piece]:
    for page in PAGES:
        for line, language, text in fenced(page):
            if language in TAGS:
                yield f"{page.relative_to(ROOT)}:{line}", text
    for example in EXAMPLES:
        yield str(example.relative_to(ROOT)), example.read_text(encoding="utf-8")


def files_of_commands() -> Iterator[Piece]:
    """Yield what `backend-config` prints in every form and for every kind of address."""
    for address, form in product(ADDRESSES, hcl.forms()):
        arguments, printed = hcl.printed(STATE, address, form)
        if "--env" not in form:  # which prints lines for a shell
            yield arguments, printed
        yield from pieces(f"comments of {arguments}", hcl.uncommented(printed))
    yield "cloud.tfrc", up.cloud_config(Connection(ADDRESSES[1], "id", "secret"))


def printed_by_make_up() -> str:
    teams = (DeployedTeam("platform", ADDRESSES[1], "bucket"),)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()) as printed:
        patch.setattr(up, "holdfast", lambda *_: "")  # `backend-config`
        configured = {"platform": Team(name="platform")}
        up._print_next(Home(ROOT / ".local"), Deployment("", "", teams), configured)  # noqa: SLF001
    return printed.getvalue()


@pytest.fixture(scope="module")
def found() -> list[Piece]:
    found = [*files_of_pages(), *files_of_commands(), *pieces("make up", printed_by_make_up())]
    for page in PAGES:
        found += pieces(str(page.relative_to(ROOT)), page.read_text(encoding="utf-8"))
    for command in (parser(), *COMMANDS):
        found += pieces(f"{command.prog} --help", command.format_help())
    return found


def rejected(text: str, folder: Path) -> str:
    """Return Terraform's errors about unknown or missing arguments."""
    if "{" not in text:
        text = f'terraform {{\n  backend "http" {{\n{text}\n}}\n}}\n'
    text = re.sub(r"<\w+>", "eu-central-1", text)  # what the reader fills in
    here = Path(tempfile.mkdtemp(dir=folder))
    (here / "main.tf").write_text(text)
    # `validate` does not look at a backend; `init` does, and then finds nobody to talk to.
    done = run_terraform(PACKAGED, here, "validate" if "remote_state" in text else "init", **OFFLINE)
    said = done.stdout + done.stderr
    return said if "main.tf line" in said and NOWHERE.removeprefix("http://") not in said else ""


def test_a_real_terraform_parses_every_piece(found: list[Piece], tmp_path: Path) -> None:
    assert len(found) > len(PAGES)
    for where, text in found:
        (tmp_path / f"{where.replace('/', '|')[-200:]}.tf").write_text(f"{text}\n")

    done = run_terraform(PACKAGED, tmp_path, "fmt", "-write=false", "-list=false", **OFFLINE)

    assert done.returncode == 0, done.stderr


def test_a_block_that_is_hcl_says_so() -> None:
    untagged = [
        f"{page.relative_to(ROOT)}:{line}"
        for page in PAGES
        for line, language, text in fenced(page)
        if not language and looks_like_hcl(text)
    ]
    assert untagged == []


def test_a_real_terraform_knows_every_argument_of_a_backend(found: list[Piece], tmp_path: Path) -> None:
    whole = {
        "".join(re.sub(r'"[^"]*"', "", without_comments(text)).split()): text
        for _, text in found
        if re.match(r"terraform \{\n|data |\w+ +=", without_comments(text))
    }
    assert len(whole) > 5
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        said = threads.map(lambda text: rejected(text, tmp_path), whole.values())
        assert "".join(said) == ""


@pytest.mark.parametrize(
    "text",
    [
        'terraform {\n  backend "http" {\n    adress = "https://x"\n  }\n}\n',
        'terraform {\n  backend "s3" {\n    bucket = "b"\n    key = "k"\n    use_lock_file = true\n  }\n}\n',
        'terraform {\n  cloud {\n    host = "x"\n    workspaces { name = "prod" }\n  }\n}\n',
        'data "terraform_remote_state" "network" {\n  backend = "http"\n  config = { url = "x" }\n}\n',
        'lock_adress = "https://x"\n',
    ],
)
def test_an_argument_that_there_is_not_is_noticed(tmp_path: Path, text: str) -> None:
    assert re.search("nsupported argument|unexpected attribute", rejected(text, tmp_path))
