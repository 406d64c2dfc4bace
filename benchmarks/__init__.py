"""Measure the cost of Holdfast, in S3 requests and milliseconds, beside Terraform's own S3 backend.

In all modules of this package:

- `measure` measures a section. `run` is the run that the section belongs to.
- `terraform` is the program that commands run.
- A failed command, request or bundle raises `RuntimeError`, a failed deployment `LocalAwsError`.
- Addresses are base URLs, without a slash at the end. Round trips are in seconds.
"""
