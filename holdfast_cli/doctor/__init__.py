"""The checks of `holdfast doctor`, one module for each place. A check yields findings.

- `client` has the operator's credentials. `bucket` is the name of the team's bucket, `owner` the ID of its
  account, `found` the team's stack, and `template` the stack's template.
- `folder` contains the configuration of `state`. `where` is the API, by its address or team.
- `block` is the configuration's backend block, `noted` the backend that `terraform init` stored, or None.
- Any check may raise `ClientError` and `UnresolvedError`. `checks.attempt` turns them into findings.
"""

from holdfast_cli.lazy import load_when_used

load_when_used(__name__)
