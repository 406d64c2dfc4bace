"""What Holdfast costs: S3 requests and milliseconds, beside Terraform's own S3 backend."""
