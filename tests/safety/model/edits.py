"""Changes of the production code for the mutants, found by names and syntax, never by source text.

Each names a function and one part of it: a call, a keyword, an error that is raised, a comparison. It is an
error if the function does not contain that part as often as the edit says: no mutant changes nothing.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeVar

_Statements = list[ast.stmt]
_T = TypeVar("_T")

Which = tuple[int, int]
"""The index of a match in the order of the source, from 0, and the expected number of matches."""


class Edit(Protocol):
    """A change of one function, whose name is written as `holdfast.s3.store:Store.write`."""

    @property
    def function(self) -> str: ...

    def change(self, function: ast.FunctionDef) -> None:
        """Change the syntax tree; ValueError unless it has as many matches as the edit expects."""
        ...


def apply(edits: Sequence[Edit], functions: Path) -> None:
    """Change a copy of `functions/`; ValueError if a function does not exist, or as in `Edit.change`."""
    for edit in edits:
        module, _, name = edit.function.partition(":")
        file = functions.joinpath(*module.split(".")).with_suffix(".py")
        if not file.is_file():
            raise ValueError(f"there is no module {module}")
        tree = ast.parse(file.read_text(encoding="utf-8"))
        before = ast.dump(tree)
        try:
            edit.change(_function(tree, name))
        except ValueError as error:
            raise ValueError(f"{edit.function}: {error}") from None
        if ast.dump(tree) == before:
            raise ValueError(f"{edit.function}: {edit} changes nothing")
        file.write_text(ast.unparse(ast.fix_missing_locations(tree)), encoding="utf-8")


# --- the changes ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Returns:
    """The function only returns a value."""

    function: str
    value: str

    def change(self, function: ast.FunctionDef) -> None:
        function.body = _statements(f"return {self.value}")


@dataclass(frozen=True, slots=True)
class WithoutCall:
    """Remove the statement that calls `called`."""

    function: str
    called: str
    which: Which = (0, 1)

    def change(self, function: ast.FunctionDef) -> None:
        block, index = _pick(_calling(function, self.called), self.called, self.which)
        block[index : index + 1] = [ast.Pass()]


@dataclass(frozen=True, slots=True)
class OnlyIf:
    """Run the statement that calls `called`, or sets the key `called`, only if a condition holds."""

    function: str
    called: str
    condition: str
    which: Which = (0, 1)

    def change(self, function: ast.FunctionDef) -> None:
        found = (*_calling(function, self.called), *_setting(function, self.called))
        block, index = _pick(found, self.called, self.which)
        block[index] = ast.If(_expression(self.condition), [block[index]], [])


@dataclass(frozen=True, slots=True)
class Before:
    """Insert statements before the statement that calls `called`."""

    function: str
    called: str
    code: str
    which: Which = (0, 1)

    def change(self, function: ast.FunctionDef) -> None:
        block, index = _pick(_calling(function, self.called), self.called, self.which)
        block[index:index] = _statements(self.code)


@dataclass(frozen=True, slots=True)
class Swapped:
    """Swap two adjacent statements: the first calls `first`, the second calls `second`."""

    function: str
    first: str
    second: str

    def change(self, function: ast.FunctionDef) -> None:
        seconds = [(id(block), index) for block, index in _calling(function, self.second)]
        found = [
            (block, index)
            for block, index in _calling(function, self.first)
            if (id(block), index + 1) in seconds
        ]
        block, index = _pick(found, f"{self.first} before {self.second}", (0, 1))
        block[index], block[index + 1] = block[index + 1], block[index]


@dataclass(frozen=True, slots=True)
class Calls:
    """Replace the call of `called` by an expression."""

    function: str
    called: str
    by: str

    def change(self, function: ast.FunctionDef) -> None:
        _replace(function, lambda node: _called(node) == self.called, self.by, f"a call of {self.called}")


@dataclass(frozen=True, slots=True)
class Argument:
    """Replace a positional argument of the call of `called` by an expression."""

    function: str
    called: str
    position: int
    by: str
    which: Which = (0, 1)

    def change(self, function: ast.FunctionDef) -> None:
        calls = [node for node in _in_order(function) if _called(node) == self.called]
        call = _pick(calls, f"a call of {self.called}", self.which)
        if not isinstance(call, ast.Call) or len(call.args) <= self.position:
            raise ValueError(f"{self.called} has no argument {self.position}")
        call.args[self.position] = _expression(self.by)


@dataclass(frozen=True, slots=True)
class WithoutKey:
    """Remove a keyword argument of a call, or the statement that sets this key."""

    function: str
    key: str

    def change(self, function: ast.FunctionDef) -> None:
        calls = [
            (node, keyword)
            for node in ast.walk(function)
            if isinstance(node, ast.Call)
            for keyword in node.keywords
            if keyword.arg == self.key
        ]
        sets = list(_setting(function, self.key))
        if len(calls) + len(sets) != 1:
            raise ValueError(f"{len(calls) + len(sets)} times: the key {self.key}")
        for call, keyword in calls:
            call.keywords.remove(keyword)
        for block, index in sets:
            block[index] = ast.Pass()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Change the outcome of a status of S3 in the function's table of outcomes."""

    function: str
    status: int
    means: str

    def change(self, function: ast.FunctionDef) -> None:
        tables = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.Dict)
            and any(isinstance(key, ast.Constant) and isinstance(key.value, int) for key in node.keys)
        ]
        table = _only(tables, "a table of outcomes")
        kept = [
            (key, value)
            for key, value in zip(table.keys, table.values, strict=True)
            if not (isinstance(key, ast.Constant) and key.value == self.status)
        ]
        table.keys = [*(key for key, _ in kept), ast.Constant(self.status)]
        table.values = [*(value for _, value in kept), _expression(self.means)]


