"""Settings and fixtures for every test."""

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import installed
from tests.support.user_settings import forget_user_settings

GeneratedFile = Callable[[Path, str], None]
"""Compares a file of the repository with its generated text."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option with which `make generated` writes the files that the tests otherwise compare."""
    parser.addoption("--update-generated", action="store_true", help="write the generated files anew")


def pytest_configure() -> None:
    """Remove the user's settings before the collection, because some modules create clients then.

    A shell starts a background command with Ctrl-C ignored, and the command's own processes inherit that.
    Commands that tests interrupt must not ignore it.
    """
    forget_user_settings()
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def generated_file(request: pytest.FixtureRequest) -> GeneratedFile:
    """Fail if a generated file of the repository is outdated; with `--update-generated`, write it."""

    def check(path: Path, text: str) -> None:
        if request.config.getoption("--update-generated"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        found = path.read_text(encoding="utf-8") if path.exists() else ""
        assert found == text, f"{path.name} is out of date: run `make generated`, then look at the difference"

    return check


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    return installed.build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="session")
def deploying(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the programs of an environment that has the wheel with the extra `deploy`."""
    return installed.install(wheel, tmp_path_factory.mktemp("deploying") / "v", extra="deploy")
