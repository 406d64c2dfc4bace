"""Find the kind of a source by its address."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, cast

from holdfast_cli.errors import CommandError
from holdfast_cli.importing.source import Settings, Source

_KINDS: Final[Mapping[str, tuple[str, str, frozenset[str]]]] = {
    "s3": ("s3", "open_s3", frozenset({"dynamodb_table", "region", "workspace_key_prefix"})),
    "gitlab": ("gitlab", "open_gitlab", frozenset()),
    "hcp": ("hcp", "open_hcp", frozenset()),
    "http": ("http_source", "open_http", frozenset({"lock_address", "lock_method", "unlock_method"})),
    "https": ("http_source", "open_http", frozenset({"lock_address", "lock_method", "unlock_method"})),
    "": ("files", "open_files", frozenset()),
}
"""Scheme of an address -> module, function and options of the source. A module is imported on first use."""


def kind(settings: Settings) -> str:
    """Return the scheme of the addresses; empty for a path. Raise `CommandError` if it is unknown."""
    schemes = {address.partition("://")[0] if "://" in address else "" for address in settings.addresses}
    found = "http" if schemes == {"http", "https"} else min(schemes)
    if found not in _KINDS or (len(schemes) > 1 and found != "http"):
        raise CommandError(
            "The address of a source begins with s3://, gitlab://, hcp://, https://, or is a folder. Several "
            "addresses go with https:// alone."
        )
    if len(settings.addresses) > 1 and not found.startswith("http"):
        raise CommandError("Several addresses go with https:// alone: write a plan for each.")
    return found


def open_source(settings: Settings) -> Source:
    """Return the source of a plan. No request is sent."""
    module, function, options = _KINDS[kind(settings)]
    if unknown := sorted(settings.options.keys() - options):
        takes = f"it takes {', '.join(sorted(options))}" if options else "it takes none"
        raise CommandError(f"This kind of source takes no option {unknown[0]!r}; {takes}.")
    opened = cast(
        "Callable[[Settings], Source]",
        getattr(import_module(f"holdfast_cli.importing.{module}"), function),
    )
    return opened(settings)
