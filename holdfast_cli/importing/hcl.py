"""Finds blocks and arguments in HCL with their positions, so that a text can be changed in place.

It reads braces, names and values, and evaluates nothing. A block and an object look alike to it. See
https://github.com/hashicorp/hcl/blob/main/hclsyntax/spec.md
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

_TOKEN: Final = re.compile(
    r"""(?P<blank>[ \t\r\ufeff]+|(?:\#|//)[^\n]*|/\*.*?\*/)
    |(?P<name>[^\W\d][\w-]*)
    |(?P<heredoc><<-?(?P<marker>[^\W\d][\w-]*)\r?\n)
    |(?P<quoted>")
    |(?P<separator>[\n,])
    |(?P<open>[{\[(])
    |(?P<close>[}\])])
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_IN_TEMPLATE: Final = re.compile(r'\\.|\$\$\{|%%\{|[$%]\{|["\n]')
_NOT_LITERAL: Final = re.compile(r"(?<!\$)\$\{|(?<!%)%\{")


class NotHclError(Exception):
    """A brace, a quotation mark or a heredoc has no end."""


class _Token(NamedTuple):
    kind: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Item:
    """A block, an argument, or a member of an object.

    Attributes:
        name: the block's type, or the argument's name.
        labels: the block's labels.
        start: the position of its first character; `end` is the position after the last one.
        value_start: the position of the argument's value, or of the block's opening brace.
        value: the value as it is written, or the block's braces with their content.
        items: what the braces of a block or of an object contain.
    """

    name: str
    labels: tuple[str, ...]
    start: int
    value_start: int
    value: str
    items: tuple["Item", ...]

    @property
    def end(self) -> int:
        return self.value_start + len(self.value)

    @property
    def literal(self) -> str | None:
        """Return the text of a quoted value; None for every other value, and for a text with expressions."""
        if not self.value.startswith('"') or _NOT_LITERAL.search(self.value):
            return None
        try:
            text = json.loads(self.value, strict=False)  # HCL escapes as JSON does
        except ValueError:
            return None
        return str(text).replace("$${", "${").replace("%%{", "%{")

    def find(self, name: str) -> "Item | None":
        """Return the first argument or inner block with a name."""
        return next((item for item in self.items if item.name == name), None)


def parse(text: str) -> tuple[Item, ...]:
    """Return the blocks and arguments of a file. NotHclError if it ends too early."""
    return _items(text, [*_tokens(text, 0)], 0)[0]


def _items(text: str, tokens: list[_Token], at: int) -> tuple[tuple[Item, ...], int]:
    """Return what a body or an object contains, and the index of its closing brace."""
    items = []
    while at < len(tokens) and tokens[at].kind != "close":
        first = at
        while at < len(tokens) and tokens[at].kind in ("name", "quoted"):
            at += 1
        names = [text[token.start : token.end].strip('"') for token in tokens[first:at]]
        sign = text[tokens[at].start] if names and at < len(tokens) else ""
        value = at if sign == "{" else at + 1
        if sign == "{" or (sign in ("=", ":") and len(names) == 1 and value < len(tokens)):
            at = _after_value(tokens, value)
            start, end = tokens[value].start, tokens[at - 1].end
            inner = _items(text, tokens, value + 1)[0] if text[start] == "{" else ()
            items.append(Item(names[0], tuple(names[1:]), tokens[first].start, start, text[start:end], inner))
        else:  # a separator, or what is no argument, such as the beginning of a `for`
            at = max(_after_value(tokens, at), first + 1)
    return tuple(items), at


def _after_value(tokens: list[_Token], at: int) -> int:
    """Return the index of the token that ends a value: a line end, a comma, or another closing brace."""
    depth = 0
    while at < len(tokens) and (depth or tokens[at].kind not in ("separator", "close")):
        depth += {"open": 1, "close": -1}.get(tokens[at].kind, 0)
        at += 1
    return at


def _tokens(text: str, at: int, *, nested: bool = False) -> Iterator[_Token]:
    """Yield the tokens from a position on: to the end, or if `nested` to the end of an interpolation."""
    depth = 0
    while found := _TOKEN.match(text, at):
        kind, end = str(found.lastgroup), found.end()
        if kind in ("quoted", "heredoc"):
            end = _template_end(text, end, found["marker"])
        depth += {"open": 1, "close": -1}.get(kind, 0)
        if kind != "blank":
            yield _Token(kind, at, end)
        if depth < 0:
            break
        at = end
    if depth != (-1 if nested else 0):
        raise NotHclError


def _template_end(text: str, at: int, marker: str | None) -> int:
    """Return the end of a heredoc with this marker, or of a quoted text if there is no marker."""
    last = re.compile(rf"[ \t]*{marker}(?=[ \t\r]*(\n|\Z))")
    if marker and (found := last.match(text, at)):
        return found.end()
    while found := _IN_TEMPLATE.search(text, at):
        at = found.end()
        if found[0] in ("${", "%{"):
            *_, closing = _tokens(text, at, nested=True)
            at = closing.end
        elif found[0] == '"' and not marker:
            return at
        elif found[0] == "\n":
            if not marker:
                break
            if end := last.match(text, at):
                return end.end()
    raise NotHclError
