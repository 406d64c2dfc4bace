"""Names that must be declared: a name without a state and without a record is refused.

So a typing error in an address finds no empty state, for which a plan would create everything. A name is
declared by the record that a workspace has, too; a state declares its name without one. A probe needs no
declaration. That the caller may ask about the state is checked before.
"""

from collections.abc import Callable
from os.path import commonprefix
from typing import Final

from holdfast import names
from holdfast.access import Action, Caller
from holdfast.errors import InvalidName, NotDeclared
from holdfast.names import StateName
from holdfast.s3.store import Store
from holdfast.state.lock_info import LockInfo

_PAGE: Final = 999
"""Names of each kind that are compared, and as many more that begin with the same segment."""
_SECONDS: Final = 1.0
"""The longest that each of these lists may take."""
_NEAREST: Final = 3
_COMPARED: Final = 50
"""How many names are compared in full. A comparison of two names of 200 letters can take 7 ms."""
_SIMILAR: Final = 0.7
"""The least similarity of a name that is shown, of 1: more than a long first segment in common."""


def require(store: Store, name: StateName, caller: Caller) -> None:
    """Check that a name is declared: one request if it has a state, else two."""
    if not name.is_probe and store.read_version(name.state_key) is None:
        require_record(store, name, caller)


def require_record(store: Store, name: StateName, caller: Caller) -> None:
    """Check that a name without a state is declared: one request if it is."""
    if not name.is_probe and store.read_version(name.record_key) is None:
        raise _not_declared(name, nearest(store, name, caller))


def nearest(store: Store, name: StateName, caller: Caller) -> list[str]:
    """Return the names within the caller's scope that are most similar to one that is not there.

    Of many names not all are looked at: some, and some that begin with the same segment. Which ones depends
    on names within the scope alone, as in a list, so that the answer tells nothing of others.
    """
    # Here, because who writes a name right never needs it.
    from difflib import SequenceMatcher

    first, slash, _ = name.value.partition("/")
    places: tuple[Callable[[StateName], str], ...] = (_state_key, _record_key)
    found = {one for place in places for one in _listed(store, place, first + slash if slash else "", caller)}
    # An upper bound of a similarity is quick to find. The similarity itself takes long for long names of the
    # same letters, so only the most promising names are compared.
    matcher = SequenceMatcher(b=name.value)
    promising = []
    for other in sorted(found):
        matcher.set_seq1(other)
        if matcher.real_quick_ratio() >= _SIMILAR and (at_most := matcher.quick_ratio()) >= _SIMILAR:
            promising.append((-at_most, -len(commonprefix((other, name.value))), other))  # noqa: RUF071 of texts
    similar = []
    for _, _, other in sorted(promising)[:_COMPARED]:
        matcher.set_seq1(other)
        if (ratio := matcher.ratio()) >= _SIMILAR:
            similar.append((-ratio, other))
    return [other for _, other in sorted(similar)[:_NEAREST]]


def _state_key(name: StateName) -> str:
    return name.state_key


def _record_key(name: StateName) -> str:
    return name.record_key


def _listed(store: Store, place: Callable[[StateName], str], beginning: str, caller: Caller) -> set[str]:
    """Return names that have an object of a kind, and that the caller may see."""
    # Here for the same reason as SequenceMatcher.
    from holdfast.state import walk

    folder, _, suffix = place(StateName("*")).partition("*")

    def visible(key: str) -> str | None:
        if not key.endswith(suffix):
            return None
        try:
            name = names.parse(key[len(folder) : -len(suffix)])
        except InvalidName:
            return None
        return name.value if caller.may(Action.READ_OUTPUTS, name) else None

    def list_keys(prefix: str, after: str) -> tuple[list[tuple[str, str | None]], str | None]:
        page = store.keys_page(prefix, after=after, page_size=_PAGE + 1)
        return [(entry.key, visible(entry.key)) for entry in page.keys], page.last

    found: set[str] = set()
    for prefix in ("", beginning):
        walked = walk.page(
            walk.Places(folder, suffix, caller.scope, prefix),
            "",
            list_keys,
            is_visible=lambda key: visible(key) is not None,
            is_cursor=lambda _: True,
            page_size=_PAGE,
            seconds=_SECONDS,
        )
        found.update(name for _, name in walked.entries if name)
        if walked.next is None or not beginning:
            break
    return found


def _not_declared(name: StateName, similar: list[str]) -> NotDeclared:
    declare = f"holdfast state create {name}"
    near = f" (nearest: {', '.join(similar)})" if similar else ""
    then = f"Check the name, or declare it with '{declare}', which takes the role 'writer'."
    holder = LockInfo(
        {
            # Most clients show this field alone.
            "ID": f"no such state: {name}{near}; '{declare}' declares it",
            "Operation": "",
            "Info": f"The names of this team's states must be declared. {then}",
            "Who": "Holdfast",
        }
    ).for_client()
    listed = f" The nearest names are: {', '.join(similar)}." if similar else ""
    return NotDeclared(
        holder,
        f"There is no state '{name}', and the names of this team's states must be declared.{listed} {then}",
    )
