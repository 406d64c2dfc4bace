"""`holdfast doctor STATE`: check the current folder's configuration, and what its credentials may do."""

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from holdfast import names
from holdfast.errors import InvalidName
from holdfast.identity.credentials import basic
from holdfast.names import StateName
from holdfast_cli.config import backend_config
from holdfast_cli.config.profiles import Settings
from holdfast_cli.doctor import backend_block, cloud_block, state_access
from holdfast_cli.doctor.backend_block import Block, UnreadableError, Value
from holdfast_cli.doctor.checks import attempt
from holdfast_cli.doctor.findings import Finding, note, ok, problem

_ROUTED: Final = re.compile(r"(.*?)/(states|outputs|locks|unlocks)/(.*)")
_METHODS: Final = {"update_method": "POST", "lock_method": "LOCK", "unlock_method": "UNLOCK"}
"""The default HTTP methods of Terraform and OpenTofu."""
_LOCKING: Final = ("lock_address", "unlock_address")
_AT_THE_STATE: Final = {
    "GET": "reads the state",
    "POST": "writes the state",
    "PUT": "writes the state",
    "DELETE": "deletes the state",
}
"""The effect of each method at the address of a state, where LOCK and UNLOCK are for its lock."""
_CREDENTIALS: Final = ("username", "password")
_FLAGS: Final = {
    "-lock=false": "the client acquires no lock, and by default Holdfast refuses a write without a lock",
    "-backend=false": "`init` does not configure the backend",
    "-backend-config": "the option changes the backend at every `init`",
    "-state": "commands such as `state list` read the state from a file",
}


