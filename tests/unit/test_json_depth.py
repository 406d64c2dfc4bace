"""Deep JSON documents: versions of Python give up at different depths, and sooner where a hook is called."""

import json
from collections.abc import Callable
from contextlib import suppress

import pytest

from holdfast import json_object
from holdfast.errors import InvalidState
from holdfast.state import document


def deepest(nested: Callable[[int], str]) -> int:
    """Return the depth of the deepest value that this Python reads."""
    fits, too_deep = 1, 1_000_000
    while too_deep - fits > 1:
        depth = (fits + too_deep) // 2
        try:
            json.loads(nested(depth))
            fits = depth
        except RecursionError:
            too_deep = depth
    return fits


def list_elements(body: bytes) -> None:
    found = json_object.members(body)
    list(json_object.elements(found["resources"].written(body)))


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_a_document_of_any_depth_is_read_or_refused(opening: str, closing: str) -> None:
    def nested(depth: int) -> str:
        return f"{opening * depth}1{closing * depth}"

    limit = deepest(nested)
    for depth in (limit // 2, *range(limit - 6, limit + 2), limit * 3):
        value = nested(depth).encode()
        body = b'{"version": 4, "serial": 1, "outputs": {"a": %b}, "resources": [%b]}' % (value, value)
        for read in (json_object.parse, json_object.parse_unique, json_object.members, list_elements):
            with suppress(ValueError):
                read(body)
        for judge in (document.parse, document.summary, document.outputs, document.tracks_resources):
            with suppress(InvalidState):
                judge(body)
