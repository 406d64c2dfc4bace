"""docs/operate/cost.md is computed from counted requests, and the README has the same amounts."""

import re
from pathlib import Path

import pytest

from tests.conftest import GeneratedFile
from tests.support import cost_document, plots
from tests.support.pages import page

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


@pytest.mark.generated
def test_the_document_is_computed_from_the_counted_requests(generated_file: GeneratedFile) -> None:
    generated_file(page("cost.md"), cost_document.document())


@pytest.mark.generated
def test_the_plots_show_the_computed_prices_and_the_delays_of_the_table(
    generated_file: GeneratedFile,
) -> None:
    generated_file(page("cost.md").with_suffix(".svg"), plots.cost())
    generated_file(page("speed.md").with_suffix(".svg"), plots.speed(page("speed.md").read_text()))


def test_the_readme_has_the_amounts_of_the_document() -> None:
    told = re.findall(r"^\| ([0-9,]+) \| ([0-9.]+) dollars \|$", README, re.MULTILINE)

    assert told
    assert told == [
        (runs, f"{cost_document.month(int(runs.replace(',', ''))).total:.2f}") for runs, _ in told
    ]


def test_a_run_with_cloud_sends_the_requests_that_were_counted() -> None:
    speed = page("speed.md").read_text()
    counted = {
        of: [int(cell.rpartition("/")[2]) for cell in row.split("|")[:3]]
        for of, row in re.findall(r"^\| `cloud \{\}`: (API|S3) requests[^|]*\|(.*)\|$", speed, re.MULTILINE)
    }

    plan, apply = cost_document.CLOUD
    for (api, s3), command, uploads in ((plan, 1, 0), (apply, 2, 2)):
        assert api == counted["API"][0] + counted["API"][command]
        assert sum(s3.values()) == counted["S3"][0] + counted["S3"][command] + uploads
