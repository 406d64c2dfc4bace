"""Measure the S3 requests and milliseconds that Holdfast needs, and compare them with Terraform's S3 backend.

In all modules of this package:

- `measure` measures a section. `run` is the run that the section belongs to.
- `terraform` is the Terraform or OpenTofu program to run.
- A failed command, request or bundle raises `RuntimeError`; a failed deployment raises `LocalAwsError`.
- Addresses are base URLs, without a slash at the end. Round trips are in seconds.
"""
