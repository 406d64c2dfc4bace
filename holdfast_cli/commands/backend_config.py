"""`holdfast backend-config`: prints the configuration that reaches a state or its outputs."""

import argparse

from holdfast_cli.config import arguments, backend_config, cloud_config, rules, settings
from holdfast_cli.errors import UsageError
from holdfast_cli.terminal import output
from holdfast_cli.terminal.declaration import Command, either, option

COMMAND = Command()


@COMMAND.define(
    """\
Print the backend "http" block of a state. The API's address comes from --address, from
HOLDFAST_ADDRESS or from the profile. Without any of these, the command reads the
address from the team's stack, which needs AWS credentials. For the local AWS, run
`set -a; . .local/aws.env; set +a`.

If the configuration has the block of another server, such as GitLab, replace the whole
block, because Holdfast has separate addresses for locks. Holdfast refuses unlock_method
= "DELETE" at the address of the state, because a DELETE request to this address deletes
the state.

For a configuration with several environments, write an empty `backend "http" {}`, and
use --tfbackend to write one file for each environment. Then run
`terraform init -backend-config=FILE`. Terraform stores the values of this file, but not
the exports of --env.

--cloud prints a cloud block: the organization is the first segment of STATE.
The workspace is the rest, with ':' instead of '/'.""",
    """\
  holdfast backend-config network/prod > backend.tf
  holdfast backend-config network/prod --team payments --read-only
  holdfast backend-config network/prod --address https://abc123.execute-api.eu-central-1.amazonaws.com
  holdfast backend-config network/prod --tfbackend > prod.tfbackend
  holdfast backend-config network/prod --outputs > network.tf
  holdfast backend-config network/prod --cloud > cloud.tf
  holdfast backend-config network/prod --cloud --tags network > cloud.tf
  eval "$(holdfast backend-config network/prod --env)"
""",
    option("state", type=rules.state, metavar="STATE", help="the state's name, such as network/prod"),
    either(
        option(
            "--tfbackend",
            action="store_true",
            help="print a file for `terraform init -backend-config=FILE`, for several environments",
        ),
        option("--env", action="store_true", help="print TF_HTTP_* exports, which Terraform does not store"),
        option(
            "--outputs",
            action="store_true",
            help="print a terraform_remote_state data source, to read the state's outputs elsewhere",
        ),
        option("--cloud", action="store_true", help="print a cloud block, for a state whose name has a '/'"),
        option(
            "--remote",
            action="store_true",
            help='print the cloud block as a block of the older backend "remote"',
        ),
    ),
    option(
        "--tags",
        type=rules.tags,
        default=(),
        metavar="TAGS",
        help="with --cloud: print a block for all workspaces with these tags, such as a,b",
    ),
    option(
        "--read-only", action="store_true", help="leave out the lock settings, for clients that only plan"
    ),
    arguments.ADDRESS_OR_TEAM,
)
def _run(args: argparse.Namespace) -> None:
    if args.outputs and args.read_only:
        raise UsageError("--outputs and --read-only cannot be used together.")
    if args.read_only and (args.cloud or args.remote):
        raise UsageError("Only the http backend supports --read-only.")
    if args.tags and not args.cloud:
        raise UsageError("--tags needs --cloud.")
    chosen = settings.resolve(args)
    address = chosen.address
    if address is None:
        from holdfast_cli.bucket import stack  # it loads the AWS SDK

        address = stack.api_address(chosen)
    if args.cloud or args.remote:
        output.write(cloud_config.to_hcl(address, args.state, tags=args.tags, remote=args.remote))
    elif args.outputs:
        output.write(backend_config.to_outputs(address, args.state))
    elif args.tfbackend:
        output.write(backend_config.to_tfbackend(address, args.state, read_only=args.read_only))
    elif args.env:
        output.write(backend_config.to_env(address, args.state, read_only=args.read_only))
        output.tell(backend_config.NOTHING_IS_REMEMBERED)
    else:
        output.write(backend_config.to_hcl(address, args.state, read_only=args.read_only))
