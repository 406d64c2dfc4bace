"""Find the kind of a source by its address."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Final, Literal, cast

from holdfast_cli.errors import CommandError
from holdfast_cli.importing.source import Settings, Source

Kind = Literal["s3", "gitlab", "hcp", "http"]

_HTTP_OPTIONS: Final = frozenset({"lock_address", "lock_method", "unlock_address", "unlock_method"})
_KINDS: Final[Mapping[Kind, tuple[str, str, frozenset[str]]]] = {
    "s3": ("s3", "open_s3", frozenset({"dynamodb_table", "region", "workspace_key_prefix"})),
    "gitlab": ("gitlab", "open_gitlab", frozenset()),
    "hcp": ("hcp", "open_hcp", frozenset()),
    "http": ("http_source", "open_http", _HTTP_OPTIONS),
}
"""Kind of a source -> module, function and options. A module is imported on first use."""
_SCHEMES: Final[Mapping[str, Kind]] = {
    **{scheme: scheme for scheme in ("s3", "gitlab", "hcp", "http")},
    "https": "http",
}


OPTIONS: Final = tuple(sorted(set().union(*(options for _, _, options in _KINDS.values()))))
"""The options of all sources, as a plan names them."""


def kind(settings: Settings) -> Kind:
    """Return the kind of a source by its addresses; raise `CommandError` if they have none in common."""
    kinds = {
        _SCHEMES.get(address.partition("://")[0] if "://" in address else "")
        for address in settings.addresses
    }
    [found, *others] = kinds
    if found is None or others:
        raise CommandError(
            "The address of a source must begin with s3://, gitlab://, hcp:// or https://, and a plan can "
            "have only one kind of source. For states in local files, use `terraform init -migrate-state`."
        )
    if len(settings.addresses) > 1 and found != "http":
        raise CommandError(
            "A plan can have several sources only if all of them are https:// addresses. Write a separate "
            "plan for each source."
        )
    return found


def open_source(settings: Settings) -> Source:
    """Return the source of a plan. No request is sent."""
    module, function, options = _KINDS[kind(settings)]
    if unknown := sorted(settings.options.keys() - options):
        known = ", ".join(f"--{option.replace('_', '-')}" for option in sorted(options)) or "no option"
        typed = unknown[0].replace("_", "-")
        raise CommandError(f"This kind of source does not accept the option --{typed}; it accepts {known}.")
    opened = cast(
        "Callable[[Settings], Source]",
        getattr(import_module(f"holdfast_cli.importing.{module}"), function),
    )
    return opened(settings)
