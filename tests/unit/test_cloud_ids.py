"""The IDs of the protocol of `cloud {}`."""

import pytest

from holdfast.cloud.ids import UploadId, VersionId, WorkspaceId, parse_version
from holdfast.errors import InvalidId
from holdfast.names import parse

NAME = parse("network/prod")
NOUGHTS = "0" * 32
VERSION = VersionId(NAME, "v", 7)
UPLOAD = UploadId(NOUGHTS, NOUGHTS, "v", None, force=False, name=NAME, serial=1, lineage="", md5=NOUGHTS)
WORKSPACE = WorkspaceId(NAME, NOUGHTS, 1_700_000_000, "")


def test_where_a_version_is_named_an_upload_may_be_named_too() -> None:
    assert parse_version(str(VERSION)) == VERSION
    assert parse_version(str(UPLOAD)) == UPLOAD


@pytest.mark.parametrize(
    "given",
    [
        str(WORKSPACE),
        "upload-",
        "sv-",
        "",
        str(UPLOAD).replace("upload-", "sv-"),
        str(VERSION).replace("sv-", "upload-"),
        str(UPLOAD).upper(),
    ],
)
def test_another_id_names_no_version(given: str) -> None:
    with pytest.raises(InvalidId):
        parse_version(given)
