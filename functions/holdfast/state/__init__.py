"""States and their locks: documents, guards, and the verbs that read and change them.

What is the same everywhere is said here alone:

- `store` is the bucket, `name` the name of the state, and `caller` who asks. What they may not do raises
  `NotAllowed`.
- Where S3 does not decide in time, `OutcomeUnknown` is raised, and a retry is safe; where it refuses the
  function, `StorageRefused`.
- `declared_only` refuses a name without a state that is not declared (`NotDeclared`). An acquire or a
  create pays one request for it, without a state two; a read or a write pays one, and only without a state.
- `retention` says how long S3 keeps a new version from being deleted; None leaves that to the bucket.
- `version_id` names an object version, of the state or of the lock; None means the current one.
- `limit` is the bytes of the largest state that is taken; a larger one raises `TooLarge`.
- `body` is the bytes of a document, `sha256` their hash, hexadecimal.
- `lock` is the lock that was read; without one, a write is unlocked. `lock_id` is the ID of the lock that the
  client says it holds; None if it names none. `require_lock` refuses writes without a lock.
- `principal` is who acquired a lock; None if another program than Holdfast did.
- `info` is lock info. That of a verb's own lock is the same in a retry, which then meets that lock.
- `reason` is one line that clients show. `command_id` and `freeze_id` are 32 hexadecimal digits, random, the
  same in a retry.
- `force` is the wish of the user to write whatever serial and lineage say.
- `memory` is that of the process, if it has one; it learns which version is current.
- `marker_created` says that S3 did not let a lock's version go, so that a delete marker was created over it.
- `cursor` is `next` of the page before; None for the first page.

These errors mean the same everywhere. The lines of a function say what else it raises, or what is special:

- `Locked`: somebody else holds the lock, or the state is frozen. `Frozen`: the lock is a freeze. It stays.
- `LockNotMatched`: another lock is held than the one that is meant. It stays.
- `LockLost`: the lock of the write is gone, or is another lock object, so the write does not count.
  `LockRequired`: `require_lock`, and no lock is held.
- `InvalidState`: not a state document. `InvalidLockInfo`: not a JSON object with an ID, or `TooLarge`.
- `InvalidRequest`: an ID, a reason, a time or a cursor breaks a rule.
- `NoState`, `NoSuchVersion`, `NoVersions`: there is none. `UnreadableState`, `UnreadableVersion`: it is not a
  state document.
- `LineageChanged`: it belongs to another lineage than the current state.
- `BaseChanged`: another version is current than the caller has seen.
- `RacedWriter`: somebody else kept writing.
"""
