"""What `holdfast doctor` looks at: one module for each place, each of which yields findings.

- `client` has the operator's credentials. `bucket` is the name of the team's bucket, `owner` the account that
  owns it, `found` the team's stack, and `template` its template.
- `folder` has the configuration of `state`. `where` is the API, by its address or team.
- `block` is of the configuration, `noted` is what `terraform init` noted, if anything.
- A `ClientError` and an `UnresolvedError` may come out of any check. `checks.attempt` makes findings of them.
"""

from holdfast_cli.lazy import load_when_used

load_when_used(__name__)
