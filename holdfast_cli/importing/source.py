"""The interface of a source: a place that has the states before the import."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from holdfast.errors import HoldfastError
from holdfast.state import lock_info
from holdfast.state.lock_info import LockInfo
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal.output import plain

AT_ONCE: Final = 16
"""How many states are copied or compared at the same time, and so the most contents in memory."""


class LockedThereError(CommandError):
    """Somebody else holds the state's lock in the source. The message names the holder."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The part of a plan that is about its source; never a secret.

    Attributes:
        addresses: as typed: one for most sources, one for each state of an `http` source.
        options: the options that are set, by the name that they have in the plan, such as `dynamodb_table`.
    """

    addresses: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OldState:
    """A state as the source lists it, without its content.

    Attributes:
        id: identifies the state in the source: a key, an address, a path, or a workspace. Plans have it as
            `from`, and the rules of `--map` match it.
        name: its new name if no rule matches. It need not be valid.
        tags: the tags of its workspace; empty for sources without tags.
        workspace: its workspace, if `terraform.workspace` may change with its name; else empty.
        is_certain: whether it is meant to be a state; False for an object that only lies among states.
        left_out: why it is no state of its own, as a sentence; empty if it is one.
    """

    id: str
    name: str
    tags: Mapping[str, str] = field(default_factory=dict)
    workspace: str = ""
    is_certain: bool = True
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class OldLock:
    """A lock in the source that this import acquires. The journal has it before the first request for it.

    Attributes:
        info: the lock info document, which the source's clients show. Its ID is random.
        handle: the result of `prepare_lock`.
    """

    info: LockInfo
    handle: str = ""


class Source(Protocol):
    """The states of one source. Several threads may call each method at once.

    Each method raises `CommandError` with one line that names the state and says what to do, and
    `UnavailableError` if the source did not respond or has a transient error, after retries.
    """

    @property
    def address(self) -> str:
        """The address for people, without a secret."""

    def states(self) -> Iterator[OldState]:
        """Yield the states, without reading their content; always in the same order."""

    def covers(self, state: str) -> bool:
        """Return whether `states` could yield this ID. No request is sent.

        People may change a plan, and this one may be somebody else's: an ID must lead no credentials, and no
        lock, to another place.
        """

    def read(self, state: str) -> bytes | None:
        """Return the bytes of the current state, b"" if it has no content yet; None if it does not exist."""

    def prepare_lock(self, state: str) -> str:
        """Return the text that `lock` and `unlock` need beside the lock info for the same lock, or ''."""

    def lock(self, state: str, lock: OldLock) -> None:
        """Acquire the lock as the source's own clients do. Do nothing if this very lock is already held.

        Raises `LockedThereError`: nothing is held, and `unlock` is not called. After any other error the
        lock may be held.
        """

    def unlock(self, state: str, lock: OldLock) -> None:
        """Release exactly this lock. Do nothing if it is not held any more; another's lock stays."""

    def stopped_by_lock(self) -> tuple[str, str]:
        """Return which clients a lock stops and which it does not, as noun phrases; '' if none.

        If the source has no locks, nothing is stopped: `lock` and `unlock` do nothing.
        """

    @property
    def can_refuse_writes(self) -> bool:
        """Return whether the source itself can refuse writes, also by clients without locks."""

    def refuse_writes(self, refused: Collection[str], allowed: Collection[str]) -> None:
        """Let the source refuse all writes of some states, and allow them again for others.

        A state that is named in neither stays as it is. Raises `CommandError` unless `can_refuse_writes`.
        """


class PlainSource:
    """A source without handles for its locks, and without a rule that refuses writes."""

    address: str

    def prepare_lock(self, state: str) -> str:  # noqa: ARG002 of the interface
        return ""

    can_refuse_writes = False

    def refuse_writes(self, refused: Collection[str], allowed: Collection[str]) -> None:  # noqa: ARG002 of the interface
        raise CommandError(
            f"{self.address} has no policy that could refuse writes; only an s3:// source has a bucket "
            "policy."
        )


def holder_of(body: bytes) -> LockInfo | None:
    """Return the holder's lock info, from the document of a source's clients; None if the source has none."""
    try:
        return lock_info.parse(body)
    except HoldfastError:
        return None


def refusal(state: str, holder: LockInfo | None) -> LockedThereError:
    """Return the error about a lock of somebody else."""
    who = "an unknown client"
    if holder is not None:
        shown = (holder.text or holder.operation, holder.id and f"lock ID {holder.id}")
        who = plain(f"{holder.who or 'a client'} ({'; '.join(filter(None, shown))})")
    return LockedThereError(
        f"{state} is locked in the source by {who}; run the command again when that lock is released."
    )
