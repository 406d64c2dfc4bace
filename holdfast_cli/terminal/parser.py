"""Parses the command line. Each level of commands reports its own mistakes, and suggests similar words."""

import argparse
import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NoReturn

from holdfast_cli.terminal.help import HelpFormatter
from holdfast_cli.terminal.output import plain, wrapped
from holdfast_cli.terminal.secrets import SEPARATORS, has_secret

_NUMBER: Final = re.compile(r"-[.0-9]+", re.ASCII)
_ADD_UP: Final = (argparse._AppendAction, argparse._ExtendAction)  # noqa: SLF001 the types have no other names
"""The actions of options that may be repeated."""

_LONGEST_SHOWN: Final = 30
"""The length up to which a message repeats a word in full. A longer word may be a misplaced secret."""
_BEGINNING: Final = 12
"""How many characters of a longer word a message repeats, unless the word looks secret."""

_SIMILAR: Final = 0.62
"""The least similarity of a word that is suggested, as `difflib` measures it: reason and json have 0.6."""
_VERY_SIMILAR: Final = 0.75
"""The similarity of a word to a command of a group, of which there are many."""

HIDDEN: Final = "hidden"
"""The group of a command that no list of commands shows, because only programs call it."""

_Groups = list[tuple[argparse.Action | None, list[str]]]