@dataclass(frozen=True, slots=True)
class NeverRaises:
    """Never raise an error. `error` is its class, or the function that creates it."""

    function: str
    error: str
    which: Which = (0, 1)

    def change(self, function: ast.FunctionDef) -> None:
        found = [
            node
            for node in _in_order(function)
            if isinstance(node, ast.If)
            and any(isinstance(one, ast.Raise) and _called(one.exc) == self.error for one in node.body)
        ]
        _pick(found, f"a raise of {self.error}", self.which).test = ast.Constant(value=False)


@dataclass(frozen=True, slots=True)
class Condition:
    """Replace the condition of the `if` that mentions a name by an expression."""

    function: str
    mentions: str
    by: str
    which: Which = (0, 1)

    def change(self, function: ast.FunctionDef) -> None:
        found = [
            node
            for node in _in_order(function)
            if isinstance(node, ast.If) and _mentions(node.test, self.mentions)
        ]
        chosen = _pick(found, f"an if that mentions {self.mentions}", self.which)
        chosen.test = _expression(self.by)


@dataclass(frozen=True, slots=True)
class WithoutOperand:
    """Remove the operand of `and` or `or` that mentions a name."""

    function: str
    mentions: str

    def change(self, function: ast.FunctionDef) -> None:
        found = [
            (node, operand)
            for node in ast.walk(function)
            if isinstance(node, ast.BoolOp)
            for operand in node.values
            if _mentions(operand, self.mentions)
        ]
        node, operand = _only(found, f"an operand that mentions {self.mentions}")
        node.values.remove(operand)


