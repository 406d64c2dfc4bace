"""Exact numbers of JSON documents, which compare by value and never equal true or false."""

from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import NamedTuple

_LARGEST_INDEX = 2**31
_KEPT = 40
"""Characters of the longest cached number: the size of the cache does not depend on the documents."""


class Number(NamedTuple):
    """A number.

    Attributes:
        value: the exact value; if its exponent is too large for a `Decimal`, the text of the number.

    >>> parse("1.0") == parse("1"), parse("1") == True, str(parse("12345678901234567890.10"))
    (True, False, '12345678901234567890.10')
    """

    value: Decimal | str

    def __str__(self) -> str:
        """Return the number as JSON, with its original digits."""
        return str(self.value)

    def as_index(self) -> int | None:
        """Return the number as an index of a list; None if it is not a whole number in range."""
        value = self.value
        if isinstance(value, str) or not 0 <= value < _LARGEST_INDEX or value != int(value):
            return None
        return int(value)


def parse(text: str) -> Number:
    """Parse a number of a JSON document."""
    return _remembered(text) if len(text) <= _KEPT else _parsed(text)


def _parsed(text: str) -> Number:
    try:
        return Number(Decimal(text))
    except InvalidOperation:
        return Number(text)


_remembered = lru_cache(maxsize=4096)(_parsed)
