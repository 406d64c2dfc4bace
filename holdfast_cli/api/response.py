"""A response of the team's API, or of an issuer of ID tokens for CI jobs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Response:
    """A response. Its decompressed body may contain a secret. The names of its headers are in lower case."""

    status: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def json(self) -> Mapping[str, Any]:
        """Return the body as a JSON object; an empty object if it is not one."""
        try:
            document = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}

    def text(self, name: str) -> str:
        """Return a text member of the JSON object in the body; empty if it does not have it."""
        value = self.json().get(name)
        return value if isinstance(value, str) else ""
