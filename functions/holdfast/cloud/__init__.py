"""Workspaces: the state part of the protocol that `cloud {}` and `backend "remote"` speak.

What is the same everywhere is said in `holdfast.state`, and here:

- `organization` and `workspace` are names as the gateway has decoded them; a `WorkspaceId` says which
  workspace. Names that no state can have raise `InvalidName`, whose message says why.
- `tags` are values by key; a tag without a value has an empty one. A tag that breaks a rule raises
  `InvalidDocument`.
- `staged` or `staging` is the staging bucket, and `key` the random bits of an upload. `md5` and random bits
  are hexadecimal; `limit` and `size` are bytes.
- An ID that this API did not make raises `InvalidId` when it is parsed.
"""
