"""Callers: credentials, the records that prove them, and sign-in.

What is the same everywhere is said here alone:

- A token, a session and a trust record are each stored as a record. Its ID is random.
- `role` says what the bearer may do, `scope` to which states; `description` is the operator's note.
- `created`, `updated`, `rotated` and `revoked` are times, None for never; `created_by` and its like name the
  AWS identity that did it, empty for nobody. What never ends has None as `expires`.
- A record has `secret_sha256`, hexadecimal, and never the secret. `create` and `rotate` return the record to
  store, and the secret to show once.
- `principal` is the bearer, the same in all of their sessions. `subject` is the bearer in full:
  `<issuer>#<subject>` or an ARN.
- `trust` is the name of the trust record that gave role and scope, and `trust_id` its ID: a record that is
  re-created under the same name has another one.
- `newer` is what a newer release stored in a record; a change of the record keeps it.
- `now` is the time, and `trusted` or `records` are the team's trust records.
- `store` is the state bucket. Its errors are those of `holdfast.s3`.
- A `ValueError` says which rule a value broke, or that a stored record is damaged.
"""