class Parser(argparse.ArgumentParser):
    """A parser of a command, or of a group of commands, without abbreviations.

    argparse reports an unknown option only at the top level, and only if no required option is missing. So
    it hides a misspelled required option. This parser checks the options of its own level first.
    """

    def __init__(
        self, fill: Callable[["Parser"], None] | None = None, group: str = "commands", **settings: Any
    ) -> None:
        """Create a parser. With `fill`, which adds options and commands, it has no content before `load`.

        `group` is the heading above the command in the help of its parent; `HIDDEN` leaves it out there.
        `renamed` has the new name of each command and option of this level that had another name before.
        """
        self._fill, self.group, self._settings = fill, group, settings
        self._words: Sequence[str] = ()
        self.renamed: dict[str, str] = {}
        if fill is None:
            self._begin()

    def _begin(self) -> None:
        """Do what takes argparse long: for each of its titles it looks on the disk for translations."""
        super().__init__(allow_abbrev=False, formatter_class=HelpFormatter, **self._settings)

    def load(self) -> None:
        """Add the options and commands, if they are not yet added."""
        if self._fill is not None:
            fill, self._fill = self._fill, None
            self._begin()
            fill(self)

    def parse_known_args(self, args: Iterable[str] | None = None, namespace: Any = None) -> Any:
        """Parse all words of this level. Raises SystemExit as `holdfast_cli.main.main` does."""
        self.load()
        self._words = words = sys.argv[1:] if args is None else list(args)
        self._check_options(words)
        self._refuse_repeated(words)
        parsed, unexpected = super().parse_known_args(self._arguments_together(words), namespace)
        if "--" in unexpected:  # no argument followed it
            unexpected.remove("--")
        if unexpected:
            self.error(f"there is one argument too many{_shown(unexpected[0], ': {}')}")
        return parsed, unexpected

    def format_help(self) -> str:
        """Return the help, with the commands of this group below their headings; argparse calls this."""
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        commands, listed = self.commands(), self._listed()
        for heading, entries in listed.items():
            formatter.start_section(heading)
            formatter.add_arguments(entries)
            formatter.end_section()
        for section in self._action_groups:
            formatter.start_section(section.title)
            formatter.add_text(section.description)
            formatter.add_arguments(
                action
                for action in section._group_actions  # noqa: SLF001 argparse has no other name for them
                if not (commands and action.choices is commands)
            )
            formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()

    def _listed(self) -> dict[str, list[argparse.Action]]:
        """Return heading -> entries of the help, for the commands of this group that are not `HIDDEN`."""
        listed: dict[str, list[argparse.Action]] = {}
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 the type has no other name
                for entry in action._choices_actions:  # noqa: SLF001 argparse has no other name for them
                    if (heading := action.choices[entry.dest].group) != HIDDEN:
                        listed.setdefault(heading, []).append(entry)
        return listed

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, without words that may be a misplaced secret; exit with 2."""
        self.print_usage(sys.stderr)
        line = plain(f"{self.prog}: error: {hidden(message, self._words)}")
        self.exit(2, f"{wrapped(line, stream=sys.stderr)}\n")

    def _check_options(self, words: Sequence[str]) -> None:
        """Refuse an unknown option, and a group without a command."""
        commands = self.commands()
        takes_value = False
        for word in words:
            name = word.partition("=")[0]
            if (action := self._option_string_actions.get(name)) is not None:
                if action.dest in ("help", "version"):  # they work with any words after them
                    return
                takes_value = action.nargs != 0 and name == word
            elif takes_value:
                takes_value = False
            elif word == "--":
                return
            elif _is_option(word):
                self._refuse_option(name)
            elif commands:
                return  # the command parses the rest
        if commands and self.get_default("run") is None:  # some groups are also commands
            self.print_help(sys.stderr)
            self.exit(2, f"\n{self.prog}: error: write one of these commands\n")

    def _refuse_repeated(self, words: Sequence[str]) -> None:
        """Refuse a repeated option if its second value would silently replace the first value."""
        typed = self._grouped(words)
        counts = Counter(action for action, _ in typed if action is not None)
        if any(action.dest in ("help", "version") and action.nargs == 0 for action in counts):
            return
        for action, count in counts.items():
            if count > 1 and action.nargs != 0 and not isinstance(action, _ADD_UP):
                lines = "; ".join(f"`{line}`" for line in self._one_each(typed, action))
                option = "/".join(action.option_strings)
                fill_in = " Fill in the words in < >." if "<" in lines else ""
                self.error(
                    f"{option} accepts one value, but has {count}. Run a command for each value: "
                    f"{lines}.{fill_in}"
                )

    def _one_each(self, typed: _Groups, repeated: argparse.Action) -> list[str]:
        """Return a command line for each value of a repeated option.

        Each line also has the words that were typed once. Another repeated option is put on the line of the
        value that precedes it; if a line would lack the option, all lines get a placeholder instead.
        """
        counts = Counter(action for action, _ in typed)
        lines: list[list[str]] = [[self.prog] for _ in range(counts[repeated])]
        owners: dict[argparse.Action, list[tuple[int, list[str]]]] = {}
        at = -1
        for action, words in typed:
            at += action is repeated
            if action is not None and counts[action] > 1:
                owners.setdefault(action, []).append((at, words))
            else:
                for line in lines:
                    line += _to_type(action, words)
        for action, owned in owners.items():
            clear = {owner for owner, _ in owned} == set(range(len(lines)))
            for owner, words in owned if clear else ():
                lines[owner] += _to_type(action, words)
            for line in () if clear else lines:
                line += _to_fill_in(action)
        return [" ".join(line) for line in lines]

    def _grouped(self, words: Sequence[str]) -> _Groups:
        """Return this level's words in groups: each option with its value, each argument, and the rest."""
        found: _Groups = []
        takes_value = False
        for position, word in enumerate(words):
            if word == "--":
                return [*found, (None, list(words[position:]))]
            action = self._option_string_actions.get(word.partition("=")[0])
            if action is None and takes_value:
                found[-1][1].append(word)
            else:
                found.append((action, [word]))
            takes_value = action is not None and action.nargs != 0 and "=" not in word
        return found

    def _arguments_together(self, words: Sequence[str]) -> Sequence[str]:
        """Return the words of a command with its arguments side by side.

        argparse loses an optional argument after an option, if another argument precedes the option.
        Example: `argument --option value optional`.
        """
        may_lack = any(action.nargs == "?" and not action.option_strings for action in self._actions)
        if not may_lack:
            return words
        end = words.index("--") if "--" in words else len(words)
        grouped = self._grouped(words[:end])
        found = [word for action, group in grouped if action is None for word in group]
        options = [word for action, group in grouped if action is not None for word in group]
        return [*found, *options] if end == len(words) else [*options, *found, *words[end:]]

    def _refuse_renamed(self, name: str) -> None:
        """Exit with 2 and one line with the new name, if a command or an option has another name now."""
        if (new := self.renamed.get(name)) is not None:
            line = f"{self.prog}: error: {name} does not exist any more. Use {new} instead."
            self.exit(2, f"{wrapped(line, stream=sys.stderr)}\n")

    def _refuse_option(self, name: str) -> NoReturn:
        self._refuse_renamed(name)
        if any(name in action.option_strings for action in self.actions()):
            self.error(f"write the option {name} after the command.")
        if any(action.dest == "command" and action.nargs == "+" for action in self._actions):
            hint = " If it is an option of the program, type -- before the program."
        else:
            hint = _hint(name, self._option_string_actions)
        self.error(f"there is no {_shown(name, 'option {}') or 'such option'}.{hint}")

    def actions(self) -> Iterator[argparse.Action]:
        """Yield the options and arguments of this command, and of all commands of this group."""
        self.load()
        yield from self._actions
        for command in self.commands().values():
            yield from command.actions()

    def commands(self) -> dict[str, "Parser"]:
        """Return the commands of this group by name; empty if this parser is not for a group."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 the type has no other name
                return action.choices
        return {}

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a value that is not among the choices; argparse calls this for commands too."""
        if action.choices is None or value in action.choices:
            return
        if self.commands() is not action.choices:
            shown, hint = _shown(value, "{}") or "the value", _hint(value, action.choices)
            raise argparse.ArgumentError(action, f"{shown} is not one of {', '.join(action.choices)}.{hint}")
        self._refuse_renamed(value)
        hint = self._in_groups(value) or _hint(value, [*action.choices, *self._option_string_actions])
        hint = hint or self._in_groups(_similar(value, self._names_in_groups(), _VERY_SIMILAR))
        known = (name for name, command in self.commands().items() if command.group != HIDDEN)
        hint = hint or f" The commands are {', '.join(known)}."
        self.error(f"there is no {_shown(value, 'command {}') or 'such command'}.{hint}")

    def _names_in_groups(self) -> Iterator[str]:
        for command in self.commands().values():
            command.load()
            if command.group != HIDDEN:
                yield from command.commands()

    def _in_groups(self, word: str) -> str:
        """Return "Did you mean …?" with the commands of this name in the groups below; empty without one."""
        found = []
        for command in self.commands().values():
            command.load()
            if word in command.commands() and command.group != HIDDEN:
                found.append(f"`{command.prog} {word}`")
        *others, last = found or [""]
        meant = f"{', '.join(others)} or {last}" if others else last
        return f" Did you mean {meant}?" if meant else ""


