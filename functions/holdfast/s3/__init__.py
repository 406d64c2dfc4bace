"""All requests to S3: conditional writes, reads, lists, retries.

Names have the same meaning in all modules:

- `bucket` is the bucket's name, `owner` the ID of the AWS account that must own it, `key` an object's key,
  and `version_id` the ID of one of its versions.
- `size` and `limit` are bytes; `page_size` is the maximum number of entries in a page.
- `last_modified` is when S3 stored a version, in whole seconds; servers other than AWS may list fractions.
- `deadline` is the `time.monotonic()` value after which no request starts.
- `endpoint_url` is the address of S3; None means the address in the environment, else the address of AWS.
- `OutcomeUnknown` is raised if S3 neither accepts nor refuses a request in time; it may have taken effect.
  `StorageRefused` is raised if S3 refuses the caller.
"""
