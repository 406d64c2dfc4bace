"""Read the JSON documents of a source, whose forms are not in our hands."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast import json_object
from holdfast_cli.errors import CommandError


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a document. A member that is missing is null, as is a member of null.

    Each method raises `CommandError` for a value of another type.

    Attributes:
        of: names state and source in errors, as the beginning of a sentence.
        path: the names of the members that lead to this part.
    """

    value: object
    of: str
    path: str = ""

    def __getitem__(self, name: str) -> "Part":
        return Part(self.members().get(name), self.of, f"{self.path}.{name}".lstrip("."))

    def members(self) -> Mapping[str, object]:
        if self.value is None:
            return {}
        if not isinstance(self.value, dict):
            raise self._odd("an object")
        return self.value

    def parts(self) -> Sequence["Part"]:
        if self.value is None:
            return ()
        if not isinstance(self.value, list):
            raise self._odd("a list")
        return [Part(each, self.of, f"{self.path}[{place}]") for place, each in enumerate(self.value)]

    def text(self) -> str:
        """Return a string; empty for null."""
        if self.value is None:
            return ""
        if not isinstance(self.value, str) or not json_object.is_unicode(self.value):
            raise self._odd("a string")
        return self.value

    def name(self) -> str:
        """Return a string that is not empty."""
        if not (text := self.text()):
            raise self._odd("a non-empty string")
        return text

    def number(self) -> int | None:
        if self.value is not None and type(self.value) is not int:  # True is an int to isinstance
            raise self._odd("a whole number")
        return self.value

    def _odd(self, wanted: str) -> CommandError:
        where = f"'{self.path}'" if self.path else "the response"
        return CommandError(
            f"{self.of}: the response is not as expected, because {where} is not {wanted}. Check the address."
        )
