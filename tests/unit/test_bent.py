"""Requests that a wrong method, a redirect or a proxy has turned into another request."""

from collections.abc import Mapping

import pytest

from gateway import bent
from holdfast.errors import BentRequest, InvalidRequest

MD5 = "1B2M2Y8AsgTpgAmY7PhCfg=="
"""The checksum of an empty body."""


@pytest.mark.parametrize(
    ("headers", "accepted"),
    [
        ({}, True),
        ({"accept-encoding": "gzip", "content-length": "0"}, True),
        ({"content-type": "application/json"}, True),
        ({"content-md5": MD5}, False),
        ({"content-md5": ""}, False),
        ({"x-amzn-remapped-content-md5": MD5}, False),
        ({"content-md5": MD5, "content-type": "application/json"}, False),
    ],
)
def test_a_read_has_no_checksum_of_a_body(headers: Mapping[str, str], accepted: bool) -> None:
    if accepted:
        bent.check_read(headers)
        return
    with pytest.raises(BentRequest, match="Content-MD5"):
        bent.check_read(headers)


@pytest.mark.parametrize(
    ("headers", "accepted"),
    [
        ({}, True),
        ({"content-type": "application/vnd.api+json"}, True),
        ({"referer": "https://api.example.com/"}, True),
        ({"content-type": "application/vnd.api+json", "referer": "https://api.example.com/"}, False),
        ({"content-type": "", "referer": ""}, False),
    ],
)
def test_a_read_that_came_by_a_redirect_has_no_type_of_a_body(
    headers: Mapping[str, str], accepted: bool
) -> None:
    if accepted:
        bent.check_redirected(headers)
        return
    with pytest.raises(BentRequest, match="redirect"):
        bent.check_redirected(headers)


@pytest.mark.parametrize(
    ("headers", "body", "accepted"),
    [
        ({}, "", True),
        ({"content-length": "0"}, "", True),
        ({"content-length": " "}, "", True),
        ({}, "x", False),
        ({"content-length": "1"}, "", False),
        ({"content-length": "x"}, "", False),
        ({"content-type": "application/json"}, "", False),
        ({"content-type": ""}, "", False),
        ({"content-md5": MD5}, "", False),
        ({"x-amzn-remapped-content-md5": MD5}, "", False),
    ],
)
def test_a_delete_has_neither_a_body_nor_a_header_of_one(
    headers: Mapping[str, str], body: str, accepted: bool
) -> None:
    if accepted:
        bent.check_delete(headers, body)
        return
    with pytest.raises(BentRequest, match="a write or the release of a lock"):
        bent.check_delete(headers, body)


@pytest.mark.parametrize(
    ("query", "raw", "accepted", "rule"),
    [
        ({}, "", False, None),
        ({}, "", True, None),
        ({"ID": "a"}, "ID=a", True, None),
        ({"ID": "a,b"}, "ID=a%2Cb", True, None),
        ({"ID": "a", "x": "ID"}, "x=ID&ID=a", True, None),
        ({"x": "1", "identity": "2"}, "x=1&identity=2", False, None),
        ({"ID": "a"}, "ID=a", False, "query parameter 'ID', which only"),
        ({"ID": ""}, "ID=", False, "query parameter 'ID', which only"),
        ({"ID": ""}, "ID=", True, "'ID' is empty"),
        ({"ID": ""}, "ID", True, "'ID' is empty"),
        ({"ID": "a,b"}, "ID=a&ID=b", True, "more than once"),
        ({"ID": "a,a"}, "ID=a&ID=a", True, "more than once"),
        ({"ID": "a,"}, "%49D=a&x=1&ID=", True, "more than once"),
        ({"id": "a"}, "id=a", True, "must be written in capital letters, as 'ID'"),
        ({"id": "a"}, "id=a", False, "must be written in capital letters, as 'ID'"),
        ({"Id": "a", "ID": "a"}, "Id=a&ID=a", True, "must be written in capital letters, as 'ID'"),
    ],
)
def test_a_request_names_one_lock_or_none(
    query: Mapping[str, str], raw: str, accepted: bool, rule: str | None
) -> None:
    if rule is None:
        bent.check_lock_id(query, raw, accepted=accepted)
        return
    with pytest.raises(BentRequest if "which only" in rule else InvalidRequest, match=rule):
        bent.check_lock_id(query, raw, accepted=accepted)
