"""Callers: credentials, the records that prove them, and sign-in.

Names have the same meaning in all modules:

- Each token, each session and each trust is stored as a record, whose ID is random.
- `grants` say what the bearer may do to which states; `description` is the operator's note.
- `created`, `updated`, `rotated` and `revoked` are times, None for never; `created_by` and similar fields are
  the ARN of the AWS identity that made the change, or empty. `expires` is None if credentials never expire.
- A record contains `secret_sha256`, hexadecimal, and never the secret. `create` and `rotate` return the
  record to store, and the secret to show once.
- `principal` names the bearer, and is the same in all their sessions. `subject` is their full identity:
  `<issuer>#<subject>` or an ARN.
- `trust` is the name of the trust record with the caller's grants, and `trust_id` its ID. A record that
  is re-created under the same name gets another ID.
- `newer` contains the members that a newer release stored in a record; a change of the record keeps them.
- `now` is the current time, and `trusted` or `records` are the team's trust records.
- `store` is the state bucket. Its errors are those of `holdfast.s3`.
- A `ValueError` names the rule that a value broke, or says that a stored record is damaged.
"""
