"""`python -m local_aws`: the commands of `make up`, `down`, `clean`, `demo`, `issuer` and `id-token`."""

import argparse
import os
import shutil
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path

from local_aws.failure import LocalAwsError
from local_aws.home import DEFAULT_FOLDER, Home
from local_aws.progress import step
from local_aws.server import ROOT, LocalAws, find_running, for_local_commands

_CACHES = (".build", ".holdfast", "cdk.out", ".pytest_cache", ".hypothesis", ".mypy_cache", ".ruff_cache")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command, and return 0 for success, 1 for failure or 130 after Ctrl-C."""
    arguments = _parser().parse_args(argv)
    clean = for_local_commands(os.environ)
    os.environ.clear()
    os.environ.update(clean)
    try:
        arguments.run(Home(arguments.folder), arguments)
    except LocalAwsError as failure:
        print(failure, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Interrupted; run the command again to continue.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of the output has closed it, as in `… | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        print(f"{error.filename}: {error.strerror}" if error.filename else error, file=sys.stderr)
        return 1
    return 0


def _parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="python -m local_aws",
        description="Holdfast on a local AWS, on this machine only. `make` has the same commands.",
        epilog="""\
examples:
  python -m local_aws up
  python -m local_aws up --port 4600
  python -m local_aws up --teams 'platform payments'
  python -m local_aws --folder /tmp/second up --port 4601
  python -m local_aws issuer
  python -m local_aws id-token --claim repository=acme/network --claim ref=refs/heads/main
""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=DEFAULT_FOLDER,
        help="the folder of the local AWS; each folder has a local AWS of its own (default: .local)",
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Callable[[Home, argparse.Namespace], None], help_: str) -> ArgumentParser:
        added = commands.add_parser(name, help=help_)
        added.set_defaults(run=run)
        return added

    up = command("up", _up, "start the local AWS, deploy what changed, and say what to do next")
    up.add_argument("--port", type=_port, help="a port of 127.0.0.1 (default: the port used last, or 4566)")
    up.add_argument(
        "--teams",
        metavar="NAMES",
        help="deploy these teams, or `all`, and update them in later runs (default: the first team of "
        "teams.toml)",
    )
    command("down", _down, "stop the local AWS; everything is kept")
    command("demo", _demo, "run examples/hello with a real Terraform")
    command("clean", _clean, "stop the local AWS, and remove it with its states and all caches")
    issuer = command("issuer", _issuer, "run an OpenID Connect issuer until Ctrl-C, to try sign-in")
    issuer.add_argument(
        "--port", type=_port, help="a port of 127.0.0.1 (default: the port used last, or 4570)"
    )
    id_token = command("id-token", _id_token, "print an ID token of that issuer")
    id_token.add_argument(
        "--claim",
        type=_claim,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a claim of the ID token, as in repository=acme/network or sub=my-job; may be repeated",
    )
    return parser


def _port(value: str) -> int:
    if not value.isdecimal() or not 1 <= int(value) <= 65535:
        raise argparse.ArgumentTypeError(f"{value!r} is not a valid port; pick a number from 1024 to 65535")
    return int(value)


def _claim(value: str) -> tuple[str, str]:
    name, equals, said = value.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(
            f"{value!r} is not a valid claim; write NAME=VALUE, as in repository=acme/network"
        )
    return name, said


def _up(home: Home, arguments: argparse.Namespace) -> None:
    from local_aws.up import up

    up(home, arguments.port, arguments.teams)


def _demo(home: Home, _: argparse.Namespace) -> None:
    from local_aws.demo import demo

    demo(home)


def _down(home: Home, _: argparse.Namespace) -> None:
    running = find_running(home.aws_data)
    if running is None:
        print("Nothing is running.")
        return
    with home.alone(), step("Stopping the local AWS"):
        LocalAws(running.port, home.aws_data).stop()
    print(f"States, locks and the token stay in {home.folder}; `make up` uses them again.")


def _issuer(home: Home, arguments: argparse.Namespace) -> None:
    from local_aws import issuer

    try:
        issuer.serve(home, arguments.port)
    except KeyboardInterrupt:
        print("\nThe issuer has ended.", file=sys.stderr)


def _id_token(home: Home, arguments: argparse.Namespace) -> None:
    from local_aws.issuer import print_id_token

    if warning := print_id_token(home, dict(arguments.claim)):
        print(warning, file=sys.stderr)


def _clean(home: Home, _: argparse.Namespace) -> None:
    removed = []
    if home.folder.exists():
        with home.alone():
            if running := find_running(home.aws_data):
                with step("Stopping the local AWS"):
                    LocalAws(running.port, home.aws_data).kill()
            home.remove()
        removed.append(home.folder)
    if home.folder == DEFAULT_FOLDER.resolve():
        for folder in (ROOT / name for name in _CACHES):
            if folder.exists():
                shutil.rmtree(folder)
                removed.append(folder)
    names = [_display(folder) for folder in removed]
    print(f"Removed {', '.join(names)}." if names else "There was nothing to remove.")


def _display(path: Path) -> str:
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


if __name__ == "__main__":
    sys.exit(main())
