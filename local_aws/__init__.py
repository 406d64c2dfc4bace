"""The local AWS: `make up` and the tests start it on this machine, deploy to it and stop it.

In all modules of this package:

- `LocalAwsError` says in one line for people what could not be done. After a failed command, the end of the
  command's output follows.
- `aws` is a running local AWS, `home` the folder `.local/`, or another folder for a second local AWS.
- `port` is a port of 127.0.0.1; 0 is any free port. If the port is in use, `serving` raises `OSError`.
- `template` is the synthesized template, `environment` the environment variables of a process.
- Addresses are base URLs, without a slash at the end. Commands return their exit code.

What MiniStack leaves out, and what replaces it:

- Encryption, Object Lock, ownership, lifecycle and tags of buckets: `bucket_properties` sets them after
  each deployment.
- Limits, verbs and renamed headers of API Gateway and Lambda: `tests/support/aws_gateway.py`.
- The `:*` at the end of a log group's ARN, a role's own ARN as `aws:PrincipalArn`, and several log lines in
  one event of a subscription: `ministack_process` adds them.
- Permissions on KMS and tags, `s3:signatureAge`, `s3:authType` and bucket policies are not enforced: tests
  compare roles with `tests/support/aws_permissions.py`.
- An ETag under a KMS key is a digest of the bytes, unlike on AWS.
- `ExpectedBucketOwner` is not checked: tests check it in every request. There is no CloudTrail.
- After a SIGKILL, the control plane and the logs are as at the last stop: `make up` stops and starts
  MiniStack after a deployment.
"""
