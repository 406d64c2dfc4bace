"""The entry point of the `holdfast` command, and its exit codes.

Exit codes: 0 done, 1 failed (one line on standard error says why), 2 wrong usage, or `holdfast state
diff --exit-code` found differences, 126 and 127 `holdfast run` cannot start or find a program, 130
interrupted (one line if something may have been changed).
"""

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from holdfast_cli.commands.table import parser
from holdfast_cli.errors import CommandError, NotSetUpError, OutputClosedError, UsageError, with_notes
from holdfast_cli.terminal import output
from holdfast_cli.terminal.parser import hidden


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code.

    Args:
        argv: the arguments without the program's name; None for those of the process.

    Raises:
        SystemExit: with 2 for wrong usage and by `state diff --exit-code`, with 0 after --help and --version.
    """
    if sys.stderr is None:
        # The caller closed standard error. Messages would go to standard output instead, which a shell may
        # be about to evaluate.
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 for as long as the process lives
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A description may hold letters that the terminal cannot show. argparse ignores a failed write: the
        # flush fails instead, if PYTHONUNBUFFERED leaves something to flush.
        sys.stdout.reconfigure(errors="replace", write_through=False)
    try:
        with output.checked():
            arguments = parser().parse_args(argv)
        arguments.run(arguments)
    except OutputClosedError:
        return 0
    except CommandError as failure:
        words = sys.argv[1:] if argv is None else argv
        if isinstance(failure, UsageError):
            steps = failure.steps if isinstance(failure, NotSetUpError) else ()
            output.complain(hidden(f"{failure}", words), steps)
        else:
            output.complain(hidden(f"{failure}", words, longest=None))
        return failure.exit_code
    except KeyboardInterrupt as interrupt:
        if line := with_notes("", interrupt):
            output.complain(f"Interrupted.{line}")
        return 130
    return 0
