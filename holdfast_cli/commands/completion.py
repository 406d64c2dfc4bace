"""`holdfast completion`: prints a shell script that completes commands, options and their values."""

import argparse
from pathlib import Path
from typing import Final

import shtab

from holdfast_cli.commands import table
from holdfast_cli.terminal import output
from holdfast_cli.terminal.declaration import Command, option

_SHELLS: Final = ("bash", "zsh", "fish")

COMMAND = Command()


@COMMAND.define(
    """\
Print a script with which a shell completes commands, options, their choices and
the names of files. A new shell has it, and keeps up with upgrades, with one line:
  bash  in ~/.bashrc                   eval "$(holdfast completion bash)"
  zsh   in ~/.zshrc, after compinit    eval "$(holdfast completion zsh)"
  fish  in ~/.config/fish/config.fish  holdfast completion fish | source""",
    """\
  eval "$(holdfast completion bash)"
  holdfast completion fish > ~/.config/fish/completions/holdfast.fish
""",
    option("shell", choices=_SHELLS, metavar="SHELL", help=", ".join(_SHELLS)),
)
def _run(args: argparse.Namespace) -> None:
    top = table.parser()
    for action in list(top.actions()):
        if action.type is Path:
            vars(action)["complete"] = shtab.FILE
        if isinstance(action.choices, dict):  # a group's commands
            for command in action.choices.values():
                command.description = None  # it has several lines; the script then uses the short one
    output.write(shtab.complete(top, args.shell))