def hidden(message: str, words: Iterable[str], longest: int | None = _LONGEST_SHOWN) -> str:
    """Return a message without the typed words, and parts of words, that may be secret.

    A word with more than `longest` characters is cut to its beginning; None cuts no word.
    """
    typed = {part for word in words for part in (word, word.partition("=")[2], *SEPARATORS.split(word))}
    for word in sorted(typed, key=len, reverse=True):
        if has_secret(word):
            shown = "…"
        elif longest is not None and len(word) > longest:
            shown = f"{word[:_BEGINNING]}…"
        else:
            continue
        for form in (word, repr(word)[1:-1], plain(word)):
            message = message.replace(form, shown)
    return message


def _to_type(action: argparse.Action | None, words: Sequence[str]) -> Sequence[str]:
    """Return words that the user can type; a placeholder replaces words that no message may repeat."""
    if any(hidden(word, [word]) != word for word in words):
        return _to_fill_in(action)
    return [shlex.quote(word) for word in words]


def _to_fill_in(action: argparse.Action | None) -> Sequence[str]:
    """Return an option or an argument with the value `<…>`, which no shell accepts unchanged."""
    if action is None:
        return ["<ARGUMENT>"]
    return [action.option_strings[-1], f"<{action.metavar or action.dest.upper()}>"]


def _is_option(word: str) -> bool:
    return len(word) > 1 and word[0] == "-" and " " not in word and not _NUMBER.fullmatch(word)


def _shown(word: str, sentence: str) -> str:
    """Insert a word into a sentence, and return it; empty if the word should not be shown."""
    if len(word) > _LONGEST_SHOWN:
        return ""
    return sentence.format(plain(word) if _is_option(word) else repr(word))


def _hint(word: str, known: Iterable[str]) -> str:
    """Return "Did you mean …?" with the only known word that begins with `word`, else with a similar word."""
    meant = _similar(word, known, _SIMILAR)
    return f" Did you mean {meant}?" if meant else ""


def _similar(word: str, known: Iterable[str], least: float) -> str:
    """Return the only known word that begins with `word`, else a similar word; empty without one.

    `least` is the smallest ratio of the letters that both words have.
    """
    import difflib

    known = list(known)
    begun = [one for one in known if one.startswith(word)]
    # The dashes of options are no similarity.
    named = {one.lstrip("-"): one for one in known}
    near = difflib.get_close_matches(word.lstrip("-"), named, 1, least)
    return begun[0] if len(begun) == 1 else named[near[0]] if near else ""
