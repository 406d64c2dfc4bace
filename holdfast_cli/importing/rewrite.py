"""Changes the configurations whose states have moved: `backend`, `cloud`, and Terragrunt's `remote_state`.

A block of another source stays as it is. If people have to decide, the block stays too, and a note says why.
"""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from itertools import groupby
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from holdfast.cloud.names import organization_and_workspace
from holdfast.names import StateName
from holdfast_cli.config import backend_config, cloud_config, hcl
from holdfast_cli.config.hcl import Item, NotHclError
from holdfast_cli.errors import CommandError
from holdfast_cli.importing import layout
from holdfast_cli.importing.layout import DEFAULT
from holdfast_cli.importing.sources import Kind
from holdfast_cli.terminal.output import some

_TYPES: Final[Mapping[Kind, tuple[str, ...]]] = {
    "s3": ("s3",),
    "http": ("http",),
    "gitlab": ("http",),
    "hcp": ("cloud", "remote"),
}
"""The types of the blocks by which clients reach each kind of source."""

_SKIPPED: Final = frozenset({".git", ".terraform", ".terragrunt-cache"})
_SUFFIXES: Final = (".tf", ".tofu", ".tf.json", ".tofu.json", ".hcl")
_MAY_MATTER: Final = re.compile(r"\b(backend|cloud|remote_state)\b")
_GITLAB: Final = re.compile(r"/api/v4/projects/([^/]+)/terraform/state/([^/]+)")
_RELATIVE: Final = re.compile(r'"([^"$%\\]*)(\$\{\s*path_relative_to_include\([^()]*\)\s*\})([^"$%\\]*)"')
"""A text with the path of a Terragrunt unit, and nothing else that is evaluated."""

_WORKSPACE: Final = re.compile(r"^(?![ \t]*(?:#|//)).*\bterraform\.workspace\b", re.MULTILINE)
"""A line with a use of it, which is no comment."""

_SHOWN: Final = 3
_HCP: Final = "app.terraform.io"
_BY_HAND: Final = "change the block by hand. `holdfast backend-config STATE` prints the new arguments."


@dataclass(frozen=True, slots=True)
class Moved:
    """The states of a source that have moved to Holdfast.

    Attributes:
        address: the source's address, such as `s3://bucket/prefix`.
        states: the new name of each state, by its identifier in the source.
        api: the API's base URL, without a trailing slash.
        folder: the folder of workspaces in a bucket.
        tags: the tags of the states that became workspaces.
        left: the identifiers of states without a new name.
    """

    kind: Kind
    address: str
    states: Mapping[str, StateName]
    api: str
    folder: str = "env:"
    tags: Mapping[StateName, Collection[str]] = field(default_factory=dict)
    left: Collection[str] = ()

    @property
    def place(self) -> tuple[str, str]:
        """Return the bucket or the host of the address, and the path in it."""
        parts = urlsplit(self.address)
        return parts.netloc, parts.path.strip("/")


