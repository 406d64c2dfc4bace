"""The fields of the policy that a function's code can read, found in its source.

The library reads a field as `work.policy.FIELD`. Not every part of a module that is in a bundle runs there:
the function reaches what its own modules name, and what that names in turn. A definition at the top of a
module is reached as a whole, a class with all its methods.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

LIBRARY: Final = "holdfast"


class Module:
    """The source of a module: what its definitions and its imports name.

    Attributes:
        parts: the name of each definition -> its nodes; "" for what runs when the module is imported.
        imports: each name that an import binds -> the dotted name of what it is.
    """

    def __init__(self, code: str) -> None:
        self.parts: dict[str, list[ast.AST]] = {"": []}
        self.imports: dict[str, str] = {}
        tree = ast.parse(code)
        for statement in tree.body:
            name = statement.name if isinstance(statement, ast.FunctionDef | ast.ClassDef) else ""
            self.parts.setdefault(name, []).append(statement)
        for node in ast.walk(tree):
            match node:
                case ast.Import(names=names):
                    self.imports |= {each.asname: each.name for each in names if each.asname}
                    self.imports |= {top: top for each in names if (top := each.name.partition(".")[0])}
                case ast.ImportFrom(module=str(module), names=names):
                    self.imports |= {each.asname or each.name: f"{module}.{each.name}" for each in names}
                case _:
                    pass

    def walk(self, part: str) -> Iterator[ast.AST]:
        for node in self.parts[part]:
            yield from ast.walk(node)


def modules_of(sources: Mapping[Path, bytes]) -> dict[str, Module]:
    """Return dotted name -> module, of the sources of a bundle."""
    return {
        ".".join(path.with_suffix("").parts).removesuffix(".__init__"): Module(source.decode())
        for path, source in sources.items()
        if path.suffix == ".py"
    }


def reached(modules: Mapping[str, Module]) -> set[tuple[str, str]]:
    """Return module and name of each definition that a function reaches from outside the library."""
    waiting = [
        (name, part)
        for name, module in modules.items()
        if name.partition(".")[0] != LIBRARY
        for part in module.parts
    ]
    done: set[tuple[str, str]] = set()
    while waiting:
        if (place := waiting.pop()) in done:
            continue
        done.add(place)
        name, part = place
        waiting.append((name, ""))
        for node in modules[name].walk(part):
            if isinstance(node, ast.Name | ast.Attribute):
                waiting += _meant(modules, name, ast.unparse(node))
    return done


def _meant(modules: Mapping[str, Module], where: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the definition that a dotted name means in a module, if it means one."""
    first, _, rest = text.partition(".")
    module = modules[where]
    if first in module.parts:
        yield where, first
    elif first in module.imports:
        whole = ".".join(filter(None, (module.imports[first], rest)))
        if whole in modules:
            return
        of, _, part = whole.rpartition(".")
        if of in modules:
            # Also what a module has imported itself.
            yield from _meant(modules, of, part)


def fields_read(modules: Mapping[str, Module]) -> set[str]:
    """Return the fields of `policy` that the reached definitions read."""
    return {
        node.attr
        for name, part in reached(modules)
        for node in modules[name].walk(part)
        if isinstance(node, ast.Attribute) and _is_policy(node.value)
    }


def other_uses(code: str) -> set[str]:
    """Return the uses of an attribute `policy` that are no reading of a field."""
    nodes = [*ast.walk(ast.parse(code))]
    known = {node.value for node in nodes if isinstance(node, ast.Attribute)}
    return {ast.unparse(node) for node in nodes if _is_policy(node) and node not in known}


def _is_policy(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "policy"
