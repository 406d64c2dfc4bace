"""States and their locks: documents, guards, and the verbs that read and change them.

What is the same everywhere is said here alone:

- `store` is the bucket, `name` the name of the state, and `caller` who asks. What they may not do raises
  `NotAllowed`.
- Where S3 does not decide in time, `OutcomeUnknown` is raised, and a retry is safe; where it refuses the
  function, `StorageRefused`.
- `declared_only` refuses a name without a state that is not declared (`NotDeclared`). An acquire or a
  create pays one request for it, without a state two; a read or a write pays one, and only without a state.
- `retention` says how long S3 keeps a new version from being deleted; None leaves that to the bucket.
"""
