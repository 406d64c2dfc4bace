"""All requests to S3: conditional writes, reads, lists, retries.

What is the same everywhere is said here alone:

- `bucket` is the bucket's name, `owner` the ID of the AWS account that it must belong to, `key` an object's
  key, and `version_id` one of its versions.
- `size` and `limit` are bytes; `page_size` is how many entries one request asks for, and a page has at most.
- `last_modified` is when S3 took a version, in whole seconds; another server than AWS may list fractions.
- `deadline` is the `time.monotonic()` second after which no request starts.
- `endpoint_url` is where S3 is; by default what the environment says, else AWS.
- Where S3 does not decide in time, `OutcomeUnknown` is raised, and the request may have taken effect. Where
  S3 refuses the caller, `StorageRefused` is.
"""
