"""The random histories find a deliberate fault in the production code."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.safety.model.invariants import Invariant
from tests.safety.model.mutants import MUTANTS
from tests.safety.model.production import FUNCTIONS

ROOT = FUNCTIONS.parent
_RUN = """
import sys
from pathlib import Path
from tests.safety import histories
figures = histories.run(
    examples=int(sys.argv[2]), steps=30, seconds=100, seed=0, say=print, functions=Path(sys.argv[1])
)
sys.exit(figures.violations)
"""


def run(functions: Path, *, examples: int) -> subprocess.CompletedProcess[str]:
    """Draw histories in a separate process, which imports this copy of the functions."""
    return subprocess.run(
        [sys.executable, "-c", _RUN, functions, str(examples)],
        cwd=ROOT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_everything_holds_in_some_histories() -> None:
    done = run(FUNCTIONS, examples=50)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "everything held" in done.stdout


@pytest.mark.parametrize(
    "name",
    [
        "a client that knows a lock's ID may write under it",
        "a release that does not look whose lock it is",
        "an acquire whose 412 counts as success",
    ],
)
def test_a_fault_in_the_code_is_found_and_a_short_history_is_told(tmp_path: Path, name: str) -> None:
    [mutant] = [mutant for mutant in MUTANTS if mutant.name == name]
    functions = tmp_path / "functions"
    shutil.copytree(FUNCTIONS, functions, ignore=shutil.ignore_patterns("__pycache__"))
    mutant.apply(functions)

    done = run(functions, examples=2000)

    assert done.returncode == 1, done.stdout + done.stderr
    *events, broken = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    # If two clients hold the lock, one of them is refused. That violation may show first.
    shown = (mutant.breaks, Invariant.FOLLOWED)
    assert broken.startswith(tuple(f"  {invariant.value}: " for invariant in shown))
    assert len(events) < 50, done.stdout
