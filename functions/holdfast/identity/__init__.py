"""Callers: credentials, the records that prove them, and sign-in.

Names have the same meaning in all modules:

- A token, a session and a trust record are each stored as a record. Its ID is random.
- `role` says what the bearer may do, `scope` to which states; `description` is the operator's note.
- `created`, `updated`, `rotated` and `revoked` are times, None for never; `created_by` and similar fields are
  the ARN of the AWS identity that did it, or empty. `expires` is None if the credentials never end.
- A record contains `secret_sha256`, hexadecimal, and never the secret. `create` and `rotate` return the
  record to store, and the secret to show once.
- `principal` is the bearer, the same in all of their sessions. `subject` is the bearer's full identity:
  `<issuer>#<subject>` or an ARN.
- `trust` is the name of the trust record that granted role and scope, and `trust_id` its ID. A record that
  is re-created under the same name gets another ID.
- `newer` contains the members that a newer release stored in a record; a change of the record keeps them.
- `now` is the time, and `trusted` or `records` are the team's trust records.
- `store` is the state bucket. Its errors are those of `holdfast.s3`.
- A `ValueError` names the rule that a value broke, or says that a stored record is damaged.
"""
