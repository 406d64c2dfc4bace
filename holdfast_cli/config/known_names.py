"""Keeps the names that a shell completes, for a minute, in a file of the user alone. It holds no secret."""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from holdfast import json_object
from holdfast_cli import private_file
from holdfast_cli.config import profiles

SECONDS: Final = 60
"""How long names are kept."""


def key(*parts: object) -> str:
    """Return the key of names: what tells them from the names of another API, team or caller."""
    return hashlib.sha256(json.dumps(parts).encode(errors="surrogateescape")).hexdigest()[:32]


def read(wanted: str) -> list[str] | None:
    """Return the names that were kept under a key; None if it has no names, or if they are too old."""
    kept = _fresh().get(wanted)
    return kept["names"] if kept else None


def keep(wanted: str, names: Iterable[str]) -> None:
    """Keep names under a key, and remove those that are too old. Nothing happens if that is impossible."""
    if (file := _file()) is None:
        return
    kept = {**_fresh(), wanted: {"since": int(time.time()), "names": list(names)}}
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        private_file.replace(file, json.dumps(kept).encode())


def _file() -> Path | None:
    cache = profiles.own_folder(os.environ, "XDG_CACHE_HOME", ".cache")
    return cache / "names.json" if cache else None


def _fresh() -> Mapping[str, Any]:
    """Return what was kept within the last minute, by this machine's clock, by its key."""
    try:
        file = _file()
        kept = json_object.parse(file.read_bytes()) if file else {}
        return {each: of for each, of in kept.items() if 0 <= time.time() - of["since"] < SECONDS}
    except (OSError, KeyError, TypeError, ValueError):
        return {}
