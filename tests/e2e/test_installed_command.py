"""The wheel in an empty environment: the command works anywhere, without Node and without a clone."""

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from tests.support import aws_caller, installed
from tests.support.access_records import add_aws_trust
from tests.support.bash_completion import completions
from tests.support.http_client import Credentials
from tests.support.team import Team

_IMPORT_ALL = """
from importlib import import_module, metadata, util
from pkgutil import walk_packages
import holdfast_cli
for module in walk_packages(holdfast_cli.__path__, "holdfast_cli."):
    if module.name != "holdfast_cli.__main__":
        import_module(module.name)
files = metadata.files("holdfast-state")
print(*sorted({file.parts[0] for file in files if file.suffix == ".py"}), util.find_spec("aws_cdk"))
"""

Run = Callable[..., str]


@pytest.fixture(scope="module")
def bin_folder(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the programs of an environment that has only the package, without its extra."""
    return installed.install(wheel, tmp_path_factory.mktemp("installed") / "v")


@pytest.fixture(scope="module")
def run(bin_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs a program of the environment in another folder, with nothing else on the PATH."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")

    def run_(*command: str, **environment: str) -> str:
        done = subprocess.run(
            [bin_folder / command[0], *command[1:]],
            env={"PATH": str(bin_folder), "HOME": str(elsewhere), **environment},
            cwd=elsewhere,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_


def test_it_says_its_version_and_its_commands(run: Run) -> None:
    assert run("holdfast", "--version") == f"holdfast {holdfast.__version__}\n"
    assert "login" in run("python", "-m", "holdfast_cli", "--help")


def test_the_package_declares_what_every_module_imports_and_brings_nothing_else(run: Run) -> None:
    assert run("python", "-c", _IMPORT_ALL) == "holdfast holdfast_cdk holdfast_cli None\n"


def test_it_signs_in_with_nothing_but_an_address_and_aws_credentials(strict: Team, run: Run) -> None:
    caller = aws_caller.assume(strict, "installed")
    add_aws_trust(strict, caller.role_name, "installed/*")

    exports = run(
        *("holdfast", "login", "--address", strict.direct_address),
        **caller.environment,
        AWS_CA_BUNDLE=strict.environment["AWS_CA_BUNDLE"],  # the certificate of this local AWS is its own
    )

    session = Credentials(*re.findall(r"export TF_HTTP_\w+=(\S+)", exports))
    client = strict.client_with(session)
    assert client.read("installed/nothing").status == 204  # the state does not exist, and it may read it
    assert client.read("elsewhere/nothing").status == 403


def test_a_real_bash_completes_it(bin_folder: Path, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None

    found = completions(
        bash,
        'eval "$(holdfast completion bash)"',
        ["holdfast tok", "holdfast token create --role wr"],
        tmp_path,
        {"PATH": str(bin_folder)},
    )

    assert found == ["token", "writer"]
