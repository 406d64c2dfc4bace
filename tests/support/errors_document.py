"""The table of codes in `error-codes.md`: status, code and the first sentence of each class of errors."""

import re
from collections.abc import Iterator
from typing import Final

from holdfast import errors
from holdfast.errors import HoldfastError
from tests.support.pages import page

PATH: Final = page("error-codes.md")
TABLE: Final = re.compile(r"(<!-- Begin of the codes: .*? -->\n).*?(<!-- End of the codes\. -->)", re.DOTALL)
FAULT: Final = (500, "fault", "Holdfast has a bug, or an object in the bucket is damaged")
"""The row for any other exception, which has no class."""


def codes() -> set[tuple[int, str, str]]:
    """Return status, code and meaning of every error."""
    classes = [each for each in vars(errors).values() if isinstance(each, type)]
    leaves = [each for each in classes if issubclass(each, HoldfastError) and "code" in vars(each)]
    return {(error.status, error.code, _first_sentence(error)) for error in leaves} | {FAULT}


def errors_document() -> str:
    """Return the page with a new table of the errors."""
    table = "\n".join(_table())
    return TABLE.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", PATH.read_text(encoding="utf-8"))


def _table() -> Iterator[str]:
    yield "| Status | Code | It means |"
    yield "| --- | --- | --- |"
    for status, code, meaning in sorted(codes()):
        yield f"| {status} | `{code}` | {meaning} |"


def _first_sentence(error: type[HoldfastError]) -> str:
    return re.split(r"\.(?:\s|$)", error.__doc__ or "")[0]
