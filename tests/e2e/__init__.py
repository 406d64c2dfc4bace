"""Tests of deployed teams, through what AWS puts in front of them.

Several modules have these fixtures. `issuer` is one that the team trusts for the repository acme/network, to
write below `ci/`. `state` is a name of two segments: not every client of `cloud` takes the `:` in the
workspace of a longer one.
"""
