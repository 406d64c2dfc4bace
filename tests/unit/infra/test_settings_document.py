"""docs/operate/settings.md is generated from the settings."""

import re
from pathlib import Path

import pytest

from holdfast.team import NAME_RULE
from infra.config import TeamConfig, load_teams
from infra.settings import settings_of
from tests.conftest import GeneratedFile
from tests.support.settings_document import PATH, settings_document


@pytest.mark.generated
def test_the_document_is_generated_from_the_settings(generated_file: GeneratedFile) -> None:
    generated_file(PATH, settings_document())


def test_the_document_has_a_row_for_each_setting_and_each_member() -> None:
    rows = re.findall(r"^\| `([a-z_.]+)` \|", settings_document(), re.MULTILINE)
    assert [row for row in rows if "." not in row] == list(settings_of(TeamConfig))
    assert [row for row in rows if row.startswith("retention.")] == [
        "retention.mode",
        "retention.days",
        "retention.bucket_default",
    ]


def test_the_rule_for_a_name_is_that_of_the_code() -> None:
    assert NAME_RULE.replace("'", "`") in settings_document()


def test_no_row_leaves_a_column_empty_or_breaks_the_table() -> None:
    table = [line for line in settings_document().splitlines() if line.startswith("| `")]
    assert table
    for line in table:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert len(cells) == 5, line
        assert all(cells), line


def test_a_row_says_what_to_write_the_default_and_what_can_be_changed() -> None:
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| (.*) \|$", settings_document(), re.MULTILINE))
    assert rows["key"] == (
        '"kms" or "s3" | `"kms"` | encrypts with a KMS key of the team\'s own, or with keys that S3 manages; '
        "with `kms` most writes send one request less to S3 "
        '| "s3" to "kms" only; versions that exist keep theirs'
    )
    assert rows["account"].endswith(" | never: makes another stack")
    assert "| `{ rate = 100, burst = 200 }` |" in rows["throttling"]


def test_the_example_is_a_teams_file_that_is_taken(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```", settings_document(), re.MULTILINE | re.DOTALL)
    path = tmp_path / "teams.toml"
    path.write_text(example)
    assert [team.name for team in load_teams(path)] == ["platform", "payments"]


def test_each_table_that_a_row_shows_is_taken(tmp_path: Path) -> None:
    tables = re.findall(r"^\| `([a-z_]+)` \| `(\{.*?\})` \|", settings_document(), re.MULTILINE)
    assert [name for name, _ in tables] == [
        *("retention", "history", "access_logs", "throttling", "memory", "tags"),
    ]
    path = tmp_path / "teams.toml"
    path.write_text("[teams.a]\n" + "".join(f"{name} = {table}\n" for name, table in tables))
    assert load_teams(path)
