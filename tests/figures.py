"""The size of the repository in figures, and their bounds.

    python -m tests.figures            prints every figure
    python -m tests.figures --check    fails if a figure is above its bound, and prints these figures

A bound is on one thing, never on a sum: a bound just above a sum counts lines, and squeezes code and prose.
A change that needs a higher bound raises it in a separate commit, whose message says why.
"""

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import grimp

from tests.support import import_contracts

ROOT: Final = Path(__file__).resolve().parents[1]
TEST_MINUTES: Final = ROOT / ".build" / "test-minutes"
"""The file in which `make test` stores how long it took."""

BOUNDS: Final[Mapping[str, int]] = {
    "longest function": 120,
    "most parameters": 8,
    "largest file": 600,
    "largest page": 1_500,
    "circles of imports": 0,
    "handlers outside of contracts": 0,
    "floors of the command": 8,
}
"""The highest allowed value of each figure, by name."""

PRODUCT: Final = ("functions", "holdfast_cli", "infra", "local_aws", "benchmarks", "publish", "app.py")
LAYERED: Final = ("functions", "holdfast_cli", "infra", "local_aws")
"""The packages that are searched for circles of imports."""
COMMAND: Final = "holdfast_cli"
_NOT_WRITTEN: Final = re.compile(
    r"<!-- Begin of the .*? -->.*?<!-- End of the .*?\. -->|<!--.*?-->", re.DOTALL
)
"""The sections of documents that `make generated` writes, and comments."""
CONSOLE: Final = (".ts", ".tsx", ".css", ".html", ".mjs")
"""The endings of the console's sources."""
DOCUMENTS: Final = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs")

Graph = Mapping[str, frozenset[str]]
"""The imports of each module. Imports within functions and imports for types alone count, too."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured number.

    Its bound has the same name. `where` is the place of a figure that is the largest of its kind.
    """

    name: str
    value: int
    where: str = ""

    @property
    def is_above(self) -> bool:
        return self.value > BOUNDS.get(self.name, self.value)

    def __str__(self) -> str:
        bound = f" (at most {BOUNDS[self.name]:,})" if self.name in BOUNDS else ""
        return f"{self.name:33}{self.value:>7,}{bound}{f'  {self.where}' if self.where else ''}"


# --- files ----------------------------------------------------------------------------------------


def files(names: Iterable[str], ending: str) -> Iterator[Path]:
    """Yield the files with an ending: named files, and all files below named folders."""
    for path in (ROOT / name for name in names):
        yield from [path] if path.is_file() else sorted(path.rglob(f"*{ending}"))


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def lines(paths: Iterable[Path]) -> int:
    return sum(len(text(path).splitlines()) for path in paths)


def words(paths: Iterable[Path]) -> int:
    """Count the words that people write in some documents, each with a letter or a digit.

    Comments and generated sections are left out.
    """
    pieces = (_NOT_WRITTEN.sub("", text(path)).split() for path in paths)
    return sum(1 for piece in pieces for word in piece if re.search(r"\w", word))


class Function(NamedTuple):
    """A function; `parameters` counts neither `self` nor `cls`."""

    length: int
    parameters: int
    name: str
    file: str

    @property
    def where(self) -> str:
        return f"{self.name} in {self.file}"


