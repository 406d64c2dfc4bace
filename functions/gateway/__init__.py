"""API Gateway's HTTP API: what the functions behind its routes have in common.

What is the same everywhere, also in the packages of these functions, is said here alone:

- `event` is an event of the HTTP API, payload format 2.0, and `context` the invocation's.
- `request` is the request with what is read of its event, `store` the bucket for its requests to S3.
- API Gateway has decoded the path and the parameters: they are never decoded again.
- `UnknownRoute` and `MethodNotAllowed` say that there is no such route, `NotAuthenticated` that there is no
  caller, and `NotAllowed` that role or scope do not cover the request.
- `TooLarge` says that a response has no room for a body.
"""
