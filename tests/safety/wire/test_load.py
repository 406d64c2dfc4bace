import json
from pathlib import Path

from tests.safety.wire.load import keep
from tests.safety.wire.verdict import operations
from tests.safety.wire.witness import Content


def test_what_a_verdict_was_reached_on_is_kept_in_full(tmp_path: Path) -> None:
    journals = tmp_path / "aws" / "load-1"
    journals.mkdir(parents=True)
    line = {"number": 1, "attempt": 0, "verb": "unlock", "state": "load-1/0", "lock": "aa", "at": 1.0}
    (journals / "client-1.jsonl").write_text(json.dumps(line) + "\n")

    kept = keep(
        journals, {"load-1/0": [Content("00", 1, 7)]}, {"load-1/0": "aa"}, {"client-1"}, tmp_path / "kept"
    )

    assert kept == tmp_path / "kept" / "load-1"
    with (kept / "client-1.jsonl").open() as lines:
        assert [operation.verb for operation in operations("client-1", lines)] == ["unlock"]
    assert json.loads((kept / "bucket.json").read_text()) == {
        "history": {"load-1/0": [{"sha256": "00", "serial": 1, "counter": 7, "bare": ""}]},
        "locks": {"load-1/0": "aa"},
        "killed": ["client-1"],
    }
