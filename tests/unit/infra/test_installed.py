"""The installed package makes in an empty folder what the clone makes, and writes nowhere else."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import pytest

from holdfast import __version__
from holdfast_cdk import places
from holdfast_cdk.bundle import BundleError, bundle
from holdfast_cdk.pyodide import pyodide
from tests.support import installed
from tests.unit.infra.conftest import ROOT

TEAMS: Final = "teams.toml"
PYODIDE: Final = json.loads((ROOT / "package.json").read_text())["devDependencies"]["pyodide"]
INSTALLING: Final = (
    f"holdfast: installing npm's pyodide {PYODIDE}, which compiles the functions, in .holdfast/npm"
)


def synthesize(python: str | Path, folder: Path, out: Path, **variables: str) -> tuple[int, str]:
    """Synthesize the stacks of a folder's teams.toml, as `cdk` does; return status and what is printed."""
    settings = json.loads((ROOT / "cdk.json").read_text())["context"]
    given = {
        "CDK_CONTEXT_JSON": json.dumps({**settings, "teams": str(folder / TEAMS)}),
        "CDK_OUTDIR": str(out),
        "CDK_VALIDATION": "false",  # the rules take seconds to load
    }
    ended = subprocess.run(
        [python, "-m", "holdfast_cdk"],
        cwd=ROOT if python == sys.executable else folder,
        env=os.environ | given | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr


def files_in(folder: Path, *, bytecode: bool = True) -> Mapping[str, bytes]:
    """Return path -> content of each file in a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and (bytecode or path.parent.name != "__pycache__")
    }


def folder_with_teams(folder: Path) -> Path:
    folder.mkdir()
    shutil.copyfile(ROOT / TEAMS, folder / TEAMS)
    return folder


def test_an_empty_folder_makes_the_stacks_of_the_clone_and_site_packages_stays_as_it_was(
    deploying: Path, tmp_path: Path
) -> None:
    clone, user = folder_with_teams(tmp_path / "clone"), folder_with_teams(tmp_path / "user")
    status, printed = synthesize(sys.executable, clone, clone / "cdk.out")
    assert status == 0, printed
    [site_packages] = (deploying.parent / "lib").glob("*/site-packages")
    before = files_in(site_packages, bytecode=False)
    # pip would install the same again, in a minute. If a digest differed, it would have no index here.
    (user / ".holdfast").mkdir()
    for dependencies in (ROOT / ".holdfast").glob("deps-aws-*"):
        (user / ".holdfast" / dependencies.name).symlink_to(dependencies)
    # npm's pyodide compiles, also where Lambda's Python is installed.
    (tmp_path / "python3.14").symlink_to("/bin/false")
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"

    status, printed = synthesize(deploying / "python", user, user / "cdk.out", PATH=path, PIP_NO_INDEX="1")

    assert status == 0, printed
    assert printed.splitlines() == [INSTALLING]
    expected, made = files_in(clone / "cdk.out"), files_in(user / "cdk.out")
    assert {name for name in expected if "/" not in name} >= {
        "Holdfast-payments.template.json",
        "Holdfast-platform.template.json",
    }
    assert made.keys() == expected.keys()
    assert [name for name in expected if made[name] != expected[name]] == []
    assert sorted(path.name for path in user.iterdir()) == [".holdfast", "cdk.out", TEAMS]
    assert files_in(site_packages, bytecode=False) == before


# --- files that are not those of the release --------------------------------------------------------

HANDLER: Final = Path("holdfast_cdk", "data", "functions", "health", "handler.py")
AGAIN: Final = f"install it again: pip install --force-reinstall 'holdfast-state[deploy]=={__version__}'"


def change(site_packages: Path) -> str:
    (site_packages / HANDLER).write_text("raise SystemExit")
    return f"{site_packages / HANDLER} differs from the file of Holdfast {__version__}; {AGAIN}"


def remove(site_packages: Path) -> str:
    (site_packages / HANDLER).unlink()
    return f"{site_packages / HANDLER} differs from the file of Holdfast {__version__}; {AGAIN}"


def add(site_packages: Path) -> str:
    added = site_packages / HANDLER.with_name("added.py")
    added.touch()
    return f"{added} is not a file of Holdfast {__version__}; remove it"


def forget_the_record(site_packages: Path) -> str:
    [record] = site_packages.glob("holdfast_state-*/RECORD")
    record.unlink()
    first = min(path for path in (site_packages / HANDLER.parents[2]).rglob("*") if path.is_file())
    return f"{first} differs from the file of Holdfast {__version__}; {AGAIN}"


def upgrade_the_code_alone(site_packages: Path) -> str:
    module = site_packages / "holdfast" / "__init__.py"
    module.write_text(module.read_text().replace(__version__, "99.0.0"))
    again = AGAIN.replace(__version__, "99.0.0")
    return f"the installed package is Holdfast {__version__}, and its code is Holdfast 99.0.0; {again}"


def lose_the_folder(site_packages: Path) -> str:
    shutil.rmtree(site_packages / HANDLER.parents[2])
    return f"only the `holdfast` command is installed, not the CDK app; {AGAIN}"


@pytest.mark.parametrize(
    "damage", [change, remove, add, forget_the_record, upgrade_the_code_alone, lose_the_folder]
)
def test_files_that_are_not_those_of_the_release_are_refused(
    damage: Callable[[Path], str], wheel: Path, tmp_path: Path
) -> None:
    programs = installed.install(wheel, tmp_path / "v", dependencies=False)
    [site_packages] = (tmp_path / "v" / "lib").glob("*/site-packages")
    assert checked(programs) == "whole"
    expected = damage(site_packages)

    assert checked(programs) == expected


CHECK: Final = """
from holdfast_cdk import places
try:
    places.check()
    print("whole")
except places.PlaceError as error:
    print(error)
"""


def checked(programs: Path) -> str:
    """Return what the check says of an environment's package."""
    done = subprocess.run(
        [programs / "python", "-c", CHECK], cwd=programs, capture_output=True, text=True, check=True
    )
    return done.stdout.removesuffix("\n")


def test_the_app_ends_with_that_line_and_makes_nothing(deploying: Path, tmp_path: Path) -> None:
    user = folder_with_teams(tmp_path / "user")
    [site_packages] = (deploying.parent / "lib").glob("*/site-packages")
    added = site_packages / HANDLER.with_name("added.py")
    added.touch()
    try:
        status, printed = synthesize(deploying / "python", user, user / "cdk.out")
    finally:
        added.unlink()

    assert status == 1
    assert printed == f"holdfast: {added} is not a file of Holdfast {__version__}; remove it\n"
    assert not (user / ".holdfast").exists()


# --- what compiles the functions where no clone is --------------------------------------------------


@pytest.fixture
def pins(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The pins of npm that the wheel has, as if this were an installed package."""
    inside = (HANDLER.parents[2] / "npm").as_posix()
    with zipfile.ZipFile(wheel) as files:
        files.extractall(tmp_path, [name for name in files.namelist() if name.startswith(f"{inside}/")])
    monkeypatch.setattr(places, "IS_INSTALLED", True)
    monkeypatch.setattr(places, "NPM", tmp_path / inside)
    return tmp_path / inside


def programs(folder: Path, monkeypatch: pytest.MonkeyPatch, **scripts: str) -> None:
    """Set a PATH with these shell scripts and Node.js."""
    folder.mkdir()
    (folder / "node").symlink_to(shutil.which("node") or "")
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}")


def test_the_wheel_pins_the_compiler_of_this_repository_and_what_it_needs(pins: Path) -> None:
    ours = json.loads((ROOT / "package-lock.json").read_text())["packages"]
    lock = json.loads((pins / "package-lock.json").read_text())["packages"]

    assert lock.pop("") == {"dependencies": {"pyodide": ours["node_modules/pyodide"]["version"]}}
    assert "node_modules/pyodide" in lock
    for place, package in lock.items():
        assert package == {name: value for name, value in ours[place].items() if name != "dev"}
        assert package["integrity"].startswith("sha512-")


def test_npm_installs_the_compiler_once_with_its_pins_and_one_line_says_it(
    pins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    installs = (
        f'echo "$@" >> {tmp_path}/calls && /bin/cat package.json package-lock.json > {tmp_path}/read && '
        "/bin/mkdir -p node_modules/pyodide && echo noise && echo noise >&2"
    )
    programs(tmp_path / "bin", monkeypatch, npm=installs)
    build = tmp_path / ".holdfast"

    found = [pyodide(build)[1], pyodide(build)[1]]

    assert found[0] == found[1]
    assert found[0].is_dir()
    assert found[0].is_relative_to(build / "npm")
    assert [line.split()[:2] for line in (tmp_path / "calls").read_text().splitlines()] == [
        ["ci", "--ignore-scripts"]
    ]
    shipped = [(pins / name).read_text() for name in ("package.json", "package-lock.json")]
    assert (tmp_path / "read").read_text() == "".join(shipped)
    assert capfd.readouterr() == ("", f"{INSTALLING}\n")


NO_NETWORK: Final = """
cat >&2 <<'SAID'
npm error code ENOTFOUND
npm error syscall getaddrinfo
npm error errno ENOTFOUND
npm error network request to http://nowhere.invalid/ws failed, reason: getaddrinfo ENOTFOUND nowhere.invalid
npm error network This is a problem related to network connectivity.
SAID
exit 1
"""


@pytest.mark.parametrize(
    ("scripts", "why"),
    [
        ({}, "npm, which installs pyodide, is not on the PATH: install it"),
        (
            {"npm": NO_NETWORK, "cat": 'exec /bin/cat "$@"'},
            "npm could not install pyodide: network request to http://nowhere.invalid/ws failed, reason: "
            "getaddrinfo ENOTFOUND nowhere.invalid (check the network and npm's configuration)",
        ),
        (
            {"npm": "exit 1"},
            "npm could not install pyodide: no reason given (check the network and npm's configuration)",
        ),
    ],
)
@pytest.mark.usefixtures("pins")
def test_without_npm_or_network_one_line_names_the_deployment_without_bytecode(
    scripts: Mapping[str, str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs(tmp_path / "bin", monkeypatch, **scripts)

    with pytest.raises(BundleError) as error:
        bundle("health", "aws", build=tmp_path / ".holdfast")

    assert str(error.value) == (
        "the functions cannot be compiled to bytecode, because there is no working python3.14 on the PATH, "
        f"and pyodide does not work: {why}. To deploy without bytecode, write -c without_bytecode=true"
    )
    assert list((tmp_path / ".holdfast").rglob("*.json")) == []