def check(
    folder: Path, state: StateName, where: Settings, environment: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield the findings about a folder, and about the API with the folder's credentials. Nothing is changed.

    If `where` has neither address nor team, the API is that of the backend's address.
    """
    yield from _flags(environment)
    try:
        noted = backend_block.noted(backend_block.data_folder(folder, environment))
        blocks = backend_block.blocks(folder)
    except UnreadableError as error:
        yield problem(
            "backend",
            f"{error}, so the backend is not known.",
            "Check that you may read the file. Then run `terraform validate`, which reports errors in "
            "configurations.",
        )
        return
    block = blocks[-1] if blocks else None
    kind = block or noted
    if kind is None or kind.type not in cloud_block.TYPES:
        yield from _workspace(folder, environment)
    yield from _kind(blocks, noted, state)
    if block is not None and block.type in cloud_block.TYPES:
        yield from cloud_block.check(folder, state, where, environment, block, noted)
        return
    used = [found for found in (noted, block) if found is not None and found.type == "http"]
    if not used or (block is not None and block not in used):
        return
    values = _values(used, environment)
    yield from _differing(block, noted)
    yield from _variables(values, environment)
    yield from _only_in_the_environment(values, state)
    address = values.get("address")
    routed = _ROUTED.fullmatch(address.text.partition("?")[0]) if address else None
    base = yield from cloud_block.base(where, routed[1] if routed else None)
    for argument in ("address", *_LOCKING):
        if argument in values:
            yield _address(argument, values[argument], base, state)
    yield from _missing(values, state)
    yield from _methods(values, state)
    yield from _encryption(values, used)
    yield from _credentials(values, used)
    if base is not None:
        yield from attempt("api", partial(_ask, base, state, values))


# --- beside the backend ---------------------------------------------------------------------------


def _workspace(folder: Path, environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield whether a workspace is selected. The http backend supports only the workspace `default`."""
    says = 'Terraform fails with "workspaces not supported".'
    path = backend_block.data_folder(folder, environment) / "environment"
    try:
        selected = path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        selected = ""
    except (OSError, ValueError):
        yield note("workspace", f"Not checked: {path} cannot be read.")
        return
    named = environment.get("TF_WORKSPACE")  # has precedence, also as `default` (Terraform 1.11.4, run)
    if (named or selected) in ("", "default"):
        yield ok("workspace", "No workspace is selected.")
    elif named:
        yield problem("workspace", f"TF_WORKSPACE is {named}, so {says}", "Unset TF_WORKSPACE.")
    else:
        yield problem("workspace", f"{path} selects the workspace {selected}, so {says}", f"Remove {path}.")


def _flags(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield the options that the environment adds to commands. Values may be secret, and are not shown."""
    for name in sorted(environment):
        if name == "TF_CLI_ARGS" or name.startswith("TF_CLI_ARGS_"):
            words = [word.replace("--", "-", 1) for word in environment[name].split()]
            for flag, effect in _FLAGS.items():
                if any(flag in (word, word.partition("=")[0]) for word in words):
                    if (name, flag) == ("TF_CLI_ARGS_plan", "-lock=false"):
                        continue  # correct for a role that may not lock
                    tell = note if flag == "-backend-config" else problem
                    do = f"Unset {name}, or remove {flag} from it."
                    yield tell("environment", f"{name} has {flag}: {effect}.", do)


# --- the backend ----------------------------------------------------------------------------------


def _kind(blocks: list[Block], noted: Block | None, state: StateName) -> Iterator[Finding]:
    """Yield whether Terraform uses one of Holdfast's backends."""
    found = blocks[-1] if blocks else noted
    if found is None:
        yield problem(
            "backend",
            "No file in this folder has a backend, so Terraform keeps the state in a local file.",
            f"Add the output of `holdfast backend-config {state}` to the configuration, and run `terraform "
            "init`.",
        )
    elif found.type not in ("http", *cloud_block.TYPES):
        yield problem(
            "backend",
            f"{found.file} has the backend {found.type!r}, but Holdfast's API needs 'http', 'cloud' or "
            "'remote'.",
            f"Replace the block with the output of `holdfast backend-config {state}`, and run `terraform "
            "init -migrate-state`, which copies the state.",
        )
    elif not blocks:
        yield problem(
            "backend",
            f"No file in this folder has a backend, but {found.file} has one from an earlier init.",
            "Run the command in the configuration's folder, or add the block to the configuration again.",
        )
    elif len(files := [str(block.file) for block in blocks if not block.overrides]) > 1:
        yield problem(
            "backend",
            f"Terraform accepts only one backend block, but this folder has {len(files)}, in "
            f"{', '.join(dict.fromkeys(files))}.",
            "Keep one of these blocks.",
        )
    else:
        yield ok("backend", f"{found.file} has the backend {found.type!r}.")


def _values(used: list[Block], environment: Mapping[str, str]) -> dict[str, Value]:
    """Return the value of each argument: as `init` stored it, else from the block, else from a variable."""
    values = {}
    for argument in backend_block.ARGUMENTS:
        variable = backend_config.variable(argument)
        texts = [block.arguments[argument] for block in used if argument in block.arguments]
        if texts:
            # The block is named as the source of a noted value if it has the same value.
            source = [block.file for block in used if block.arguments.get(argument) == texts[0]][-1]
            values[argument] = Value(texts[0], str(source))
        elif environment.get(variable):
            values[argument] = Value(environment[variable], variable)
    return values


def _differing(block: Block | None, noted: Block | None) -> Iterator[Finding]:
    """Yield whether the block differs from the backend that `terraform init` stored."""
    if noted is None:
        yield note("backend.init", "`terraform init` has not been run here yet.")
        return
    if noted.type != "http":
        yield problem(
            "backend.init",
            f"{noted.file} has the backend {noted.type!r} of an earlier `init`.",
            cloud_block.afresh(noted)
            if noted.type == "cloud"
            else "Run `terraform init -migrate-state`, which copies the state.",
        )
        return
    written = block.arguments if block is not None else {}
    changed = [argument for argument, value in written.items() if noted.arguments.get(argument) != value]
    if changed:
        yield problem(
            "backend.init",
            f"The block and {noted.file}, which `terraform init` wrote, have different values for "
            f"{', '.join(changed)}. Terraform uses the stored values, or stops with an error if the block "
            "was changed after `init`.",
            "Run `terraform init -reconfigure`, which does not copy the state. If the last `init` had "
            "-backend-config, use the same option again.",
        )
    else:
        yield ok("backend.init", "The block has the values that `terraform init` stored.")


def _variables(values: Mapping[str, Value], environment: Mapping[str, str]) -> Iterator[Finding]:
    """Yield each variable that contradicts a file. Terraform uses the file's value without a warning."""
    for argument, value in values.items():
        variable = backend_config.variable(argument)
        if (environment.get(variable) or value.text) != value.text:
            yield problem(
                "environment",
                f"{variable} contradicts {argument} in {value.source}, which has precedence, so the "
                "variable has no effect here.",
                f"Unset {variable}. To use the variable instead, remove {argument} from the block and from "
                "-backend-config, and run `terraform init -reconfigure`.",
            )


def _only_in_the_environment(values: Mapping[str, Value], state: StateName) -> Iterator[Finding]:
    """Yield whether the state's address comes only from the environment."""
    address = values.get("address")
    if address is not None and address.source == backend_config.variable("address"):
        yield note(
            "environment",
            "Only TF_HTTP_ADDRESS names the state, and Terraform does not store this variable. With another "
            "value, the next command uses another state without a warning.",
            "Use a file for -backend-config instead. "
            f"`holdfast backend-config {state} --tfbackend` prints the content of the file.",
        )


def _address(argument: str, value: Value, base: str | None, state: StateName) -> Finding:
    """Return the finding on whether one of the three addresses is right."""
    check_name = f"backend.{argument}"
    routes = {"address": ("states",), "lock_address": ("locks",), "unlock_address": ("unlocks", "locks")}[
        argument
    ]
    right = f"{base or '<address>'}/{routes[0]}/{state}"
    what = "" if base else " <address> is the output ApiAddress of the team's stack."
    do = f'In the block, write {argument} = "{right}".{what}'
    if value.source == backend_config.variable(argument):
        do = (
            f'Export {value.source}={shlex.quote(right)}, or write {argument} = "{right}" in the backend '
            f"block.{what}"
        )
    elif Path(value.source).name == backend_block.NOTES:
        option = shlex.quote(f"-backend-config={argument}={right}")
        do = (
            f"Run `terraform init -reconfigure {option}`, with the other -backend-config options of the last "
            f"`init`, if it had any.{what}"
        )
    shown = state_access.shown(value.text)
    if not shown:
        return problem(check_name, f"{argument} in {value.source} is not an address.", do)
    said = f"{argument} in {value.source} is {shown}"
    if base is not None and not unquote(shown).startswith(f"{unquote(base)}/"):
        return problem(check_name, f"{said}, but the API is at {base}.", do)
    path = _ROUTED.fullmatch(shown)
    if path is None or (base is not None and unquote(path[1]) != unquote(base)):
        return problem(check_name, f"{said}, but the API does not have this route.", do)
    _, route, name = path.groups()
    if route == "outputs" and argument == "address":
        return problem(
            check_name,
            f"{said}, which returns only the outputs, so a plan would create every resource again.",
            f"{do} The address of the outputs is for the data source terraform_remote_state.",
        )
    if route not in routes:
        return problem(check_name, f"{said}, but it must lead to /{routes[0]}/.", do)
    if unquote(name) != state.value:
        return problem(check_name, f"{said}, which is the state {unquote(name)}, not {state}.", do)
    return ok(check_name, f"{said}.")


def _missing(values: Mapping[str, Value], state: StateName) -> Iterator[Finding]:
    """Yield which address is missing. `_ask` judges a missing lock address, as it depends on the role."""
    if "address" not in values:
        yield problem(
            "backend.address",
            "Neither the backend block nor TF_HTTP_ADDRESS has an address.",
            f"Replace the block with the output of `holdfast backend-config {state}`. If this folder needs "
            "-backend-config, run `terraform init` with this option instead.",
        )
    if "lock_address" in values and "unlock_address" not in values:
        yield problem(
            "backend.unlock_address",
            "There is a lock_address but no unlock_address, so Terraform acquires the lock and never "
            "releases it.",
            f"Replace the block with the output of `holdfast backend-config {state}`.",
        )


def _methods(values: Mapping[str, Value], state: StateName) -> Iterator[Finding]:
    """Yield whether the methods are right. AWS documents that API Gateway passes only the common methods."""
    routes = {name: _route(values[name].text) for name in ("address", *_LOCKING) if name in values}
    right = {
        "update_method": ("POST", "PUT"),
        "lock_method": ("PUT", "POST"),
        "unlock_method": ("DELETE",) if routes.get("unlock_address") == "locks" else ("POST",),
    }
    for argument, default in _METHODS.items():
        address = argument.replace("update_method", "address").replace("_method", "_address")
        if address not in values:
            continue
        value = values.get(argument)
        used, source = (value.text, value.source) if value else (default, "Terraform's default")
        at_the_state = address in _LOCKING and routes[address] == "states"
        if at_the_state and used in _AT_THE_STATE:
            yield problem(
                f"backend.{argument}",
                f"{argument} is {used} ({source}), but {address} is the address of the state itself. There, "
                f"{used} {_AT_THE_STATE[used]}, so the API refuses a {used} request that has lock info.",
                f'In the block, write {argument} = "{right[argument][0]}", with the {address} that '
                f"`holdfast backend-config {state}` prints.",
            )
        elif used in right[argument] and not at_the_state:
            yield ok(f"backend.{argument}", f"{argument} is {used}.")
        else:
            why = (
                "AWS does not document that API Gateway forwards requests with this method"
                if used == default
                else "The API does not accept this method at this address"
            )
            yield problem(
                f"backend.{argument}",
                f"{argument} is {used} ({source}). {why}.",
                f'In the block, write {argument} = "{right[argument][0]}".',
            )
    if routes.get("unlock_address") == "locks":
        yield note(
            "backend.unlock_address",
            "unlock_address leads to /locks/. Holdfast supports this address, but AWS does not document that "
            "API Gateway forwards the body of a DELETE request.",
            f"Use the block that `holdfast backend-config {state}` prints, which sends POST to /unlocks/.",
        )


def _route(address: str) -> str:
    """Return the route to which an address leads, such as `states`; empty if the API does not have it."""
    path = _ROUTED.fullmatch(state_access.shown(address))
    return path[2] if path else ""


def _encryption(values: Mapping[str, Value], used: list[Block]) -> Iterator[Finding]:
    """Yield whether others can read credentials and states in transit."""
    for argument in ("address", *_LOCKING):
        if argument in values and state_access.is_unencrypted(values[argument].text):
            yield problem(
                "backend.encryption",
                f"{argument} in {values[argument].source} begins with http://, so others on the network can "
                "read credentials and states.",
                "Write https://.",
            )
    trusting = [str(block.file) for block in used if block.arguments.get("skip_cert_verification") == "true"]
    if trusting:
        yield problem(
            "backend.encryption",
            f"skip_cert_verification is true in {', '.join(trusting)}, so another server could pretend to be "
            "the API and receive the credentials.",
            "Remove skip_cert_verification. If `init` was run with this setting, run `terraform init "
            "-reconfigure`.",
        )


def _credentials(values: Mapping[str, Value], used: list[Block]) -> Iterator[Finding]:
    """Yield whether credentials exist and whether files contain them. No finding shows their values."""
    missing = [argument for argument in _CREDENTIALS if argument not in values]
    if missing:
        yield problem(
            "credentials",
            f"Neither the backend nor the environment has a {' or a '.join(missing)}.",
            "Export a token's ID as TF_HTTP_USERNAME and its secret as TF_HTTP_PASSWORD, or sign in with "
            '`eval "$(holdfast login)"`.',
        )
    else:
        sources = ", ".join(dict.fromkeys(values[argument].source for argument in _CREDENTIALS))
        yield ok("credentials", f"Credentials found in {sources}.")
    for block in used:
        texts = [value for name, value in block.arguments.items() if name.endswith("address")]
        in_address = any("@" in text.partition("//")[2].partition("/")[0] for text in texts)
        if in_address or "password" in block.arguments:
            yield problem(
                "credentials.plain_text",
                f"{block.file} has credentials in plain text.",
                "Remove them from the block and from -backend-config, and export TF_HTTP_USERNAME and "
                "TF_HTTP_PASSWORD. If `terraform init` was run with them, run `terraform init -reconfigure`. "
                "Then replace the token, because others may have read it.",
            )


def _ask(base: str, state: StateName, values: Mapping[str, Value]) -> Iterator[Finding]:
    """Yield the findings about the API, and about the access that it grants to the credentials."""
    if "client_certificate_pem" in values:
        yield note("api", "Not checked: the backend has a client certificate, and this command sends none.")
        return
    authorization = None
    if all(argument in values for argument in _CREDENTIALS):
        authorization = basic(values["username"].text, values["password"].text)
    locks = _locked_state(base, values["lock_address"].text, state) if "lock_address" in values else None
    yield from state_access.check(base, state, authorization, locks=locks, discovers=False)


def _locked_state(base: str, lock_address: str, state: StateName) -> StateName:
    """Return the state whose lock is at an address; `state` if it is no lock of this API."""
    path = _ROUTED.fullmatch(state_access.shown(lock_address))
    if path and (unquote(path[1]), path[2]) == (unquote(base), "locks"):
        with suppress(InvalidName):
            return names.parse_no_probe(unquote(path[3]))
    return state
