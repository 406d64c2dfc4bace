"""Which exact versions a command means: the API resolves what names them."""

from contextlib import closing

from holdfast.api import form, v1
from holdfast_cli.api import management, state_texts
from holdfast_cli.api.management import Api
from holdfast_cli.api.version_reference import Reference
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import output


def resolve(api: Api, name: object, reference: str) -> tuple[v1.ResolvedVersion, v1.ResolvedVersion | None]:
    """Ask which version a reference means, until the API has searched the whole history.

    With it comes the version that was current when the search began; None if there was none. `ApiError` if
    there is no such version, or if there are several.
    """
    cursor, seen = None, set[str | None]()
    progress = output.Progress()
    try:
        while cursor not in seen and len(seen) < management.MOST_PAGES:
            seen.add(cursor)
            resolved = api.get(v1.Resolved, "resolve", name, version=reference, cursor=cursor)
            if resolved.found and resolved.found.version:
                return resolved.found, resolved.current
            cursor = resolved.next
            progress.show(f"Searching the history of {name}")
    finally:
        progress.end()
    raise CommandError(f"The API finds no version {reference} of the state {name}, and does not say why.")


def exact_id(api: Api, name: object, reference: Reference | None) -> tuple[str | None, str | None]:
    """Resolve what may name a version, as `resolve`. What a reference means is told on standard error.

    Returns:
        Its ID, None if none is named; and the ID of the version that was current, None if nothing told it.
    """
    if reference is None or reference.is_id:
        return (reference.sent if reference else None), None
    version, current = resolve(api, name, reference.sent)
    output.tell(f"holdfast: {reference} is {state_texts.described(version)}.")
    return version.version, current.version if current else None


def with_id(api: Api, name: object, version_id: str) -> v1.Version:
    """Look a version up in the history of a state; one that the history lacks has its ID alone."""
    absent = form.read(v1.Version, {"version": version_id})
    with closing(api.pages(v1.Version, "versions", "versions", name)) as history:
        return next((each for each in history if each.version == version_id), absent)
