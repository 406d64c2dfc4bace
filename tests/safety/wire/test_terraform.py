"""The comparison of the bucket with the responses that Terraform got notices every difference."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import names
from local_aws.terraform import terraforms
from tests.safety.wire import authorizer
from tests.safety.wire.proxy import NONE, Exchange, FaultProxy
from tests.safety.wire.stack import Stack, deployed
from tests.safety.wire.terraform import Checkout, Told, holds, judge
from tests.safety.wire.timeout import Spot
from tests.support import documents

FORMER, OTHER = documents.state(1), documents.state(2, content="other")
FIRST, SECOND = documents.state(2), documents.state(3)


def write(body: bytes, *, answered: int | None = 200, told: int | None = 200) -> Exchange:
    return Exchange("POST", "/states/a", body, answered, told)


@pytest.mark.parametrize("succeeded", [True, False])
def test_what_was_told_to_be_saved_is_what_the_bucket_must_hold(succeeded: bool) -> None:
    told = Told(succeeded, [write(FIRST), write(SECOND)])

    assert judge(FORMER, told, SECOND) == []
    for other in (None, FORMER, OTHER, FIRST):
        assert judge(FORMER, told, other)


def test_a_write_without_an_answer_may_have_taken_effect_or_not() -> None:
    told = Told(succeeded=False, writes=[write(FIRST), write(SECOND, told=None)])

    assert judge(FORMER, told, FIRST) == []
    assert judge(FORMER, told, SECOND) == []
    assert judge(FORMER, told, FORMER)
    assert judge(FORMER, told, OTHER)


def test_a_write_that_did_not_arrive_cannot_have_taken_effect() -> None:
    told = Told(succeeded=False, writes=[write(FIRST, answered=None, told=None)])

    assert judge(FORMER, told, FORMER) == []
    assert judge(FORMER, told, FIRST)


@pytest.mark.parametrize("status", [None, 409, 500, 503])
def test_a_command_does_not_end_well_without_having_been_told(status: int | None) -> None:
    assert judge(FORMER, Told(succeeded=True, writes=[write(FIRST, told=status)]), FIRST)


def test_a_command_that_wrote_nothing_changes_nothing() -> None:
    told = Told(succeeded=True, writes=[])

    assert judge(FORMER, told, FORMER) == []
    assert judge(None, told, None) == []
    assert judge(FORMER, told, FIRST)
    assert judge(None, told, FORMER)


def test_serial_and_lineage_do_not_go_back_even_where_the_client_asked_for_it() -> None:
    earlier = documents.state(1)
    foreign = documents.state(9, lineage="00000000-0000-4000-8000-000000000000")

    assert judge(SECOND, Told(succeeded=True, writes=[write(earlier)]), earlier)
    assert judge(SECOND, Told(succeeded=True, writes=[write(foreign)]), foreign)


def test_no_state_and_one_of_another_configuration_do_not_hold_an_input() -> None:
    assert not holds(None, "a")
    assert not holds(FORMER, "a")


@pytest.mark.parametrize(
    ("during", "after", "is_good", "is_fine"),
    [
        (500, 204, True, True),
        (503, 204, True, True),
        (204, 204, True, True),
        (403, 204, True, False),
        (401, 204, True, False),
        (404, 204, True, False),
        (500, 403, True, False),
        (500, 500, True, False),
        (500, 403, False, True),
        (403, 403, False, True),
        (204, 403, False, False),
        (500, 204, False, False),
    ],
)
def test_a_fault_while_signing_in_neither_refuses_nor_lets_in(
    during: int, after: int, is_good: bool, is_fine: bool
) -> None:
    assert (authorizer.wrong_with(during, after, is_good=is_good) == []) is is_fine


# --- with a real Terraform ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with deployed(tmp_path_factory.mktemp("aws")) as running:
        yield running


@pytest.fixture
def checkout(stack: Stack, tmp_path: Path) -> Iterator[Checkout]:
    """A checkout of the first Terraform, without faults. The functions send requests to S3 directly."""
    with (
        FaultProxy(stack.aws.endpoint, NONE, seed=1) as s3,
        Checkout(stack, terraforms()[0], tmp_path / tmp_path.name, s3, 1, print) as made,
    ):
        yield made


def test_without_a_fault_nothing_is_found(checkout: Checkout, capsys: pytest.CaptureFixture[str]) -> None:
    assert checkout.carry_through("a", NONE, NONE) == 1
    assert checkout.carry_through("b", NONE, NONE) == 1
    checkout.last_look("b")

    figures = checkout.figures
    assert (figures.acknowledged, figures.lost, figures.violations, figures.faults) == (2, 0, 0, 0)
    assert capsys.readouterr().out == ""


def test_a_state_that_somebody_put_back_is_found(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.carry_through("a", NONE, NONE)
    former = checkout.current()
    checkout.meddle = lambda it: _put(it, former or b"")

    checkout._apply("b")  # noqa: SLF001 one command, without what follows

    assert checkout.figures.violations >= 2
    assert "VIOLATION" in capsys.readouterr().out


def test_a_version_that_is_gone_from_the_history_is_lost(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.carry_through("a", NONE, NONE)
    checkout.carry_through("b", NONE, NONE)
    s3, bucket, key = checkout.stack.s3, checkout.stack.bucket, checkout.name.state_key
    first = s3.list_object_versions(Bucket=bucket, Prefix=key)["Versions"][-1]
    s3.delete_object(Bucket=bucket, Key=key, VersionId=first["VersionId"])

    checkout.last_look("b")

    assert (checkout.figures.lost, checkout.figures.violations) == (1, 0)
    assert "LOST" in capsys.readouterr().out


def _put(checkout: Checkout, body: bytes) -> None:
    checkout.stack.s3.put_object(Bucket=checkout.stack.bucket, Key=checkout.name.state_key, Body=body)


def test_the_spot_that_hangs_is_the_one_that_is_meant() -> None:
    name = names.parse("a")
    state, lock = f"/bucket/{name.state_key}", f"/bucket/{name.lock_key}"
    write_of_one = [("PUT", lock), ("GET", state), ("GET", lock), ("PUT", state), ("GET", lock)]

    def hit(spot: Spot) -> list[int]:
        spot.state = name
        return [number for number, sent in enumerate(write_of_one) if spot.is_hit(*sent)]

    assert hit(Spot("", "PUT", lock=True)) == [0]
    assert hit(Spot("", "GET")) == [1]
    assert hit(Spot("", "GET", lock=True)) == [2]
    assert hit(Spot("", "PUT")) == [3]
    assert hit(Spot("", "GET", lock=True, after_write=True)) == [4]
    assert Spot("", "PUT").is_hit("PUT", state) is False
