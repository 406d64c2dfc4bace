"""The tables of roles in `access.md`: what a role is for, and which role allows what, from the code."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from holdfast.access import Action, Role, allowed, purpose
from tests.support.pages import page

PATH: Final = page("access.md")
TABLES: Final = re.compile(r"(<!-- Begin of the roles: .*? -->\n).*?(<!-- End of the roles\. -->)", re.DOTALL)
DONE_WITH: Final[Mapping[Action, str]] = {
    Action.READ_METADATA: "`holdfast whoami`, `state list`, `state show`, `lock list`, `lock show`",
    Action.READ_OUTPUTS: "read the outputs of states: `state get` prints only these",
    Action.READ_HISTORY: "`state history`",
    Action.READ: "read whole states: `state get` prints all, `state diff`, `state resources`, `state find`, "
    "`terraform plan -lock=false`",
    Action.LOCK: "acquire locks: `terraform plan`",
    Action.UNLOCK: "release locks; by default remove [own locks](#own-locks): `lock break`",
    Action.WRITE: "write states: `terraform apply`; create and tag workspaces; `state declare`",
    Action.FORCE_UNLOCK: "remove any lock except a freeze: `terraform force-unlock`, `lock break`",
    Action.DELETE: "`state delete`, `state undeclare`; delete workspaces",
    Action.UNDELETE: "`state undelete`",
    Action.RESTORE: "`state restore`",
    Action.FREEZE: "`state freeze`, `state unfreeze`",
    Action.READ_ACTIVITY: "`activity`",
}
"""The commands and requests of people that need each action."""

WORDS: Final[Mapping[Action, str]] = {
    Action.READ_METADATA: "names",
    Action.READ_OUTPUTS: "outputs",
    Action.READ_HISTORY: "history",
    Action.READ: "read whole states",
    Action.LOCK: "acquire locks",
    Action.UNLOCK: "release",
    Action.WRITE: "write states",
    Action.FORCE_UNLOCK: "remove any lock",
    Action.DELETE: " delete",
    Action.UNDELETE: "undelete",
    Action.RESTORE: "restore",
    Action.FREEZE: "freeze",
    Action.READ_ACTIVITY: "activity",
}
"""The words by which the purpose of a role names each action."""
_ALL_OF: Final = re.compile(r"\bdo everything that the role (\w+) may do;")


def named_actions(role: Role) -> frozenset[Action]:
    """Return the actions that the purpose of a role names, itself or by another role."""
    allows, _, _ = purpose(role).partition(", but no ")
    included = [named_actions(Role(name)) for name in _ALL_OF.findall(allows)]
    own = _ALL_OF.sub("", allows)
    return frozenset(action for action, words in WORDS.items() if words in own).union(*included)


def roles_document() -> str:
    """Return the page with new tables of the roles."""
    tables = "\n".join([*_purposes(), "", *_actions()])
    return TABLES.sub(lambda found: f"{found[1]}\n{tables}\n\n{found[2]}", PATH.read_text(encoding="utf-8"))


def _purposes() -> Iterator[str]:
    yield "| Role | May |"
    yield "| --- | --- |"
    yield from (f"| `{role}` | {purpose(role)} |" for role in Role)


def _actions() -> Iterator[str]:
    yield f"| To | {' | '.join(f'`{role}`' for role in Role)} |"
    yield f"| --- |{' --- |' * len(Role)}"
    for action in Action:
        yield f"| {DONE_WITH[action]} | {' | '.join(_cell(role, action) for role in Role)} |"


def _cell(role: Role, action: Action) -> str:
    return "yes" if action in allowed(role) else "no"
