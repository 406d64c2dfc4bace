"""An upload belongs to one state, and only the work of that state commits it."""

from typing import TYPE_CHECKING, cast

import pytest

from holdfast import names
from holdfast.cloud import uploads
from holdfast.cloud.ids import UploadId
from tests.support.documents import ADA, state
from tests.support.work import work

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.s3.store import Store
    from holdfast.state.write import Written
    from holdfast.work import Work

STORE = cast("Store", None)  # no request is sent


@pytest.mark.parametrize(
    "write",
    [
        lambda work, upload: uploads.commit(work, STORE, upload),
        lambda work, upload: uploads.write_at_once(work, upload, state(1)),
    ],
    ids=["commit", "write_at_once"],
)
def test_an_upload_of_another_state_is_written_nowhere(write: "Callable[[Work, UploadId], Written]") -> None:
    upload = UploadId(
        key="0" * 32,
        lock_id="1" * 32,
        lock_version="v",
        base=None,
        force=False,
        name=names.parse("network/prod"),
        serial=1,
        lineage="l",
        md5="2" * 32,
    )
    with pytest.raises(ValueError, match="another state"):
        write(work(STORE, names.parse("network/test"), ADA), upload)
