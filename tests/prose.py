"""The words that the documents, docstrings, comments and messages do not use, and what they write instead.

    python -m tests.prose           fails with each place, the words, and what to write
    python -m tests.prose FILE...   looks at these files only

A rule is a row of `RULES`. It comes from a sentence that had to be read twice.
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT: Final = Path(__file__).resolve().parents[1]
PLACES: Final = ("functions", "holdfast_cli", "infra", "local_aws", "benchmarks", "tests", "docs", "app.py")
PAGES: Final = ("README.md", "CONTRIBUTING.md", "SECURITY.md")
OWN: Final = ("prose.py", "test_prose.py")
"""These files quote what is not to be written."""
LONGEST_SENTENCE: Final = 40
"""Words of a sentence in a document."""


class Rule(NamedTuple):
    """Words that are not used: a pattern, what to write, and an example of both."""

    pattern: str
    instead: str
    bad: str
    good: str
    only_documents: bool = False


RULES: Final = (
    Rule(r"\bwho(?:m|so)?ever\b", "the person", "whoever holds it", "the holder"),
    Rule(r"\b(?:told|tells?|telling) of\b", "verb and object", "it tells of a fault", "it names the fault"),
    Rule(r"\b(?:is|are|was|were) (?-i:none)\b", "there is no", "if there is none", "if there is no lock"),
    Rule(r"\bone (?:that|which|who)\b", "the noun", "one that is held", "a held lock"),
    Rule(r"\bwhat (?:is|are|was|were) (?:\w+ )?of\b", "the noun", "what is stored of it", "its record"),
    Rule(r"\bnor (?:is|are|does|do|was)\b", "a second sentence", "nor is it read", "It is not read."),
    Rule(
        r"\bthat (?:there (?:is|are)|are there|is there)\b", "the noun", "roles that there are", "the roles"
    ),
    Rule(r"\bof (?:theirs|his|hers)\b", "their", "a lock of theirs", "their lock"),
    Rule(
        r"\b(?:nothing|much|none) of (?:it|them|its|which)\b", "no", "nothing of it counts", "no part counts"
    ),
    Rule(
        r"\b(?:stands?|stood) (?:in|beside|at|here|below|above|for)\b", "is", "it stands in a", "it is in a"
    ),
    Rule(r"\bis so\b", "the fact", "it is so since", "frozen since"),
    Rule(r"\bno such\b(?! \w+:)", "does not exist", "there is no such state", "the state does not exist"),
    Rule(
        r"\b(?:take|takes|took|taken|taking) (?:the|a|its|their|this|that) (?:state's )?locks?\b",
        *("acquire", "takes the lock", "acquires the lock"),
    ),
    Rule(
        r"\b(?:gave|giv(?:e|es|en|ing)) (?:(?:it|them|(?:the|a|its|their) lock) )?back\b",
        *("release, return", "gives it back", "releases it"),
    ),
    Rule(r"\bremember(?:s|ed|ing)?\b", "cache, store", "what is remembered", "the cached version"),
    Rule(r"\bundecided\b", "outcome unknown", "an undecided write", "a write with an unknown outcome"),
    Rule(r"\btak(?:e|es|ing) the role\b", "need", "takes the role writer", "needs the role writer"),
    Rule(r"\bthe one of\b", "the noun", "the one of the state", "the state's lock"),
    Rule(r"\ban own\b", "of its own", "an own lock", "a lock of its own", only_documents=True),
    Rule(r"\bbeside\b", "next to, with", "beside the plan", "next to the plan", only_documents=True),
    Rule(
        r"\balso (?:if|with|without)\b",
        *("even if, even with", "also if it fails", "even if it fails"),
        only_documents=True,
    ),
)

_RULES: Final = [(re.compile(rule.pattern, re.IGNORECASE), rule) for rule in RULES]
_OPENING: Final = re.compile(r"(?:What|Whom|Whether|Of) (?!to\b|happens\b|changed\b)")
_CODE: Final = re.compile(r"`[^`]*`|https?://\S+")


class Text(NamedTuple):
    """A piece of prose, and the line on which it begins."""

    line: int
    words: str
    opens_docstring: bool = False
    is_document: bool = False


def of_document(text: str) -> Iterator[Text]:
    """Yield the paragraphs, cells and headings of a document, without code."""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "inline" and token.map:
            yield Text(token.map[0] + 1, "".join(map(_spoken, token.children or ())), is_document=True)


def _spoken(part: Token) -> str:
    """Return the words of a part of a line; code stands for one."""
    match part.type:
        case "text":
            return part.content
        case "softbreak" | "hardbreak":
            return " "
        case "code_inline":
            return "x"
        case _:
            return ""


def of_module(text: str) -> Iterator[Text]:
    """Yield the docstrings, the comments and the messages of a module.

    A message is a literal of three words or more that is not Python.
    """
    tree = ast.parse(text)
    docstrings = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_prose(node.value):
            yield Text(node.lineno, _CODE.sub("x", node.value), opens_docstring=id(node) in docstrings)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield Text(token.start[0], _CODE.sub("x", token.string))


def _is_prose(literal: str) -> bool:
    if literal.count(" ") < 2:
        return False
    try:
        ast.parse(literal)
    except (SyntaxError, ValueError):
        return True
    return False


def faults(text: Text) -> Iterator[str]:
    """Yield what a piece of prose should not have, and what to write instead."""
    for pattern, rule in _RULES:
        if rule.only_documents and not text.is_document:
            continue
        for words in pattern.findall(text.words):
            yield f"{words!r}: write {rule.instead}, as in {rule.good!r}"
    if text.opens_docstring and (opening := _OPENING.match(text.words)):
        yield f"a docstring opens with {opening[0]!r}: begin with the subject or the verb"
    if text.is_document:
        for sentence in re.split(r"(?<=[.!?:;]) ", text.words):
            if len(sentence.split()) > LONGEST_SENTENCE:
                yield f"a sentence of {len(sentence.split())} words: {' '.join(sentence.split()[:6])} ..."


def files(names: Iterable[str]) -> Iterator[Path]:
    """Yield the documents and modules among some files and below some folders."""
    for path in (ROOT / name for name in names):
        paths = [path] if path.is_file() else sorted(path.rglob("*"))
        yield from (each for each in paths if each.suffix in (".md", ".py") and each.name not in OWN)


def main(names: Sequence[str]) -> int:
    """Print each fault of the files, of all of them if none is named; return 1 if there is a fault."""
    number = 0
    for path in files(names or (*PLACES, *PAGES)):
        read = of_document if path.suffix == ".md" else of_module
        for text in read(path.read_text(encoding="utf-8")):
            for fault in faults(text):
                number += 1
                print(f"{path.relative_to(ROOT)}:{text.line}: {fault}")
    return 1 if number else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
