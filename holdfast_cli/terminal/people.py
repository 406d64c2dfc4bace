"""Names of those who did something."""

import re
from typing import Final

from holdfast.access import ANOTHER_PROGRAM, called, claimed
from holdfast_cli.terminal.output import cut

_OF_TOKEN: Final = 8
"""How many characters of a token's ID a column has."""

_LONGEST: Final = 20
"""How many characters of a name the list of a terminal has."""

_OF_ROLE: Final = re.compile(
    r"arn:.*?:assumed-role/(?:AWSReservedSSO_(?P<set>.*)_\w*|(?P<role>.*))/(?P<session>.*)"
)
"""The principal of a session of an IAM role. IAM Identity Center names a role after a permission set."""
_OF_JOB: Final = re.compile(r"oidc:.*?#(?P<subject>(?:repo|project_path):.*)")
"""The principal of a job of GitHub or GitLab. Another subject could look like a person or a token."""


def person(principal: str | None, owner: str | None, who: str | None) -> str:
    """Return who did something in one name: the owner of the credentials, else what the client says.

    What the client says is in quotes, because it proves nothing. Without both it is the principal, of a role
    in AWS its name and the session's, of a job of GitHub or GitLab its subject.

    >>> person("token:x", "bob@example.com", "bob@desk"), person("token:x", None, "bob@desk")
    ('bob@example.com', '"bob@desk"')
    >>> person("token:x", None, "")
    'the token x'
    >>> person("arn:aws:sts::123456789012:assumed-role/AWSReservedSSO_Developer_1a2b3c4d5e6f7a8b/ada", "", "")
    'Developer/ada'
    >>> person("oidc:https://ci.example#repo:acme/network:ref:refs/heads/main", "", "")
    'repo:acme/network:ref:refs/heads/main'
    """
    if owner:
        return owner
    if who and who != principal:
        return claimed(who)
    if of_job := _OF_JOB.fullmatch(principal or ""):
        return of_job["subject"]
    if of_role := _OF_ROLE.fullmatch(principal or ""):
        return f"{of_role['set'] or of_role['role']}/{of_role['session']}"
    return called(principal, "") if principal else ANOTHER_PROGRAM


def short_person(principal: str | None, owner: str | None, who: str | None) -> str:
    """Return `person` for a column, with only the beginning of the ID of a token.

    >>> short_person("token:k2v9x0q7m3c1d8f5a6b4", None, ""), short_person("token:x", "", "ci@runner-of-ada")
    ('token k2v9x0q7…', '"ci@runner-of-ada"')
    """
    kind, _, token = (principal or "").partition(":")
    if not owner and kind == "token" and who in (None, "", principal):
        return f"token {cut(token, _OF_TOKEN + 1)}"
    return person(principal, owner, who)


def brief_person(principal: str | None, owner: str | None, who: str | None) -> str:
    """Return `short_person` for a list in which a row takes one line."""
    return cut_inside(short_person(principal, owner, who), _LONGEST)


def cut_inside(text: str, most: int) -> str:
    """Return a text of at most `most` characters, with `…` in its middle in place of what is left out.

    >>> cut_inside("deploy@build-agent-03", 12), cut_inside("ada@desk", 12)
    ('deploy…nt-03', 'ada@desk')
    """
    if len(text) <= most:
        return text
    end = (most - 1) // 2
    return f"{text[: most - 1 - end]}…{text[len(text) - end :]}"
