"""The parts of a command are installed once, and again after a change or an interrupted installation."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

import local_aws.set_up
from local_aws.failure import LocalAwsError
from local_aws.installer import Installer
from local_aws.server import LocalAws
from local_aws.set_up import Part, set_up
from tests.support.free_port import free_port


class Workshop:
    """A part with two inputs that notes how often it was made."""

    def __init__(self, folder: Path) -> None:
        self.made = 0
        self.folder = folder / "part"
        self.inputs = (folder / "requirements.txt", folder / "package.json")
        for path in self.inputs:
            path.write_text("1")

    def part(self, make: Callable[[], Sequence[str]] | None = None) -> Part:
        return Part("Making the part", self.folder / ".set-up", self.inputs, make or self.make)

    def make(self) -> Sequence[str]:
        self.made += 1
        self.folder.mkdir(exist_ok=True)
        return []


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def test_it_is_made_once_says_so_and_then_says_nothing(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    def make() -> Sequence[str]:
        workshop.make()
        return ["It was slow."]

    set_up([workshop.part(make)])
    making, *more = capsys.readouterr().out.splitlines()
    assert making.startswith("Making the part …")
    assert more == ["It was slow."]

    workshop.inputs[0].write_text("1")  # touched, and the same
    set_up([workshop.part(make)])
    assert workshop.made == 1
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("changed", [0, 1])
def test_it_is_made_again_when_any_of_its_inputs_changed(workshop: Workshop, changed: int) -> None:
    set_up([workshop.part()])
    workshop.inputs[changed].write_text("2")
    set_up([workshop.part()])
    assert workshop.made == 2


@pytest.mark.parametrize(
    ("where", "name", "value"),
    [
        (sys, "base_prefix", "/opt/another-python"),
        (sys, "version_info", SimpleNamespace(major=3, minor=99)),
        (local_aws.set_up, "ROOT", Path("/moved/here")),
    ],
)
def test_it_is_made_again_by_another_python_and_in_another_place(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, where: object, name: str, value: object
) -> None:
    set_up([workshop.part()])
    with monkeypatch.context() as patch:
        patch.setattr(where, name, value)
        set_up([workshop.part()])
        assert workshop.made == 2
        set_up([workshop.part()])
    assert workshop.made == 2


@pytest.mark.parametrize("error", [LocalAwsError, KeyboardInterrupt])
def test_it_is_made_again_when_making_it_broke_off(workshop: Workshop, error: type[BaseException]) -> None:
    def break_off() -> Sequence[str]:
        workshop.make()
        raise error

    set_up([workshop.part()])
    workshop.inputs[0].write_text("2")
    with pytest.raises(error):
        set_up([workshop.part(break_off)])
    workshop.inputs[0].write_text("1")  # back to what the old stamp said

    set_up([workshop.part()])
    assert workshop.made == 3


def test_a_new_ministack_is_installed_with_the_local_aws_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installing: list[tuple[str | Path, ...]] = []

    def run(*command: str | Path) -> None:
        assert not aws.running
        installing.append(command)

    def only_ministack(parts: Sequence[Part]) -> None:
        [part] = [part for part in parts if "MiniStack" in part.name]
        part.make()

    monkeypatch.setattr(local_aws.set_up, "DEFAULT_FOLDER", tmp_path)
    monkeypatch.setattr(local_aws.set_up, "set_up", only_ministack)
    monkeypatch.setattr(local_aws.set_up, "run", run)
    monkeypatch.setattr(Installer, "install", lambda *_arguments, **_into: [])
    with LocalAws(free_port(), tmp_path / "aws") as aws:
        assert local_aws.set_up.main() == 0
    assert installing


def test_a_part_that_fails_stops_those_after_it(workshop: Workshop, tmp_path: Path) -> None:
    def fail() -> Sequence[str]:
        raise LocalAwsError("no network")

    first = Part("First", tmp_path / ".first", (), fail)
    with pytest.raises(LocalAwsError, match="no network"):
        set_up([first, workshop.part()])
    assert workshop.made == 0
