"""A response of the team's API, or of an issuer of CI jobs' ID tokens."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast_cli.terminal.output import plain


@dataclass(frozen=True, slots=True)
class Response:
    """A response. The body is decompressed and may hold a secret; header names are in lower case."""

    status: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)

    def json(self) -> Mapping[str, Any]:
        """Return the body as a JSON object; an empty object if the body has another form."""
        try:
            document = json.loads(self.body)
        except (ValueError, RecursionError):
            return {}
        return document if isinstance(document, dict) else {}

    def text(self, name: str) -> str:
        """Return a string member of the JSON object in the body; empty if the member is not a string."""
        value = self.json().get(name)
        return value if isinstance(value, str) else ""

    @property
    def message(self) -> str:
        """Return the message of an error of Holdfast; empty for a response of another form."""
        return plain(self.text("message")) if self.text("error") else ""

    @property
    def retry_after(self) -> float:
        """Return the seconds of `Retry-After`; 0 without the header, or if it is a date."""
        try:
            return float(self.headers.get("retry-after", 0))
        except ValueError:
            return 0.0
