"""The domain's errors: which codes and statuses they have, that no parent has one, and their tree."""

import inspect
import re
import runpy
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from holdfast import errors
from holdfast.errors import HoldfastError, OutcomeUnknown

PUBLISHED: Final = {
    400: "invalid_state_name invalid_lock_info invalid_state invalid_body invalid_id invalid_document "
    "invalid_request bent_request unknown_route",
    401: "not_authenticated",
    403: "not_allowed not_signed",
    404: "no_state no_versions no_such_version no_resource no_workspace",
    405: "method_not_allowed",
    409: "no_version state_deleted upload_missing serial_not_newer lineage_changed base_changed "
    "unreadable_state unreadable_version unreadable_record encrypted_state upload_altered workspace_exists "
    "resources_tracked just_deleted lock_lost lock_not_matched not_frozen raced_another_writer "
    # A client that retries these by itself, as it does after a 503, could meet the next holder's lock.
    "unlock_undecided delete_undecided restore_undecided undelete_undecided",
    413: "too_large",
    423: "locked frozen not_declared",
    428: "lock_required",
    500: "storage_refused lock_left",
    503: "undecided",
}
LEAVES: Final = {(status, code) for status, codes in PUBLISHED.items() for code in codes.split()}
PARENT: Final = (None, None)


def own(module: Mapping[str, Any]) -> dict[str, tuple[int | None, str | None]]:
    """Return the status and the code that each class of errors has of its own, not from a parent."""
    return {
        name: (vars(error).get("status"), vars(error).get("code"))
        for name, error in module.items()
        if isinstance(error, type) and issubclass(error, module["HoldfastError"])
    }


LEAF_NAMES: Final = [name for name, pair in own(vars(errors)).items() if pair != PARENT]
PARENT_NAMES: Final = [name for name, pair in own(vars(errors)).items() if pair == PARENT]


def tree(parent: type[HoldfastError]) -> str:
    """Return the part of the module's docstring about one cause."""
    by_status: dict[int, list[str]] = {}
    for leaf in parent.__subclasses__():
        below = ", ".join(error.__name__ for error in leaf.__subclasses__())
        by_status.setdefault(leaf.status, []).append(leaf.__name__ + (f" ({below})" if below else ""))
    rows = [
        textwrap.fill(f"{status} {', '.join(names)}", 106, initial_indent=" " * 4, subsequent_indent=" " * 8)
        for status, names in sorted(by_status.items())
    ]
    return "\n".join([f"{parent.__name__}: {inspect.getdoc(parent)}", *rows])


def test_every_leaf_has_a_published_status_and_code_of_its_own_and_no_parent_has_one() -> None:
    assert set(own(vars(errors)).values()) == LEAVES | {PARENT}
    assert len(LEAF_NAMES) == len(LEAVES)


@pytest.mark.parametrize("name", LEAF_NAMES)
def test_a_status_that_moves_to_the_parent_is_found(tmp_path: Path, name: str) -> None:
    source, parent = inspect.getsource(errors), vars(errors)[name].__base__.__name__
    source, taken = re.subn(rf"^(class {name}\(\w+), status=\d+", r"\1", source, flags=re.MULTILINE)
    moved = re.compile(rf"^(class {parent}\(\w+)(, status=\d+)?", re.MULTILINE)
    source, given = moved.subn(r"\1, status=299", source)
    (tmp_path / "mutant.py").write_text(source, encoding="utf-8")

    mutant = runpy.run_path(str(tmp_path / "mutant.py"))

    assert (taken, given, mutant[name].status) == (1, 1, 299)
    assert own(mutant)[name] not in LEAVES
    assert own(mutant)[parent] not in LEAVES | {PARENT}


def test_who_catches_an_outcome_that_a_retry_settles_catches_no_other() -> None:
    assert OutcomeUnknown.__subclasses__() == []


def test_the_head_of_the_module_shows_the_tree() -> None:
    shown = "\n".join(tree(vars(errors)[name]) for name in PARENT_NAMES if name != "HoldfastError")

    assert textwrap.indent(shown, " " * 4) in str(inspect.getdoc(errors)), shown
