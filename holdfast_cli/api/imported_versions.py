"""Stores and lists versions that a state had in another place, through the management API."""

import gzip
from collections.abc import Generator
from datetime import datetime
from typing import Final

from holdfast.api import form, v1
from holdfast_cli.api.management import Api, MissingRouteError
from holdfast_cli.errors import CommandError

_LARGEST: Final = 4_700_000
"""Bytes of the largest compressed version: an event of Lambda has 6 MB, of which base64 takes a quarter."""


def import_version(
    api: Api, name: object, body: bytes, *, author: str = "", time: datetime | None = None, source: str = ""
) -> bool:
    """Store an old version of a state; a repeated import changes nothing. Threads may call it at once.

    Args:
        author: the writer's name in the old place; shown as a claim.
        time: when the version was written there, with an offset.
        source: the address of the old place, without a secret.

    Returns:
        Whether the version is new.

    Raises:
        CommandError: the API refused the version, or it is too large for a request even when compressed.
    """
    packed = gzip.compress(body, mtime=0)
    if len(packed) > _LARGEST:
        raise CommandError(
            f"An old version of the state {name} has {len(body)} bytes, {len(packed)} compressed; a request "
            f"carries at most {_LARGEST}. Leave it in the old place."
        )
    when = form.time(time) if time else None
    query = {"author": author, "time": when, "from": source}
    return api.put_content(v1.ImportedNumber, "imported", name, packed, **query).created is True


def listed(api: Api, name: object) -> Generator[v1.ImportedVersion, None, None]:
    """Yield the imported versions of a name, highest serial first; nothing if the API is too old for them."""
    try:
        yield from api.pages(v1.ImportedVersion, "imported", "versions", name)
    except MissingRouteError:
        return
