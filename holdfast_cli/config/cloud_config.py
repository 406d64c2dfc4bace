"""Writes the block by which Terraform reaches a state through `cloud` or `backend "remote"`.

`cloud` and `backend "remote"` find the API at the root of an https host, and send one token as credentials.
"""

import re
from collections.abc import Sequence
from typing import Final

from holdfast.cloud.names import organization_and_workspace
from holdfast.names import StateName
from holdfast_cli.config.backend_config import quote_hcl
from holdfast_cli.errors import UsageError

STAND_IN: Final = "holdfast.local"
"""The host name for an address that is not just https and a host; a CLI configuration maps it to the API."""

SERVICES: Final = ("tfe.v2", "tfe.v2.1", "tfe.v2.2", "state.v2")
"""The services in the discovery document that clients look up."""

_NOTHING_BUT_A_HOST: Final = re.compile(r"https://([A-Za-z0-9.-]+(:[0-9]+)?)")


def host(address: str) -> str | None:
    """Return the host of an API, and its port unless that is 443; None if it has a path, or no TLS.

    >>> host("https://API.example.com:443"), host("https://a.example:8443"), host("https://a.example/states")
    ('api.example.com', 'a.example:8443', None)
    """
    found = _NOTHING_BUT_A_HOST.fullmatch(address)
    return found[1].lower().removesuffix(":443") if found else None


def hostname(address: str) -> str:
    """Return the host name by which a configuration reaches an API.

    It is `holdfast.local` if the address has a path, no TLS, or a port, which no token variable can name.

    >>> hostname("https://API.example.com"), hostname("https://api.example.com/states-of-all")
    ('api.example.com', 'holdfast.local')
    """
    found = host(address)
    return STAND_IN if found is None or ":" in found else found


def token_variable(host: str) -> str:
    """Return the variable from which clients read the token for a host.

    See https://developer.hashicorp.com/terraform/cli/config/config-file#environment-variable-credentials

    >>> token_variable("api.eu-central-1.example.com")
    'TF_TOKEN_api_eu__central__1_example_com'
    """
    return f"TF_TOKEN_{host.replace('-', '__').replace('.', '_')}"


def credentials_document(address: str, record_id: str, secret: str) -> dict[str, str]:
    """Return the host name, variable and token with which `cloud` uses an access token or a session."""
    from holdfast.identity import credentials

    host = hostname(address)
    return {
        "hostname": host,
        "variable": token_variable(host),
        "token": credentials.bearer(record_id, secret),
    }


def to_hcl(address: str, state: StateName, *, tags: Sequence[str], remote: bool) -> str:
    """Return the `terraform` block of a configuration. UsageError if the name has one segment.

    Args:
        tags: the tags that select workspaces; empty if the block names the state's workspace.
        remote: print the older `backend "remote"`, which has no tags.
    """
    host = hostname(address)
    organization, workspace = workspace_of(state)
    if tags:
        selects = f"tags = [{', '.join(map(quote_hcl, tags))}]"
        how = [f"# `terraform workspace select -or-create {workspace}` selects the state", f"# {state}."]
    else:
        selects, how = f"name = {quote_hcl(workspace)}", []
    lines = [
        f"hostname     = {quote_hcl(host)}",
        f"organization = {quote_hcl(organization)}",
        "",
        "workspaces {",
        f"  {selects}",
        "}",
        *how,
        "# The token comes from the environment,",
        "# as `holdfast token create` prints it:",
        f"# {token_variable(host)}.",
        "# Keep it out of this file.",
    ]
    kind = 'backend "remote"' if remote else "cloud"
    body = "\n".join(f"    {line}".rstrip() for line in lines)
    block = f"terraform {{\n  {kind} {{\n{body}\n  }}\n}}"
    return f"{block}\n\n{_host_block(address)}" if host == STAND_IN else block


def _host_block(address: str) -> str:
    services = [f"    {quote_hcl(name):<10} = {quote_hcl(f'{address}/api/v2/')}" for name in SERVICES]
    lines = [
        f"The block above names {STAND_IN} in place of the API's host, because",
        "the API's address has a path or a port, or does not begin with https://.",
        "Terraform learns the address from a `host` block. Write the following",
        "block, without the #, into the CLI configuration, such as ~/.terraformrc.",
        "For the local AWS, `make up` writes this block to .local/cloud.tfrc, so you",
        "only need to set TF_CLI_CONFIG_FILE to that file.",
        "",
        f'host "{STAND_IN}" {{',
        "  services = {",
        *services,
        "  }",
        "}",
    ]
    return "\n".join(f"# {line}".rstrip() for line in lines)


def workspace_of(state: StateName) -> tuple[str, str]:
    """Return the organization and the workspace of a state. UsageError if the name has one segment."""
    found = organization_and_workspace(state)
    if found is None:
        raise UsageError(
            f"`cloud` cannot use the state {state}, because its name has only one segment. The first segment "
            "is the organization, and the rest is the workspace. To copy the state to a name with two "
            "segments, replace the backend block of its configuration with the output of `holdfast "
            f"backend-config GROUP/{state} --cloud`, where you choose GROUP. Then run `terraform init`, and "
            "answer yes."
        )
    return found
