"""docs/use/ci.md: its pipelines, and how its jobs run, as the runners of GitHub and GitLab run them."""

import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from tests.support.action import FOLDER, Job, variables
from tests.support.pages import ROOT, page, text
from tests.support.team import HOLDFAST
from tests.support.waiting import HANGS

ADDRESS: Final = "https://abc123.execute-api.eu-central-1.amazonaws.com"
"""The API of the page."""
SIGN_IN: Final = re.compile(r"OWNER/holdfast/(.+)@v[0-9.]+")
PREPARATIONS: Final = frozenset({"checkout", "setup-terraform", "setup-python", "upload-artifact"})
"""The actions of others, which a test leaves out: the machine has what they bring, and keeps its files."""
REPOSITORY: Final = {"repository": "acme/network"}
PUSH: Final = {**REPOSITORY, "ref": "refs/heads/main", "event_name": "push"}
PULL_REQUEST: Final = {**REPOSITORY, "ref": "refs/pull/7/merge", "event_name": "pull_request"}
TARGET: Final = {**PUSH, "event_name": "pull_request_target"}
_GITLAB: Final = {"project_path": "acme/network", "ref_type": "branch"}
GITLAB_MAIN: Final = {**_GITLAB, "ref": "main", "ref_protected": "true", "pipeline_source": "push"}
MERGE_REQUEST: Final = {
    **_GITLAB,
    "ref": "a-branch",
    "ref_protected": "false",
    "pipeline_source": "merge_request_event",
}
"""The claims of a job's ID token, as the services document them."""


def blocks(heading: str, language: str, name: str = "ci.md") -> list[str]:
    """Return the blocks of a language below a heading of a page, up to the next heading."""
    _, found, rest = text(page(name)).partition(f"\n{heading}\n")
    assert found, heading
    below = re.split(r"^##+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", below, re.MULTILINE | re.DOTALL)


def pipeline(heading: str, name: str = "ci.md") -> Mapping[str, Any]:
    """Return the only YAML below a heading of a page. YAML reads the key `on` as `True`."""
    [block] = blocks(heading, "yaml", name)
    document: Mapping[str, Any] = yaml.safe_load(block)
    return document


def trust_commands() -> Iterator[list[str]]:
    """Yield the words of each `holdfast trust create` of the page, behind `holdfast`."""
    typed = text(page("ci.md")).replace("\\\n", "")
    for line in re.findall(r"^\$ holdfast (trust create .*)$", typed, re.MULTILINE):
        yield shlex.split(line)


@dataclass
class Machine:
    """A machine in whose folder jobs run.

    Attributes:
        folder: the job's working copy, with the configuration.
        address: the API that the jobs use in place of the page's.
        environment: the variables of every step.
    """

    folder: Path
    address: str
    environment: dict[str, str] = field(repr=False)

    def install(self, name: str, script: str) -> None:
        """Put a program on the PATH. It needs `bash`: `sh` may drop `TF_TOKEN_…` with a port in its name."""
        programs = self.folder / "bin"
        programs.mkdir(exist_ok=True)
        program = programs / name
        program.write_text(f"#!/usr/bin/env bash\n{script}\n")
        program.chmod(0o755)
        if not self.environment["PATH"].startswith(f"{programs}:"):
            self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"

    def install_pip(self) -> None:
        """Put a `pip` on the PATH that installs `holdfast` from a wheel in the working copy."""
        (self.folder / "holdfast_state-1.0-py3-none-any.whl").touch()
        holdfast = self.folder / "bin" / "holdfast"
        link = f'[ "$1" = install ] && [ -f "$2" ] && [ $# = 2 ] && ln -s {HOLDFAST} {holdfast}'
        self.install("pip", link)

    def type(self, script: str, shell: str = "bash", **more: str) -> subprocess.CompletedProcess[str]:
        """Run a script of the page. Standard output and error are one text, as in a log."""
        options = ["--noprofile", "--norc", "-o", "pipefail"] if shell == "bash" else []
        return subprocess.run(
            [shell, *options, "-ec", script.replace(ADDRESS, self.address)],
            cwd=self.folder,
            env={**self.environment, **more},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=HANGS,
        )

    def run_github(
        self, workflow: Mapping[str, Any], github: Mapping[str, str], **matrix: str
    ) -> subprocess.CompletedProcess[str]:
        """Run the only job of a workflow, until a step fails.

        Args:
            github: the variables that GitHub gives the job.
            matrix: the job's values of the matrix.
        """
        assert workflow["permissions"] == {"contents": "read", "id-token": "write"}
        [job] = workflow["jobs"].values()
        exported = self.folder / "github-env"
        exported.unlink(missing_ok=True)
        more = {
            **{name: value.replace(ADDRESS, self.address) for name, value in workflow.get("env", {}).items()},
            **github,
            "GITHUB_ENV": str(exported),
        }
        log, code = "", 0
        for step in job["steps"]:
            if "run" in step:
                script = re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda found: matrix[found[1]], step["run"])
                done = self.type(script, **more)
            elif found := SIGN_IN.fullmatch(step["uses"]):
                assert ROOT / found[1] == FOLDER
                given = {name: value.replace(ADDRESS, self.address) for name, value in step["with"].items()}
                done = Job(self.folder, {**self.environment, **github}).run(**given)
            else:
                assert re.split("[/@]", step["uses"])[1] in PREPARATIONS
                continue
            log, code = log + done.stdout, done.returncode
            if code:
                break
            if exported.exists():
                more |= _exported(exported.read_text())
        return subprocess.CompletedProcess([], code, log)

    def run_gitlab(self, name: str, id_token: str) -> subprocess.CompletedProcess[str]:
        """Run a job of the page's pipeline of GitLab, with its ID token."""
        document = pipeline("## GitLab CI")
        [(variable, token)] = document["default"]["id_tokens"].items()
        assert token == {"aud": ADDRESS}
        lines = [*document["default"]["before_script"], *document[name]["script"]]
        return self.type("\n".join(lines), "sh", **{variable: id_token})


def _exported(content: str) -> dict[str, str]:
    """Parse the content of `GITHUB_ENV`: variables with a delimiter, or all of them on one line each."""
    if "<<" in content:
        return variables(content)
    return dict(line.split("=", 1) for line in content.splitlines())
