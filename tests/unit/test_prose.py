"""The check of the words finds them, and finds them in prose alone."""

import re

import pytest

from tests import prose

MODULE = """\"\"\"What there is.\"\"\"

value = 1  # whoever reads it
\"\"\"It tells of `whoever`.\"\"\"
raise ValueError("there is no such state")
code = "guess = remembered if first else None"
"""


@pytest.mark.parametrize("rule", prose.RULES, ids=lambda rule: rule.instead)
def test_a_rule_finds_its_bad_example_and_not_its_good_one(rule: prose.Rule) -> None:
    assert any(prose.faults(prose.Text(1, rule.bad.capitalize(), is_document=True)))
    assert any(prose.faults(prose.Text(1, rule.bad))) != rule.only_documents
    assert [*prose.faults(prose.Text(1, rule.good, is_document=True))] == []
    assert re.search(rule.pattern, rule.bad)


@pytest.mark.parametrize("good", ["no such state: network/prod"])
def test_no_rule_finds_a_sentence_that_is_good(good: str) -> None:
    assert [*prose.faults(prose.Text(1, good))] == []


def test_a_docstring_a_comment_and_a_message_are_looked_at_and_code_in_them_is_not() -> None:
    places = [
        (text.line, fault.partition(":")[0])
        for text in prose.of_module(MODULE)
        for fault in prose.faults(text)
    ]

    assert sorted(places) == [
        (1, "a docstring opens with 'What '"),
        (3, "'whoever'"),
        (4, "'tells of'"),
        (5, "'no such'"),
    ]


def test_a_document_is_looked_at_and_its_code_and_the_targets_of_its_links_are_not() -> None:
    page = "# A page\n\n| a |\n| --- |\n| whoever |\n\n`whoever` [a](whoever.md)\n\n```\nwhoever\n```\n"

    assert [text.line for text in prose.of_document(page) if any(prose.faults(text))] == [5]


def test_a_long_sentence_of_a_document_is_a_fault() -> None:
    words = "a " * prose.LONGEST_SENTENCE

    [] = [fault for text in prose.of_document(f"{words.strip()}.\n") for fault in prose.faults(text)]
    [fault] = [fault for text in prose.of_document(f"{words}b.\n") for fault in prose.faults(text)]
    assert fault.startswith("a sentence of 41 words")
