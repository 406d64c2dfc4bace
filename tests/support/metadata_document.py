"""The table of a state version's metadata in `objects.md`: its fields, with the API's meanings of them."""

import re
from collections.abc import Iterator
from typing import Final

from holdfast.api import v1
from holdfast.s3.object_metadata import VERSION_FIELDS
from tests.support import api_schemas
from tests.support.pages import page

PATH: Final = page("objects.md")
TABLE: Final = re.compile(
    r"(<!-- Begin of the metadata: .*? -->\n).*?(<!-- End of the metadata\. -->)", re.DOTALL
)


def metadata_document() -> str:
    """Return the page with a new table of the metadata."""
    table = "\n".join(_table())
    return TABLE.sub(lambda found: f"{found[1]}\n{table}\n\n{found[2]}", PATH.read_text(encoding="utf-8"))


def _table() -> Iterator[str]:
    meanings = api_schemas.meanings(v1.Version)
    yield "| Metadata | Shown by the API as | Meaning, or why it is hidden |"
    yield "| --- | --- | --- |"
    for name, field in VERSION_FIELDS.items():
        if field.shown_as is None:
            yield f"| `{name}` | hidden | {field.hidden_because} |"
        else:
            # After a semicolon is when the API has null.
            meaning = meanings[field.shown_as].removesuffix(".").partition(";")[0]
            yield f"| `{name}` | `{field.shown_as}` | {meaning[0].lower()}{meaning[1:]} |"
