"""`make benchmark`: measure in one run, and print the figures."""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from benchmarks import beside_s3, cold_start, verbs
from benchmarks.figures import Comparison, Verb
from benchmarks.stack import deployed
from local_aws.failure import LocalAwsError
from local_aws.terraform import terraforms
from tests.support.free_port import free_port
from tests.support.user_settings import forget_user_settings

_EXAMPLES = """examples:
  make benchmark
  python -m benchmarks --rounds 9 --json > figures.json
"""


def main() -> int:
    """Measure and print.

    Returns:
        0, or 1 if it could not be measured. A ratio above its limit is marked and is no failure: machines
        are noisy.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure S3 requests and milliseconds per verb, Terraform through Holdfast beside its "
        "own s3 backend, and the functions' cold start, on a local AWS of its own.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=7, help="pairs of each comparison (default: 7)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds takes a number from 1")
    forget_user_settings()
    try:
        _measure(options.rounds, as_json=options.json)
    except (LocalAwsError, RuntimeError) as failure:
        print(failure, file=sys.stderr)
        return 1
    return 0


def _measure(rounds: int, *, as_json: bool) -> None:
    _tell("the functions' cold start")
    started = cold_start.measure(rounds)
    with tempfile.TemporaryDirectory(prefix="holdfast-benchmark-") as folder:
        _tell("starting a local AWS and deploying a team")
        with deployed(free_port(), Path(folder) / "aws") as stack:
            _tell("the verbs")
            per_verb = verbs.measure(stack, rounds * 5)
            compared = [
                comparison
                for terraform in terraforms()
                for comparison in beside_s3.measure(
                    stack, terraform, Path(folder) / terraform.name, rounds, _tell
                )
            ]
    comparisons = [*compared, *started]
    if as_json:
        document = {
            "verbs": [asdict(verb) for verb in per_verb],
            "comparisons": [asdict(comparison) for comparison in comparisons],
            "rounds": rounds,
        }
        print(json.dumps(document, indent=2))
    else:
        _print_tables(per_verb, comparisons, rounds)


def _print_tables(per_verb: Sequence[Verb], comparisons: Sequence[Comparison], rounds: int) -> None:
    print(f"\nOne request, through the deployed API (medians of {rounds * 5})")
    print(f"{'':30}{'S3 requests':>12}{'client ms':>12}{'function ms':>13}")
    for verb in per_verb:
        counts = " or ".join(map(str, verb.s3_requests))
        print(f"{verb.name:30}{counts:>12}{verb.client_ms:>12.1f}{verb.function_ms:>13.1f}")
    print(f"\nIn turn, {rounds} pairs (seconds are medians, the ratio is the median of the pairs)")
    print(f"{'':30}{'Holdfast':>12}{'beside':>12}{'ratio':>9}{'at most':>9}")
    for pair in comparisons:
        above = "  <- above" if pair.ratio > pair.limit else ""
        print(
            f"{pair.name:30}{pair.ours:>12.3f}{pair.theirs:>12.3f}{pair.ratio:>9.2f}{pair.limit:>9.1f}{above}"
        )
    print(
        "\nThe request for nothing is what the emulator adds to each; a plan sends 3 or 4, an apply 1 more."
    )
    print("Beside `plan` and `apply`: Terraform's own s3 backend with use_lockfile, on the same local S3.")
    print("Beside `cold start`: a process that only makes boto3.client('s3'), from a bundle.")
    print("Beside `authorizer`: the same; it is the authorizer's cold start with a first token or ID token.")


def _tell(text: str) -> None:
    print(f"... {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
