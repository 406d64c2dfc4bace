"""Asks a real bash what it completes."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_ASK = """
cd "$1"; eval "$2"; shift 2
of_holdfast=$(complete -p holdfast) && of_holdfast=${of_holdfast##*-F } && of_holdfast=${of_holdfast% *}
for line in "$@"; do
    eval "COMP_WORDS=($line)"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    "$of_holdfast"; echo "${COMPREPLY[*]}"
done
"""


def completions(
    bash: str, load: str, lines: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> list[str]:
    """Return what bash completes the last word of each line to, as it does when Tab is pressed.

    `load` is what loads the script, as in `~/.bashrc`. Each line begins with `holdfast`; an empty word is
    `''`. `environment` is all of it; None for that of this process.
    """
    done = subprocess.run(
        [bash, "-uc", _ASK, bash, folder, load, *lines],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.splitlines()
