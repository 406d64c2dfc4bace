"""The comparison: tests show our column, the others link to their sources, the README quotes its rows."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.support.pages import page

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = page("comparison.md").read_text(encoding="utf-8")
README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
PRODUCTS: Final = ("Holdfast", '`backend "s3"`', "GitLab", "HCP Terraform")

SHOWN: Final = """
A late write: test_a_write_that_arrives_after_its_client_was_killed_and_its_lock_forced_is_refused
A late write: test_the_lock_of_a_killed_apply_stays_until_it_is_forced_and_its_late_write_is_refused
A late write: test_a_late_write_is_refused_after_the_next_holder_has_written_and_released
A write without a lock: test_an_apply_without_a_lock_is_428_where_the_team_requires_one
Credentials: test_run_gives_the_http_backend_a_session_of_an_aws_profile
Credentials: test_a_ci_job_applies_with_its_id_token_and_with_a_session_and_both_are_the_same_caller
Access to one state: test_every_route_gives_a_role_what_its_table_says_and_every_other_verb_405
Access to one state: test_a_token_with_two_grants_writes_its_own_states_and_reads_anothers_outputs
Read outputs alone: test_a_configuration_with_cloud_reads_outputs_that_its_own_token_does_not
Force-unlock: test_a_writer_cannot_force_anothers_lock
Force-unlock: test_who_removes_whose_lock_by_which_request
History: test_every_version_of_a_state_is_kept_for_as_long_as_the_team_says
History: test_a_version_under_retention_is_deleted_by_nobody_but_who_bypasses_it
Undo: test_a_state_goes_back_and_a_plan_shows_the_difference
Undo: test_a_deleted_state_is_listed_and_comes_back
Freeze: test_every_client_prints_why_a_state_is_frozen_and_only_unfreeze_lifts_it
What is recorded: test_each_thing_that_happened_is_one_event
What is recorded: test_the_trail_tells_who_did_what_and_is_followed
Storage and key: test_two_teams_share_nothing
Storage and key: test_the_bucket_denies_exactly_what_the_table_says
Largest state: test_terraform_applies_and_plans_a_state_of_5_mb
Largest state: test_the_biggest_state_that_the_platform_takes_can_be_read_and_one_byte_more_is_413
Evidence against lost writes: test_a_fault_in_the_code_is_found_and_a_short_history_is_told
Evidence against lost writes: test_every_invariant_has_a_deliberate_fault_that_breaks_it_first
What you operate: test_a_stack_has_no_server_no_table_and_no_queue
Price: test_the_document_is_computed_from_the_counted_requests
Price: test_a_verb_sends_no_more_requests_than_promised
Price: test_a_plan_notices_a_change_and_saves_nothing_and_an_apply_saves_it
Leaving: test_it_takes_over_a_state_where_it_is_and_overwrites_the_next_holder_once_it_has_lost_its_lock
Workspaces: test_a_forced_unlock_removes_no_lock_but_the_one_that_its_process_saw
Workspaces: test_a_workspace_of_an_earlier_backend_is_found
Runs, UI, policies: test_every_deployed_route_is_described_and_no_other
Runs, UI, policies: test_a_state_is_found_by_a_few_letters_and_the_heads_sort
"""
"""The tests that show what the column of Holdfast says, each behind its row."""


def rows(document: str, products: Sequence[str] = PRODUCTS) -> list[list[str]]:
    """Return the cells of every row of a table that compares products."""
    [_, table] = document.split(f"| | {' | '.join(products)} |\n")
    lines = table.partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def unlinked(cells: list[str]) -> list[str]:
    """Return the text of cells without the targets of their links."""
    return [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", cell) for cell in cells]


ROWS: Final = rows(PAGE)


def test_every_row_has_tests_that_exist() -> None:
    shown = [line.split(": ") for line in SHOWN.strip().splitlines()]
    files = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))

    assert list(dict.fromkeys(row for row, _ in shown)) == [name for name, *_ in ROWS]
    assert {name for _, name in shown} <= set(re.findall(r"^def (test_\w+)\(", files, re.MULTILINE))


def test_every_cell_says_something_and_those_of_the_others_link_to_their_source() -> None:
    assert all(len(cells) == 1 + len(PRODUCTS) and all(cells) for cells in ROWS)
    assert [cell for _, _, *others in ROWS for cell in others if "](https://" not in cell] == []


def test_the_readme_quotes_rows_of_the_page() -> None:
    quoted = [unlinked(cells) for cells in rows(README, PRODUCTS[:2])]

    assert quoted
    assert [cells for cells in quoted if cells not in [unlinked(row)[:3] for row in ROWS]] == []