@dataclass(frozen=True, slots=True)
class Note:
    """The place of a block that stays, and what people have to do there."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


class _ByHandError(Exception):
    """People have to change a block. The message says why, and to what."""


@dataclass(frozen=True, slots=True)
class _Edit:
    """A change of a text. `main` is the new name of the workspace `default`, if the change gives it one."""

    start: int
    end: int
    new: str = field(repr=False)
    main: str = ""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """The new text of a file, and the notes on what stays.

    `main` is the new name of the workspace `default`, if a block of the file gives it one.
    """

    text: str
    notes: list[Note] = field(default_factory=list)
    main: str = ""


def rewrite_folder(folder: Path, moved: Moved) -> tuple[str, list[Note]]:
    """Return a diff of the configurations below a folder, with paths relative to it, and the notes.

    CommandError if a folder cannot be read.
    """
    diffs: list[str] = []
    notes: list[Note] = []
    for _, paths in groupby(_files(folder), lambda path: path.parent):
        texts: dict[str, str] = {}
        mains: set[str] = set()
        for path in paths:
            name = path.relative_to(folder).as_posix()
            try:
                texts[name] = path.read_bytes().decode()
            except (OSError, ValueError):
                notes.append(Note(name, 1, "the file cannot be read, or is not UTF-8."))
                continue
            after = rewrite(name, texts[name], moved)
            diffs += _diff(name, texts[name], after.text)
            notes += after.notes
            mains.add(after.main)
        for main in mains - {""}:
            for name, text in texts.items():
                notes += _uses_of_workspace(name, text, main)
    return "".join(diffs), notes


def rewrite(file: str, text: str, moved: Moved) -> Rewritten:
    """Lead the blocks of a file to the new names of their states."""
    edits: list[_Edit] = []
    notes: list[Note] = []

    def note(position: int, why: object) -> None:
        notes.append(Note(file, _line(text, position), str(why)))

    if not _MAY_MATTER.search(text):
        return Rewritten(text)
    if file.endswith(".json"):
        for found in _in_text(moved).finditer(text if moved.api not in text else ""):
            note(found.start(), f"a backend in JSON: {_BY_HAND}")
        return Rewritten(text, notes)
    try:
        items = hcl.parse(text)
    except (NotHclError, RecursionError):
        note(
            0,
            (
                "the file cannot be parsed: `terraform fmt` says what is wrong. If it reports no error, "
                f"{_BY_HAND}"
            ),
        )
        return Rewritten(text, notes)
    for block in _blocks(items):
        try:
            edits += _edits(text, block, moved)
        except _ByHandError as why:
            note(block.start, why)
    new = text
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        new = new[: edit.start] + edit.new + new[edit.end :]
    return Rewritten(new, notes, next((edit.main for edit in edits if edit.main), ""))


def _uses_of_workspace(file: str, text: str, main: str) -> Iterator[Note]:
    for found in _WORKSPACE.finditer(text):
        yield Note(
            file,
            _line(text, found.end()),
            f"terraform.workspace is now '{main}', not '{DEFAULT}'. To keep its old value, write "
            f'(terraform.workspace == "{main}" ? "{DEFAULT}" : terraform.workspace).',
        )


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


# --- files ------------------------------------------------------------------------------------------


def _files(folder: Path) -> Iterator[Path]:
    def fail(error: OSError) -> None:
        raise CommandError(f"The folder {error.filename} cannot be read: {error.strerror}.") from error

    for root, folders, names in os.walk(folder, onerror=fail):
        folders[:] = sorted(set(folders) - _SKIPPED)
        for path in (Path(root, name) for name in sorted(names)):
            is_read = path.name.endswith(_SUFFIXES) and not path.name.endswith(".lock.hcl")
            if is_read and path.is_file() and not path.is_symlink():
                yield path


def _diff(name: str, before: str, after: str) -> Iterator[str]:
    import difflib  # the help does without

    old, new = (StringIO(text, newline="\n").readlines() for text in (before, after))
    # `patch` and `git apply` read a name with spaces up to a tab.
    date = "\t" if " " in name else ""
    for line in difflib.unified_diff(old, new, f"a/{name}{date}", f"b/{name}{date}"):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _in_text(moved: Moved) -> re.Pattern[str]:
    """Return a pattern for backends of the source's type in JSON, and in a text that becomes a file."""
    types = "|".join(_TYPES[moved.kind])
    cloud = r'|\bcloud"?[\s:]*[{\[]' if moved.kind == "hcp" else ""
    return re.compile(rf'\bbackend"?[\s:{{\[]*\\?"({types})\\?"{cloud}')


# --- blocks -----------------------------------------------------------------------------------------


