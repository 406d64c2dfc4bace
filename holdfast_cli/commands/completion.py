"""`holdfast completion`: a script that completes commands, options and their values in a shell."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from holdfast_cli.config import arguments
from holdfast_cli.terminal import output

if TYPE_CHECKING:
    from holdfast_cli.config.arguments import Commands
    from holdfast_cli.terminal.parser import Parser

_SHELLS: Final = ("bash", "zsh", "fish")


def add(commands: "Commands", top: "Parser") -> None:
    """Add the command. `top` has all commands."""
    completion = arguments.command(
        commands,
        "completion",
        lambda asked: _run(asked.shell, top),
        short="print a script that completes commands in a shell",
        description="""\
Print a script with which a shell completes commands, options, their choices and
the names of files. A new shell has it, and keeps up with upgrades, with one line:
  bash  in ~/.bashrc                   eval "$(holdfast completion bash)"
  zsh   in ~/.zshrc, after compinit    eval "$(holdfast completion zsh)"
  fish  in ~/.config/fish/config.fish  holdfast completion fish | source""",
        epilog="""\
examples:
  eval "$(holdfast completion bash)"
  holdfast completion fish > ~/.config/fish/completions/holdfast.fish
""",
    )
    completion.add_argument("shell", choices=_SHELLS, metavar="SHELL", help=", ".join(_SHELLS))


def _run(shell: str, top: "Parser") -> None:
    import shtab  # only this needs it

    for action in top.actions():
        if action.type is Path:
            vars(action)["complete"] = shtab.FILE
        if isinstance(action.choices, dict):  # a group's commands
            for command in action.choices.values():
                command.description = None  # has several lines; the script then has the short one
    output.write(shtab.complete(top, shell))
