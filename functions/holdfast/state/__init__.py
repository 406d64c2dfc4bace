"""States and their locks: documents, guards, and the verbs that read and change them.

Parameters have the same meaning in all modules:

- `work` is one caller at one state in one request (`holdfast.work.Work`). A verb takes it, and raises
  `NotAllowed` if the caller's role or scope does not allow the verb. Functions that only read or remove an
  object take `store`, the bucket, and `name`, the name of the state.
- `OutcomeUnknown` is raised if S3 neither accepts nor refuses a request in time; a retry is safe.
  `StorageRefused` is raised if S3 refuses the function.
- If the policy says `declared_only`, a name that is not declared and has no state raises `NotDeclared`. An
  acquire or a create then sends one more request, or two without a state; a read or a write sends one without
  a state. The verbs of operators do not look at it. If the policy says `require_lock`, a write needs a lock.
  A restore, a commit or an upload above `largest_state` raises `TooLarge`.
- `version_id` is the ID of an object version, of the state or of the lock; None means the current version.
- `body` is the bytes of a document, `sha256` their hexadecimal hash.
- `lock` is the lock that was read; None means that the state is unlocked. `lock_id` is the ID of the lock
  that the client claims to hold, or None.
- `principal` is the principal who acquired a lock; None if another program than Holdfast acquired it.
- `info` is lock info. A verb that acquires its own lock has the same info in a retry, to recognize that lock.
- `reason` is one line that clients show. `command_id` and `freeze_id` are 32 random hexadecimal digits, the
  same in a retry.
- `force` skips the comparison of serial and lineage, at the user's request.
- `marker_created` means that S3 refused to remove a lock's version, so a delete marker was created over it.
- `cursor` is `next` of the page before; None for the first page.

Errors have the same meaning, too. A docstring lists an error only if it is raised for a further reason:

- `Locked`: somebody else holds the lock, or the state is frozen. `Frozen`: the lock is a freeze.
- `LockNotMatched`: the held lock is not the requested lock, and is not removed.
- `LockLost`: the write's lock is gone, or is another lock object, so the write is not acknowledged.
  `LockRequired`: the state is unlocked, and the team's policy requires a lock.
- `InvalidState`: the body is not a state document. `InvalidLockInfo`: it is not a JSON object with an ID.
- `InvalidRequest`: an ID, a reason, a time or a cursor breaks a rule.
- `NoState`, `NoSuchVersion`, `NoVersions`: the state or version does not exist. `UnreadableState`,
  `UnreadableVersion`: the stored object is not a state document.
- `LineageChanged`: the document belongs to another lineage than the current state.
- `BaseChanged`: the current version is not the version that the caller has seen.
- `RacedWriter`: somebody else kept writing.
"""
