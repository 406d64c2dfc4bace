"""A source of an import in this process, with the lock that its clients use."""

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from holdfast_cli.importing.source import LockedThereError, OldLock, OldState
from tests.support.documents import next_serial


@dataclass
class Shelf:
    """States by ID, and the IDs of their locks. `each` is called around each request, and may raise.

    An ID that ends with `.sh` need not be a state. One below `elsewhere/` is of another place.
    """

    contents: dict[str, bytes]
    each: Callable[[], None] = lambda: None
    locks: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)

    address = "shelf"

    def apply(self, state: str) -> bool:
        """Change a state as an old pipeline does: only without another's lock. Return whether it did."""
        if state in self.locks or state in self.refused:
            return False
        self.contents[state] = next_serial(self.contents[state])
        return True

    def states(self) -> Iterator[OldState]:
        self.each()
        for state in sorted(self.contents):
            yield OldState(state, state, is_certain=not state.endswith(".sh"))

    def covers(self, state: str) -> bool:
        return not state.startswith("elsewhere/")

    def read(self, state: str) -> bytes | None:
        self.each()
        content = self.contents.get(state)
        self.each()
        return content

    def prepare_lock(self, state: str) -> str:
        return f"handle of {state}"

    def lock(self, state: str, lock: OldLock) -> None:
        self.each()
        assert lock.handle == self.prepare_lock(state)
        if self.locks.setdefault(state, lock.info.id) != lock.info.id:
            raise LockedThereError(f"{state} is locked by somebody, lock ID {self.locks[state]}.")
        self.each()

    def unlock(self, state: str, lock: OldLock) -> None:
        self.each()
        if self.locks.get(state) == lock.info.id:
            del self.locks[state]
        self.each()

    def stopped_by_lock(self) -> tuple[str, str]:
        return "clients that lock", "clients that do not"

    can_refuse_writes = True

    def refuse_writes(self, refused: Collection[str], allowed: Collection[str]) -> None:
        self.each()
        self.refused = (self.refused - set(allowed)) | set(refused)
        self.each()


def serial(content: bytes | None) -> int | None:
    return None if content is None else int(json.loads(content)["serial"])
