"""Finds the API's address and Terraform's credentials for it in the environment."""

import os
from argparse import ArgumentTypeError, Namespace
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from holdfast.networks import LOOPBACK
from holdfast_cli.api.management import Api, how_to_sign_in
from holdfast_cli.config import cloud_config, rules, settings
from holdfast_cli.errors import NotSetUpError, UsageError

_TOKEN: Final = "TF_TOKEN_"  # noqa: S105 the beginning of variables' names
_STATES: Final = "/states/"
_LOCAL_STEP: Final = ". .local/terraform.env"
"""Exports what a person needs to use the API of the local AWS."""


def sign_in(args: Namespace, environment: Mapping[str, str] = os.environ) -> Api:
    """Return the API with its credentials. No request is sent, and nothing is stored."""
    address = settings.resolve(args, environment).address or address_in(environment)
    parts = urlsplit(address)
    if parts.scheme != "https" and (parts.hostname or "") not in LOOPBACK:
        raise UsageError(
            f"The command sends credentials over https:// only, and {address} does not begin with https://."
        )
    if api := with_credentials(address, environment):
        return api
    username, password = (environment.get(f"TF_HTTP_{name}", "") for name in ("USERNAME", "PASSWORD"))
    half = ""
    if username or password:
        missing, found = ("PASSWORD", "USERNAME") if username else ("USERNAME", "PASSWORD")
        half = f" TF_HTTP_{missing} is not set, but TF_HTTP_{found} is."
    raise UsageError(
        f"There are no credentials for {urlsplit(address).netloc} in the environment.{half} "
        f"{how_to_sign_in(address)}. You can also export "
        f"{cloud_config.token_variable(cloud_config.hostname(address))}."
    )


def address_in(environment: Mapping[str, str]) -> str:
    """Return the API's address that Terraform's variables tell; UsageError if they tell none or several."""
    return _of_backend(environment) or _of_tokens(environment)


def with_credentials(address: str, environment: Mapping[str, str]) -> Api | None:
    """Return an API with the environment's credentials for it; None without any."""
    from holdfast.identity.credentials import basic

    username = environment.get("TF_HTTP_USERNAME", "")
    password = environment.get("TF_HTTP_PASSWORD", "")
    if username and password:
        return Api(address, basic(username, password), "TF_HTTP_USERNAME and TF_HTTP_PASSWORD")
    name, token = _tokens(environment).get(cloud_config.hostname(address), ("", ""))
    return Api(address, f"Bearer {token}", name) if token else None


def _of_backend(environment: Mapping[str, str]) -> str | None:
    """Return the API's address from TF_HTTP_ADDRESS; None if the variable's value has no path of a state."""
    value = environment.get("TF_HTTP_ADDRESS", "")
    base, found, _ = value.partition(_STATES)
    if not found:
        return None
    try:
        return rules.address(base)
    except ArgumentTypeError as error:
        raise UsageError(f"TF_HTTP_ADDRESS: {error}") from error


def _of_tokens(environment: Mapping[str, str]) -> str:
    """Return the address of the only host with a Holdfast `TF_TOKEN_…`; UsageError for no host or several."""
    hosts = sorted(host for host, (_, token) in _tokens(environment).items() if _is_of_holdfast(token))
    hosts = [host for host in hosts if host != cloud_config.STAND_IN]
    if len(hosts) == 1:
        try:
            return rules.address(f"https://{hosts[0]}")
        except ArgumentTypeError as error:
            raise UsageError(f"{cloud_config.token_variable(hosts[0])}: {error}") from error
    if hosts:
        raise UsageError(
            f"The environment has TF_TOKEN_… variables for several APIs: {', '.join(hosts)}. Name one with "
            "--address or HOLDFAST_ADDRESS, or store its address in a profile with `holdfast configure "
            "--address URL`."
        )
    if environment.get("HOLDFAST_TEAM"):
        raise NotSetUpError(
            "HOLDFAST_TEAM is not enough here: this command uses no AWS credentials, so it cannot find the "
            "stack of a team. `holdfast login` finds the stack, and exports the API's address. Type these "
            "commands in this order:",
            _LOCAL_STEP,
        )
    raise NotSetUpError("The API's address is not known. Type these commands in this order:", _LOCAL_STEP)


def _tokens(environment: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return host name -> variable and token, for each `TF_TOKEN_…` variable."""
    found = {}
    for variable, value in environment.items():
        if variable.startswith(_TOKEN) and value:
            host = variable.removeprefix(_TOKEN).replace("__", "-").replace("_", ".").lower()
            found[host] = (variable, value)
    return found


def _is_of_holdfast(token: str) -> bool:
    from holdfast.identity import credentials

    parsed = credentials.parse(f"Bearer {token}")
    if not isinstance(parsed, credentials.IdToken):
        return parsed is not None
    from holdfast_cli.api.id_tokens import unverified_claims

    return unverified_claims(parsed) is not None  # a token of HCP Terraform has three parts, too
