"""Names that must be declared: refuse a name that has neither a state nor a record.

Otherwise a mistyped address would look like an empty state, for which a plan creates everything. A name is
declared by the record of a workspace, and by an existing state. A probe needs no declaration. The functions
here do not check whether the caller may access the state.
"""

from os.path import commonprefix
from typing import Final

from holdfast.access import Action
from holdfast.errors import NotDeclared
from holdfast.names import RECORDS, STATES, Keys, StateName
from holdfast.state.lock_info import LockInfo
from holdfast.work import Work

_PAGE: Final = 999
"""The most names in each of the lists of states and of records whose names are compared."""
_SECONDS: Final = 1.0
"""Seconds that each of these lists may take."""
_NEAREST: Final = 3
_COMPARED: Final = 50
"""The number of names that are compared in full. Comparing two names of 200 letters can take 7 ms."""
_SIMILAR: Final = 0.7
"""The least similarity (0 to 1) of a suggested name. A long first segment in common is not enough."""


def require(work: Work) -> None:
    """Raise `NotDeclared` unless a name has a state or a record. Without a state this takes two requests."""
    if not work.name.is_probe and work.store.read_version(work.name.state_key) is None:
        require_record(work)


def require_record(work: Work) -> None:
    """Raise `NotDeclared` unless a name has a record, with one request. Use it for a name without a state."""
    if not work.name.is_probe and work.store.read_version(work.name.record_key) is None:
        raise _not_declared(work.name, nearest(work))


def nearest(work: Work) -> list[str]:
    """Return the names within the caller's scope that are most similar to an unknown name.

    Of many names only some are compared: the first, and the first with the same first segment. The
    selection depends on names within the scope alone, so the result reveals no other names.
    """
    # Imported here, because requests for declared names never need it.
    from difflib import SequenceMatcher

    name = work.name
    first, slash, _ = name.value.partition("/")
    beginning = first + slash if slash else ""
    listed = {text for keys in (STATES, RECORDS) for text in _listed(work, keys, beginning)}
    # An upper bound of the similarity is quick to compute. The similarity itself takes long for long names of
    # the same letters, so only the most promising names are compared in full.
    matcher = SequenceMatcher(b=name.value)
    promising = []
    for other in sorted(listed):
        matcher.set_seq1(other)
        if matcher.real_quick_ratio() >= _SIMILAR and (at_most := matcher.quick_ratio()) >= _SIMILAR:
            promising.append((-at_most, -len(commonprefix((other, name.value))), other))  # noqa: RUF071 of texts
    similar = []
    for _, _, other in sorted(promising)[:_COMPARED]:
        matcher.set_seq1(other)
        if (ratio := matcher.ratio()) >= _SIMILAR:
            similar.append((-ratio, other))
    return [other for _, other in sorted(similar)[:_NEAREST]]


def _listed(work: Work, keys: Keys, beginning: str) -> set[str]:
    """Return visible names that have an object with one of the keys."""
    # Imported here for the same reason as SequenceMatcher.
    from holdfast.state import walk

    caller = work.caller

    def list_visible(prefix: str, after: str) -> tuple[list[tuple[str, str]], str | None]:
        page = work.store.keys_page(prefix, after=after, page_size=_PAGE + 1)
        listed = ((entry.key, keys.name(entry.key)) for entry in page.keys)
        visible = [(key, of.value) for key, of in listed if of and caller.may(Action.READ_METADATA, of)]
        return visible, page.last

    visible_names: set[str] = set()
    for prefix in ("", beginning):
        walked = walk.page(
            walk.Places(keys.prefix, keys.suffix, caller.patterns(Action.READ_METADATA), prefix),
            "",
            list_visible,
            is_cursor=lambda _: True,
            page_size=_PAGE,
            seconds=_SECONDS,
        )
        visible_names.update(name for _, name in walked.entries)
        if walked.next is None or not beginning:
            break
    return visible_names


def _not_declared(name: StateName, similar: list[str]) -> NotDeclared:
    declare = f"holdfast state declare {name}"
    near = f" (nearest: {', '.join(similar)})" if similar else ""
    then = (
        "Check the name. If the state was deleted, use 'holdfast state undelete'. For a new state, use "
        f"'{declare}', which needs the role 'writer'."
    )
    holder = LockInfo(
        {
            # Most clients show this field alone.
            "ID": f"no such state: {name}{near}; '{declare}' declares the name",
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
