"""All requests to S3: conditional writes, reads, lists, retries."""
