"""Map the paths of a source to the names of states, by rules such as `env:/{ws}/{key}.tfstate={key}/{ws}`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_PLACEHOLDER: Final = re.compile(r"\{([a-z_]+)\}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for names; `text` is the rule as typed."""

    text: str
    pattern: re.Pattern[str]
    template: str

    @classmethod
    def parse(cls, text: str) -> "Rule":
        """Parse `PATTERN=NAME`; raise `ValueError`, whose message names the broken rule.

        The last placeholder of a pattern matches any text, the others match text without `/`.

        >>> Rule.parse("env:/{ws}/{key}.tfstate={key}/{ws}").name("env:/prod/a/b.tfstate")
        'a/b/prod'
        """
        pattern, equals, template = text.rpartition("=")
        if not equals or not pattern or not template:
            raise ValueError(f"{text!r} is not PATTERN=NAME, as in '{{key}}.tfstate={{key}}'")
        parts = _PLACEHOLDER.split(pattern)
        placeholders = parts[1::2]
        if len(placeholders) != len(set(placeholders)):
            raise ValueError(f"the pattern {pattern!r} has a placeholder twice")
        if unknown := sorted(set(_PLACEHOLDER.findall(template)) - set(placeholders)):
            raise ValueError(f"the name {template!r} has {{{unknown[0]}}}, which is not in {pattern!r}")
        last = len(parts) - 2
        compiled = "".join(
            (f"(?P<{part}>.+)" if place == last else f"(?P<{part}>[^/]+)") if place % 2 else re.escape(part)
            for place, part in enumerate(parts)
        )
        return cls(text, re.compile(compiled, re.DOTALL), template)

    def name(self, path: str) -> str | None:
        """Return the name for a path; None if the path does not match."""
        matched = self.pattern.fullmatch(path)
        return matched and _PLACEHOLDER.sub(lambda found: matched[found[1]], self.template)


def name_of(path: str, rules: Sequence[Rule]) -> str | None:
    """Return the name by the first rule that matches a path; None if no rule does."""
    return next((name for rule in rules if (name := rule.name(path)) is not None), None)