def functions(paths: Iterable[Path]) -> Iterator[Function]:
    for path in paths:
        for node in ast.walk(ast.parse(text(path))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                names = [each.arg for each in ast.iter_child_nodes(node.args) if isinstance(each, ast.arg)]
                parameters = len(names) - (names[:1] in (["self"], ["cls"]))
                yield Function(length, parameters, node.name, str(path.relative_to(ROOT)))


# --- imports --------------------------------------------------------------------------------------


def imports(folder: str) -> Graph:
    """Return the imports between the modules of a folder."""
    inside = [path.parent.name for path in (ROOT / folder).glob("*/__init__.py")]
    packages = [folder] if (ROOT / folder / "__init__.py").is_file() else inside
    sys.path[:0] = [
        str(ROOT / folder) for folder in ("", "functions", "infra")
    ]  # where the modules are looked up; none is loaded
    try:
        graph = grimp.build_graph(*packages, cache_dir=None)
    finally:
        del sys.path[:2]
    return {name: frozenset(graph.find_modules_directly_imported_by(name)) for name in graph.modules}


def wings(graph: Graph) -> Graph:
    """Return the same for the direct parts of a package: folders and single modules, but not `__main__`."""

    def wing(module: str) -> str:
        return ".".join(module.split(".")[:2])

    inside = {wing(module) for module in graph if "." in module and not module.endswith(".__main__")}
    return {
        name: frozenset(
            wing(other) for module in graph if wing(module) == name for other in graph[module]
        ).intersection(inside - {name})
        for name in inside
    }


def circles(graph: Graph) -> list[list[str]]:
    """Return the sets of modules that import each other, directly or by way of others."""
    reached = {module: _reached(graph, module) for module in graph}
    together = {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in graph
        if module in reached[module]
    }
    return sorted(sorted(circle) for circle in together)


def _reached(graph: Graph, start: str) -> frozenset[str]:
    seen: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += graph[module]
    return frozenset(seen)


def chain(graph: Graph) -> Sequence[str]:
    """Return the longest chain of modules where each imports the next. A circle counts as one floor."""
    same = {module: circle[0] for circle in circles(graph) for module in circle}

    @cache
    def longest(module: str) -> tuple[str, ...]:
        members = [other for other in graph if same.get(other, other) == module]
        below = {same.get(other, other) for member in members for other in graph[member]} - {module}
        return (module, *max(map(longest, sorted(below)), key=len, default=()))

    return max((longest(same.get(module, module)) for module in sorted(graph)), key=len)


def outside_of_contracts() -> list[str]:
    """Return the lists of the import linter that leave out a handler: it may import what it likes."""
    return [
        f"{place} lacks {folder}"
        for folder in import_contracts.HANDLERS
        for place in import_contracts.left_out(folder)
    ]


# --- all of them ----------------------------------------------------------------------------------


def figures() -> Iterator[Figure]:
    product, tests = list(files(PRODUCT, ".py")), list(files(["tests"], ".py"))
    yield Figure("product, lines", lines(product))
    in_tests = [path for ending in CONSOLE for path in files(["console/tests"], ending)]
    yield Figure("tests, lines", lines([*tests, *in_tests]))
    console = {path for ending in CONSOLE for path in files(["console"], ending)}
    yield Figure("console, lines", lines(console.difference(in_tests)))
    longest = max(functions(product + tests))
    yield Figure("longest function", longest.length, longest.where)
    widest = max(functions(product), key=lambda function: function.parameters)
    yield Figure("most parameters", widest.parameters, widest.where)
    largest, place = max((lines([path]), str(path.relative_to(ROOT))) for path in product)
    yield Figure("largest file", largest, place)
    command = imports(COMMAND)
    graphs = [*map(imports, LAYERED), wings(command)]
    found = [circle for graph in graphs for circle in circles(graph)]
    yield Figure("circles of imports", len(found), "; ".join(", ".join(circle) for circle in found))
    outside = outside_of_contracts()
    yield Figure("handlers outside of contracts", len(outside), "; ".join(outside))
    for name, graph in (("floors of the command", wings(command)), ("modules one on another", command)):
        floors = [module.removeprefix(f"{COMMAND}.") for module in chain(graph)]
        yield Figure(name, len(floors), " > ".join(floors))
    yield Figure("words of documents", words(files(DOCUMENTS, ".md")))
    pages = {str(page.relative_to(ROOT)): words([page]) for page in files(DOCUMENTS, ".md")}
    largest_page = max(pages, key=lambda page: pages[page])
    yield Figure("largest page", pages[largest_page], largest_page)
    for page, count in pages.items():
        yield Figure(f"  {page}", count)
    yield Figure("words of the changelog", words(files(["CHANGELOG.md"], ".md")))
    yield Figure("tests", sum(function.name.startswith("test_") for function in functions(tests)))
    if TEST_MINUTES.is_file():
        yield Figure("minutes of `make test`", int(text(TEST_MINUTES)))


def main() -> int:
    """Print the figures, or those above their bound; 1 if the bounds are checked and one is exceeded."""
    parser = argparse.ArgumentParser(prog="python -m tests.figures", description="How large the house is.")
    parser.add_argument("--check", action="store_true", help="fail with the figures above their bound")
    is_check = parser.parse_args().check
    shown = [figure for figure in figures() if figure.is_above or not is_check]
    for figure in shown:
        print(figure)
    return 1 if is_check and shown else 0


if __name__ == "__main__":
    sys.exit(main())
