"""Reads blocks and arguments of HCL with their positions, so that a text can be changed in place.

Nothing is evaluated, and a block and an object look alike. `hcl2` does not read all of HCL: to it, names
beyond ASCII, and comments or line ends at some places within a header or an expression, are errors.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

_EXPRESSION: Final = re.compile(r"(?<!\$)\$\{|(?<!%)%\{")
_LITERALS: Final = (
    "string",
    "int_lit",
    "float_lit",
    "literal_value",
    "heredoc_template",
    "heredoc_template_trim",
)


class NotHclError(ValueError):
    """The text is not HCL, or HCL that `hcl2` does not read."""


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
        tree: the value as a tree of `hcl2`.
    """

    name: str
    labels: tuple[str, ...]
    start: int
    value_start: int
    value: str
    items: tuple["Item", ...]
    tree: Any = field(repr=False, compare=False)

    @property
    def end(self) -> int:
        return self.value_start + len(self.value)

    @property
    def literal(self) -> str | float | None:
        """Return a text, a number or a boolean; None for every other value, and a text with expressions."""
        from hcl2 import SerializationOptions, transform

        if self.tree.data not in _LITERALS or _EXPRESSION.search(self.value):
            return None
        value: str | float | None = transform(self.tree).serialize(
            SerializationOptions(preserve_heredocs=False)
        )
        if not isinstance(value, str):
            return value
        try:
            return str(json.loads(_unescaped(value), strict=False))  # HCL escapes as JSON does
        except ValueError:
            return None

    def find(self, name: str) -> "Item | None":
        """Return the first argument or inner block with a name."""
        return next((item for item in self.items if item.name == name), None)


def text_of(template: str) -> str | None:
    """Return the text of a template; None if it has expressions."""
    return None if _EXPRESSION.search(template) else _unescaped(template)


def _unescaped(template: str) -> str:
    return template.replace("$${", "${").replace("%%{", "%{")


def parse(text: str) -> tuple[Item, ...]:
    """Return the blocks and arguments of a file; NotHclError if it cannot be parsed."""
    from hcl2 import parses_to_tree  # takes a third of a second, and few commands read HCL
    from lark.exceptions import LarkError

    try:
        tree = parses_to_tree(re.sub(r"\A\ufeff", " ", text))
    except LarkError as error:
        raise NotHclError("it is not HCL") from error
    return _items(text, tree.children[0])


def _items(text: str, body: Any) -> tuple[Item, ...]:
    """Return what a body or an object contains; its other children are tokens, comments and line ends."""
    kinds = {"block": _block, "attribute": _argument, "object_elem": _argument}
    return tuple(kinds[tree.data](text, tree) for tree in body.children if getattr(tree, "data", "") in kinds)


def _block(text: str, tree: Any) -> Item:
    *header, brace, body, _ = tree.children
    name, *labels = (_name(text, each) for each in header if each.data != "new_line_or_comment")
    start = brace.start_pos
    value = text[start : tree.meta.end_pos]
    return Item(name, tuple(labels), tree.meta.start_pos, start, value, _items(text, body), body)


def _argument(text: str, tree: Any) -> Item:
    name, _, value = tree.children
    start, last = value.meta.start_pos, value
    while hasattr(last, "data"):  # a comment after an operation belongs to its tree, but not to the value
        last = [each for each in last.children if getattr(each, "data", "") != "new_line_or_comment"][-1]
    inner = value.children[0] if value.data == "expr_term" and len(value.children) == 1 else value
    items = _items(text, inner) if inner.data == "object" else ()
    written = text[start : last.end_pos].rstrip()  # a heredoc's last token ends with the line
    return Item(_name(text, name), (), tree.meta.start_pos, start, written, items, inner)


def _name(text: str, tree: Any) -> str:
    return text[tree.meta.start_pos : tree.meta.end_pos].strip('"')
