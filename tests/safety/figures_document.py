"""The figures of the long run: `tests/safety/figures.json`, and their paragraph in `safety.md`."""

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tests.safety.figures import Figures

FIGURES: Final = Path(__file__).with_name("figures.json")
MARKS: Final = ("<!-- figures: written by `make safety` -->\n", "<!-- end of the figures -->\n")
"""The lines around the paragraph in `safety.md`."""
_NO_BOUNDS: Final = Figures()

Row = Mapping[str, Any]
"""The members of `figures.json`, or of a search, a mutant or a limit in it."""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a run.

    `seconds` is how long it took. `rows` are its details. `planned` are the figures with which a part with a
    time limit would have ended before its limit.
    """

    name: str
    seconds: float
    figures: Figures
    rows: Sequence[Row] = ()
    planned: Figures = _NO_BOUNDS


_DETAILS: Final = {"schedules": "searches", "mutants": "faults", "limits": "limits"}
"""The name in the file for the rows of a part."""
_COUNTS: Final = {
    "schedules": "interleavings on the model of S3, distinct within each search",
    "mutants": "deliberate faults in the code: those found / all",
    "operations": "requests to the deployed API, without generated requests",
    "acknowledged": "writes of a state that the API acknowledged",
    "faults": "faults injected into connections",
    "kills": "clients, Lambda workers and local AWSs killed with SIGKILL",
    "requests_fuzzed": "generated requests to the deployed API",
    "lost": "acknowledged writes that are not in the history",
    "violations": "other violations; also each generated request with a wrong response or a wrong change",
}


def record(
    *,
    figures: Figures,
    parts: Sequence[Part],
    date: str,
    commit: str,
    machine: str,
    clients: Sequence[str],
    seed: int,
    seconds: float,
) -> Row:
    """Return the members of `figures.json`. `figures` are the sums of all parts, `date` is in ISO 8601."""
    return {
        "date": date,
        "commit": commit,
        "machine": machine,
        "clients": list(clients),
        "seed": seed,
        "minutes": round(seconds / 60),
        "line": figures.line(),
        "parts": [
            {
                "part": part.name,
                "seconds": round(part.seconds),
                "figures": {name: number for name, number in asdict(part.figures).items() if number},
                "bounds": _bounds(part),
            }
            for part in parts
        ],
        **{_DETAILS[part.name]: part.rows for part in parts if part.rows},
    }


def as_json(run: Row) -> str:
    """Return a run as JSON with a line for each row, so that a diff shows rows."""
    members = (f"{json.dumps(name)}: {_value(value)}" for name, value in run.items())
    return "{\n" + ",\n".join(members) + "\n}\n"


def in_page(page: str, run: Row) -> str:
    """Return a page with the paragraph for this run between its marks."""
    before, after = page.partition(MARKS[0])[0], page.partition(MARKS[1])[2]
    return f"{before}{MARKS[0]}{_paragraph(run)}{MARKS[1]}{after}"


def _paragraph(run: Row) -> str:
    counted = dict(word.split("=") for word in run["line"].split())
    cut = [f"{part['part']} ({part['bounds']})" for part in run["parts"] if part["bounds"] != "all"]
    ran = f"{run['date']}, commit {run['commit']}: {run['minutes']} minutes on {run['machine']}."
    ended = f"Parts that ran out of time, and how far they came: {', '.join(cut) or 'none'}."
    lines = [
        *textwrap.wrap(f"{ran} {ended}", 120),
        "",
        "| Word | Number | Counts |",
        "| --- | --- | --- |",
        *(f"| `{word}` | {_number(counted[word])} | {meaning} |" for word, meaning in _COUNTS.items()),
    ]
    return "\n" + "\n".join(lines) + "\n\n"


def _bounds(part: Part) -> str:
    """Return "all" if a part reached its bounds, or how far it came until the end of its time."""
    if part.name == "schedules":
        complete = sum(row["complete"] for row in part.rows)
        return "all" if complete == len(part.rows) else f"{complete} of {len(part.rows)} searches"
    reached = asdict(part.figures)
    missed = [
        f"{reached[name]:,} of {number:,} {name.replace('_', ' ')}"
        for name, number in asdict(part.planned).items()
        if reached[name] < number
    ]
    return ", ".join(missed) or "all"


def _value(value: Any) -> str:
    if not (isinstance(value, list | tuple) and value and isinstance(value[0], dict)):
        return json.dumps(value)
    return "[\n" + ",\n".join(json.dumps(row) for row in value) + "\n]"


def _number(text: str) -> str:
    return f"{int(text):,}" if text.isdigit() else text
