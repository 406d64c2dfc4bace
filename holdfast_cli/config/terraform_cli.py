"""Installs the credentials helper of Terraform and OpenTofu: a program, and a block of the CLI configuration.

Both look for the program in one folder, not on the PATH. They read every `*.tfrc` in the folder above, unless
TF_CLI_CONFIG_FILE names a file. https://developer.hashicorp.com/terraform/cli/config/config-file
"""

import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from holdfast import json_object
from holdfast_cli.config import cloud_config
from holdfast_cli.config.backend_config import quote_hcl
from holdfast_cli.errors import CommandError, UsageError

NAME: Final = "holdfast"
_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\\n])*")|#[^\n]*|//[^\n]*|/\*.*?\*/', re.DOTALL)
"""A comment, or a string, which may look like a comment."""
_HELPER: Final = re.compile(r'\bcredentials_helper\b"?[\s:=\[{]*"?([^"\s{]*)')
_NAMING: Final = ("TF_CLI_CONFIG_FILE", "TERRAFORM_CONFIG")
"""The variables that name the only file. The second is an older name of the first, which goes before it."""


def install(environment: Mapping[str, str], arguments: Sequence[str]) -> list[Path]:
    """Write the program and the block, and return their paths.

    UsageError if another helper is configured, because there can be one for the whole machine. Nothing is
    written then.
    """
    folder, block = _folder(environment), _block(arguments)
    own = folder / f"{NAME}.tfrc"
    others = {file: text for file, text in _texts(environment, folder) if file != own}
    helpers = {found: file for file, text in others.items() for found in _HELPER.findall(text)}
    for name in helpers.keys() - {NAME}:
        raise UsageError(
            f"{helpers[name]} already has the credentials helper {name!r}, and Terraform supports only one "
            "helper for all hosts. Remove that `credentials_helper` block first, or use `holdfast run`. "
            "Nothing was changed."
        )
    xdg = Path(environment.get("XDG_CONFIG_HOME") or folder, "opentofu")
    # OpenTofu makes this folder by itself, and reads a `tofurc` in it in any case.
    if not folder.exists() and (hidden := [file.name for file in _settings(xdg)]):
        raise UsageError(
            f"OpenTofu reads {', '.join(hidden)} in {xdg} only while {folder} does not exist, and this "
            f"command would create that folder. First move these files to {folder}. Nothing was changed."
        )
    program = _program(folder)
    command = f'exec {shlex.quote(sys.executable)} -P -m holdfast_cli credentials-helper "$@"'
    _write(program, f"#!/bin/sh\n# Written by `holdfast configure helper`.\n{command}\n", 0o755)
    if variable := _naming(environment):
        if NAME not in helpers:
            raise CommandError(
                f"Wrote {program}, but Terraform does not use it yet. The only CLI configuration that "
                f"Terraform reads is {environment[variable]}, because {variable} names this file. Unset the "
                f"variable and run the command again, or add this line to the file: {block}"
            )
        return [program]
    _write(own, f"# Written by `holdfast configure helper`.\n{block}\n", 0o644)
    return [program, own]


def remove(environment: Mapping[str, str]) -> list[Path]:
    """Remove what `install` wrote, and return the paths of the removed files."""
    folder = _folder(environment)
    removed = []
    for file in (_program(folder), folder / f"{NAME}.tfrc"):
        try:
            file.unlink()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise CommandError(f"{file} cannot be removed: {error.strerror}.") from error
        removed.append(file)
    return removed


def preferred(environment: Mapping[str, str], host: str) -> Iterator[str]:
    """Yield the variable and the files with a token for a host. Terraform then asks no helper."""
    if environment.get(variable := cloud_config.token_variable(host)):
        yield variable
    for file, text in _texts(environment, _folder(environment)):
        with suppress(ValueError, AttributeError):  # it is not JSON
            text = "\n".join(
                f'credentials "{each}"' for each in json_object.parse(text.encode())["credentials"]
            )
        if re.search(rf'\bcredentials\s+"{re.escape(host)}"', text, re.IGNORECASE):
            yield str(file)


def _folder(environment: Mapping[str, str]) -> Path:
    if not environment.get("HOME"):
        raise UsageError(
            "HOME is not set. Set it, because Terraform looks for credentials helpers in a folder below HOME."
        )
    return Path(environment["HOME"], ".terraform.d")


def _naming(environment: Mapping[str, str]) -> str | None:
    return next((variable for variable in _NAMING if environment.get(variable)), None)


def _program(folder: Path) -> Path:
    return folder / "plugins" / f"terraform-credentials-{NAME}"


def _block(arguments: Sequence[str]) -> str:
    return f'credentials_helper "{NAME}" {{ args = [{", ".join(map(quote_hcl, arguments))}] }}'


def _texts(environment: Mapping[str, str], folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file of the CLI configuration, and its text without comments."""
    if variable := _naming(environment):
        files = [Path(environment[variable])]
    else:
        files = [folder.parent / ".terraformrc", folder.parent / ".tofurc"]
        if xdg := environment.get("XDG_CONFIG_HOME"):
            files.append(Path(xdg, "opentofu", "tofurc"))
        files += _settings(folder)
    for file in files:
        try:
            yield file, _COMMENT.sub(r"\1", file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise UsageError(
                f"{file} cannot be read, so it is unknown whether it names another credentials helper. Make "
                "the file readable, in UTF-8, and run the command again."
            ) from error


def _settings(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.tfrc"), *folder.glob("*.tfrc.json")])


def _write(file: Path, text: str, mode: int) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)
    except OSError as error:
        raise CommandError(f"{file} cannot be written: {error.strerror}.") from error
