"""Create an S3 client with boto3, and print the same times as `first_request`.

A program of its own, whose only packages are boto3 and what boto3 needs.
"""

import time

import boto3

if __name__ == "__main__":
    boto3.client("s3")
    print([time.monotonic(), time.monotonic(), time.process_time()])
