"""Prints findings, and decides the exit code by them."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Final

from holdfast_cli.doctor.findings import Finding, Level
from holdfast_cli.errors import CommandError, OutputClosedError
from holdfast_cli.terminal import output

_WIDEST_LEVEL: Final = max(map(len, Level))
_COLOURS: Final = {Level.OK: "green", Level.NOTE: "yellow", Level.PROBLEM: "red"}


def show(findings: Iterable[Finding], *, as_json: bool) -> None:
    """Print each finding as it arrives, or all as JSON; raise `CommandError` if one is a problem."""
    try:
        _print(findings, as_json=as_json)
    except OutputClosedError as closed:
        # The exit code is about all findings, and some were not printed.
        raise CommandError(f"{closed} Some results were not printed. Run the command again.") from closed


def _print(findings: Iterable[Finding], *, as_json: bool) -> None:
    found: list[Finding] = []
    for finding in findings:
        found.append(finding)
        if not as_json:
            output.write(_line(finding))
    if as_json:
        output.write_json(_document(found))
    if any(finding.level is Level.PROBLEM for finding in found):
        raise CommandError(f"{_count(found)} Each problem says what to do.")
    if not as_json:
        output.write(_count(found))


def _line(finding: Finding) -> str:
    words = " ".join(filter(None, (finding.text, finding.do)))
    line = output.wrapped(
        f"{finding.check}: {output.plain(words)}", head=f"{finding.level:<{_WIDEST_LEVEL}}  "
    )
    return output.coloured(finding.level, _COLOURS[finding.level]) + line.removeprefix(finding.level)


def _count(found: list[Finding]) -> str:
    counted = Counter(finding.level for finding in found)
    notes, problems = (
        f"{counted[level]} {level}{'' if counted[level] == 1 else 's'}"
        for level in (Level.NOTE, Level.PROBLEM)
    )
    return f"{counted[Level.OK]} ok, {notes}, {problems}."


def _document(found: list[Finding]) -> dict[str, object]:
    counted = Counter(finding.level for finding in found)
    return {
        "findings": [asdict(finding) for finding in found],
        "summary": {level.value: counted[level] for level in Level},
    }
