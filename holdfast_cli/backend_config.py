"""Writes the backend settings of Terraform and OpenTofu for a state, as HCL or as shell exports.

API Gateway does not pass `LOCK` and `UNLOCK`, the client's defaults, so the methods are spelled out.
"""

import re
from urllib.parse import urlsplit

from holdfast.names import StateName

# The order is the one in which the block is read best; the widest name sets the column of `=`.
_LOCKING = ("lock_address", "lock_method", "unlock_address", "unlock_method")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def check_address(address: str) -> str:
    """Check the base URL of a Holdfast API and return it without a trailing slash.

    Raises:
        ValueError: with what is wrong with it.

    >>> check_address("https://abc.execute-api.eu-central-1.amazonaws.com/")
    'https://abc.execute-api.eu-central-1.amazonaws.com'
    """
    if not address.isascii() or not address.isprintable() or " " in address:
        raise ValueError("the address must be a URL of printable ASCII characters without spaces")
    try:
        parts = urlsplit(address)
        host = parts.hostname
        _ = parts.port  # raises for a port that is not a number
    except ValueError as error:
        raise ValueError(f"the address is not a valid URL: {error}") from error
    if parts.scheme not in ("https", "http") or not host:
        raise ValueError("the address must be the API's base URL, as in https://api.example.com")
    if "@" in parts.netloc:
        raise ValueError("the address must hold no credentials; export TF_HTTP_USERNAME and TF_HTTP_PASSWORD")
    if "?" in address or "#" in address:
        raise ValueError("the address must end before any '?' or '#'")
    if "/states/" in f"{address}/" or "/locks/" in f"{address}/":
        raise ValueError("the address must be the API's base URL, without /states or /locks")
    if _BROKEN_ESCAPE.search(address):
        raise ValueError("the address has a '%' that is not followed by two hexadecimal digits")
    return address.rstrip("/")


def settings(address: str, name: StateName, *, read_only: bool) -> dict[str, str]:
    """Return the arguments of the `http` backend for one state.

    Args:
        address: the API's base URL, without a trailing slash.
        name: the state.
        read_only: leave locking out.

    Returns:
        Argument to value, in the order in which they are shown.
    """
    lock = f"{address}/locks/{name}"
    arguments = {"address": f"{address}/states/{name}"}
    if not read_only:
        arguments |= dict(zip(_LOCKING, (lock, "PUT", lock, "DELETE"), strict=True))
    return arguments


def quote_hcl(value: str) -> str:
    """Quote a string for HCL, with no interpolation left in it.

    See https://developer.hashicorp.com/terraform/language/expressions/strings

    >>> quote_hcl("a${b}")
    '"a$${b}"'
    """
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("${", "$${").replace("%{", "%%{") + '"'


def quote_shell(value: str) -> str:
    """Quote a string for a POSIX shell, with nothing left to expand in it.

    >>> print(quote_shell("$default"))
    '$default'
    """
    return "'" + value.replace("'", "'\\''") + "'"


def to_hcl(address: str, name: StateName, *, read_only: bool) -> str:
    """Return the `terraform` block to paste into a configuration.

    Args:
        address: the API's base URL, without a trailing slash.
        name: the state.
        read_only: leave locking out.
    """
    arguments = settings(address, name, read_only=read_only)
    width = max(map(len, arguments))
    lines = [f"    {argument:<{width}} = {quote_hcl(value)}" for argument, value in arguments.items()]
    if read_only:
        lines += [
            "    # Nothing is locked: for those who only plan. Where TF_HTTP_LOCK_ADDRESS is set,",
            "    # run `terraform plan -lock=false`.",
        ]
    lines += [
        "    # The credentials come from the environment: TF_HTTP_USERNAME (the token's ID)",
        "    # and TF_HTTP_PASSWORD (its secret). Keep them out of this file.",
    ]
    return "\n".join(["terraform {", '  backend "http" {', *lines, "  }", "}"])


def to_env(address: str, name: StateName, *, read_only: bool) -> str:
    """Return the same as shell exports, for a configuration with an empty `backend "http" {}`.

    Credentials are never part of it: where they are set already there is nothing to export, and where
    they are not, a comment says which two are missing.

    Args:
        address: the API's base URL, without a trailing slash.
        name: the state.
        read_only: leave locking out, and drop what an earlier export set.
    """
    arguments = settings(address, name, read_only=read_only)
    lines = [f"export {_variable(argument)}={quote_shell(value)}" for argument, value in arguments.items()]
    if read_only:
        lines += [
            f"unset {' '.join(map(_variable, _LOCKING))}",
            "# Nothing is locked: for those who only plan. Where the block has a lock_address,",
            "# run `terraform plan -lock=false`.",
        ]
    lines += [
        '# For a configuration with: terraform { backend "http" {} }',
        "# Also export TF_HTTP_USERNAME (the token's ID) and TF_HTTP_PASSWORD (its secret).",
    ]
    return "\n".join(lines)


def _variable(argument: str) -> str:
    return f"TF_HTTP_{argument.upper()}"
