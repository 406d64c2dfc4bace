"""A response of the team's API, or of an issuer of ID tokens for CI jobs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Response:
    """A response; its decompressed body may hold a secret. The names of its headers are in lower case."""

    status: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def json(self) -> Mapping[str, Any]:
        """Return the body if it is a JSON object, else an empty object."""
        try:
            document = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}

    def text(self, name: str) -> str:
        """Return a text of the JSON object in the body; empty if there is none."""
        value = self.json().get(name)
        return value if isinstance(value, str) else ""
