"""Which version of a lock in a replica is of the old side."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from holdfast.s3.objects import ObjectVersion
from holdfast_cli.bucket.recovering import Listing, is_copy, is_removable_below, is_stale

KEY = "states/a.tfstate.tflock"
LOCK = ObjectVersion("e", "v", 1, datetime(2026, 11, 1, tzinfo=UTC), {}, has_own_etag=True)
FREEZE = replace(LOCK, metadata={"freeze": "0" * 32})
WITH, WITHOUT = Listing(ids={(KEY, "v")}), Listing(ids={(KEY, "w"), ("states/b.tfstate.tflock", "v")})


@pytest.mark.parametrize(
    ("status", "there", "expected"),
    [
        ("REPLICA", WITH, True),
        ("REPLICA", WITHOUT, True),  # released there since
        ("REPLICA", None, True),
        ("PENDING", WITH, False),  # written here, and copied to the old bucket
        ("COMPLETED", WITH, False),
        ("FAILED", None, False),
        ("COMPLETED", WITHOUT, False),
        ("", WITH, True),
        ("", WITHOUT, False),
        ("", None, False),
    ],
)
def test_the_status_decides_and_without_one_the_listing(
    status: str, there: Listing | None, expected: bool
) -> None:
    version = replace(LOCK, replication_status=status)
    assert is_copy(KEY, version, there) is expected
    assert is_stale(KEY, version, there) is expected


@pytest.mark.parametrize("version_id", ["", "null"])
def test_a_version_without_an_id_of_its_own_is_nobodys_copy(version_id: str) -> None:
    there = Listing(ids={(KEY, version_id)})
    for status in ("REPLICA", ""):
        assert not is_copy(KEY, replace(LOCK, version_id=version_id, replication_status=status), there)


@pytest.mark.parametrize(
    ("version", "status", "there", "expected"),
    [
        (LOCK, "REPLICA", WITH, True),
        (LOCK, "REPLICA", None, True),
        (LOCK, "", WITHOUT, False),
        (FREEZE, "REPLICA", WITHOUT, True),  # lifted there
        (FREEZE, "REPLICA", WITH, False),
        (FREEZE, "REPLICA", None, False),
        (FREEZE, "COMPLETED", WITHOUT, False),  # frozen here
        (FREEZE, "", WITH, False),
    ],
)
def test_below_another_version_a_copy_goes_and_a_freeze_only_if_it_was_lifted(
    version: ObjectVersion, status: str, there: Listing | None, expected: bool
) -> None:
    version = replace(version, replication_status=status)
    assert is_removable_below(KEY, version, there) is expected
    if "freeze" in version.metadata:
        assert not is_stale(KEY, version, there)
