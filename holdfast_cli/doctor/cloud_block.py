"""`holdfast doctor STATE` for a `cloud` or `backend "remote"` block: checks state, hostname and credentials.

Both blocks have the same arguments. TF_CLOUD_HOSTNAME and TF_CLOUD_ORGANIZATION fill missing arguments of a
`cloud` block. If the block names no workspace, TF_WORKSPACE or `workspace select` does (OpenTofu 1.12, read).
"""

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from holdfast.cloud.names import state_name
from holdfast.errors import InvalidName
from holdfast.names import StateName
from holdfast_cli.bucket import stack
from holdfast_cli.config import backend_config, cloud_config
from holdfast_cli.config.profiles import Settings
from holdfast_cli.doctor import backend_block, state_access
from holdfast_cli.doctor.backend_block import Block, Value
from holdfast_cli.doctor.checks import attempt
from holdfast_cli.doctor.findings import Finding, note, ok, problem
from holdfast_cli.errors import CommandError, UsageError

TYPES: Final = ("cloud", "remote")
"""The types of blocks that find the API by a hostname."""

_VARIABLES: Final = {"hostname": "TF_CLOUD_HOSTNAME", "organization": "TF_CLOUD_ORGANIZATION"}
_PREFIX: Final = "TF_TOKEN_"


@dataclass(frozen=True, slots=True)
class _Configuration:
    """The arguments that Terraform uses.

    Attributes:
        workspace: the workspace's name in the organization; None before a workspace is selected.
        prefix: what the block puts before the name of the selected workspace.
        clash: a sentence about contradictory workspace names; empty if no names contradict each other.
    """

    hostname: Value | None
    organization: Value | None
    workspace: Value | None
    prefix: str
    clash: str


def check(
    folder: Path,
    state: StateName,
    where: Settings,
    environment: Mapping[str, str],
    block: Block,
    noted: Block | None,
) -> Iterator[Finding]:
    """Yield the findings about a folder with a block of `TYPES`, and about the API. Nothing is changed.

    If `where` has neither address nor team, the API is found by the block's hostname.
    """
    try:
        organization, workspace = cloud_config.workspace_of(state)
    except UsageError as error:
        yield problem(
            "backend.workspace",
            str(error),
            "To keep the name, replace the block with the output of `holdfast backend-config "
            f"{state}`, without --cloud.",
        )
        return
    yield _initialized(block, noted)
    used = _used(folder, environment, block, noted)
    named = used.hostname is not None and used.hostname.text != cloud_config.STAND_IN
    api = yield from base(where, f"https://{used.hostname.text}" if used.hostname and named else None)
    yield _hostname(used, api)
    yield _workspace(used, state, organization, workspace)
    token = _token(used, environment, block)
    yield from _credentials(used, token, block)
    if api is not None:
        authorization = f"Bearer {token.text}" if token else None
        ask = partial(state_access.check, api, state, authorization, locks=state, discovers=True)
        yield from attempt("api", ask)


def _initialized(block: Block, noted: Block | None) -> Finding:
    """Return the finding on whether `terraform init` was run with this block."""
    if noted is None:
        return note("backend.init", "`terraform init` has not been run here yet.")
    if noted.type != block.type:
        migrate = "" if block.type == "cloud" else " -migrate-state"
        return problem(
            "backend.init",
            f"{noted.file} has the backend {noted.type!r} of an earlier `init`.",
            afresh(noted)
            if noted.type in ("http", *TYPES)
            else f"Run `terraform init{migrate}`, which copies the state.",
        )
    arguments = ("hostname", "organization", "workspaces.name", "workspaces.prefix")
    written = {argument: block.arguments[argument] for argument in arguments if argument in block.arguments}
    changed = [argument for argument, value in written.items() if noted.arguments.get(argument) != value]
    if changed:
        return problem(
            "backend.init",
            (
                f"The block and {noted.file}, which `terraform init` wrote, have different values for "
                f"{', '.join(changed)}."
            ),
            f"Run `terraform init{'' if block.type == 'cloud' else ' -reconfigure'}`.",
        )
    return ok("backend.init", "The block has the values that `terraform init` stored.")


def afresh(noted: Block) -> str:
    """Return the advice if Terraform cannot copy the state from a backend, or if both have the same state."""
    return (
        "Unless the state is already in Holdfast, copy it as docs/start/moving.md says. Then remove "
        f"{noted.file.parent}, and run `terraform init`."
    )


def _used(folder: Path, environment: Mapping[str, str], block: Block, noted: Block | None) -> _Configuration:
    """Return the arguments that Terraform uses: from the block, else from `noted`, else from a variable."""
    blocks = [block, noted] if noted is not None and noted.type == block.type else [block]

    def argument(name: str) -> Value | None:
        for one in blocks:
            if one.arguments.get(name):
                return Value(one.arguments[name], str(one.file))
        variable = _VARIABLES.get(name, "") if block.type == "cloud" else ""
        return Value(environment[variable], variable) if environment.get(variable) else None

    selected = _selected(folder, environment)
    name, prefix = argument("workspaces.name"), argument("workspaces.prefix")
    clash = ""
    if name is not None:
        if selected is not None and selected.source == "TF_WORKSPACE" and selected.text != name.text:
            clash = f"TF_WORKSPACE is {selected.text}, but the block selects the workspace {name.text}"
        workspace: Value | None = name
    elif prefix is not None and selected is not None:
        workspace = Value(prefix.text + selected.text, selected.source)
    else:
        workspace = selected
    put_before = prefix.text if prefix is not None and name is None else ""
    return _Configuration(argument("hostname"), argument("organization"), workspace, put_before, clash)


