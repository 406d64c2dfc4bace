"""The comparison of the bucket with the responses that Terraform got notices every difference."""

from collections.abc import Sequence

import pytest

from tests.safety.wire.terraform import Told, holds, judge, lost
from tests.support import documents
from tests.support.fault_relay import Exchange

FORMER, FIRST, SECOND = documents.state(1), documents.state(2), documents.state(3)
OTHER = documents.state(2, content="other")
FOREIGN = documents.state(9, lineage="00000000-0000-4000-8000-000000000000")


def write(body: bytes, *, answered: int | None = 200, told: int | None = 200) -> Exchange:
    return Exchange("POST", "/states/a", body, answered, told)


@pytest.mark.parametrize(
    ("writes", "may_hold"),
    [
        ([], [FORMER]),
        ([write(FIRST), write(SECOND)], [SECOND]),
        ([write(FIRST), write(SECOND, told=None)], [FIRST, SECOND]),
        ([write(FIRST), write(SECOND, answered=None, told=None)], [FIRST]),
    ],
)
def test_the_bucket_holds_what_was_acknowledged_or_a_later_write_that_arrived(
    writes: Sequence[Exchange], may_hold: list[bytes]
) -> None:
    for state in (None, FORMER, FIRST, SECOND, OTHER, FOREIGN):
        assert (judge(FORMER, Told(succeeded=False, writes=writes), state) == []) is (state in may_hold)


@pytest.mark.parametrize("status", [None, 409, 500, 503])
def test_a_command_does_not_end_well_without_an_acknowledgement(status: int | None) -> None:
    assert judge(FORMER, Told(succeeded=True, writes=[write(FIRST, told=status)]), FIRST)


@pytest.mark.parametrize("written", [FORMER, FOREIGN])
def test_serial_and_lineage_do_not_go_back_even_if_the_client_asked_for_it(written: bytes) -> None:
    assert judge(SECOND, Told(succeeded=True, writes=[write(written)]), written)


@pytest.mark.parametrize("state", [None, FORMER])
def test_no_state_and_one_of_another_configuration_do_not_hold_an_input(state: bytes | None) -> None:
    assert not holds(state, "a")


@pytest.mark.parametrize(
    ("history", "missing"),
    [
        ([FORMER, OTHER, FIRST, SECOND], 0),
        ([FORMER, SECOND], 1),
        ([SECOND, FORMER, FIRST], 1),
        ([], 3),
    ],
)
def test_an_acknowledged_state_is_in_the_history_in_its_place(history: list[bytes], missing: int) -> None:
    assert len(lost([FORMER, FIRST, SECOND], history)) == missing
