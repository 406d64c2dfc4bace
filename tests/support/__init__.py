"""Fixtures and helpers that several test folders share.

In requests and responses, `method` is the HTTP verb, `target` the path with the query, `status` the HTTP
status; `headers` have lower-case names. A client's `address` is the API's base URL. Its `tls` has the trusted
authorities, None for plain HTTP.
"""
