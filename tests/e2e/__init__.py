"""Tests of deployed teams, through a proxy with the limits of AWS's gateway.

Several modules have these fixtures. `issuer` is an issuer that the team trusts for the repository
acme/network, to write below `ci/`. `state` is a name of two segments: a longer name has a `:` in its
workspace, which not every client of `cloud` accepts.
"""