def _selected(folder: Path, environment: Mapping[str, str]) -> Value | None:
    """Return the selected workspace; None for `default`, which is no workspace of these blocks."""
    path = backend_block.data_folder(folder, environment) / "environment"
    if environment.get("TF_WORKSPACE"):
        found = Value(environment["TF_WORKSPACE"], "TF_WORKSPACE")
    else:
        try:
            found = Value(path.read_text(encoding="utf-8").strip(), str(path))
        except (OSError, ValueError):
            return None
    return None if found.text in ("", "default") else found


def base(where: Settings, written: str | None) -> Generator[Finding, None, str | None]:
    """Return the base URL of the API that should have the state; None if a finding says why it is unknown.

    `written` is the API's address in the configuration; None if the configuration has no address.
    """
    try:
        if where.address is not None or where.team is not None:
            return state_access.shown(stack.api_address(where))
        if written is not None:
            return state_access.shown(backend_config.check_address(written))
        yield note("api", "Not checked: the API's address is not known.", "Name the API with --address.")
    except CommandError as error:
        yield problem("api", str(error), "Name the API with --address.")
    except ValueError as error:
        yield problem("api", f"The API's address is not valid: {error}.", "Name the API with --address.")
    return None


def _hostname(used: _Configuration, base: str | None) -> Finding:
    """Return the finding on whether the hostname is the API's."""
    right = cloud_config.hostname(base) if base else ""
    do = (
        f'In the block, write hostname = "{right}".'
        if right
        else "Run this command again with --address and the API's URL. The command then prints the hostname."
    )
    if used.hostname is None:
        return problem(
            "backend.hostname", "The block has no hostname, so Terraform does not use Holdfast.", do
        )
    said = f"hostname in {used.hostname.source} is {used.hostname.text}"
    if base is not None and used.hostname.text.lower() not in (right, urlsplit(base).netloc):
        return problem("backend.hostname", f"{said}, but the API is at {base}.", do)
    return ok("backend.hostname", f"{said}.")


def _workspace(used: _Configuration, state: StateName, organization: str, workspace: str) -> Finding:
    """Return the finding on whether organization and workspace are those of the state."""
    do = (
        f'In the block, write organization = "{organization}" and the workspace "{workspace}". '
        f"`holdfast backend-config {state} --cloud` prints the block."
    )
    if used.clash:
        return problem("backend.workspace", f"{used.clash}.", "Unset TF_WORKSPACE.")
    if used.organization is None:
        return problem("backend.workspace", "The block has no organization.", do)
    if used.workspace is None and workspace.startswith(used.prefix):
        return note(
            "backend.workspace",
            "No workspace is selected yet.",
            f"Run `terraform workspace select -or-create {workspace.removeprefix(used.prefix)}`.",
        )
    if used.workspace is None:
        return note(
            "backend.workspace",
            f"The block has the prefix {used.prefix}, so no workspace of the block is the state {state}.",
            do,
        )
    said = f"The workspace {used.workspace.text} of {used.organization.text}"
    try:
        found = state_name(used.organization.text, used.workspace.text)
    except InvalidName as error:
        return problem("backend.workspace", f"{said} cannot be a state. {error.message}", do)
    if found != state:
        return problem("backend.workspace", f"{said} is the state {found}, not {state}.", do)
    return ok("backend.workspace", f"{said} is the state {state}.")


def _token(used: _Configuration, environment: Mapping[str, str], block: Block) -> Value | None:
    """Return the token for the host from a variable, else from the block; None if neither has a token."""
    host = used.hostname.text.lower() if used.hostname else ""
    for variable, value in environment.items():
        name = variable.removeprefix(_PREFIX).replace("__", "-").replace("_", ".").lower()
        if variable.startswith(_PREFIX) and value and name == host:
            return Value(value, variable)
    token = block.arguments.get("token")
    return Value(token, str(block.file)) if token else None


def _credentials(used: _Configuration, token: Value | None, block: Block) -> Iterator[Finding]:
    """Yield whether a token exists and whether the configuration contains it. No finding shows the token."""
    if token is not None:
        yield ok("credentials", f"Token found in {token.source}.")
    elif used.hostname is not None:
        yield note(
            "credentials",
            f"{cloud_config.token_variable(used.hostname.text)} is not set. This command did not "
            "look for a token in the CLI configuration, so it did not try the API with a token.",
            "If Terraform has no token for this host, export what `holdfast token create` or `holdfast "
            "login` prints, or run `holdfast configure helper`.",
        )
    if block.arguments.get("token"):
        yield problem(
            "credentials.plain_text",
            f"{block.file} has a token in plain text.",
            "Remove the token from the block. Replace the token, because others may have read it, and export "
            "the new token.",
        )
