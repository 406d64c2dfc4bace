"""Lays out values of attributes that are JSON."""

import json
from collections.abc import Sequence


def lines(value: str) -> Sequence[str]:
    """Return a value as lines: a string as its lines, or if it is JSON, as it would be written by hand."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return [value]
    if not isinstance(found, str):
        return _laid_out(value) or [value]
    # A text may only begin as JSON does, such as a systemd unit with `[Unit]`.
    inner = _laid_out(found) if found.lstrip().startswith(("{", "[")) else None
    return inner or (found.splitlines() if "\n" in found else [value])


def _laid_out(text: str) -> Sequence[str] | None:
    """Return JSON in lines; None if the text is not JSON, or is nested too deeply."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False).splitlines()
    except (ValueError, RecursionError):
        return None
