"""The `holdfast` command.

In all of its modules:

- `CommandError`: what is asked for is absent, not valid or not allowed, or clashes with what is there; or
  AWS, S3 or the API does not respond. A function that sends a request or writes a file may raise it.
- `UsageError`: options, variables or the file of profiles are not valid, contradict each other, or lack
  what is needed. A function that reads them may raise it.
- `asked` has the options of the command, `environment` the variables of the process.
- A `boto3.Session` has the credentials and the region; it comes from `bucket.stack.sign_in`. `stack` is the
  team's.
- `address` and `base` are the API's base URL, without a slash at its end. `body` is what is sent or was
  received, and `status` is of HTTP.
- `team` is a team's name; None stands for the only team that is deployed.
- `stream` is where a text is printed; None stands for standard output.
- A function that may raise more, or that raises for a cause of its own, says so.
"""
