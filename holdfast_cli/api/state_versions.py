"""Asks the API for the exact version that a reference means."""

from contextlib import closing
from typing import TYPE_CHECKING

from holdfast.api import form
from holdfast_cli.api import state_texts
from holdfast_cli.api.management import Api, ApiError
from holdfast_cli.api.version_reference import Reference
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import output

if TYPE_CHECKING:
    from holdfast.api import v1


def resolve(api: Api, name: object, reference: str) -> "tuple[v1.ResolvedVersion, v1.ResolvedVersion | None]":
    """Return the version that a reference means, after the API has searched the whole history.

    The second value is the version that was current when the search began, or None. Raises `ApiError` if no
    version matches, or if several versions match.
    """
    from holdfast.api import v1

    lost = (
        f"The API returned no version of the state {name} for {reference}. `holdfast state history {name}` "
        "shows the versions."
    )

    def search(cursor: str | None) -> "v1.Resolved":
        return api.get(v1.Resolved, "resolve", name, version=reference, cursor=cursor)

    with output.Progress() as progress:
        for resolved in api.follow(search, lost):
            if resolved.found and resolved.found.version:
                return resolved.found, resolved.current
            progress.show(f"Searching the history of {name}")
    raise CommandError(lost)


def exact_id(
    api: Api, name: object, reference: Reference | None, *, silent: bool = False, long: bool = False
) -> tuple[str | None, str | None]:
    """Resolve an optional reference as `resolve` does, and print on standard error what it means.

    Args:
        silent: print nothing about an acknowledged version, because the output says which one it is.
        long: print the version's ID on a terminal, too.

    Returns:
        The version's ID, or None if there is no reference; and the current version's ID, or None if unknown.
    """
    from holdfast.api import v1

    if reference is None or reference.is_id:
        return (reference.sent if reference else None), None
    version, current = resolve(api, name, reference.sent)
    if not silent or version.status not in (None, v1.ACKNOWLEDGED):
        brief = output.is_brief(long=long)
        said = state_texts.described_briefly(version, api.now()) if brief else state_texts.described(version)
        output.tell(f"holdfast: {reference} is {said}.")
    return version.version, current.version if current else None


def with_id(api: Api, name: object, version_id: str) -> "v1.Version":
    """Return a version of a state's history; if the history lacks the ID, a version with only that ID."""
    from holdfast.api import v1

    absent = form.read(v1.Version, {"version": version_id})

    def find(**query: str) -> "v1.Version":
        with closing(api.pages(v1.Version, "versions", "versions", name, **query)) as history:
            return next((each for each in history if each.version == version_id), absent)

    try:
        return find(version=version_id)
    except ApiError as failure:
        match failure.code:
            case "no_such_version":
                return absent
            case "invalid_request":  # the API of 0.3.0 lists only pages
                return find()
            case _:
                raise
