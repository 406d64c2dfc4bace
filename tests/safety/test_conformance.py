"""The model of S3 agrees with two servers, and the comparison notices a wrong model."""

from collections.abc import Iterator, Sequence

import pytest

from tests.safety.conformance import CarryOut, Server, compare, servers
from tests.safety.model.s3 import Answer, Bucket, Effect, Request, carry_out


@pytest.fixture(scope="module")
def both() -> Iterator[Sequence[Server]]:
    with servers() as running:
        yield running


def counts_a_marker(bucket: Bucket, request: Request, now: int) -> tuple[Bucket, Answer, Effect | None]:
    """A model in which If-None-Match counts a delete marker as an object."""
    if request.if_none_match and bucket.key(request.key).entries:
        return bucket, Answer(412, "PreconditionFailed"), None
    return carry_out(bucket, request, now)


def keeps_removed(bucket: Bucket, request: Request, now: int) -> tuple[Bucket, Answer, Effect | None]:
    """A model in which the removal of a version does nothing."""
    if request.operation == "DeleteObject" and request.version_id is not None:
        return bucket, Answer(204), None
    return carry_out(bucket, request, now)


def keeps_staged(bucket: Bucket, request: Request, now: int) -> tuple[Bucket, Answer, Effect | None]:
    """A model in which a staged object cannot be replaced."""
    if request.staged and request.operation == "PutObject":
        _, answer, _ = carry_out(bucket, request, now)
        return (bucket, answer, None) if bucket.staged else carry_out(bucket, request, now)
    return carry_out(bucket, request, now)


def test_the_model_agrees_with_both_servers(both: Sequence[Server]) -> None:
    said: list[str] = []
    figures = compare(both, sequences=15, seconds=60, seed=0, say=said.append)
    assert figures.violations == 0, "\n".join(said)


@pytest.mark.parametrize(
    ("wrong", "shortest"),
    [
        (
            counts_a_marker,
            [
                "PutObject a.tfstate IfNoneMatch=* {} {}",
                "DeleteObject a.tfstate IfMatch=current",
                "PutObject a.tfstate IfNoneMatch=* {} {}",
            ],
        ),
        (
            keeps_removed,
            [
                "PutObject a.tfstate IfNoneMatch=* {} {}",
                "DeleteObject a.tfstate VersionId=1",
            ],
        ),
        (
            keeps_staged,
            [
                "PutObject a.tfstate staged {} {}",
                'PutObject a.tfstate staged {"serial":1} {}',
            ],
        ),
    ],
)
def test_a_wrong_model_is_noticed_and_the_shortest_sequence_is_told(
    both: Sequence[Server], wrong: CarryOut, shortest: Sequence[str]
) -> None:
    said: list[str] = []
    figures = compare(both[:1], sequences=100, seconds=60, seed=0, say=said.append, carry_out=wrong)
    assert figures.violations == 1
    first = 1 + next(place for place, line in enumerate(said) if "disagree" in line)
    assert [line.strip() for line in said[first : first + len(shortest)]] == shortest
