"""`holdfast backend-config`: the backend block of a state."""

import argparse
from typing import TYPE_CHECKING

from holdfast_cli import arguments, backend_config, output

if TYPE_CHECKING:
    from holdfast_cli.arguments import Commands


def add(commands: "Commands") -> None:
    """Add the command."""
    config = arguments.command(
        commands,
        "backend-config",
        _run,
        short="print the backend block of a state",
        description="""\
Print the backend "http" block of a state. Without --address, the address is
read from the team's stack, which needs AWS credentials;
for the local AWS: set -a; . .local/aws.env; set +a.""",
        epilog="""\
examples:
  holdfast backend-config network/prod > backend.tf
  holdfast backend-config network/prod --team payments --read-only
  holdfast backend-config network/prod --address https://abc123.execute-api.eu-central-1.amazonaws.com
  eval "$(holdfast backend-config network/prod --env)"
""",
    )
    config.add_argument(
        "state", type=arguments.state, metavar="STATE", help="the state's name, such as network/prod"
    )
    config.add_argument("--env", action="store_true", help="print TF_HTTP_* exports instead of HCL")
    config.add_argument(
        "--read-only", action="store_true", help="leave the lock out, for those who only plan"
    )
    where = config.add_mutually_exclusive_group()
    arguments.add_team(where)
    where.add_argument("--address", type=arguments.address, metavar="URL", help="the API's base URL")


def _run(asked: argparse.Namespace) -> None:
    address = asked.address
    if address is None:
        from holdfast_cli import stack  # the SDK is loaded only by what talks to AWS

        address = stack.find(stack.sign_in(), asked.team).api_address
    write = backend_config.to_env if asked.env else backend_config.to_hcl
    output.write(write(address, asked.state, read_only=asked.read_only))
