"""The states of Terraform's local backend: files of a folder, in folders below it and in its workspaces."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from holdfast_cli.errors import CommandError
from holdfast_cli.importing.source import (
    LockedThereError,
    OldLock,
    OldState,
    PlainSource,
    Settings,
    holder_of,
    refusal,
)

_WORKSPACES: Final = "terraform.tfstate.d/{ws}/terraform.tfstate"
_DEEPEST: Final = 8
"""How many folders may lie between the address and a folder with workspaces, for the rules of names."""


@dataclass(frozen=True, slots=True)
class _Held:
    """A lock of this process. It lasts until any descriptor of the file is closed, so one is kept."""

    id: str
    descriptor: int


class Files(PlainSource):
    """The source of `import` for a folder, or for one file."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._top = Path(address)
        self._folder = self._top.parent if self._top.is_file() else self._top
        self._held: dict[str, _Held] = {}
        # A read that closes its descriptor would release a lock that another thread acquires meanwhile.
        self._alone = Lock()

    @property
    def default_rules(self) -> tuple[str, ...]:
        """A placeholder that is not the last matches one folder, so workspaces need a rule for each depth."""
        folders = ["/".join(f"{{f{number}}}" for number in range(depth)) for depth in range(1, _DEEPEST + 1)]
        return (
            f"{_WORKSPACES}={{ws}}",
            *(f"{folder}/{_WORKSPACES}={folder}/{{ws}}" for folder in folders),
            "{key}/terraform.tfstate={key}",
            "{key}.tfstate={key}",
        )

    def states(self) -> Iterator[OldState]:
        if self._top.is_file():
            found = [self._top.name]
        elif self._top.is_dir():
            found = sorted(self._walk())
        else:
            raise CommandError(f"{self._top} is neither a file nor a folder; check the path.")
        for path in found:
            yield OldState(path, path)

    def _walk(self) -> Iterator[str]:
        def fail(error: OSError) -> None:
            raise _failed(Path(error.filename), "listed", error) from error

        for folder, below, files in os.walk(self._folder, onerror=fail):
            # `.terraform/terraform.tfstate` is the configuration of a backend, and not a state.
            below[:] = [name for name in below if name != ".terraform"]
            for name in files:
                if name.endswith(".tfstate"):
                    yield Path(folder, name).relative_to(self._folder).as_posix()

    def read(self, state: str) -> bytes | None:
        path = self._folder / state
        with self._alone:
            held = self._held.get(state)
            try:
                if held is None:
                    return path.read_bytes()
                with open(held.descriptor, "rb", closefd=False) as file:
                    file.seek(0)
                    return file.read()
            except FileNotFoundError:
                return None
            except OSError as error:
                raise _failed(path, "read", error) from error

    def lock(self, state: str, lock: OldLock) -> None:
        import fcntl  # not on Windows, where the other sources work

        path = self._folder / state
        with self._alone:
            if held := self._held.get(state):
                if held.id == lock.info.id:
                    return
                raise LockedThereError(f"{path} is locked by this import already.")
            try:
                descriptor = os.open(path, os.O_RDWR)
            except FileNotFoundError as error:
                raise CommandError(f"{path} does not exist any more; write the plan again.") from error
            except OSError as error:
                raise _failed(path, "opened for a lock", error) from error
            try:
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _info(path).write_bytes(lock.info.at(str(path)).to_json())
            except OSError as error:
                os.close(descriptor)
                if isinstance(error, BlockingIOError | PermissionError) and error.filename is None:
                    raise refusal(str(path), holder_of(_noted(path))) from error
                raise _failed(path, "locked", error) from error
            self._held[state] = _Held(lock.info.id, descriptor)

    def unlock(self, state: str, lock: OldLock) -> None:
        path = self._folder / state
        with self._alone:
            held = self._held.get(state)
            # The lock of a process that was killed is gone, but its lock info is still there.
            found = holder_of(_noted(path))
            if found is not None and found.id == lock.info.id:
                try:
                    _info(path).unlink(missing_ok=True)
                except OSError as error:
                    raise _failed(_info(path), "removed", error) from error
            if held is not None and held.id == lock.info.id:
                os.close(held.descriptor)
                del self._held[state]

    def stopped_by_lock(self) -> tuple[str, str]:
        return "", "all clients: the lock of a file ends with the process that holds it"


def open_files(settings: Settings, environment: Mapping[str, str] = os.environ) -> Files:  # noqa: ARG001 as all
    """Return the source of a folder or a file."""
    return Files(settings.addresses[0])


def _info(path: Path) -> Path:
    """Return the file with the lock info, as Terraform names it."""
    return path.with_name(f".{path.name.removeprefix('.')}.lock.info")


def _noted(path: Path) -> bytes:
    try:
        return _info(path).read_bytes()
    except OSError:
        return b""


def _failed(path: Path, what: str, error: OSError) -> CommandError:
    return CommandError(f"{path} cannot be {what}: {error.strerror}.")
