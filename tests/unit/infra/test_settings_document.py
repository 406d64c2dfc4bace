"""docs/operate/settings.md is generated from the settings."""

import re
from pathlib import Path

import pytest

from holdfast.team import NAME_RULE
from holdfast_cdk.config import load_teams
from holdfast_cdk.settings import settings_of
from holdfast_cdk.team_settings import Team
from tests.conftest import GeneratedFile
from tests.support.settings_document import PATH, settings_document


def rows() -> dict[str, str]:
    """Return the rows of the table of all settings by name, without it."""
    return dict(re.findall(r"^\| `([a-z_.]+)` \| (.* \| .* \| .+) \|$", settings_document(), re.MULTILINE))


@pytest.mark.generated
def test_the_document_is_generated_from_the_settings(generated_file: GeneratedFile) -> None:
    generated_file(PATH, settings_document())


def test_the_document_has_a_row_for_each_setting_and_each_member() -> None:
    assert [row for row in rows() if "." not in row] == list(settings_of(Team))
    assert [row for row in rows() if row.startswith("history.")] == ["history.days", "history.keep_versions"]


def test_the_rule_for_a_name_is_that_of_the_code() -> None:
    assert NAME_RULE.replace("'", "`") in settings_document()


def test_no_row_leaves_a_column_empty_or_breaks_the_table() -> None:
    assert [name for name, row in rows().items() if [*map(bool, row.split(" | "))] != [True] * 3] == []


def test_a_row_says_what_to_write_and_the_default() -> None:
    assert rows()["require_lock"].startswith(
        'flag | `true` | With `backend "http"`, a client can write a state only if it holds '
    )
    assert rows()["account"].startswith('"123456789012" | from your credentials | ')
    assert rows()["throttling"].startswith("`{ rate = 100, burst = 200 }` | the same | ")
    assert rows()["audit_retention"].startswith("as for `log_retention` | `365` | ")


def test_each_setting_that_changes_in_another_way_than_most_has_a_row_that_says_how() -> None:
    _, _, changes = settings_document().partition("| Setting | On a deployed team |")
    named = re.findall(r"`([a-z_.]+)`", " ".join(re.findall(r"^\| (`.*?) \| ", changes, re.MULTILINE)))

    assert sorted(named) == sorted(
        name for name, (setting, _) in settings_of(Team).items() if setting.deployed
    )


def test_the_example_is_a_teams_file_that_is_taken(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```", settings_document(), re.MULTILINE | re.DOTALL)
    path = tmp_path / "teams.toml"
    path.write_text(example)
    assert [team.name for team in load_teams(path)] == ["platform", "payments"]


def test_each_table_that_a_row_shows_is_taken(tmp_path: Path) -> None:
    tables = re.findall(r"^\| `([a-z_]+)` \| `(\{.*?\})` \|", settings_document(), re.MULTILINE)
    assert [name for name, _ in tables] == [
        *(
            "retention",
            "history",
            "replica",
            "access_logs",
            "audit_archive",
            "notify",
            "throttling",
            "memory",
        ),
        *("domain", "alarms", "tags"),
    ]
    path = tmp_path / "teams.toml"
    path.write_text(
        '[teams.a]\naccount = "123456789012"\nregion = "eu-central-1"\n'
        + "".join(f"{name} = {table}\n" for name, table in tables)
    )
    assert load_teams(path)
