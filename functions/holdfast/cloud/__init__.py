"""Workspaces: the state part of the protocol that `cloud {}` and `backend "remote"` speak.

Parameters and errors have the same meaning in all modules. `holdfast.state` describes most of them; these
are added here:

- `organization` and `workspace` are decoded names; a `WorkspaceId` identifies a workspace. A name that is
  not a valid state name raises `InvalidName` with the broken rule.
- `tags` are values by key; a tag without a value has an empty text. An invalid tag raises `InvalidDocument`.
- `staged` or `staging` is the staging bucket, and `key` the random bits of an upload. `md5` and random bits
  are hexadecimal; `limit` and `size` are bytes.
- Parsing an ID that this API did not make raises `InvalidId`.
"""
