"""Lays out values of attributes that are JSON."""

import json
from collections.abc import Sequence


def lines(value: str) -> Sequence[str]:
    """Return a value as lines: a string as its lines, or if it is JSON, as it would be written by hand."""
    try:
        found = json.loads(value)
        if isinstance(found, str):
            if not found.lstrip().startswith(("{", "[")):
                return found.splitlines() if "\n" in found else [value]
            found = json.loads(found)
        return json.dumps(found, indent=2, ensure_ascii=False).splitlines()
    except (ValueError, RecursionError):
        return [value]
