"""Reads a folder's backend: the block, and the backend that `terraform init` stored.

Terraform uses the stored backend: the block's arguments, overridden by `-backend-config`. If the block was
edited since, Terraform stops. A TF_HTTP_* variable only fills a missing argument (Terraform 1.11.4, run).
`cloud` counts as a backend type. The argument `name` of its inner block `workspaces` is `workspaces.name`.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from holdfast_cli.config import hcl
from holdfast_cli.config.hcl import Item

ARGUMENTS: Final = (
    *("address", "update_method", "lock_address", "lock_method", "unlock_address", "unlock_method"),
    *("username", "password", "client_certificate_pem"),
)
"""The arguments of the `http` backend that a variable can fill and this command checks."""

_SUFFIXES: Final = (".tf", ".tofu", ".tf.json", ".tofu.json")
_OF_TERRAFORM: Final = re.compile(r"\.tf(?=$|\.json$)")
_MAY_HAVE_A_BACKEND: Final = re.compile(r"\b(backend|cloud)\b")


NOTES: Final = "terraform.tfstate"
"""The file in which `init` stores the backend."""


class UnreadableError(Exception):
    """A file cannot be read, or is not HCL or JSON as Terraform expects it. The message names the file."""


@dataclass(frozen=True, slots=True)
class Block:
    """A backend block and its type, such as `http`.

    `arguments` maps each argument with a literal value to text: a list or a map is JSON.
    """

    file: Path
    type: str
    arguments: Mapping[str, str] = field(repr=False)

    @property
    def overrides(self) -> bool:
        """Return whether the block is in an override file."""
        return _is_override(self.file)


@dataclass(frozen=True, slots=True)
class Value:
    """A value that the backend uses, and the value's source for messages. The value may be a secret."""

    text: str = field(repr=False)
    source: str


def data_folder(folder: Path, environment: Mapping[str, str]) -> Path:
    """Return the folder in which `terraform init` stores its data."""
    return folder / (environment.get("TF_DATA_DIR") or ".terraform")


def noted(data: Path) -> Block | None:
    """Return the backend that `init` stored, with the values of `-backend-config`; None before an `init`."""
    path = data / NOTES
    try:
        backend = json.loads(path.read_text(encoding="utf-8")).get("backend")
        return None if backend is None else Block(path, str(backend["type"]), _texts(backend["config"] or {}))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableError(f"{path} cannot be read") from error


def blocks(folder: Path) -> list[Block]:
    """Return the backend blocks of a folder's configuration. The blocks of override files are last.

    If x.tofu and x.tf exist, OpenTofu reads only x.tofu, and Terraform only x.tf. If both files have a block,
    the block of x.tofu is returned.
    """
    files = (path for path in folder.iterdir() if path.name.endswith(_SUFFIXES) and path.is_file())
    found: list[Block] = []
    for path in sorted(files, key=lambda path: (_is_override(path), path.name)):
        try:
            text = path.read_text(encoding="utf-8-sig")
            if _MAY_HAVE_A_BACKEND.search(text):
                is_json = path.suffix == ".json"
                found += _in_json(path, json.loads(text)) if is_json else _in_hcl(path, hcl.parse(text))
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            raise UnreadableError(f"{path} cannot be read") from error
    files_with_one = {block.file.name for block in found}

    def is_shadowed(name: str) -> bool:
        return bool(_OF_TERRAFORM.search(name)) and _OF_TERRAFORM.sub(".tofu", name) in files_with_one

    return [block for block in found if not is_shadowed(block.file.name)]


def _is_override(path: Path) -> bool:
    stem = path.name.partition(".")[0]
    return stem == "override" or stem.endswith("_override")


def _in_hcl(path: Path, items: Iterable[Item]) -> Iterator[Block]:
    for terraform in items:
        for block in terraform.items if terraform.name == "terraform" else ():
            if block.name in ("backend", "cloud"):
                yield Block(path, [*block.labels, block.name][0], _texts(_literals(block)))


def _literals(block: Item) -> dict[str, Any]:
    return {item.name: _literals(item) if item.name == "workspaces" else item.literal for item in block.items}


def _in_json(path: Path, document: Any) -> Iterator[Block]:
    for terraform in _listed(document.get("terraform")):
        for cloud in _listed(terraform.get("cloud")):
            yield Block(path, "cloud", _texts(cloud, hcl.text_of))
        for backend in _listed(terraform.get("backend")):
            for label, arguments in backend.items():
                for block in _listed(arguments):
                    yield Block(path, label, _texts(block, hcl.text_of))


def _listed(value: Any) -> list[Any]:
    """Return the blocks of one name as a list. In JSON, a single block may be an object instead of a list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _texts(values: Mapping[str, Any], text_of: Callable[[str], str | None] = str) -> dict[str, str]:
    """Return the arguments that have a value; `text_of` returns that of a string, None for an expression."""
    texts = {name: _text(value, text_of) for name, value in _flat(values)}
    return {name: text for name, text in texts.items() if text is not None}


def _flat(block: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each argument of a block and of its inner blocks `workspaces`."""
    for name, value in block.items():
        if name != "workspaces":
            yield name, value
            continue
        for inner in _listed(value):
            yield from ((f"{name}.{argument}", of_inner) for argument, of_inner in inner.items())


def _text(value: Any, text_of: Callable[[str], str | None]) -> str | None:
    match value:
        case str():
            return text_of(value)
        case bool():
            return str(value).lower()
        case int() | float():
            return f"{value:g}"
        case [*_] | {} if value:
            return json.dumps(value)
        case _:
            return None
