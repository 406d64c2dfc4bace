"""`make benchmark`: measure in one run, and print the figures."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from benchmarks import beside_s3, clients, cold_start, distance, month, size, verbs
from benchmarks.figures import Saved, Section, saved, table, to_json
from benchmarks.run import Run, started, tell
from local_aws.failure import LocalAwsError
from tests.support.user_settings import forget_user_settings

SECTIONS: Final[dict[str, Callable[[Run], Section]]] = {
    "verbs": verbs.measure,
    "beside-s3": beside_s3.measure,
    "distance": distance.measure,
    "cold": cold_start.measure,
    "clients": clients.measure,
    "size": size.measure,
    "month": month.measure,
}
"""What can be measured, in the order in which it is."""

_EXAMPLES = """examples:
  make benchmark                                         every section
  python -m benchmarks --only verbs,cold                 two of them
  python -m benchmarks --rounds 9 --json > before.json   save a run ...
  python -m benchmarks --rounds 9 --against before.json  ... and compare a later one with it
  python -m benchmarks --only cold --beside ../before    start another version's functions in turn with ours
"""


def main() -> int:
    """Measure and print.

    Returns:
        0, or 1 if it could not be measured, or 2 if it was asked for wrongly. A figure above its limit is
        marked and is no failure: machines are noisy.
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
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--json", action="store_true", help="print one JSON document")
    output.add_argument(
        "--against", metavar="FILE", type=Path, help="a run saved with --json, to compare with"
    )
    parser.add_argument(
        "--beside",
        metavar="FOLDER",
        type=_checkout,
        help="a checkout of another version, whose cold functions are measured in turn with these",
    )
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds takes a number from 1")
    try:
        against = saved(options.against) if options.against else None
    except ValueError as error:
        parser.exit(2, f"--against: {error}\n")
    forget_user_settings()
    try:
        with started(options.rounds, options.beside) as run:
            _measure(options.only, run, as_json=options.json, against=against)
    except (LocalAwsError, RuntimeError) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


def _names(text: str) -> list[str]:
    """The sections of `--only`, in the order in which they are measured."""
    asked = text.split(",")
    if unknown := [name for name in asked if name not in SECTIONS]:
        raise argparse.ArgumentTypeError(
            f"there is no section {unknown[0]!r}; there are {', '.join(SECTIONS)}"
        )
    return [name for name in SECTIONS if name in asked]


def _checkout(text: str) -> Path:
    folder = Path(text).resolve()
    if not (folder / "infra" / "bundle.py").is_file():
        raise argparse.ArgumentTypeError(f"{folder} is not a checkout of Holdfast")
    return folder


def _measure(names: Sequence[str], run: Run, *, as_json: bool, against: Saved | None) -> None:
    measured = {}
    for name in names:
        tell(name)
        measured[name] = SECTIONS[name](run)
        if not as_json:
            lines = table(measured[name], None if against is None else against.get(name, {}))
            print("", *lines, sep="\n", flush=True)
    if as_json:
        print(to_json(measured, run.rounds))
    if against is not None and (left := against.keys() - measured.keys()):
        print(f"\nSaved and not measured this time: {', '.join(sorted(left))}")


if __name__ == "__main__":
    sys.exit(main())
