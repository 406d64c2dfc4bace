"""Writes the settings by which Terraform reaches a state: a block, a file for `init`, or shell exports.

API Gateway does not pass on the methods `LOCK` and `UNLOCK`, Terraform's defaults, so the settings name other
methods. No AWS document promises that the body of a `DELETE` is passed on, so `POST` releases a lock.

`name` is the state's name; `read_only` leaves out the settings for locking.
"""

import re
import shlex
from typing import Final
from urllib.parse import urlsplit

from holdfast.names import StateName

# The order is that of the block; the longest name sets the column of `=`.
_LOCKING = ("lock_address", "lock_method", "unlock_address", "unlock_method")
_ROUTES = ("states", "outputs", "locks", "unlocks")
_WITHOUT_SCHEME = re.compile(r"(localhost|[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+)(:[0-9]+)?(/[^?#@]*)?")
_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
_HOST = re.compile(rf"({_LABEL}(\.{_LABEL})*|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")

_WHERE_CREDENTIALS_ARE: Final = (
    "# The credentials come from the environment:",
    "# TF_HTTP_USERNAME (the token's ID) and TF_HTTP_PASSWORD (its secret).",
    "# Keep them out of this file.",
)

NOTHING_IS_REMEMBERED: Final = (
    "holdfast: Terraform does not store these exports. Each command uses the state whose address its shell "
    "exports. If exports of another environment are left in the shell, Terraform applies this "
    "configuration to that environment, without a warning. With several environments, use --tfbackend."
)
"""The warning that `--env` prints on standard error."""


def check_address(address: str) -> str:
    """Return an API's base URL without a trailing slash; ValueError if it is not valid.

    >>> check_address("https://abc.execute-api.eu-central-1.amazonaws.com/")
    'https://abc.execute-api.eu-central-1.amazonaws.com'
    """
    if "@" in (address.partition("://")[2] or address).partition("/")[0]:
        raise ValueError(
            "the address must not contain credentials. Remove them, and export TF_HTTP_USERNAME and "
            "TF_HTTP_PASSWORD instead. Rotate the token if others may have read it"
        )
    if not address.isascii() or not address.isprintable() or " " in address:
        raise ValueError("the address must be a URL of printable ASCII characters without spaces")
    if bare := _WITHOUT_SCHEME.fullmatch(address):
        scheme = "http" if bare[1].startswith(("localhost", "127.")) else "https"
        raise ValueError(f"the address has no scheme: put {scheme}:// before it")
    # No error text contains a part of the address, because that part may be a password.
    not_valid = "the address is not a valid URL; write it as in https://api.example.com"
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises for a port that is not a number
    except ValueError:
        raise ValueError(not_valid) from None
    if parts.scheme not in ("https", "http") or not parts.netloc:
        raise ValueError("the address must be the API's base URL, as in https://api.example.com")
    if not _HOST.fullmatch(parts.netloc):
        raise ValueError(not_valid)
    if "?" in address or "#" in address:
        raise ValueError("the address must not contain '?' or '#'")
    for route in _ROUTES:
        if f"/{route}/" in f"{address}/":
            raise ValueError(f"the address must be the API's base URL, without /{route}")
    if _BROKEN_ESCAPE.search(address):
        raise ValueError("the address has a '%' that is not followed by two hexadecimal digits")
    return address.rstrip("/")


def variable(argument: str) -> str:
    """Return the environment variable of a backend argument.

    >>> variable("lock_address")
    'TF_HTTP_LOCK_ADDRESS'
    """
    return f"TF_HTTP_{argument.upper()}"


def settings(address: str, name: StateName, *, read_only: bool) -> dict[str, str]:
    """Return the arguments of the `http` backend for a state, in the order of the block."""
    arguments = {"address": f"{address}/states/{name}"}
    if not read_only:
        lock, unlock = f"{address}/locks/{name}", f"{address}/unlocks/{name}"
        arguments |= dict(zip(_LOCKING, (lock, "PUT", unlock, "POST"), strict=True))
    return arguments


def quote_hcl(value: str) -> str:
    """Quote a string for HCL, and escape interpolations in it.

    See https://developer.hashicorp.com/terraform/language/expressions/strings

    >>> quote_hcl("a${b}")
    '"a$${b}"'
    """
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("${", "$${").replace("%{", "%%{") + '"'


def to_hcl(address: str, name: StateName, *, read_only: bool) -> str:
    """Return the `terraform` block of a configuration."""
    lines = to_tfbackend(address, name, read_only=read_only).split("\n")
    return "\n".join(["terraform {", '  backend "http" {', *(f"    {line}" for line in lines), "  }", "}"])


def to_tfbackend(address: str, name: StateName, *, read_only: bool) -> str:
    """Return a file for `init -backend-config=<file>`, for a configuration with an empty `backend "http" {}`.

    Terraform stores the file's values in `.terraform`.
    """
    return "\n".join([*_assignments(address, name, read_only=read_only), *_WHERE_CREDENTIALS_ARE])


def to_outputs(address: str, name: StateName) -> str:
    """Return a data source that reads the outputs of a state."""
    label = data_source_name(name)
    return f"""\
# An output is data.terraform_remote_state.{label}.outputs.<name>.
data "terraform_remote_state" "{label}" {{
  backend = "http"
  config = {{
    address = {quote_hcl(f"{address}/outputs/{name}")}
  }}
  # The credentials come from the environment:
  # TF_HTTP_USERNAME (the token's ID) and TF_HTTP_PASSWORD (its secret).
  # Keep them out of `config`, which Terraform stores in the state.
  # Any role except auditor is enough, if its scope covers {name}.
  # If the client encrypts the state, use /states/ instead of /outputs/,
  # with the role reader.
}}"""


def to_env(address: str, name: StateName, *, read_only: bool) -> str:
    """Return the settings as shell exports, for a configuration with an empty `backend "http" {}`.

    Credentials are never exported: a comment names the two variables. With `read_only`, lock settings of an
    earlier export are unset.
    """
    arguments = settings(address, name, read_only=read_only)
    lines = [f"export {variable(argument)}={shlex.quote(value)}" for argument, value in arguments.items()]
    if read_only:
        lines += [
            f"unset {' '.join(map(variable, _LOCKING))}",
            "# These settings do not lock the state.",
            "# They are for clients that only plan.",
            "# If the block has a lock_address, Terraform still locks the state:",
            "# run `terraform plan -lock=false`.",
        ]
    lines += [
        '# For a configuration with an empty block: backend "http" {}',
        "# Also export TF_HTTP_USERNAME (the token's ID)",
        "# and TF_HTTP_PASSWORD (its secret).",
    ]
    return "\n".join(lines)


def _assignments(address: str, name: StateName, *, read_only: bool) -> list[str]:
    arguments = settings(address, name, read_only=read_only)
    width = max(map(len, arguments))
    lines = [f"{argument:<{width}} = {quote_hcl(value)}" for argument, value in arguments.items()]
    if read_only:
        lines += [
            "# These settings do not lock the state.",
            "# They are for clients that only plan.",
            "# If TF_HTTP_LOCK_ADDRESS is set, Terraform still locks the state:",
            "# run `terraform plan -lock=false`.",
        ]
    return lines


def data_source_name(name: StateName) -> str:
    """Return the data source's name for a state: letters, digits and underscores, not beginning with a digit.

    >>> from holdfast import names
    >>> data_source_name(names.parse("apps/shop/eu-central-1"))
    'apps_shop_eu_central_1'
    """
    label = re.sub(r"[^A-Za-z0-9]", "_", str(name))
    return f"_{label}" if label[0].isdigit() else label
