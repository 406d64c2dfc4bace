"""The function `watch` writes metrics after a look. The look and the probe are stubs here."""

import sys
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType, SimpleNamespace

import pytest

from holdfast import watching
from holdfast.watching import Seen
from tests.support.environment import set_environment
from tests.support.events import Context
from tests.unit.test_notification import Sns
from watch import probe


@pytest.fixture
def handler(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    set_environment(monkeypatch, HOLDFAST_HAS_NETWORKS="true")
    monkeypatch.delitem(sys.modules, "watch.handler", raising=False)
    yield import_module("watch.handler")
    del sys.modules["watch.handler"]


@pytest.mark.parametrize(
    ("result", "metrics"),
    [
        ("", [{"ProbeFailed": 0.0}]),
        ("the API responded to PUT /locks with 500", [{"ProbeFailed": 1.0}]),
        (probe.OUTSIDE, []),
    ],
)
def test_a_probe_that_the_networks_refuse_says_so_and_is_neither_passed_nor_failed(
    handler: ModuleType, monkeypatch: pytest.MonkeyPatch, result: str, metrics: list[dict[str, float]]
) -> None:
    put: list[dict[str, float]] = []
    monkeypatch.setattr(handler, "_put", put.append)
    monkeypatch.setattr(watching, "look", lambda *_: Seen([], 0, [], [], enabled=True, probe=None))
    monkeypatch.setattr(watching, "read_secret", lambda _: object())
    monkeypatch.setattr(probe, "run", lambda *_, outside: result if outside else "")

    looked = handler.handle({}, Context())

    assert put[:-1] == metrics
    assert put[-1] == {"OldestLockSeconds": 0, "Attention": 1}
    assert looked["probe"] == result


def test_a_look_with_a_probe_writes_every_metric(
    handler: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    put: list[dict[str, float]] = []
    monkeypatch.setattr(handler, "_put", put.append)
    monkeypatch.setattr(watching, "look", lambda *_: Seen([], 0, [], [], enabled=True, probe=None))
    monkeypatch.setattr(watching, "read_secret", lambda _: object())
    monkeypatch.setattr(
        probe, "run", lambda *_, outside: "the API responded to PUT /locks with 500" if outside else ""
    )

    handler.handle({}, Context())

    assert {name for metrics in put for name in metrics} == set(watching.Metric)


def test_metrics_that_are_refused_fail_the_run(handler: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError("AccessDenied")

    monkeypatch.setattr(handler, "_cloudwatch", SimpleNamespace(put_metric_data=refuse))
    monkeypatch.setattr(watching, "look", lambda *_: Seen([], 0, [], [], enabled=True, probe=None))
    monkeypatch.setattr(watching, "read_secret", lambda _: None)

    with pytest.raises(PermissionError):
        handler.handle({}, Context())


def test_a_message_stands_for_those_that_the_bound_leaves_out(
    handler: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    sns = Sns()
    monkeypatch.setattr(handler, "_sns", sns)
    monkeypatch.setattr(handler, "_TOPIC", "topic")
    monkeypatch.setattr(handler, "_put", lambda _: None)
    monkeypatch.setattr(watching, "read_secret", lambda _: None)
    monkeypatch.setattr(watching, "look", lambda *_: Seen([], 0, [], [], enabled=False, probe=None))
    found = [watching.Finding(watching.Kind.STATE_LARGE, {"n": n}, "text", "do", None) for n in range(300)]
    monkeypatch.setattr(watching, "findings", lambda *_, **__: found)

    handler.handle({}, Context(60_000))

    bodies = [one["Message"].splitlines() for one in sns.published]
    assert [body[2] for body in bodies] == [f"n: {n}" for n in range(10)]
    assert bodies[8][-1] == "More: do"
    assert bodies[9][-3:] == [
        "Other problems of this kind got no message of their own. Their number is 290.",
        "",
        f"More: {vars(handler)['_STATUS']}",
    ]
