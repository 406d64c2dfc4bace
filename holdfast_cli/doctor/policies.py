"""Compares policy documents by meaning: the order of entries and the form of lists do not matter."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Statement = Mapping[str, Any]
Policy = Mapping[str, Any]


def differences(wanted: Policy, found: Policy) -> Iterator[str]:
    """Yield a clause for each difference between two policies, such as `the statement OwnLog is missing`.

    Statements with the same Sid are compared. A statement without a Sid is equal, missing or additional.

    >>> allow = {"Sid": "A", "Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": "*"}
    >>> list(differences({"Statement": [allow]}, {"Statement": allow | {"Action": "s3:GetObject"}}))
    ['the statement A lacks Action s3:PutObject']
    """
    ours, theirs = _by_name(wanted), _by_name(found)
    for name in sorted(ours.keys() - theirs.keys()):
        yield f"the statement {name} is missing"
    for name in sorted(theirs.keys() - ours.keys()):
        yield f"the statement {name} is not in the template"
    for name in sorted(ours.keys() & theirs.keys()):
        if missing := ours[name] - theirs[name]:
            yield f"the statement {name} lacks {_listed(missing)}"
        if additional := theirs[name] - ours[name]:
            yield f"the statement {name} also has {_listed(additional)}"


def _by_name(policy: Policy) -> dict[str, frozenset[tuple[str, str]]]:
    statements = [frozenset(_leaves(statement)) for statement in _list(policy.get("Statement", []))]
    return {_name(statement): statement for statement in statements}


def _name(statement: frozenset[tuple[str, str]]) -> str:
    sids = [value for path, value in statement if path == "Sid"]
    return sids[0] if sids else f"without a Sid ({_listed(statement)})"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield every value of a statement with its path, such as `Condition Bool aws:SecureTransport`."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path} {key}".strip())
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from _leaves(item, path)
    elif (path, value) == ("Principal", "*"):
        yield "Principal AWS", "*"  # the long form
    else:
        # A boolean or a number in a condition means the same as its text.
        yield path, str(value).lower() if isinstance(value, bool) else str(value)


def _list(value: Any) -> Sequence[Any]:
    return [value] if isinstance(value, Mapping) else list(value)


def _listed(leaves: frozenset[tuple[str, str]]) -> str:
    return ", ".join(f"{path} {value}" for path, value in sorted(leaves))
