"""The table of `construct.md`: every public name of `holdfast_cdk`."""

import inspect
import re
from collections.abc import Iterator

import holdfast_cdk
from holdfast_cdk.settings import Table, settings_of
from holdfast_cdk.team_settings import Team
from tests.support.pages import page, text

PATH = page("construct.md")
_BEGIN = "<!-- Begin of the names: generated from infra/holdfast_cdk/ by `make generated`. -->"
_END = "<!-- End of the names. -->"
_ATTRIBUTE = re.compile(r"^    (\w+): (.+)$", re.MULTILINE)


def construct_document() -> str:
    """Return the document with the table as the names are."""
    before, _, rest = text(PATH).partition(_BEGIN)
    return "\n".join((before + _BEGIN, "", *_table(), "", _END)) + rest.partition(_END)[2]


def _table() -> Iterator[str]:
    yield "| Name | Meaning |"
    yield "| --- | --- |"
    yield f"| `Team` | {_sentence('Team')} |"
    setting_of = {
        one.kind.members.__name__: setting
        for setting, (one, _) in settings_of(Team).items()
        if isinstance(one.kind, Table)
    }
    names = set(holdfast_cdk.__all__)
    for name in sorted(names & setting_of.keys()):
        yield f"| `{name}` | The setting `{setting_of[name]}`: {_sentence(name)} |"
    for name in sorted(names - setting_of.keys() - {"Team"}):
        yield f"| `{name}` | {_sentence(name)} |"
        for attribute, meaning in _ATTRIBUTE.findall(_docstring(name)):
            yield f"| `{name}(…).{attribute}` | {meaning[0].upper()}{meaning[1:]} |"


def _docstring(name: str) -> str:
    return str(inspect.getdoc(getattr(holdfast_cdk, name)))


def _sentence(name: str) -> str:
    return _docstring(name).partition("\n")[0]
