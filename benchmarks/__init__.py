"""What Holdfast costs: S3 requests and milliseconds, beside Terraform's own S3 backend.

What is the same everywhere is said here alone:

- `measure` measures a section. `run` is the run that the section belongs to.
- `terraform` is the program that commands run.
- A command, a request or a bundle that fails raises `RuntimeError`, a stack that could not be deployed
  `LocalAwsError`.
- Addresses are base URLs, without a slash at the end. Round trips are in seconds.
"""
