"""The checks of `holdfast doctor`: one module for each place, and each check yields findings.

- `client` has the operator's credentials. `bucket` is the name of the team's bucket, `owner` the account that
  owns it, `found` the team's stack, and `template` its template.
- `folder` has the configuration of `state`. `where` has the API's address or team.
- `block` is the backend block of the configuration, `noted` the backend that `terraform init` noted, or None.
- Any check may raise a `ClientError` or an `UnresolvedError`. `checks.attempt` turns them into findings.
"""

from holdfast_cli.lazy import load_when_used

load_when_used(__name__)
