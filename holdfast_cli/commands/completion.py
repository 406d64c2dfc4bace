"""`holdfast completion`: prints a shell script that completes commands, options, their values and names."""

import argparse
import os
import re
import signal
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from holdfast_cli.commands import table
from holdfast_cli.config import known_names, profiles, rules, settings
from holdfast_cli.errors import CommandError
from holdfast_cli.terminal import output
from holdfast_cli.terminal.declaration import Command, option

if TYPE_CHECKING:
    from holdfast_cli.api.management import Api

_SHELLS: Final = ("bash", "zsh", "fish")
_PATIENCE: Final = 3.0
"""The seconds after which a shell gets no names."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*", re.ASCII)
"""The form of all names that are completed. A shell may expand any other text that a server sends."""
_KINDS: Final[Mapping[Callable[[str], object], str]] = {
    rules.state: "states",
    rules.state_or_pattern: "states",
    rules.beginning: "states",
    rules.profile: "profiles",
    rules.token_id: "tokens",
    rules.trust_name: "trust",
}
"""The function that parses a value -> the kind of names that complete the value."""
_SCRIPTS: Final = {
    # A loop, because `compgen -W` would expand what it gets.
    "bash": """\
_holdfast_names() {
  local name
  while IFS= read -r name; do
    [[ "$name" == "$2"* ]] && printf '%s\\n' "$name"
  done < <(command holdfast completion bash --names "$1" --line="${COMP_WORDS[*]:0:COMP_CWORD}" 2>/dev/null)
}
""",
    "zsh": """\
_holdfast_names() {
  local -a found
  found=(${(f)"$(command holdfast completion zsh --names $1 --line="${words[1,CURRENT-1]}" 2>/dev/null)"})
  compadd -a found
}
""",
}

COMMAND = Command()


@COMMAND.define(
    f"""\
Print a script with which a shell completes commands, options, their choices and the
names of files. In bash and zsh, the script also completes the names of profiles and
states. If AWS credentials are available, it completes token IDs and the names of trust
records. The names are cached for {known_names.SECONDS} seconds. If they cannot be read
within {_PATIENCE:.0f} seconds, the shell shows none.

Write the script to a file once, and again after each upgrade of `holdfast`. A new shell
then reads the file and does not wait for the command.""",
    """\
  holdfast completion bash > ~/.local/share/bash-completion/completions/holdfast
  holdfast completion zsh > ~/.zfunc/_holdfast
  holdfast completion fish > ~/.config/fish/completions/holdfast.fish
""",
    option("shell", choices=_SHELLS, metavar="SHELL", help=", ".join(_SHELLS)),
    option("--names", choices=sorted({*_KINDS.values()}), help=argparse.SUPPRESS),
    option("--line", default="", help=argparse.SUPPRESS),
)
def _run(args: argparse.Namespace) -> None:
    if args.names:
        names = [name for name in _names(args.names, args.line.split()) if _NAME.fullmatch(name)]
        output.write("\n".join(names))
    else:
        output.write(_script(args.shell))


def _script(shell: str) -> str:
    import shtab

    top = table.parser()
    for action in list(top.actions()):
        if action.type is Path:
            vars(action)["complete"] = shtab.FILE
        if callable(action.type) and (kind := _KINDS.get(action.type)):
            vars(action)["complete"] = dict.fromkeys(_SCRIPTS, f"_holdfast_{kind}")
        if isinstance(action.choices, dict):  # a group's commands
            for command in action.choices.values():
                command.description = None  # it has several lines; the script then uses the short one
    functions = [f'_holdfast_{kind}() {{ _holdfast_names {kind} "$@"; }}\n' for kind in {*_KINDS.values()}]
    preamble = _SCRIPTS[shell] + "".join(sorted(functions)) if shell in _SCRIPTS else ""
    return shtab.complete(top, shell, preamble=preamble)


# --- names ---------------------------------------------------------------------------------------


def _names(kind: str, typed: list[str]) -> Iterable[str]:
    """Return the names of a kind, for a command line whose complete words are given."""
    if kind == "profiles":
        return sorted(profiles.read(profiles.path(os.environ)))
    return _of_states(_options(typed, "address")) if kind == "states" else _of_team(kind, typed)


def _options(typed: list[str], *names: str) -> argparse.Namespace:
    """Return --profile and other options of a command line; None for those that it lacks."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parses = {"address": rules.address, "profile": rules.profile, "region": rules.region, "team": rules.team}
    for name in ("profile", *names):
        parser.add_argument(f"--{name}", nargs="?", type=parses[name])
    return parser.parse_known_args(typed)[0]


def _of_states(args: argparse.Namespace) -> Iterable[str]:
    from holdfast_cli.api.sign_in import sign_in

    api = sign_in(args)

    def ask() -> list[str]:
        from holdfast.api import v1  # it takes long to load, and kept names do without

        pages = api.follow(lambda cursor: api.get(v1.NamePage, "names", pattern="*", cursor=cursor))
        return [name for page in pages for name in page.names]

    return _kept(known_names.key("states", api.address, _caller(api)), ask)


def _caller(api: "Api") -> str:
    """Return the ID of the token or session that signs in: what one may see another may not."""
    from holdfast.identity import credentials

    match credentials.parse(api.authorization):
        case credentials.TokenCredentials(record_id, _) | credentials.SessionCredentials(record_id, _):
            return record_id
        case _:
            return ""


def _of_team(kind: str, typed: list[str]) -> Iterable[str]:
    chosen = settings.resolve(_options(typed, "team", "region"))
    who = [os.environ.get(name) for name in ("AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_ENDPOINT_URL")]

    def ask() -> list[str]:
        from holdfast_cli.bucket import stack, tokens, trust_records

        session, found = stack.open_team(chosen)
        if kind == "tokens":
            return tokens.ids(session, found)
        return [record.name for record in trust_records.read(session, found)]

    return _kept(known_names.key(kind, chosen.team, chosen.region, *who), ask)


def _kept(key: str, ask: Callable[[], list[str]]) -> Iterable[str]:
    """Return kept names, or new ones. If they cannot be read, none are shown until a minute has passed."""
    if (names := known_names.read(key)) is not None:
        return names

    def give_up(*_: object) -> NoReturn:
        known_names.keep(key, ())
        os._exit(0)  # an exception might be taken for one of the connection, and lead to a retry

    if hasattr(signal, "setitimer"):  # not on Windows
        signal.signal(signal.SIGALRM, give_up)
        signal.setitimer(signal.ITIMER_REAL, _PATIENCE)
    try:
        names = ask()
    except CommandError:
        names = []
    known_names.keep(key, names)
    return names
