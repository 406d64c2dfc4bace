"""The search: its interleavings can be replayed, its mutants apply, and it says if it is incomplete."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.safety.model import hunt
from tests.safety.model.edits import (
    Compares,
    Condition,
    Edit,
    NeverRaises,
    Replaced,
    Returns,
    WithoutCall,
    WithoutKey,
    WithoutOperand,
)
from tests.safety.model.invariants import Invariant
from tests.safety.model.mutants import MUTANTS, Mutant
from tests.safety.model.production import FUNCTIONS
from tests.safety.model.scenarios import BY_NAME, LIMITS, PLANS, Bounds


def _replay(interleaving: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.safety", "replay", interleaving],
        cwd=FUNCTIONS.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_every_invariant_has_a_deliberate_fault_that_breaks_it_first() -> None:
    assert {mutant.breaks for mutant in MUTANTS} == set(Invariant)


def test_names_of_scenarios_and_mutants_are_told_apart() -> None:
    assert len(BY_NAME) == len(PLANS) + len(LIMITS)
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (Returns("holdfast.state.gone:write", "None"), "there is no module holdfast.state.gone"),
        (Returns("holdfast.state.write:gone", "None"), "0 times: the function gone"),
        (Returns("holdfast.s3.store:Gone.write", "None"), "0 times: the class Gone"),
        (WithoutCall("holdfast.state.write:write", "gone"), "0 times: gone"),
        (WithoutCall("holdfast.state.write:write", "check_same_lock"), "2 times: check_same_lock"),
        (WithoutKey("holdfast.s3.store:Store.write", "Gone"), "0 times: the key Gone"),
        (NeverRaises("holdfast.state.guards:check_lock", "Gone"), "0 times: a raise of Gone"),
        (Condition("holdfast.state.write:write", "gone", "True"), "0 times: an if that mentions gone"),
        (
            WithoutOperand("holdfast.state.guards:check_lock", "gone"),
            "0 times: an operand that mentions gone",
        ),
        (Compares("holdfast.state.guards:check_lock", "<", "<="), "0 times: <"),
        (Replaced("holdfast.state.write:write", "break", "pass"), "0 times: break"),
    ],
)
def test_a_mutant_whose_target_is_gone_or_ambiguous_is_an_error(
    tmp_path: Path, edit: Edit, said: str
) -> None:
    functions = shutil.copytree(FUNCTIONS, tmp_path / "functions")
    with pytest.raises(ValueError, match=re.escape(said)):
        Mutant("gone", "x", (0, 0, 0), Invariant.KEPT, (edit,)).apply(functions)


def test_a_broken_invariant_comes_with_an_interleaving_that_tells_it_again() -> None:
    limit = LIMITS[0]
    jobs = [hunt.Job(limit.name, Bounds(limit.faults, limit.repeats, limit.ticks))]
    ((_, found),) = hunt.run(jobs, at_most=1_000_000, processes=1)
    assert found.invariant is Invariant.SEEN
    told = _replay(found.interleaving)
    assert told.returncode == 1
    *events, last = told.stdout.splitlines()
    assert len(events) == len(found.interleaving.split(","))
    assert last == f"BROKEN: {Invariant.SEEN.value}: {found.what}"


def test_a_search_that_ends_without_a_result_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)1 of 1 searches.*KeyError: 'nowhere'"):
        list(hunt.run([hunt.Job("nowhere", Bounds(0, 0, 0))], at_most=1, processes=1))


def test_a_search_without_time_for_all_interleavings_ends_and_says_so() -> None:
    jobs = [hunt.Job("first-state", Bounds(1, 1, 0)), hunt.Job("there-and-back", Bounds(0, 0, 0))]
    found = {job.scenario: found for job, found in hunt.run(jobs, at_most=10**9, processes=1, seconds=0.0)}
    assert [found[job.scenario].complete for job in jobs] == [False, True]
    assert not any(each.invariant for each in found.values())


def test_an_interleaving_that_breaks_nothing_is_told_to_its_end() -> None:
    told = _replay("two-applies:A.lost,A,A,tick,B,B")
    assert told.returncode == 0
    assert [line.split()[1] for line in told.stdout.splitlines()] == ["A.lost", "A", "A", "tick", "B", "B"]


@pytest.mark.parametrize(
    ("interleaving", "said"),
    [
        ("nowhere:A", "There is no scenario 'nowhere'"),
        ("two-applies:A,late1", "event 2, 'late1', cannot happen"),
    ],
)
def test_an_interleaving_that_cannot_be_is_refused(interleaving: str, said: str) -> None:
    told = _replay(interleaving)
    assert told.returncode == 2
    assert said in told.stderr
