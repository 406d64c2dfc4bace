"""The table of checks in `doctor.md`: what each mode of `holdfast doctor` looks at, from its code."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tests.support.pages import page

PATH: Final = page("doctor.md")
TABLE: Final = re.compile(
    r"(<!-- Begin of the checks: .*? -->\n).*?(<!-- End of the checks\. -->)", re.DOTALL
)
MODES: Final = {
    "account": (),
    "team": ("deployed", "kms_keys", "objects", "s3_probe", "api_probe"),
    "configuration": ("cloud_block", "state_access"),
}
"""The module of each mode, and those that it uses."""
_MAKE_FINDINGS: Final = frozenset(
    {"ok", "note", "problem", "attempt", "judge", "compare", "Finding", "_expect", "_judge", "_wrong"}
)
"""Their first argument is a check's name, or the beginning of names."""
_MOST: Final = 5
"""Names with the same beginning that are listed one by one."""


def doctor_document() -> str:
    """Return the page as it is, with the table as the checks are."""
    rows = (f"| {_purpose(mode)} | {', '.join(f'`{name}`' for name in checks(mode))} |" for mode in MODES)
    table = "\n".join(["| Command | Names of its checks |", "| --- | --- |", *rows])
    return TABLE.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", PATH.read_text(encoding="utf-8"))


def checks(mode: str) -> list[str]:
    """Return the names of a mode's checks; `s3.*` where there are many, or where they are computed."""
    names = {name for module in (mode, *MODES[mode]) for name in _names(_tree(module))}
    sizes = Counter(name.partition(".")[0] for name in names if "." in name)
    many = {root for root, size in sizes.items() if size > _MOST or f"{root}.*" in names}
    shown = {
        f"{root}.*" if dot and root in many else name
        for name in names
        for root, dot, _ in [name.partition(".")]
    }
    return sorted(shown)


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Call(
                func=ast.Name(made) | ast.Attribute(attr=made), args=[ast.Constant(str(name)), *_]
            ) if made in _MAKE_FINDINGS:
                yield name
            case ast.Call(
                args=[ast.JoinedStr(values=[ast.Constant(str(name)), *_]), *_], func=ast.Name(made)
            ) if made in _MAKE_FINDINGS:
                yield f"{name}*"
            case ast.Call(
                func=ast.Name("_compare_bucket"),
                args=[ast.Starred(ast.Tuple([ast.Constant(str(name)), *_])), *_],
            ):
                yield f"{name}.*"
            case _:
                pass


def _purpose(module: str) -> str:
    return re.split(r"\.(?:\s|$)", ast.get_docstring(_tree(module)) or "")[0]


def _tree(module: str) -> ast.Module:
    spec = find_spec(f"holdfast_cli.doctor.{module}")
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
