"""Completion by a real bash."""

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
    """Return bash's completions of the last word of each line, as after a press of Tab.

    `load` is the line that loads the script, as in `~/.bashrc`. Each line begins with `holdfast`; an empty
    word is `''`. `environment` is the whole environment; None for this process's environment.
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
