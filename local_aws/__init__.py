"""The AWS on this machine: what `make up` and the tests start, deploy to and stop again.

What is the same everywhere is said here alone:

- `LocalAwsError` says in one line what could not be done, for people; after a failed command, with the end of
  its output.
- `aws` is a local AWS that runs, `home` the folder `.local/`, or another one to work beside it.
- `port` is one of 127.0.0.1, 0 any free one. Where it is taken, `serving` raises `OSError`.
- `template` is the synthesized template. `environment` are the variables of a process.
- Addresses are base URLs, without a slash at the end. Commands return their exit code.
"""
