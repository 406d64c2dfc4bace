"""The benchmark: it compares requests and times of Holdfast with those of Terraform's own `s3` backend.

Names and errors have the same meaning in all modules:

- `measure` measures a section. `run` is the run that the section belongs to.
- `terraform` is the program that runs the commands.
- A command, a request or a bundle that fails raises `RuntimeError`. A failed deployment raises
  `LocalAwsError`.
- Addresses are base URLs, without a slash at the end. Round trips are in seconds.
"""
