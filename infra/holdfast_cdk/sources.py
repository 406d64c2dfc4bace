"""The sources of each function, and the fields of `holdfast.policy` that they read."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path


class SourceError(Exception):
    """A source cannot be deployed. The message is one line with the reason."""


def sources_of(functions: Path, function: str) -> dict[Path, bytes]:
    """Return path -> source of a function's folder and of every module of ours that it imports."""
    own = (path for path in sorted((functions / function).rglob("*")) if _is_shipped(path, functions))
    waiting = list(own)
    sources: dict[Path, bytes] = {}
    while waiting:
        path = waiting.pop()
        relative = path.relative_to(functions)
        if relative in sources:
            continue
        sources[relative] = path.read_bytes()
        if path.suffix == ".py":
            waiting += _imported(functions, path, sources[relative])
    return sources


def fields_read(sources: Mapping[Path, bytes]) -> frozenset[str]:
    """Return the fields of `holdfast.policy` that sources read."""
    modules = ((path, source) for path, source in sources.items() if path.suffix == ".py")
    return frozenset(name for path, source in modules for name in _fields_read(path, source))


def _fields_read(path: Path, source: bytes) -> Iterator[str]:
    if b"from_environment" not in source:
        return
    nodes = [*ast.walk(ast.parse(source, path))]
    uses = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "from_environment"]
    calls = [node for node in nodes if isinstance(node, ast.Call) and node.func in uses]
    for call in calls:
        for name in call.args:
            match name:
                case ast.Constant(str(field)):
                    yield field
                case _:
                    raise _unnamed(path)
    if len(calls) != len(uses):
        raise _unnamed(path)


def _unnamed(path: Path) -> SourceError:
    return SourceError(
        f"{path} reads settings without their names; name each of them, as in "
        'Policy.from_environment("require_lock")'
    )


def _is_shipped(path: Path, functions: Path) -> bool:
    parts = path.relative_to(functions).parts
    left_out = any(part in ("__pycache__", "tests") or part.startswith(".") for part in parts)
    return path.is_file() and not left_out and path.stem != "requirements"


def _imported(functions: Path, path: Path, source: bytes) -> Iterator[Path]:
    """Yield the files of the modules below `functions` that a module imports."""
    try:
        tree = ast.parse(source, path)
    except (SyntaxError, ValueError) as error:
        raise SourceError(f"{path} is not valid Python: {error}") from None
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                modules = [alias.name for alias in names]
            case ast.ImportFrom(level=level) if level > 0:
                raise SourceError(
                    f"{path} has a relative import; import the module by its whole name, so "
                    "that the bundle includes it"
                )
            case ast.ImportFrom(module=str(module), names=names):
                modules = [module, *(f"{module}.{alias.name}" for alias in names)]
            case _:
                continue
        for module in modules:
            yield from _files(functions, module.split("."))


def _files(functions: Path, module: Sequence[str]) -> Iterator[Path]:
    """Yield the files of a module: its own file, and `__init__.py` of its packages."""
    for length in range(1, len(module) + 1):
        place = functions.joinpath(*module[:length])
        for file in (place / "__init__.py", place.with_suffix(".py")):
            if file.is_file():
                yield file
