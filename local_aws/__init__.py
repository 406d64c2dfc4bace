"""The local AWS: `make up` and the tests start it on this machine, deploy to it and stop it.

Names and errors have the same meaning in all modules:

- `LocalAwsError` has a message of one line for people; after a failed command, with the end of its output.
- `aws` is a local AWS that runs. `home` is the folder `.local/` or another one.
- `port` is a port of 127.0.0.1; 0 = any free port. If the port is taken, `serving` raises `OSError`.
- `template` is the synthesized template. `environment` has the environment variables of a process.
- Addresses are base URLs, without a slash at the end. Commands return their exit code.
"""
