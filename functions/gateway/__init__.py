"""The common code of the functions behind API Gateway's HTTP API.

Names have the same meaning in this package and in the packages of these functions:

- `event` is an event of the HTTP API, payload format 2.0, and `context` Lambda's context of the invocation.
- `request` is the request with its parsed event, `store` the bucket for its requests to S3.
- API Gateway has decoded the path and the parameters; they are never decoded again.
- `UnknownRoute` is raised for an unknown path, `MethodNotAllowed` for an unknown verb, `NotAuthenticated` if
  there is no caller, and `NotAllowed` if the role or scope does not cover the request.
- `TooLarge` is raised if a body does not fit into a response.
"""
