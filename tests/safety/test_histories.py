"""The histories bite: with one line of the production code changed, something in them breaks."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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
    """Draw histories in a process of its own, which imports this copy of the functions."""
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
    ("module", "line", "changed", "broken"),
    [
        (
            "holdfast/locks.py",
            "        return self.info.id == lock_id and self.principal == caller.principal\n",
            "        return self.info.id == lock_id\n",
            "invariant 2",
        ),
        (
            "holdfast/locks.py",
            "    if held.is_same(info, caller):\n        # That",
            "    if True:\n        # That",
            "invariant 4:",
        ),
        (
            "holdfast/locks.py",
            "        raise Locked(held.info.for_client())\n    raise OutcomeUnknown",
            "        return Acquired(info, held.version_id)\n    raise OutcomeUnknown",
            "invariant 1",
        ),
    ],
    ids=[
        "a write under the lock of another",
        "a release of whatever lock there is",
        "a 412 taken for success",
    ],
)
def test_a_fault_in_the_code_is_found_and_the_shortest_history_is_told(
    tmp_path: Path, module: str, line: str, changed: str, broken: str
) -> None:
    functions = tmp_path / "functions"
    shutil.copytree(FUNCTIONS, functions, ignore=shutil.ignore_patterns("__pycache__"))
    text = (functions / module).read_text(encoding="utf-8")
    assert text.count(line) == 1, "the test changes a line that is not there any more"
    (functions / module).write_text(text.replace(line, changed), encoding="utf-8")
    done = run(functions, examples=2000)
    assert done.returncode == 1, done.stdout + done.stderr
    told = [event for event in done.stdout.splitlines() if event.startswith("  ")]
    assert broken in done.stdout
    assert len(told) < 100, done.stdout
