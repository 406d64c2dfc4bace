"""Run the unit tests of `functions/` on the Python version of Lambda, if this machine has it.

    python -m tests.on_lambda_python [INTERPRETER]

The packages are those of the environment that runs this. Compiled packages do not load in another version. So
tests are left out that import a compiled package, or a package that no function has. Their number is printed.
"""

import ast
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from holdfast.lambda_python import lambda_python
from holdfast.team import LAMBDA_PYTHON

ROOT: Final = Path(__file__).resolve().parent.parent
_FOLDERS: Final = (ROOT / "functions", ROOT)
_NAMES: Final = frozenset(path.parent.name for path in (ROOT / "functions").glob("*/__init__.py"))
_PLUGINS: Final = ("xdist", "hypothesispytest", "cacheprovider")
_TRY: Final = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError:
        print(name)
"""


def main(interpreter: str | None = None) -> int:
    """Run the tests; return pytest's exit code, or 0 if the machine does not have this Python."""
    name = f"Python {LAMBDA_PYTHON}"
    found = interpreter or lambda_python()
    if found is None:
        print(f"skipped: no {name} on the PATH runs")
        return 0
    tests = [path for path in sorted((ROOT / "tests" / "unit").glob("test_*.py")) if _is_of_functions(path)]
    used = frozenset().union(*(_packages(path) for path in (ROOT / "functions").rglob("*.py"))) | {"pytest"}
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((sysconfig.get_path("purelib"), *map(str, _FOLDERS))),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    tried = subprocess.run(
        (found, "-c", _TRY, *sorted(used)), env=environment, check=True, capture_output=True, text=True
    )
    missing = frozenset(tried.stdout.split())
    run = [path for path in tests if _packages(path) <= used - missing]
    left_out = ", ".join(sorted(missing)) or "none"
    print(f"{len(run)} of {len(tests)} files on {name}; packages that do not load: {left_out}", flush=True)
    off = [option for plugin in _PLUGINS for option in ("-p", f"no:{plugin}")]
    return subprocess.run((found, "-m", "pytest", "-q", *off, *run), cwd=ROOT, env=environment).returncode


def _is_of_functions(path: Path) -> bool:
    tops = {name.partition(".")[0] for name in _imports(path)}
    # The command and the rest need not run on Lambda.
    return bool(tops & _NAMES) and not tops & {
        "holdfast_cli",
        "holdfast_cdk",
        "local_aws",
        "benchmarks",
        "publish",
    }


def _packages(path: Path) -> frozenset[str]:
    """Return the third-party packages that a file imports, directly or through the repository's modules."""
    reached: set[str] = set()
    left: list[Path] = [path]
    while left:
        for name in _imports(left.pop()) - reached:
            reached.add(name)
            if file := _file(name):
                left.append(file)
    tops = {name.partition(".")[0] for name in reached if _file(name) is None}
    return frozenset(tops - sys.stdlib_module_names - _NAMES - {"tests"})


@cache
def _imports(path: Path) -> frozenset[str]:
    return frozenset(_imported(ast.walk(ast.parse(path.read_text(encoding="utf-8")))))


def _imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    for node in nodes:
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(str(module), names):
                yield module
                yield from (name for alias in names if _file(name := f"{module}.{alias.name}"))
            case _:
                pass


@cache
def _file(module: str) -> Path | None:
    """Return the file of a module of the repository; None for other modules."""
    for folder in _FOLDERS:
        place = folder.joinpath(*module.split("."))
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return file
    return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
