"""The `holdfast` command.

Names have the same meaning in all modules:

- `CommandError`: the requested object is missing, invalid, forbidden or in conflict with another; or AWS, S3
  or the API does not respond. A function that sends a request or writes a file may raise it.
- `UsageError`: options, variables or the file of profiles are invalid, contradictory or incomplete. A
  function that reads them may raise it.
- `asked` contains the options of the command, `environment` the variables of the process.
- A `boto3.Session` has the credentials and the region; it comes from `bucket.stack.sign_in`. `stack` is the
  team's stack.
- `address` and `base` are the API's base URL, without a trailing slash. `body` is the body of a request or a
  response, and `status` its HTTP status.
- `team` is a team's name; None means the only deployed team.
- `stream` is the stream on which a text is printed; None means standard output.
- A docstring names further errors, and special causes.
"""