def _blocks(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the blocks that may lead to a state."""
    for item in items:
        if item.name == "terraform":
            yield from (inner for inner in item.items if inner.name in ("backend", "cloud"))
        elif item.name in ("remote_state", "generate") or item.labels[:1] == ("terraform_remote_state",):
            yield item


def _edits(text: str, block: Item, moved: Moved) -> list[_Edit]:
    """Return the changes to a block: no change if the block leads to another source."""
    match block.name:
        case "backend" | "cloud":
            type_ = [*block.labels, block.name][0]
            if type_ in _TYPES[moved.kind]:
                return _of_block(text, block, moved)
        case "remote_state":
            if config := _config(block, moved):
                return _of_terragrunt(text, block, config, moved)
        case "generate":
            contents = block.find("contents")
            if contents and moved.api not in contents.value and _in_text(moved).search(contents.value):
                raise _ByHandError(
                    "the block writes a file with a backend: change `contents` by hand. `holdfast "
                    "backend-config STATE` prints the new backend."
                )
        case _:
            config = _config(block, moved)
            if config and (found := _read_states(block, config, moved)):
                [name, *others] = found.values()
                raise _ByHandError(
                    f"the block reads one of the old states, which are now {_shown(found)}. Replace it with "
                    "the output of `holdfast backend-config STATE --outputs` for that state."
                    if others
                    else f"the block reads the old state, which is now {name}. Replace it with the output of "
                    f"`holdfast backend-config {name} --outputs`."
                )
    return []


def _read_states(block: Item, config: Item, moved: Moved) -> dict[str, StateName]:
    """Return the states that a data source may read: one, unless an expression chooses the workspace."""
    found = _states(config, moved)
    chosen = block.find("workspace")
    workspaces = config.find("workspaces") if moved.kind == "hcp" else None
    if (
        not found
        or (workspaces and workspaces.find("name"))
        or (chosen and not isinstance(chosen.literal, str))
    ):
        return found
    workspace = str(chosen.literal) if chosen else DEFAULT
    if workspaces and workspaces.find("prefix"):
        workspace = f"{_text(workspaces, 'prefix')}{workspace}"
    if workspace in found:
        return {workspace: found[workspace]}
    raise _ByHandError(
        f"the plan has no state of the workspace {workspace}. For this block, the plan has {_shown(found)}. "
        f"First import the state of the workspace {workspace} with a plan, or leave the block as it is."
    )


def _config(block: Item, moved: Moved) -> Item | None:
    """Return the arguments of a `remote_state` or a data source; None if its backend is of another type."""
    if _text(block, "backend") not in _TYPES[moved.kind]:
        return None
    config = block.find("config")
    if config is None or not config.items:
        raise _ByHandError(f"the config of the block is not an object: {_BY_HAND}")
    return config


def _of_block(text: str, block: Item, moved: Moved) -> list[_Edit]:
    found = _states(block, moved)
    if not found:
        return []
    if moved.kind == "hcp":
        return _of_cloud(text, block, found, moved.api)
    if set(found) == {DEFAULT}:
        new = backend_config.to_hcl(moved.api, found[DEFAULT], read_only=False)
        return [_Edit(block.start, block.end, _indented(text, block.start, _inner(new)))]
    [name, *others] = found.values()
    places = {old: organization_and_workspace(new_name) or ("", "") for old, new_name in found.items()}
    organization = places[min(places)][0]
    keeps_names = all(
        group == organization and workspace != DEFAULT and old in (workspace, DEFAULT)
        for old, (group, workspace) in places.items()
    )
    tags = set.intersection(*(set(moved.tags.get(of, ())) for of in found.values())) if others else ()
    if not organization or not keeps_names or (others and not tags):
        example = next(old for old in found if old != DEFAULT)
        main = f", and the workspace '{DEFAULT}' gets another name" if DEFAULT in found else ""
        replace = (
            f", or replace the block with the output of `holdfast backend-config {name} --cloud`. For "
            "several workspaces, use --tags"
            if organization_and_workspace(name)
            else ""
        )
        raise _ByHandError(
            f"the workspaces of the block are now {_shown(found)}. `cloud` keeps their names only if each "
            f"new name has two segments, such as a-b/{example}{main}. Make a plan with such names{replace}."
        )
    lines = _inner(cloud_config.to_hcl(moved.api, name, tags=sorted(tags), remote=False))
    main = places[DEFAULT][1] if DEFAULT in found else ""
    if main:
        said = (
            f"  # The workspace `{DEFAULT}` is now `{main}`, also for terraform.workspace and TF_WORKSPACE."
        )
        lines.insert(-1, said)
    return [_Edit(block.start, block.end, _indented(text, block.start, lines), main)]


def _inner(block: str) -> list[str]:
    """Return the lines within a `terraform` block."""
    lines = block.split("\n")
    return [line[2:] for line in lines[1 : lines.index("}")]]


def _of_cloud(text: str, block: Item, found: Mapping[str, StateName], api: str) -> list[_Edit]:
    """Return the changes to the values of a `cloud` or a `backend "remote"`."""
    workspaces, organization = block.find("workspaces"), block.find("organization")
    name = workspaces.find("name") if workspaces else None
    places = [(old, organization_and_workspace(new) or ("", "")) for old, new in found.items()]
    group, workspace = places[0][1]
    keeps_names = all(place == (group, old) for old, place in places)
    if not group or not (name or keeps_names):
        raise _ByHandError(
            f"the workspaces of the block are now {_shown(found)}. A state that `cloud` uses must have a "
            "name with a '/'. If the block does not name a single workspace, the first segments of the new "
            "names must be the same, and the rest must be the old names of the workspaces. Make a plan with "
            "such names."
        )
    if "\n" not in block.value:
        raise _ByHandError(f"the block is on one line: {_BY_HAND}")
    if workspaces and workspaces.find("project"):
        raise _ByHandError("Holdfast has no projects: remove `project`, and repeat this command.")
    hostname, token = block.find("hostname"), block.find("token")
    host = backend_config.quote_hcl(cloud_config.hostname(api))
    edits = [_Edit(hostname.value_start, hostname.end, host)] if hostname else []
    for item, value in ((organization, group), (name, workspace)):
        if item:
            edits.append(_Edit(item.value_start, item.end, backend_config.quote_hcl(value)))
    if token:
        edits.append(_Edit(token.start, token.end, "# The token comes from the environment."))
    if organization and not hostname:
        at = organization.start
        edits.append(_Edit(at, at, f"hostname     = {host}{_indent(text, at)}"))
    return edits


def _of_terragrunt(text: str, block: Item, config: Item, moved: Moved) -> list[_Edit]:
    """Return the changes to `backend` and `config` of a `remote_state`."""
    argument = config.find({"s3": "key", "http": "address"}.get(moved.kind, ""))
    relative = _RELATIVE.fullmatch(argument.value) if argument else None
    found = _by_path(config, relative, moved) if relative else _states(config, moved)
    if not found:
        return []
    if moved.kind == "hcp" or (not relative and set(found) != {DEFAULT}):
        raise _ByHandError(f"the states of the block are now {_shown(found)}: {_BY_HAND}")
    [name, *_] = found.values()
    arguments = backend_config.to_tfbackend(moved.api, name, read_only=False)
    if relative:
        before, after = _around(found)
        arguments = arguments.replace(f'/{name}"', f'/{before}{relative[2]}{after}"')
    lines = ["{", *(f"  {line}" for line in arguments.split("\n")), "}"]
    new = {"backend": '"http"', "config": _indented(text, config.start, lines)}
    return [_Edit(item.value_start, item.end, new[item.name]) for item in block.items if item.name in new]


def _indent(text: str, position: int) -> str:
    """Return the line end of a text, and the indentation of the line at a position."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return ("\r\n" if "\r\n" in text else "\n") + line[: len(line) - len(line.lstrip())]


def _indented(text: str, position: int, lines: Sequence[str]) -> str:
    """Join lines that begin at a position of a text, as the text is indented there."""
    indent = _indent(text, position)
    return "".join(f"{indent}{line}" if line else indent.rstrip(" \t") for line in lines).removeprefix(indent)


def _shown(states: Mapping[str, StateName]) -> str:
    """Return states for a message, with their workspaces or paths."""
    if set(states) == {DEFAULT}:
        return str(states[DEFAULT])
    return some([f"{name} ({old})" for old, name in states.items()], _SHOWN)


# --- states -----------------------------------------------------------------------------------------


def _text(body: Item, argument: str) -> str:
    item = body.find(argument)
    if item is None:
        raise _ByHandError(
            f"the {argument} is not in the block. If -backend-config or a variable adds it, write an empty "
            'backend "http" block, and a file for each state with the output of `holdfast backend-config '
            "STATE --tfbackend`."
        )
    literal = item.literal
    if not isinstance(literal, str):
        raise _ByHandError(f"the {argument} is an expression, which is not evaluated: {_BY_HAND}")
    return literal


def _states(body: Item, moved: Moved) -> dict[str, StateName]:
    """Return the states that arguments name, by workspace; no state if they name another source."""
    match moved.kind:
        case "s3":
            return _of_bucket(body, moved)
        case "http" | "gitlab":
            return _at_address(_text(body, "address"), moved)
        case "hcp":
            return _of_organization(body, moved)


def _of_bucket(body: Item, moved: Moved) -> dict[str, StateName]:
    bucket, prefix = moved.place
    if _text(body, "bucket") != bucket:
        return {}
    key = _text(body, "key")
    if prefix and not f"{key}/".startswith(f"{prefix}/"):
        return {}
    folder = body.find("workspace_key_prefix")
    if (folder.literal if folder else "env:") != moved.folder:
        raise _ByHandError(
            f"the workspace_key_prefix of the block is not '{moved.folder}', which is that of the plan. Make "
            "a plan with the workspace_key_prefix of the block."
        )
    of_key = layout.of_configuration(moved.folder, key)
    if left := [id_ for id_ in moved.left if of_key.fullmatch(id_)]:
        raise _ByHandError(f"the plan has no name for {left[0]}: write a name in the plan, or {_BY_HAND}")
    matches = [(of_key.fullmatch(id_), name) for id_, name in moved.states.items()]
    return {at[1] or DEFAULT: name for at, name in matches if at} or _unknown(f"the key {key}")


def _at_address(address: str, moved: Moved) -> dict[str, StateName]:
    host = urlsplit(address).netloc
    hosts = {moved.place[0]} if moved.kind == "gitlab" else {urlsplit(id_).netloc for id_ in moved.states}
    if address.startswith(f"{moved.api}/") or host not in hosts:
        return {}
    id_ = address
    if moved.kind == "gitlab":
        at = _GITLAB.fullmatch(urlsplit(address).path)
        if at is None:
            return {}
        project, state = unquote(at[1]), unquote(at[2])
        if project.isdecimal():
            named = [f"{name} ({old})" for old, name in moved.states.items() if old.endswith(f"#{state}")]
            raise _ByHandError(
                f"the address in the block has the project ID {project}, but the plan has project paths. "
                f"The state may be {', '.join(named) or 'a state outside the plan'}: {_BY_HAND}"
            )
        id_ = f"{project}#{state}"
    return {DEFAULT: moved.states[id_]} if id_ in moved.states else _unknown(id_)


def _of_organization(body: Item, moved: Moved) -> dict[str, StateName]:
    host, organization = moved.place
    hostname = _text(body, "hostname") if body.find("hostname") or host != _HCP else _HCP
    if hostname.lower() != host or _text(body, "organization") != organization:
        return {}
    workspaces = body.find("workspaces")
    if workspaces and workspaces.find("name"):
        name = _text(workspaces, "name")
        return {name: moved.states[name]} if name in moved.states else _unknown(f"the workspace {name}")
    prefix = _text(workspaces, "prefix") if workspaces and workspaces.find("prefix") else ""
    found = {old: name for old, name in moved.states.items() if old.startswith(prefix)}
    return found or _unknown(f"a workspace {prefix}*")


def _by_path(config: Item, relative: re.Match[str], moved: Moved) -> dict[str, StateName]:
    """Return the states that an expression names, by the path of their unit."""
    before, after = relative[1], relative[3]
    if moved.kind == "s3" and _text(config, "bucket") != moved.place[0]:
        return {}
    if moved.kind == "http" and urlsplit(before).netloc not in {urlsplit(old).netloc for old in moved.states}:
        return {}
    # The path of a unit with workspaces begins with the workspace here, so no expression gives its name.
    workspace = layout.path_of_workspaces(moved.folder)
    of_unit = re.compile(f"({workspace})?{re.escape(before)}(.+){re.escape(after)}")
    matches = [(of_unit.fullmatch(id_), name) for id_, name in moved.states.items()]
    found = {f"{at[1] or ''}{at[3]}": name for at, name in matches if at}
    return found or _unknown(f"an address such as {relative[0]}")


def _around(states: Mapping[str, StateName]) -> tuple[str, str]:
    """Return what all names have before and after the paths of their units."""
    common: set[tuple[str, str]] | None = None
    for unit, name in states.items():
        places = re.finditer(rf"(?<![^/]){re.escape(unit)}(?![^/])", name.value)
        around = {(name.value[: at.start()], name.value[at.end() :]) for at in places}
        common = around if common is None else common & around
    if common is None or len(common) != 1:
        raise _ByHandError(
            "one address with `path_relative_to_include()` cannot give all new names, which are "
            f"{_shown(states)}: {_BY_HAND}"
        )
    return common.pop()


def _unknown(state: str) -> dict[str, StateName]:
    raise _ByHandError(
        f"the plan does not import the state of this block ({state}). Import that state with a plan first, "
        "or leave the block as it is."
    )
