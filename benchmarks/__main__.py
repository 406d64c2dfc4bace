"""`make benchmark`: measure the sections in one run, and print the figures."""

import argparse
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from benchmarks import cloud, cold_start, console, distance, manage, size
from benchmarks.figures import Section, table, to_json
from benchmarks.run import Run, tell
from local_aws.failure import LocalAwsError
from tests.support.user_settings import forget_user_settings

SECTIONS: Final[dict[str, Callable[[Run], Section]]] = {
    "distance": distance.measure,
    "cold": cold_start.measure,
    "size": size.measure,
    "cloud": cloud.measure,
    "manage": manage.measure,
    "console": console.measure,
}
"""Name of a section -> the function that measures the section, in the order of measurement."""

_EXPECTED: Final = (LocalAwsError, RuntimeError, subprocess.SubprocessError, BotoCoreError, ClientError)
"""Failures whose message says what happened; any other is a fault of the benchmark."""

_EXAMPLES = """examples:
  make benchmark                                                   every section
  .venv/bin/python -m benchmarks --only size,cold                  two of them
  .venv/bin/python -m benchmarks --rounds 9 --json > before.json   save a run
  .venv/bin/python -m benchmarks --only cold --beside ../before    another version, in turn with this one
"""


def main() -> int:
    """Measure the sections and print their figures.

    Returns:
        0; 1 if a section failed, 2 for wrong usage, 130 after an interrupt.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure what a user of Holdfast feels, on a local AWS of its own. Every figure is a "
        "median with its lower and upper quartile (least and most where it was counted).",
        epilog=f"sections: {', '.join(SECTIONS)}\n\n{_EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", metavar="NAME[,NAME]", type=_names, default=list(SECTIONS), help="sections (default: all)"
    )
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each measurement (default: 7)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--beside",
        metavar="FOLDER",
        type=_checkout,
        help="a checkout of another version, whose cold functions are measured in turn with these",
    )
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds takes a number from 1")
    if options.beside and "cold" not in options.only:
        parser.error("--beside is for the section cold, which --only leaves out")
    forget_user_settings()
    try:
        with tempfile.TemporaryDirectory(prefix="holdfast-benchmark-") as folder, ExitStack() as at_end:
            run = Run(options.rounds, Path(folder), at_end, options.beside)
            measured = _measure(options.only, run, as_json=options.json)
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
        return 130
    return 0 if len(measured) == len(options.only) else 1


def _names(text: str) -> list[str]:
    """Return the names of the sections in `--only`, in the order of measurement."""
    asked = text.split(",")
    if unknown := [name for name in asked if name not in SECTIONS]:
        raise argparse.ArgumentTypeError(
            f"there is no section {unknown[0]!r}; there are {', '.join(SECTIONS)}"
        )
    return [name for name in SECTIONS if name in asked]


def _checkout(text: str) -> Path:
    folder = Path(text).resolve()
    if not (folder / "cdk.json").is_file():
        raise argparse.ArgumentTypeError(f"{folder} is not a checkout of Holdfast")
    return folder


def _measure(names: Sequence[str], run: Run, *, as_json: bool) -> Mapping[str, Section]:
    """Measure sections and print them; return those that did not fail, by name."""
    measured = {}
    for name in names:
        tell(name)
        try:
            measured[name] = SECTIONS[name](run)
        except Exception as failure:  # noqa: BLE001 whatever it is, the other sections have their figures
            if not isinstance(failure, _EXPECTED):
                traceback.print_exc()
            print(f"The section {name} failed: {failure}", file=sys.stderr, flush=True)
            continue
        if not as_json:
            print("", *table(measured[name]), sep="\n", flush=True)
    if as_json:
        print(to_json(measured, run.rounds))
    return measured


if __name__ == "__main__":
    # Each of these signals stops the run and the processes that it started.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    sys.exit(main())
