"""The `holdfast` command.

Names have the same meaning in all modules:

- `CommandError`: something is absent, not valid, not allowed or already there; or AWS, S3 or the API does not
  respond. Every function that sends a request or writes a file may raise it.
- `UsageError`: options, variables or the profiles file are not valid, contradict each other, or leave out
  something that is needed. Every function that reads them may raise it.
- `args` is the parsed command line, `environment` the environment variables of the process.
- A `bucket.stack.Session` has the credentials, the region and the clock of AWS. `stack` is the team's
  deployed stack.
- `address` and `base` are the API's base URL, without a slash at its end. `body` is the body of a request or
  a response, and `status` the HTTP status.
- `team` is a team's name; None means the only deployed team.
- `stream` is where a text is printed; None means standard output.
- The docstring of a function names any other exception, and any other reason for these two exceptions.
"""
