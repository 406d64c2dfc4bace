"""Fixtures and helpers that several test folders share.

Of requests and responses, `method` is the verb, `target` path and query, `status` that of HTTP; `headers`
have lower-case names. A client's `address` is the API's base URL; its `tls` says whom to trust, None where
that is plain HTTP.
"""