_COMPARISONS: Final[dict[str, type[ast.cmpop]]] = {"<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE}


@dataclass(frozen=True, slots=True)
class Compares:
    """Replace the only comparison with this operator by another comparison."""

    function: str
    operator: str
    by: str

    def change(self, function: ast.FunctionDef) -> None:
        found = [
            node
            for node in ast.walk(function)
            if isinstance(node, ast.Compare) and isinstance(node.ops[0], _COMPARISONS[self.operator])
        ]
        _only(found, self.operator).ops = [_COMPARISONS[self.by]()]


@dataclass(frozen=True, slots=True)
class Replaced:
    """Replace a statement, found by its syntax tree, by other statements."""

    function: str
    old: str
    new: str

    def change(self, function: ast.FunctionDef) -> None:
        (old,) = _statements(self.old)
        wanted = ast.dump(old)
        found = [(block, index) for block, index in _all(function) if ast.dump(block[index]) == wanted]
        block, index = _pick(found, self.old, (0, 1))
        block[index : index + 1] = _statements(self.new)


# --- finding --------------------------------------------------------------------------------------


def _function(tree: ast.Module, name: str) -> ast.FunctionDef:
    found: Sequence[ast.stmt] = tree.body
    *classes, last = name.split(".")
    for wanted in classes:
        found = _only(
            [node for node in found if isinstance(node, ast.ClassDef) and node.name == wanted],
            f"the class {wanted}",
        ).body
    return _only(
        [node for node in found if isinstance(node, ast.FunctionDef) and node.name == last],
        f"the function {name}",
    )


def _in_order(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield every node of a function in the order of the source."""
    waiting: list[ast.AST] = [function]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(ast.iter_child_nodes(node))))


def _all(function: ast.FunctionDef) -> Iterator[tuple[_Statements, int]]:
    """Yield every statement of a function: its block, and its index in the block."""
    for node in _in_order(function):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                yield from ((block, index) for index in range(len(block)))


def _calling(function: ast.FunctionDef, called: str) -> list[tuple[_Statements, int]]:
    """Return the simple statements (without a body) that call something."""
    return [
        (block, index)
        for block, index in _all(function)
        if not hasattr(block[index], "body")
        and any(_called(node) == called for node in ast.walk(block[index]))
    ]


def _setting(function: ast.FunctionDef, key: str) -> list[tuple[_Statements, int]]:
    """Return the statements that set this key of something."""
    found = []
    for block, index in _all(function):
        statement = block[index]
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
            where = statement.targets[0].slice
            if isinstance(where, ast.Constant) and where.value == key:
                found.append((block, index))
    return found


def _called(node: ast.AST | None) -> str | None:
    """Return the name that a node calls, without its module or object; None if the node is not a call."""
    if not isinstance(node, ast.Call):
        return None
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def _mentions(node: ast.AST, name: str) -> bool:
    return any(
        (isinstance(part, ast.Name) and part.id == name)
        or (isinstance(part, ast.Attribute) and part.attr == name)
        for part in ast.walk(node)
    )


def _pick(found: Sequence[_T], what: str, which: Which) -> _T:
    number, of = which
    if len(found) != of:
        raise ValueError(f"{len(found)} times: {what}")
    return found[number]


def _only(found: Sequence[_T], what: str) -> _T:
    if len(found) != 1:
        raise ValueError(f"{len(found)} times: {what}")
    return found[0]


def _replace(function: ast.FunctionDef, is_wanted: Callable[[ast.AST], bool], by: str, what: str) -> None:
    class Replacer(ast.NodeTransformer):
        count = 0

        def visit(self, node: ast.AST) -> ast.AST:
            if is_wanted(node):
                Replacer.count += 1
                return _expression(by)
            visited: ast.AST = self.generic_visit(node)
            return visited

    Replacer().visit(function)
    if Replacer.count != 1:
        raise ValueError(f"{Replacer.count} times: {what}")


def _statements(code: str) -> _Statements:
    # Parsed within a function and a loop, so that `return` and `continue` are valid.
    body = "\n".join(f"        {line}" for line in code.splitlines())
    (made,) = ast.parse(f"def f():\n    while True:\n{body}").body
    assert isinstance(made, ast.FunctionDef)
    (loop,) = made.body
    assert isinstance(loop, ast.While)
    return loop.body


def _expression(code: str) -> ast.expr:
    return ast.parse(code, mode="eval").body
