"""The files that the command writes for their owner alone."""

import os
import stat
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from holdfast_cli import private_file


def mode(file: Path) -> int:
    return stat.S_IMODE(file.stat().st_mode)


def test_a_created_file_is_its_owners_and_replaces_none(tmp_path: Path) -> None:
    file = tmp_path / "state"

    private_file.create(file, b"new")

    assert (file.read_bytes(), mode(file)) == (b"new", 0o600)
    with pytest.raises(FileExistsError):
        private_file.create(file, b"newer")
    assert file.read_bytes() == b"new"


def test_a_replaced_file_has_the_mode_of_the_call_and_not_that_of_before(tmp_path: Path) -> None:
    file = tmp_path / "session"
    file.write_bytes(b"old")
    file.chmod(0o644)

    private_file.replace(file, b"new")
    assert (file.read_bytes(), mode(file)) == (b"new", 0o600)
    private_file.replace(file, b"newer", 0o640)
    assert (file.read_bytes(), mode(file)) == (b"newer", 0o640)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("write", [private_file.create, private_file.replace])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, write: Callable[[Path, bytes], None], error: BaseException
) -> None:
    file = tmp_path / "file"
    before = {}
    if write is private_file.replace:
        file.write_bytes(b"old")
        before = {file: b"old"}

    with mock.patch.object(os, "fsync", side_effect=error), pytest.raises(type(error)):
        write(file, b"new")

    assert {each: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_file_that_cannot_take_the_place_of_another_is_removed(tmp_path: Path) -> None:
    (folder := tmp_path / "folder").mkdir()

    with pytest.raises(OSError, match="directory"):
        private_file.replace(folder, b"new")

    assert list(tmp_path.iterdir()) == [folder]
