"""The checks of `holdfast doctor`: one module for each place that is checked. Each check yields findings.

- `client` has the operator's credentials. `bucket` is the name of the team's bucket, `owner` the account that
  owns the bucket, `found` the team's stack, and `template` the stack's template.
- `folder` has the configuration of `state`. `where` has the API's address or the team.
- `block` is the configuration's backend block. `noted` is the backend that `terraform init` stored, if any.
- Any check may raise a `ClientError` or an `UnresolvedError`. `checks.attempt` turns these into findings.
"""
