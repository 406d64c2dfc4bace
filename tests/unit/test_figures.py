"""The figures measure what their names say, and the check names a figure above its bound."""

import sys
from pathlib import Path

import pytest

from tests import figures
from tests.figures import Figure, Graph, chain, circles, functions, main, wings
from tests.support import import_contracts

GRAPH: Graph = {
    "roof": frozenset({"north", "south"}),
    "north": frozenset({"south"}),
    "south": frozenset({"north", "ground"}),
    "ground": frozenset(),
    "itself": frozenset({"itself"}),
}


def test_a_circle_is_named_once() -> None:
    assert circles(GRAPH) == [["itself"], ["north", "south"]]


def test_a_circle_is_one_floor() -> None:
    assert chain(GRAPH) == ("roof", "north", "ground")


def test_a_wing_is_a_folder_or_a_module_of_the_package_itself() -> None:
    house: Graph = {
        "house": frozenset(),
        "house.__main__": frozenset({"house.north.attic"}),
        "house.north": frozenset(),
        "house.north.attic": frozenset({"house.north", "house.cellar"}),
        "house.cellar": frozenset(),
    }

    assert wings(house) == {"house.north": frozenset({"house.cellar"}), "house.cellar": frozenset()}


def test_an_import_within_a_function_counts_and_one_for_types_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "shed"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "a.py").write_text("def f():\n    from shed import b\n    return b\n")
    (package / "b.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from shed import a\n"
    )
    monkeypatch.setattr(figures, "ROOT", tmp_path)

    assert figures.imports("shed") == {
        "shed": frozenset(),
        "shed.a": frozenset({"shed.b"}),
        "shed.b": frozenset({"shed.a"}),
    }
    assert max(functions([package / "a.py"])) == (3, 0, "f", "shed/a.py")


def test_parameters_are_counted_by_the_function_that_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    file = tmp_path / "shed.py"
    file.write_text("class A:\n def f(self, a, /, b=lambda x: x, *c, d, **e): pass\ndef g(): pass\n")

    assert {each.name: each.parameters for each in functions([file])} == {"f": 5, "g": 0}


def test_a_handler_that_a_contract_leaves_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_contracts, "HANDLERS", ["watch", "cellar"])

    outside = figures.outside_of_contracts()

    assert "handlers.modules lacks cellar" in outside
    assert [each for each in outside if "watch" in each] == []


@pytest.mark.parametrize(("most", "code"), [(4, 0), (3, 1)])
def test_the_check_names_what_is_above_its_bound(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], most: int, code: int
) -> None:
    monkeypatch.setattr(figures, "BOUNDS", {"rooms": most})
    monkeypatch.setattr(figures, "figures", lambda: [Figure("rooms", 4, "the attic"), Figure("words", 9)])
    monkeypatch.setattr(sys, "argv", ["figures", "--check"])

    assert main() == code
    assert ("rooms" in capsys.readouterr().out) == bool(code)


def test_every_bound_is_that_of_a_figure() -> None:
    assert set(figures.BOUNDS) <= {figure.name for figure in figures.figures()}


def test_words_are_counted_without_comments_and_generated_sections(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Two words\n\n<!-- a comment -->\n<!-- Begin of the rows: written by x. -->\n\n| A | row |\n\n"
        "<!-- End of the rows. -->\n\n| third | - |\n"
    )

    assert figures.words([page]) == 3
