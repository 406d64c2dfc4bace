"""The roles with which a verb's description in docs/openapi.yaml begins, from the table of `access_calls`."""

import re
from collections.abc import Sequence
from textwrap import fill
from typing import Final

from holdfast.access import Role
from tests.support.access_calls import CALLS

_INDENT: Final = 8 * " "
_WIDTH: Final = 120
_PART: Final = re.compile(
    r"^  (?P<path>/\S+):$"
    r"|^    (?P<verb>[a-z]+):$"
    rf"|^{_INDENT}Roles? `\w+`(?:(?:, `\w+`)* and `\w+`)?(?P<more>[.:]|, for)"
    rf"(?P<rest>.*\n(?:{_INDENT}[^\s-].*\n)*)",
    re.MULTILINE,
)
"""A path, a verb, or a paragraph that begins with roles."""


def with_roles(description: str) -> str:
    """Return the description of the API with the roles that may send each request."""
    path = verb = ""

    def replace(part: re.Match[str]) -> str:
        nonlocal path, verb
        path, verb = part["path"] or path, part["verb"] or verb
        if part["rest"] is None:
            return part[0]
        paragraph = f"{_named(_allowed(path, verb.upper()))}{part['more']}{part['rest']}"
        lines = fill(
            " ".join(paragraph.split()),
            _WIDTH,
            initial_indent=_INDENT,
            subsequent_indent=_INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return f"{lines}\n"

    return _PART.sub(replace, description)


def _allowed(path: str, verb: str) -> list[Role]:
    """Return the roles that no request of the verb and the path refuses."""
    calls = [call for call in CALLS if (call.method, call.route) == (verb, path)]
    return [role for role in Role if calls and all(role in call.allows for call in calls)]


def _named(roles: Sequence[Role]) -> str:
    *most, last = (f"`{role}`" for role in roles)
    return f"Roles {', '.join(most)} and {last}" if most else f"Role {last}"
