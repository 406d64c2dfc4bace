"""Compiles the functions to bytecode of Lambda's Python: with that Python, or with CPython in WebAssembly.

npm's `pyodide` is CPython of the same minor version, pinned in `package-lock.json`, and runs wherever the CDK
runs. Its bytecode is that of a native Python: the same magic number, code and line tables.
"""

import atexit
import json
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from threading import Lock
from typing import IO, Final, Protocol, cast

from holdfast.lambda_python import is_lambda_python, lambda_python
from holdfast.team import LAMBDA_PYTHON
from holdfast_cdk.pyodide import AGAIN, PyodideError, pyodide

_SCRIPT: Final = Path(__file__).with_name("compile.mjs")

# The bytecode is never checked against its source: archives change the times of files. A file that does not
# compile, such as a package's code for another Python, is left as it is. Python replaces the name of the file
# when it loads the bytecode; a relative one makes the bytecode the same wherever it was compiled.
_COMPILE: Final = """
import importlib.util, pathlib, py_compile, sys
root = pathlib.Path(sys.argv[1])
for path in sorted(root.rglob("*.py")):
    if pathlib.Path(importlib.util.cache_from_source(path)).is_file():
        continue
    try:
        py_compile.compile(
            path,
            dfile=path.relative_to(root).as_posix(),
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    except py_compile.PyCompileError:
        pass
"""


class CompileError(Exception):
    """A compiler did not do its work. The message says why, in one line."""


class Compiler(Protocol):
    """Compiles what has no bytecode yet."""

    def compile(self, folder: Path) -> None:
        """Compile every module in a folder; `CompileError` if that fails."""


@dataclass(frozen=True, slots=True)
class Native:
    """A Python of this machine."""

    python: str

    def compile(self, folder: Path) -> None:
        """Compile every module in a folder; `CompileError` if that fails."""
        command = [self.python, "-I", "-c", _COMPILE, str(folder)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            reason = (ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"])[-1]
            raise CompileError(f"{self.python} could not compile the functions: {reason}")


class WebAssembly:
    """CPython in WebAssembly. It is started once, for the first folder, and ends with this process.

    `package` is the folder of npm's pyodide.
    """

    def __init__(self, node: str, package: Path) -> None:
        self._command = [node, str(_SCRIPT), str(package)]
        self._process: subprocess.Popen[str] | None = None
        self._alone = Lock()

    def compile(self, folder: Path) -> None:
        """Compile every module in a folder; `CompileError` if that fails."""
        sent = json.dumps({"folder": str(folder.resolve()), "code": _COMPILE})
        with self._alone:
            if self._process is None:
                self._process = self._start()
            try:
                print(sent, file=self._process.stdin, flush=True)
                answer = json.loads(cast("IO[str]", self._process.stdout).readline())
            except (OSError, ValueError) as error:
                raise CompileError("npm's pyodide ended while it compiled the functions") from error
        if answer["error"]:
            raise CompileError(f"npm's pyodide could not compile the functions: {answer['error']}")

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        atexit.register(process.kill)
        version = cast("IO[str]", process.stdout).readline()
        if not is_lambda_python(version):
            process.kill()
            raise CompileError(
                f"npm's pyodide has the Python version {version.strip()!r}, which is not Lambda's version: "
                f"{AGAIN}"
                if version
                else f"npm's pyodide does not start: {AGAIN}"
            )
        return process


def lambda_compiler(build: Path) -> Compiler:
    """Return what compiles for Lambda: its Python, if one is on the PATH, else pyodide.

    Args:
        build: the folder below which npm installs pyodide for an installed package.

    Raises:
        CompileError: there is neither of them.
    """
    if (python := lambda_python()) is not None:
        return Native(python)
    try:
        return _web_assembly(*pyodide(build))
    except PyodideError as error:
        raise CompileError(
            "the functions cannot be compiled to bytecode, because there is no working "
            f"python{LAMBDA_PYTHON} "
            f"on the PATH, and pyodide does not work: {error}. To deploy without bytecode, write -c "
            "without_bytecode=true"
        ) from error


@cache
def _web_assembly(node: str, package: Path) -> WebAssembly:
    return WebAssembly(node, package)
