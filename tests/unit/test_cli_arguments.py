"""Values of options: a user can type each value that the help shows."""

from argparse import ArgumentTypeError
from datetime import timedelta

import pytest

from holdfast.access import Role
from holdfast.identity.sessions import DEFAULT_SECONDS, MAX_SECONDS, MIN_SECONDS
from holdfast.identity.tokens import DEFAULT_LIFETIME
from holdfast.team import is_name
from holdfast_cli.config.arguments import ROLES_HELP
from holdfast_cli.config.rules import duration, shown


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (DEFAULT_LIFETIME, "90d"),
        (timedelta(days=1), "24h"),
        (timedelta(seconds=DEFAULT_SECONDS), "1h"),
        (timedelta(seconds=MIN_SECONDS), "5m"),
        (timedelta(seconds=MAX_SECONDS), "12h"),
        (timedelta(minutes=90), "90m"),
        (timedelta(seconds=61), "61s"),
        (timedelta(), "0s"),
    ],
)
def test_a_time_span_of_the_help_is_one_that_an_option_takes(span: timedelta, text: str) -> None:
    assert shown(span) == text
    assert duration(text) == span


@pytest.mark.parametrize("text", ["-1h", "1w", "1.5h", "h", "٣h", "99999d"])
def test_a_time_span_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError):
        duration(text)


def test_the_help_says_of_each_role_what_it_allows() -> None:
    _, *lines = ROLES_HELP.splitlines()
    assert [line.split()[0] for line in lines] == [role.value for role in Role]
    assert all(len(line.split()) > 1 for line in lines)


def test_a_team_has_a_name_of_its_rule() -> None:
    assert all(map(is_name, ("a", "payments-2", "a" * 25)))
    assert not any(map(is_name, ("", "a" * 26, "2a", "-a", "A", "ä", "a\n")))
