"""The files of the console on a deployed stack: through API Gateway, to anybody."""

import gzip
import re

from tests.support.access_calls import VERBS
from tests.support.http_client import Client
from tests.support.team import Team

OTHERS = ("x", "index.html/", "..%2Fhandler.py", "files.json", "index.html.gz", "states/a")


def test_a_page_and_each_of_its_files_arrive_compressed_or_not(strict: Team) -> None:
    anybody = strict.client(None)
    page = anybody.request("GET", "/console/")
    assert page.body == anybody.request("GET", "/console/index.html").body
    named = re.findall(r'(?:src|href)="\./([^"]+)"', page.body.decode())
    assert {name.rpartition(".")[2] for name in named} == {"css", "js"}

    for name in ("", "index.html", "sign-in.html", *named):
        plain = anybody.request("GET", f"/console/{name}")
        packed = anybody.request("GET", f"/console/{name}", headers={"Accept-Encoding": "gzip, deflate, br"})
        assert (plain.status, packed.status, packed.headers["content-encoding"]) == (200, 200, "gzip")
        assert gzip.decompress(packed.body) == plain.body
        assert "immutable" in plain.headers["cache-control"] or name not in named
        head = anybody.request("HEAD", f"/console/{name}")
        assert (head.status, head.body, head.headers["content-type"]) == (
            200,
            b"",
            plain.headers["content-type"],
        )


def test_other_verbs_and_other_paths_get_neither_a_page_nor_what_reads_as_success(strict: Team) -> None:
    # Past the proxy with AWS's limits, which passes no LOCK.
    anybody = Client(strict.direct_address, strict.tls, None)
    for path in ("/console", "/console/", "/console/index.html", *(f"/console/{name}" for name in OTHERS)):
        for verb in VERBS - {"GET", "HEAD"}:
            answer = anybody.request(verb, path)
            assert answer.error == (405, "method_not_allowed"), (verb, path)
            assert answer.headers["x-content-type-options"] == "nosniff"
    moved = anybody.request("GET", "/console")
    assert (moved.status, moved.headers["location"]) == (308, "console/")
    for name in OTHERS:
        assert anybody.request("GET", f"/console/{name}").error == (400, "unknown_route"), name


def test_a_team_can_do_without_it(loose: Team) -> None:
    for path in ("/console", "/console/", "/console/index.html"):
        for role in (None, "maintainer"):
            assert loose.client(role).request("GET", path).error == (400, "unknown_route")
